"""What a wrong mixture costs: errors of Example I against the number of components.

The density of the two squares, its transition densities and its diffusion distances are known, so
that a mixture with too few or too many components can be compared with the truth.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import erf, softmax
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import heatsketch as hs
from papers.output import COLOURS, figure_and_axes, random, save, write_rows
from papers.representation.stationary import (
    COMPONENTS,
    GRID_RANGE,
    SQUARES,
    analytic_stationary,
    of_sample,
    two_squares,
)

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
EPSILONS = (1.0, 2.0**-4)  # the paper's, and one whose steps resolve the edges of the squares
POINTS, DRAWS = 2000, 5
HELD_OUT = 100  # points, all pairs of which are compared
GRID = 48  # nodes of ν in a coordinate
NODES_PER_STEP = 8  # of the integrals over y, for each √ε
MARGIN = 6.0  # of the integrals beyond the squares, in √ε


class ComponentsRow(NamedTuple):
    """Errors of one number of components, medians over the draws.

    Attributes
    ----------
    epsilon : float
        In squared units of the data.
    components : int
        Number of components with full covariances; 0: the sample itself, without a mixture.
    nu_largest, nu_rms : float
        Error of ν over the grid, as a share of the largest ν.
    distance_worst, distance_median : float
        Of |d - d_mixture| over all pairs of points that the fit has not seen, as a share of the
        largest d.
    smallest_bic : int
        In how many draws the BIC of this number of components is the smallest.
    """

    epsilon: float
    components: int
    nu_largest: float
    nu_rms: float
    distance_worst: float
    distance_median: float
    smallest_bic: int


def components_example(
    seed: int,
    *,
    counts: tuple[int, ...] = COUNTS,
    epsilons: tuple[float, ...] = EPSILONS,
    points: int = POINTS,
    draws: int = DRAWS,
    held_out: int = HELD_OUT,
) -> list[ComponentsRow]:
    """Fit mixtures of each number of components to each draw, and compare with the truth."""
    ticks = np.linspace(*GRID_RANGE, GRID)
    nodes = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    errors: dict[tuple[float, int], list[list[float]]] = {}
    best = []
    for draw in range(draws):
        rng = random(seed, COMPONENTS, draw)
        X, new = two_squares(points, rng), two_squares(held_out, rng)
        state = int(rng.integers(2**31))
        mixtures = [GaussianMixture(k, random_state=state).fit(X) for k in counts]
        best.append(counts[int(np.argmin([mixture.bic(X) for mixture in mixtures]))])
        for epsilon in epsilons:
            truth = analytic_stationary(nodes, epsilon), analytic_squared_distance(new, epsilon)
            found = [(0, of_sample(X, ticks, epsilon), squared_distance_of_sample(X, new, epsilon))]
            for k, mixture in zip(counts, mixtures, strict=True):
                kernel = hs.MixtureKernel.from_sklearn(mixture, epsilon)
                found.append((k, kernel.stationary(nodes), kernel.squared_distance(new, new)))
            for k, nu, d2 in found:
                errors.setdefault((epsilon, k), []).append(_errors(nu, d2, *truth))
    return [
        ComponentsRow(epsilon, k, *np.median(values, axis=0).tolist(), best.count(k))
        for (epsilon, k), values in errors.items()
    ]


def squared_distance_of_sample(X: np.ndarray, x: np.ndarray, epsilon: float) -> np.ndarray:
    """Return d² of all pairs of points x, where the measure is the sample X, without a mixture.

    (3.5) with a component without a spread at each of the n points of the sample.
    """
    w = softmax(-cdist(x, X, "sqeuclidean") / epsilon, axis=1)
    G = np.exp(-cdist(X, X, "sqeuclidean") / (2 * epsilon))
    return _from_inner_products(w @ G @ w.T * (2 * np.pi * epsilon) ** (-X.shape[1] / 2))


def analytic_squared_distance(x: np.ndarray, epsilon: float) -> np.ndarray:
    """Return d² of all pairs of points on or near the squares under their density, (n, n).

    p(x, y) = Σ_s a_s Π_i u_s(x_i, y_i) / ν(x), where u_s is the kernel of an interval, so that
    the inner products are products of integrals over a line. The trapezoidal rule computes these
    to rounding, because u_s is smooth and vanishes at the ends.
    """
    step, margin = np.sqrt(epsilon) / NODES_PER_STEP, MARGIN * np.sqrt(epsilon)
    low, high = min(a for _, a, _ in SQUARES), max(b for _, _, b in SQUARES)
    y = np.arange(low - margin, high + margin, step)
    factors = [
        (share, [_interval_kernel(coordinate[:, None], y, a, b, epsilon) for coordinate in x.T])
        for share, a, b in SQUARES
    ]
    W = sum(
        s * t * np.prod([step * u @ v.T for u, v in zip(us, vs, strict=True)], axis=0)
        for s, us in factors
        for t, vs in factors
    )
    nu = analytic_stationary(x, epsilon)
    return _from_inner_products(W / np.outer(nu, nu))


def _from_inner_products(Q: np.ndarray) -> np.ndarray:
    norms = np.diagonal(Q)
    return np.maximum(norms[:, None] + norms - 2 * Q, 0.0)


def _interval_kernel(
    x: np.ndarray, y: np.ndarray, a: float, b: float, epsilon: float
) -> np.ndarray:
    """Return ∫ g(r; x, ε/2) g(r; y, ε/2) dr over [a, b]; g(y; x, ε) times a normal probability."""
    middle, root = (x + y) / 2, np.sqrt(epsilon / 2)
    share = (erf((b - middle) / root) - erf((a - middle) / root)) / 2
    return np.exp(-((x - y) ** 2) / (2 * epsilon)) / np.sqrt(2 * np.pi * epsilon) * share


def _errors(
    nu: np.ndarray, d2: np.ndarray, true_nu: np.ndarray, true_d2: np.ndarray
) -> list[float]:
    """Return the largest and the rms error of ν, and the worst and the median one of d."""
    off = (nu - true_nu) / true_nu.max()
    d = np.sqrt(true_d2)
    delta = np.abs(np.sqrt(d2) - d)[np.triu_indices(len(d), 1)] / d.max()
    return [np.abs(off).max(), np.sqrt(np.square(off).mean()), delta.max(), np.median(delta)]


def run_components(folder: Path, seed: int = 0, **sizes: object) -> list[ComponentsRow]:
    """Write mgc-components.csv and .png, and return the rows."""
    with threadpool_limits(1):  # the sums of k-means depend on the order of its threads
        rows = components_example(seed, **sizes)
    write_rows(folder / "mgc-components.csv", ComponentsRow._fields, rows)
    draw_components(rows, folder / "mgc-components.png")
    return rows


def draw_components(rows: list[ComponentsRow], path: Path) -> None:
    """Draw the errors of ν and of distances against the number of components, for each ε."""
    epsilons = sorted({row.epsilon for row in rows}, reverse=True)
    drawing, axes = figure_and_axes(9.6, 4.2, (1, len(epsilons)))
    curves = (
        ("ν, largest", "nu_largest", COLOURS[0], "-o"),
        ("ν, rms", "nu_rms", COLOURS[0], ":o"),
        ("distance, worst pair", "distance_worst", COLOURS[5], "-s"),
        ("distance, median pair", "distance_median", COLOURS[5], ":s"),
    )
    for ax, epsilon in zip(axes[0], epsilons, strict=True):
        sample, *own = [row for row in rows if row.epsilon == epsilon]
        for label, name, colour, style in curves:
            values = [100 * getattr(row, name) for row in own]
            look = {"color": colour, "markersize": 3.5, "linewidth": 1.2}
            ax.loglog([row.components for row in own], values, style, label=label, **look)
            level = 100 * getattr(sample, name)
            ax.axhline(level, color=colour, linestyle=style[:-1], linewidth=0.8, alpha=0.4)
        ax.set_title(f"ε = {epsilon:g}", fontsize=10)
        ax.set_xlabel("components")
        ax.set_xticks([row.components for row in own][::2])
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("error, % of the largest ν or d")
    axes[0, 0].legend(fontsize=8, frameon=False)
    save(drawing, "Two squares: errors of mixtures; pale lines: the sample itself", path)
