"""The sketch f(A) G / √k, whose row distances are diffusion distances in expectation."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from heatsketch._random import check_ids, numbers_at, random_block
from heatsketch._tensors import on_host
from heatsketch._typing import Array, Rng
from heatsketch._validation import check_choice, check_number
from heatsketch.operators.deflated import Deflated
from heatsketch.operators.graph import on_vertices
from heatsketch.spectral.apply import sketch_blocks
from heatsketch.spectral.eigenpairs import leading_vector
from heatsketch.spectral.filters import Filter

KINDS = ("gaussian", "rademacher")
MOST_COLUMNS = 10**6  # distances are then within 0.14 %


def sketch(
    A: Any,
    filter: Filter | Sequence[Filter],
    n_components: int = 64,
    *,
    kind: str = "gaussian",
    G: Array | None = None,
    deflate: bool = True,
    tol: float | None = None,
    ids: Any = None,
    rng: Rng = None,
) -> Any:
    """Compute F = f(A) G / √k, with E|F_i - F_j|² = D² = |row_i f(A) - row_j f(A)|².

    Algorithm 4 of [1]_ has Gaussian G, Algorithm 5 has entries ±1. For Gaussian G the ratio k |F_i
    - F_j|² / D² is chi-square with k degrees of freedom, exactly, for every pair. With `deflate`, A
    is the deflated operator here and D is `diffusion_distance(A, deflate=True)`: the same as
    without deflation for bistochastic A, smaller if √π is not constant.

    Parameters
    ----------
    A : Diffusion, Graph, Operator or {array-like, sparse matrix} of shape (n_samples, n_samples)
        Symmetric, usually a normalised affinity.
    filter : Power, Heat, Accumulated, or a list of them
        A list gives a list of sketches with the same G, in one pass.
    n_components : int >= 1, default=64
        Number of columns k. One standard deviation of a squared distance is √(2/k) of it.
    kind : {"gaussian", "rademacher"}, default="gaussian"
        Entries of G: N(0, 1), or ±1. With ±1 squared distances have the same mean and a relative
        variance of (2 - 2 Σu⁴/(Σu²)²)/k <= 2/k, u the difference of two rows of f(A), but two
        isolated points share a row with probability 2^-k.
    G : array-like of shape (n_samples, n_components), default=None
        The matrix G to use instead of a random one; `n_components`, `kind`, `ids` and `rng` are
        then ignored.
    deflate : bool, default=True
        Project out the eigenvector of the largest eigenvalue (√π for a normalised affinity) in
        every product, because it has no information about which points are near, and at large times
        the rest would be lost in its rounding. It is computed unless the operator knows it or it is
        constant. A `Deflated` operator is used as it is. Pass False for the formula of [1]_.
    tol : float, default=None
        Largest error of f on the spectrum, relative to its largest value there, if f(A) G is
        computed by a Chebyshev series. The default, which is also the least, is rounding. The error
        of a distance is relative to the largest distance, so close pairs have a larger relative
        error. 1e-6 saves about a third of the products at large times.
    ids : array-like of shape (n_samples,), default=None
        Names of the points, integers, strings or bytes. The row of G of a point then depends on
        `rng`, `n_components` and its id, not on its row in A, so that sketches of several data sets
        with the same `rng` can be compared point by point.
    rng : int, Generator or None, default=None
        Seed of G: the same seed gives the same bits, with any number of threads.

    Returns
    -------
    ndarray of shape (n_samples, n_components), or list of these
        The sketch, or one sketch for each filter.

    Raises
    ------
    ValueError
        A is not symmetric or not finite; G has another shape; the time is so large that the result
        underflows.

    See Also
    --------
    HeatSketch : Embed data by random columns; distances are right on average.
    eigh : Compute the leading eigenpairs of an operator.
    columns_for : Compute the number of columns for a relative error.
    uncertainty.distance_interval : Compute confidence intervals of distances of a sketch.

    Notes
    -----
    The cost is as many products by A as the largest power, or about √(70 t) for a large time t.
    Memory holds G and three blocks of n k numbers, and one more for each filter.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Algorithms 4 and 5.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> A = hs.symmetric_normalize(hs.gaussian_affinity(np.arange(5.0)[:, None], epsilon=1.0))
    >>> hs.sketch(A, hs.Power(4), n_components=3, rng=0).shape
    (5, 3)
    """
    filters = [filter] if callable(filter) else filter
    many = isinstance(filters, Sequence) and len(filters) > 0
    if not many or not all(isinstance(f, Filter) for f in filters):
        raise TypeError(
            f"filter={filter!r} is not a filter; pass Power(p), Heat(t) or a list of them."
        )
    A, vertex = on_vertices(A)
    point_at = np.unique(vertex, return_index=True)[1]  # of each vertex
    if tol is not None:
        tol = check_number(tol, "tol", low=0, open_low=True)
    if G is None:
        k = check_number(n_components, "n_components", low=1, high=MOST_COLUMNS, integer=True)
        n, kind = len(vertex), check_choice(kind, "kind", KINDS)
        if ids is None:
            G = A.blocks.native(random_block(n, k, kind, rng), A.dtype)[point_at]
        else:
            numbers = numbers_at(check_ids(ids, n), vertex, A.n)
            G = random_block(n, k, kind, rng, numbers)
    else:
        G = np.asarray(on_host(G))
        if not np.isfinite(G).all():
            raise ValueError("G contains NaN or infinity; pass finite numbers.")
        if G.ndim != 2 or G.shape[1] < 1:
            raise ValueError(f"G has shape {G.shape}; pass ({A.n}, k) with k >= 1.")
        G = G[point_at] if len(G) == len(vertex) else G  # other lengths are refused below
    if deflate and not A.n_deflated:
        A = Deflated(A, leading_vector(A))
    sketches = [block[vertex] for block in sketch_blocks(A, filters, A.block(G), tol)]
    return sketches[0] if callable(filter) else sketches
