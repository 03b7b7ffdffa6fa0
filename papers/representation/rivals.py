"""MGC features against random Fourier features, Nyström and a sampled diffusion map.

All maps know the same mixture and have the same number of coordinates. The error is that of their
distances against the closed form, over pairs of points that no map was fitted to. A map of points
approximates here the inner products ⟨p(x, ·), p(z, ·)⟩ of transition densities:

- random Fourier features ([21] in the text) need a kernel of differences. The inner product is
  none, but it is a weighted sum of g(c_j(x); c_i(z), D_j + D_i), and g is one. So the features are
  those of the means c_j(x), weighted by w_j(x), in place of the series (4.3);
- Nyström projects p(x, ·) on the densities of points chosen at random, `CholeskyMap` on those of
  points that are chosen one after the other by their residuals;
- the diffusion map is that of the kernel of a sample: sums over 1,000 points r drawn from q and
  1,000 points y drawn from ν stand for the integrals. Its coordinates are singular vectors in
  L²(dr), the norm of the text; new points come by Nyström extension.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from math import comb
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist
from scipy.special import softmax
from sklearn.kernel_approximation import Nystroem, RBFSampler
from threadpoolctl import threadpool_limits

import heatsketch as hs
from papers.output import COLOURS, figure_and_axes, random, save, write_rows
from papers.representation.stationary import RIVALS, best_mixture, two_squares
from papers.representation.truncation import in_unit_ball

SQUARES_EPSILONS = (2.0**-3, 1.0)  # in units of the ball of radius 1
SQUARES_ORDERS = (1, 2, 3, 4, 5, 7, 9, 12, 16)  # of the series; the lengths are C(m + l, l)
CLOUDS_ORDERS = (1, 2, 3, 4, 5)
DIMENSIONS, CLOUDS, SPREAD, CLOUDS_EPSILON = 5, 4, 2.0, 2.0  # of the mixture in five dimensions
MIXTURE_POINTS, MAX_COMPONENTS = 2000, 8  # of the squares, to fit the mixture
FITTED, HELD_OUT = 500, 100  # points that maps are fitted to, and points that are compared
SAMPLE = 1000  # points of each sum of the sampled diffusion map
DRAWS = 5  # of random maps
BLOCK = 4096  # points that the sampled map takes at once
UNREACHED = 1e-14  # a tolerance that leaves the length to `max_features`

Transform = Callable[[np.ndarray], np.ndarray]


class RivalRow(NamedTuple):
    """Errors of distances of one map at one length; medians over the draws of a random map.

    Attributes
    ----------
    data : str
        The set of points.
    epsilon : float
        In squared units of the points.
    method : str
        The map.
    length : int
        Number of coordinates; `CholeskyMap` takes fewer where the rest is rounding.
    worst, median : float
        Of |d - |y(x) - y(z)|| over all pairs of held-out points, as a share of the largest d.
    """

    data: str
    epsilon: float
    method: str
    length: int
    worst: float
    median: float


class Case(NamedTuple):
    """A mixture and its kernel, with points."""

    data: str
    kernel: hs.MixtureKernel
    points: np.ndarray  # that maps are fitted to
    held_out: np.ndarray
    orders: Sequence[int]


def rivals_example(
    seed: int,
    *,
    draws: int = DRAWS,
    sample: int = SAMPLE,
    squares_orders: Sequence[int] = SQUARES_ORDERS,
    clouds_orders: Sequence[int] = CLOUDS_ORDERS,
) -> list[RivalRow]:
    """Compare the maps at the lengths of the series of these orders."""
    rows = []
    for number, case in enumerate(cases(seed, squares_orders, clouds_orders)):
        x = case.held_out
        d = np.sqrt(case.kernel.squared_distance(x, x)[np.triu_indices(len(x), 1)])
        for order in case.orders:
            length = comb(case.kernel.n_features + order, order)
            for method, make in exact_maps(case, order, length):
                rows.append(_row(case, method, length, [_errors(make(x), d)]))
            for place, (method, fit) in enumerate(random_maps(case, sample)):
                errors = []
                for draw in range(draws):
                    rng = random(seed, RIVALS, 1 + number, order, place, draw)
                    errors.append(_errors(fit(length, rng)(x), d))
                rows.append(_row(case, method, length, errors))
    return rows


def cases(seed: int, squares_orders: Sequence[int], clouds_orders: Sequence[int]) -> Iterator[Case]:
    """Yield the two squares at two ε, and clouds with covariances of their own."""
    rng = random(seed, RIVALS, 0)
    X, _ = in_unit_ball(two_squares(MIXTURE_POINTS + HELD_OUT, rng))
    fitted, held_out = X[:MIXTURE_POINTS], X[MIXTURE_POINTS:]
    mixture = best_mixture(fitted, MAX_COMPONENTS, "tied", rng)
    for epsilon in SQUARES_EPSILONS:
        kernel = hs.MixtureKernel.from_sklearn(mixture, epsilon)
        yield Case("two squares", kernel, fitted[:FITTED], held_out, squares_orders)
    means = SPREAD * rng.standard_normal((CLOUDS, DIMENSIONS))
    roots = rng.standard_normal((CLOUDS, DIMENSIONS, DIMENSIONS)) / np.sqrt(DIMENSIONS)
    covariances = roots @ roots.transpose(0, 2, 1)
    kernel = hs.MixtureKernel(np.full(CLOUDS, 1 / CLOUDS), means, covariances, CLOUDS_EPSILON)
    X = drawn(kernel, FITTED + HELD_OUT, rng)
    name = f"{CLOUDS} clouds in {DIMENSIONS} dimensions"
    yield Case(name, kernel, X[:FITTED], X[FITTED:], clouds_orders)


def drawn(kernel: hs.MixtureKernel, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw points (n, m) from the mixture q."""
    j = rng.choice(kernel.n_components, n, p=kernel.weights)
    roots = np.linalg.cholesky(kernel.covariances)
    return kernel.means[j] + np.einsum(
        "nab,nb->na", roots[j], rng.standard_normal((n, kernel.n_features))
    )


