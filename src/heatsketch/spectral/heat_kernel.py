"""The embedding of a manifold by its heat kernel."""

import math
from typing import Any

import numpy as np

from heatsketch._arrays import Array
from heatsketch._checks import check_number, check_points


def heat_kernel_embedding(
    eigenvalues: Any, eigenfunctions: Any, time: float, dimension: int
) -> Array:
    """Compute √2 (4π)^(n/4) t^((n+2)/4) (e^{-λ_j t/2} φ_j(x))_j, an almost isometric embedding.

    For a compact manifold of dimension n with Laplacian eigenvalues λ_j > 0 and eigenfunctions φ_j,
    orthonormal in L²(M), its pullback metric tends to that of the manifold as t -> 0 [1]_ [2]_. So
    distances of near points are their lengths on the manifold, at a time for which the λ_j given
    are enough: λ_k t is large.

    Parameters
    ----------
    eigenvalues : array-like of shape (n_eigenvalues,)
        Eigenvalues λ_j >= 0, without the constant one. For a `DiffusionMap` of the "dense" affinity
        with α = 1 they are ``4 / epsilon * (1 - eigenvalues_)``.
    eigenfunctions : array-like of shape (n_samples, n_eigenvalues)
        Values of φ_j at points. For a `DiffusionMap` in the Markov form and a manifold of volume V
        they are ``eigenvectors_ / np.sqrt(V)``.
    time : float > 0
        t.
    dimension : int >= 1
        Dimension n of the manifold.

    Returns
    -------
    ndarray of shape (n_samples, n_eigenvalues)
        Coordinates.

    Raises
    ------
    ValueError, TypeError
        As many eigenvalues as eigenfunctions are not given, or one is negative; a time or a
        dimension out of range.

    See Also
    --------
    DiffusionMap : Embed data by the leading eigenvectors of its diffusion.
    Heat : The filter e^{-t(1-λ)}.

    Notes
    -----
    The cost is one product for each number. In print the factor is another one, which [2]_ does not
    have.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Theorem 2.1 and equation (2).
    .. [2] P. Bérard, G. Besson and S. Gallot, "Embedding Riemannian manifolds by their heat
       kernel", Geometric and Functional Analysis 4 (1994), 373-398.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> angle, m = np.array([0.0, 0.01]), np.arange(1, 40)
    >>> waves = np.hstack([np.cos(angle[:, None] * m), np.sin(angle[:, None] * m)])
    >>> Y = hs.heat_kernel_embedding(np.tile(m**2, 2), waves / np.sqrt(np.pi), 0.02, 1)
    >>> float(np.linalg.norm(Y[1] - Y[0]).round(4))
    0.01
    """
    phi = check_points(eigenfunctions, "eigenfunctions", min_rows=1, accept_sparse=False)
    lam = np.asarray(eigenvalues, dtype=float)
    if lam.shape != (phi.shape[1],) or not (lam >= 0).all():
        raise ValueError(
            f"eigenvalues have shape {lam.shape}, the smallest is {lam.min(initial=np.inf):.3g}; "
            f"pass {phi.shape[1]} numbers >= 0, one for each eigenfunction."
        )
    t = check_number(time, "time", low=0, open_low=True)
    n = check_number(dimension, "dimension", low=1, integer=True)
    factor = math.sqrt(2) * (4 * math.pi) ** (n / 4) * t ** ((n + 2) / 4)
    return np.asarray(factor * np.exp(-lam * t / 2) * phi)
