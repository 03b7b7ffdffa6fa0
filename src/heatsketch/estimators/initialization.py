"""A start for methods that move points step by step: UMAP, t-SNE, PaCMAP."""

from typing import Any

import numpy as np

from heatsketch._arrays import Array, Rng
from heatsketch._checks import check_n_components, check_number
from heatsketch._random import random_block
from heatsketch.markov.diffusion import Diffusion
from heatsketch.spectral.filters import Power
from heatsketch.spectral.functions import apply, time_excess

_EXTRA_COLUMNS = 14
_TOLERANCE = 1e-4  # relative error of A^t, enough for a start
_LEAST = 1e-2  # of the last direction, relative to the first, at the time that is used
_SPREAD = 1e-4  # standard deviation of a coordinate, as in openTSNE and scikit-learn
_JITTER = 1e-3  # of the spread, so that no two points coincide


def initialization(
    X: Any, n_components: int = 2, *, time: int = 1024, rng: Rng = None, **options: Any
) -> Array:
    """Compute a start for UMAP, t-SNE or PaCMAP, without an eigen-solver.

    The start consists of the k principal axes of a sketch A^t G with k + 14 columns [1]_, in the
    Markov form (divided by √π). At large times a few random columns span the slowest directions,
    for which a spectral start needs an eigen-solver. The number of products is known beforehand, at
    most about √(20 t), and nothing has to converge.

    Parameters
    ----------
    X : Diffusion or {array-like, sparse matrix} of shape (n_samples, n_features)
        Points, or their diffusion.
    n_components : int >= 1, default=2
        Number k of coordinates.
    time : int >= 1, default=1024
        The largest time. It is divided by powers of 4 where otherwise a single direction would be
        left. Larger times come closer to the slowest directions.
    rng : int, Generator or None, default=None
        Seed of the random columns.
    **options
        Parameters of `Diffusion.from_points`, such as `n_neighbors`, `metric` or `neighbors`.

    Returns
    -------
    ndarray of shape (n_samples, n_components), dtype float32
        Centred, each coordinate with standard deviation 1e-4, as in openTSNE and scikit-learn; UMAP
        and PaCMAP rescale it. All rows differ.

    Raises
    ------
    ValueError
        Fewer than n_components + 1 different points; invalid points or options.
    TypeError
        Options are given together with a Diffusion, which has its own.

    See Also
    --------
    HeatEmbedding : Embed data in few dimensions that keep diffusion distances.
    sketch : Apply a filter of an operator to random columns.
    classical.TSNE : Embed so that neighbours stay and clusters separate.

    Notes
    -----
    In a graph of several components the coordinates separate these. The cost is the neighbour
    search and about √(20 t) sparse products with k + 14 columns.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Algorithm 4.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, labels = hs.datasets.digits()
    >>> start = hs.initialization(X, 2, rng=0)  # umap.UMAP(init=start), openTSNE: initialization=
    >>> start.shape, start.dtype.name
    ((1797, 2), 'float32')
    """
    check_number(n_components, "n_components", low=1, integer=True)
    longest = check_number(time, "time", low=1, integer=True)
    if isinstance(X, Diffusion) and options:
        raise TypeError(f"X is a Diffusion, which {', '.join(options)} cannot change; pass points.")
    d = X if isinstance(X, Diffusion) else Diffusion.from_points(X, **options)
    k = check_n_components(n_components, d.n - 1, f"there are {d.n} different points")
    generator = np.random.default_rng(rng)
    A = d.deflated
    G = random_block(A.n, min(k + _EXTRA_COLUMNS, A.n - 1), "gaussian", generator)
    times = [longest]
    while times[-1] > 1:
        times.append(max(times[-1] // 4, 1))
    filters = [f for f in map(Power, times) if f.p == 1 or time_excess(f, A) <= 1]
    for block in apply(filters, A, G, _TOLERANCE):
        # Principal axes of some 16 columns, of unit length, and their sizes.
        squares, axes = np.linalg.eigh(np.asarray(block.T @ block, dtype=float))
        sizes = np.sqrt(np.maximum(squares[::-1][:k], 0.0))
        Y = block @ axes[:, ::-1][:, :k] / np.where(sizes > 0, sizes, 1.0)
        if sizes[-1] >= _LEAST * sizes[0]:
            break
    Y = np.asarray(d.expand(Y / d.root[:, None]))
    Y = Y - Y.mean(axis=0)
    spread = Y.std(axis=0)
    Y = Y / np.where(spread > 0, spread, 1.0) + _JITTER * generator.standard_normal(Y.shape)
    return np.asarray(_SPREAD * Y, dtype=np.float32)