def exact_maps(case: Case, order: int, length: int) -> Iterator[tuple[str, Transform]]:
    """Yield the maps that draw nothing, fitted, with their names."""
    series = hs.TaylorMap if has_one_covariance(case.kernel) else hs.mixture.HermiteMap
    yield "series", series(order).fit(case.kernel, points=case.points).transform
    with warnings.catch_warnings():  # because the length decides, not the tolerance
        warnings.simplefilter("ignore", hs.ConvergenceWarning)
        cholesky = hs.mixture.CholeskyMap(length).fit(case.kernel, UNREACHED, case.points)
    yield "CholeskyMap", cholesky.transform


def random_maps(
    case: Case, sample: int
) -> Iterator[tuple[str, Callable[[int, np.random.Generator], Transform]]]:
    """Yield names, and functions that fit a map of a length with random numbers."""
    kernel = case.kernel
    yield "random Fourier", lambda length, rng: fourier(kernel, length, rng)
    yield "Nyström", lambda length, rng: nystroem(kernel, case.points, length, rng)
    yield "sampled", lambda length, rng: sampled(kernel, sample, length, rng)
    if has_one_covariance(kernel):
        yield "tensor sketch", lambda length, rng: tensor_sketch(case, length, rng)


def has_one_covariance(kernel: hs.MixtureKernel) -> bool:
    """Return whether all components have the same covariance."""
    return bool((kernel.covariances == kernel.covariances[0]).all())


def fourier(kernel: hs.MixtureKernel, length: int, rng: np.random.Generator) -> Transform:
    """Return random Fourier features of the means c_j(x), weighted by w_j(x).

    With T = (2D)^(-1/2), D the mean of the D_j, g(c_j; c_i, D_j + D_i) is (2π)^(-m/2) |T| times the
    mean of cos(ω·T(c_j - c_i)) over ω of N(0, I), if all D_j are D. Otherwise the cosines are
    multiplied by exp(-ωᵀ(T D_j T - I/2)ω/2) for j and for i.
    """
    m, half = kernel.n_features, kernel.epsilon / 2
    C = np.linalg.solve(kernel.covariances + half * np.eye(m), kernel.covariances)
    D = half * (np.eye(m) + C)
    values, axes = np.linalg.eigh(2 * np.einsum("k,kab->ab", kernel.weights, D))
    T = (axes / np.sqrt(values)) @ axes.T
    sampler = RBFSampler(gamma=0.5, n_components=length, random_state=int(rng.integers(2**31)))
    omega = sampler.fit(np.zeros((1, m))).random_weights_  # (m, length)
    damping = np.exp(-0.5 * np.einsum("ar,kab,br->kr", omega, T @ D @ T - np.eye(m) / 2, omega))
    peak = (2 * np.pi) ** (-m / 4) * np.prod(values) ** -0.25

    def transform(x: np.ndarray) -> np.ndarray:
        c = kernel.means + np.einsum("nka,kab->nkb", x[:, None] - kernel.means, C)
        cosines = sampler.transform((c @ T).reshape(-1, m)).reshape(*c.shape[:2], length)
        return peak * np.einsum("nk,kr,nkr->nr", kernel.responsibilities(x), damping, cosines)

    return transform


def nystroem(
    kernel: hs.MixtureKernel, points: np.ndarray, length: int, rng: np.random.Generator
) -> Transform:
    """Return scikit-learn's Nyström features of ⟨p(x, ·), p(z, ·)⟩ at random points."""
    chosen = points[rng.choice(len(points), length, replace=False)]

    def inner_products(x: np.ndarray) -> np.ndarray:
        norms = kernel.squared_norm(x)[:, None] + kernel.squared_norm(chosen)
        return (norms - kernel.squared_distance(x, chosen)) / 2

    features = Nystroem(kernel="precomputed", n_components=length).fit(inner_products(chosen))
    return lambda x: features.transform(inner_products(x))


