"""f(A) X for a filter f, the sketch f(A) G / √k, and a manifold embedded by its heat kernel."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.fft import dct

from heatsketch._arrays import Array, Rng, on_host
from heatsketch._checks import check_choice, check_number, check_points
from heatsketch._random import check_ids, numbers_at, random_block
from heatsketch._threads import track
from heatsketch.core.blocks import Block
from heatsketch.core.graph import on_vertices
from heatsketch.core.operators import Affine, Bounds, Deflated, Operator
from heatsketch.spectral.eigen import all_eigenpairs, leading_eigenpairs, leading_vector
from heatsketch.spectral.filters import Filter
from heatsketch.spectral.recurrences import recurrence

MAX_DEGREE = 2**17
SPECTRAL_LIMIT = 2048  # points up to which computing all eigenpairs is an option
_SHORT_TIME = 16.0  # up to here nothing under- or overflows
_NOTHING = 100  # in units of rounding: an operator with no larger eigenvalues counts as 0
_ANY_INTERVAL = 4.0  # largest time at which Lanczos steps cost more than a narrower interval saves
_FEW_PRODUCTS = 8  # up to here they are more exact than a series, and as cheap
_MIN_RATIO = 1e-3  # of the largest f on the spectrum to that on a known interval around it
_TAIL = 4.0  # times the coefficients of the last octave exceed all after it, p >= 0.2
_MAX_ROUNDING = 1e-2  # degree² eps, a bound on the rounding of the recurrence


def check_range(f: Filter, A: Operator, ends: Bounds | None = None) -> None:
    """Raise if f(A) is beyond the range of numbers.

    Known `ends` of the spectrum save the Lanczos steps that find them.
    """
    factor = time_excess(f, A, ends)
    if factor > 1:
        raise ValueError(
            f"The time is too large: f(A) is beyond the range of {A.dtype}, and nothing but the "
            f"slowest direction is left; pass a smaller time, by a factor {math.ceil(factor)}."
        )


def time_excess(f: Filter, A: Operator, ends: Bounds | None = None) -> float:
    """Return the factor by which a time is too large for the range of numbers; up to 1 it fits.

    Without `ends` of the spectrum, its known interval is taken, and at a long time the interval of
    Lanczos steps, which is within it. Where one of these exceeds the range, the ends are computed.
    """
    if ends is None:
        factor = time_excess(f, A, A.spectrum)
        if factor <= 1 and f.sharpness((-1.0, 1.0)) > _SHORT_TIME:
            factor = time_excess(f, A, A.ends[1])
        return time_excess(f, A, _exact_ends(A)) if factor > 1 else factor
    # The logarithm of the largest |f| at the ends, divided by that of the last number in the range:
    # the smallest where f < 1. Squares must be in the range, too, with all digits, because
    # distances are sums of them.
    values, log_scale = f.with_log_scale(np.abs(ends) if f.of_powers else np.array(ends))
    largest, limits = float(np.abs(values).max()), np.finfo(A.dtype)
    if largest == 0 or np.abs(ends).max() < _NOTHING * limits.eps:
        return 0.0
    log_size = math.log(largest) + log_scale
    least, most = math.log(limits.tiny) / 2 - math.log(limits.eps), math.log(limits.max) / 2
    return log_size / (least if log_size < 0 else most)


def _exact_ends(A: Operator) -> Bounds:
    """Compute the ends of the spectrum, for cases in which the known interval is too wide."""
    top = leading_eigenpairs(A, 1)
    high = max(float(top.values[0]) + 2 * float(top.residuals[0]), 0.0)
    # The low end usually has many eigenvalues. It may be inexact, unless powers are largest there.
    bottom = leading_eigenpairs(Affine(A, -1.0), 1, tol=1e-4)
    low = -float(bottom.values[0]) - 1e-3 * max(map(abs, A.spectrum))
    if -low > high:
        bottom = leading_eigenpairs(Affine(A, -1.0), 1)
        low = -float(bottom.values[0]) - 2 * float(bottom.residuals[0])
    return min(max(low, A.spectrum[0]), 0.0), high


def apply(filters: Sequence[Filter], A: Operator, X: Any, tol: float | None = None) -> list[Any]:
    """Return f(A) X of an array or tensor X (n, k) as `filtered` does of a block.

    Results are arrays if X is one, else where A computes.
    """
    return [A.as_given(image, X) for image in filtered(filters, A, A.block(X), tol)]


def filtered(
    filters: Sequence[Filter], A: Operator, X: Block, tol: float | None = None
) -> list[Block]:
    """Return f(A) X for every filter f, in one pass over the powers of A.

    Directions that are deflated in A are removed from X and f(A) X, too.

    Small problems at large times use all eigenpairs. Powers use plain products unless a series
    saves half of them. Everything else uses one Chebyshev recurrence.

    Parameters
    ----------
    filters : sequence of Filter
    A : Operator
    X : block (n, k), where A computes and in its precision
    tol : float, optional
        Largest error of the series of f on the spectrum, relative to its largest value there. The
        default, which is also the least, is rounding: 9e-16 sqrt(1 + t), or 3e-8 in float32, where
        the recurrence itself has errors up to 1e-5 (1e-3 in distances of the closest pairs).

    Notes
    -----
    Cost: as many products by A as the largest power, or about sqrt(2 t log(2 / tol)) for a large
    time t, sqrt(70 t) to rounding in float64. Memory: X, three blocks of its size, one per filter.
    """
    block = A.without_V(X)
    k = block.shape[1] if block.ndim == 2 else 1
    steps = max(math.inf if f.steps is None else f.steps for f in filters)
    if steps <= _FEW_PRODUCTS:
        return [A.without_V(image) for image in _by_products(filters, A, block)]
    eps = float(np.finfo(A.dtype).eps)
    error = eps / 4 if tol is None else min(max(tol, eps), 1.0)
    degree = 16 + max(f.degree(A.spectrum, error) for f in filters)
    products = min(steps, degree)
    eigenpairs_cost = 12 * A.n + 1000  # measured, in products by a vector
    pays = products * k > eigenpairs_cost or products > MAX_DEGREE / 2
    if pays and A.n <= SPECTRAL_LIMIT:
        images = _by_eigenpairs(filters, A, block)
    elif steps < math.inf and (steps <= 2 * degree or degree**2 * eps > _MAX_ROUNDING):
        images = _by_products(filters, A, block)
    else:
        images = _by_chebyshev(filters, A, block, tol)
    return [A.without_V(image) for image in images]


def sketch_blocks(
    A: Operator, filters: Sequence[Filter], G: Block, tol: float | None = None
) -> list[Block]:
    """Return f(A) G / √k of a block G (n, k) for every filter, or raise if it is out of range."""
    for f in filters:
        check_range(f, A)
    return [block / math.sqrt(G.shape[1]) for block in filtered(filters, A, G, tol)]


def _by_eigenpairs(filters: Sequence[Filter], A: Operator, X: Block) -> list[Block]:
    lam, vectors = all_eigenpairs(A)
    native = A.blocks.native
    V = native(vectors)
    coefficients = V.T @ native(X, float)
    images = (V @ A.blocks.times_rows(native(f(lam)), coefficients) for f in filters)
    return [native(image, A.dtype) for image in images]


def _by_products(filters: Sequence[Filter], A: Operator, X: Block) -> list[Block]:
    """Return f(A) X of powers f by products alone; no direction deflated in A is left in X."""
    last, blocks = max(f.steps or 0 for f in filters), [X] * len(filters)
    for p in track(range(1, last + 1), "products", last, "products"):
        X = A.product_without_V(X)
        for i, f in enumerate(filters):
            if f.steps == p:
                blocks[i] = X
    return blocks


def _by_chebyshev(
    filters: Sequence[Filter], A: Operator, X: Block, tol: float | None = None
) -> list[Block]:
    """Return f(A) X by one recurrence of Chebyshev polynomials.

    Short times use the interval that A knows. Otherwise Lanczos steps bound the spectrum. If f is
    much smaller on the spectrum than at these bounds, iteration finds its ends. A tolerance is
    relative to the largest f on the spectrum, which also needs Lanczos steps.
    """
    eps, outer, inner = float(np.finfo(A.dtype).eps), A.spectrum, A.spectrum
    # A filter that does not say how sharp it is may be so on a part of the interval.
    if tol is not None or not 0 < max(f.sharpness(outer) for f in filters) <= _ANY_INTERVAL:
        outer, inner = A.ends
        if min(_ratio(f, outer, inner) for f in filters) < _MIN_RATIO:
            outer = inner = _exact_ends(A)
    low, high = outer
    interval = low, high if high > low else low + 1.0
    series = []
    for f in filters:
        # Rounding of λ near 1 changes f(λ) by t eps, and its coefficients by √t eps. In float32 the
        # rounding of products is larger, and the closest pairs need the least tolerance.
        exact = 4 * float(np.finfo(float).eps) * math.sqrt(1 + f.sharpness(interval))
        wanted = 0.0 if tol is None else tol * _ratio(f, interval, inner)
        series.append(chebyshev_coefficients(f, interval, max(wanted, exact, eps / 4)))
    degree = max(map(len, series)) - 1
    if degree**2 * eps > _MAX_ROUNDING:
        raise ValueError(
            f"{filters[0]} takes {degree} products, more than {A.dtype} has digits for; pass a "
            f"smaller time{', or the operator in float64' if eps > 1e-10 else ''}."
        )
    blocks = [float(c[0]) * X for c in series]
    terms = recurrence(A, X, interval, degree) if degree else iter(())
    for j, T in enumerate(track(terms, "products", degree, "products"), start=1):
        active = [(block, c) for block, c in zip(blocks, series, strict=True) if j < len(c)]
        A.blocks.combine(*((block, 1.0, [(float(c[j]), T)]) for block, c in active))
    norm = A.blocks.norm
    least = math.sqrt(eps) * norm(X)
    for i, (f, c) in enumerate(zip(filters, series, strict=True)):
        # Rounding is relative to the largest f on the interval, where X may have no component.
        if norm(blocks[i]) < least * float(np.abs(c).sum()):
            if f.steps is not None:
                blocks[i] = _by_products([f], A, X)[0]
                continue
            rounding = _NOTHING * eps * max(map(abs, A.spectrum)) * norm(X)
            if norm(A.product_without_V(X)) > rounding:
                raise ValueError(
                    f"{f} leaves nothing of the block but rounding; pass a smaller time, or Power."
                )
            blocks[i] = float(f(np.zeros(1))[0]) * X  # A X = 0, as for points with equal rows
    return blocks


def chebyshev_coefficients(f: Filter, interval: Bounds, tol: float) -> Array:
    """Return c with f(λ) = Σ c_j T_j(x), x in [-1, 1] mapped to the interval.

    The moduli of the coefficients left out add up to at most `tol` times the largest |f|, which
    bounds the error on the interval (coefficients below the rounding of the transform do not
    count). Raises if 131,072 terms are not enough.
    """
    low, high = interval
    root = math.sqrt(1 + f.sharpness(interval))
    n = 2 ** math.ceil(math.log2(64 + 4 * root))  # enough nodes for a peak of width 1/t
    while n <= 2 * MAX_DEGREE:
        nodes = np.cos(np.pi * (np.arange(n) + 0.5) / n)
        values = f(np.append(0.5 * (high - low) * nodes + 0.5 * (high + low), interval))
        size = float(np.abs(values).max())
        c: Array = dct(values[:n], type=2) / n
        c[0] /= 2
        # Rounding of λ near 1 changes f(λ) by t eps and a coefficient by √t eps.
        moduli = np.where(np.abs(c) > np.finfo(float).eps * root * size, np.abs(c), 0.0)
        tail = np.cumsum(moduli[::-1])[::-1]  # from this one on
        # If f is not smooth, sums over octaves fall slowly, those of λ^p at 0 like 4^-p.
        tail += _TAIL * tail[n // 2]
        count = max(1, int(np.count_nonzero(tail > tol * size)))
        if count <= n - n // 8:
            return c[:count]
        n *= 2
    raise ValueError(
        f"{f} needs over {MAX_DEGREE} products by the operator; pass a smaller time, or a larger "
        "tol."
    )


def _ratio(f: Filter, outer: Bounds, inner: Bounds) -> float:
    """Return the ratio of the largest f at the ends of the inner and of the outer interval."""
    values = np.abs(f.with_log_scale(np.array([*outer, *inner]))[0])
    return float(values[2:].max() / (values.max() or 1.0))


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
        with α = 1 they are ``-4 / epsilon * np.log(eigenvalues_)``, see the notes.
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

    Eigenvalues of a Gaussian kernel tend to e^{-ελ_j/4}. On the unit circle and sphere lengths from
    -4/ε log λ are right within 0.3 ε for ε <= 0.05 and t from ε to 5 ε. The generator 4/ε (1 - λ)
    has the same limit, but at ε = 0.02 its lengths are too large by 2 and 3 % at t = 10 ε, by 5 and
    8 % at 5 ε, and by more before. Leave out eigenvalues that are rounding, below 1e-12.

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