def sampled(
    kernel: hs.MixtureKernel, sample: int, length: int, rng: np.random.Generator
) -> Transform:
    """Return the diffusion map of the kernel of a sample of the mixture."""
    r, y = drawn(kernel, sample, rng), drawn(kernel, sample, rng)
    return sampled_map(r, y, kernel.epsilon, length, rng)


def sampled_map(
    r: np.ndarray, y: np.ndarray, epsilon: float, length: int, rng: np.random.Generator
) -> Transform:
    """Return the diffusion map of the kernel of a sample, in L²(dr), with Nyström extension.

    p(x, y) = Σ_r w_r(x) g(y; r, ε/2 I), where w_r(x) are shares of g(x; r, ε/2 I). Noise moves the
    points y of q, which then have the density ν, so that Σ_y (p(x, y) - p(z, y))² / (n ν(y)) tends
    to d².
    """
    y = y + np.sqrt(epsilon / 2) * rng.standard_normal(y.shape)
    g = np.exp(-cdist(r, y, "sqeuclidean") / epsilon) * (np.pi * epsilon) ** (-y.shape[1] / 2)
    g /= np.sqrt(len(y) * g.mean(axis=0))

    def weights(x: np.ndarray) -> np.ndarray:
        return softmax(-cdist(x, r, "sqeuclidean") / epsilon, axis=1)

    axes = np.linalg.svd(weights(y) @ g, full_matrices=False)[2][:length]
    g_axes = g @ axes.T
    return lambda x: np.concatenate(
        [weights(x[start : start + BLOCK]) @ g_axes for start in range(0, len(x), BLOCK)]
    )


def tensor_sketch(case: Case, length: int, rng: np.random.Generator) -> Transform:
    """Return random projections of the tensors of a series of 1 % accuracy."""
    x = case.held_out
    tolerance = 0.01 * float(np.sqrt(case.kernel.squared_distance(x, x).max()))
    sketch = hs.mixture.TensorSketch(length, random_state=int(rng.integers(2**31)))
    return sketch.fit(case.kernel, tolerance, case.points).transform


def _errors(y: np.ndarray, d: np.ndarray) -> list[float]:
    delta = np.abs(pdist(y) - d) / d.max()
    return [float(delta.max()), float(np.median(delta))]


def _row(case: Case, method: str, length: int, errors: list[list[float]]) -> RivalRow:
    ends = np.median(errors, axis=0).tolist()
    return RivalRow(case.data, case.kernel.epsilon, method, length, *ends)


def run_rivals(folder: Path, seed: int = 0, **sizes: object) -> list[RivalRow]:
    """Write mgc-rivals.csv and .png, and return the rows."""
    with threadpool_limits(1):  # the sums of k-means depend on the order of its threads
        rows = rivals_example(seed, **sizes)
    write_rows(folder / "mgc-rivals.csv", RivalRow._fields, rows)
    draw_rivals(rows, folder / "mgc-rivals.png")
    return rows


def draw_rivals(rows: list[RivalRow], path: Path) -> None:
    """Draw worst and median errors against the length, a column for each set and ε."""
    sets = list(dict.fromkeys((row.data, row.epsilon) for row in rows))
    colours = dict(zip(dict.fromkeys(row.method for row in rows), COLOURS, strict=False))
    drawing, axes = figure_and_axes(10.5, 6.0, (2, len(sets)))
    for column, (data, epsilon) in zip(axes.T, sets, strict=True):
        for ax, name in zip(column, ("worst", "median"), strict=True):
            for method, colour in colours.items():
                own = [r for r in rows if (r.data, r.epsilon, r.method) == (data, epsilon, method)]
                values = [getattr(row, name) for row in own]
                look = {"color": colour, "markersize": 3.5, "linewidth": 1.2, "label": method}
                ax.loglog([row.length for row in own], values, "-o", **look)
            ax.spines[["top", "right"]].set_visible(False)
            ax.set_xticks(sorted({row.length for row in rows if row.data == data})[::2])
            ax.xaxis.set_major_formatter("{x:g}")
            ax.minorticks_off()
        column[0].set_title(f"{data}, ε = {epsilon:g}", fontsize=10)
        column[1].set_xlabel("number of coordinates")
    axes[0, 0].set_ylabel("worst pair, share of the largest d")
    axes[1, 0].set_ylabel("median pair")
    handles, names = axes[0, 0].get_legend_handles_labels()
    drawing.legend(handles, names, loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    save(drawing, "Error of a diffusion distance at equal length, held-out pairs", path)
