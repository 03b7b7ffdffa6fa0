"""Pseudotime: how far the diffusion says that points are from where something starts."""

from dataclasses import replace
from typing import Any, cast

import numpy as np

from heatsketch._arrays import Array, Rng
from heatsketch._checks import check_in_range, check_level, read_rows
from heatsketch.core.operators import Deflated
from heatsketch.markov.coordinates import within_component
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import DiffusionRows, Step
from heatsketch.spectral.eigen import all_eigenpairs, slowest_eigenpairs
from heatsketch.spectral.filters import GreensFilter
from heatsketch.spectral.functions import SPECTRAL_LIMIT, check_range
from heatsketch.uncertainty.intervals import Interval, ratio_bounds

N_PAIRS = 32  # eigenpairs; 64 take twice as long, and the error bars of trees hardly change
_COLUMNS = 32  # of the sketch of the others
_TOLERANCE = 1e-6  # of the series: its error is far below that of the sketch
_TIPS, _SAME_PLACE = 16, 0.05  # exact distances of the farthest points, this fraction of them apart
_MARGIN = 1e-3  # of 1 - λ of the last eigenpair


def pseudotime(
    diffusion: Diffusion,
    root: Any,
    time: Any = 8,
    *,
    filter: str = "power",
    level: float = 0.95,
    rng: Rng = None,
) -> Interval:
    """Compute the pseudotime from a root; see `HeatSketch.pseudotime`, which is this."""
    level = check_level(level)
    filter = "power" if filter == "accumulated" else filter  # all later times are added up anyway
    rows, roots, points = rows_of_component(diffusion, root, time, filter)
    distances = np.zeros((3, len(points)))
    if rows.operator.n > 1 and not diffusion.diagnostics["is_constant"]:
        leading, sketch, others = coordinates_from(rows, roots, rng)
        distances = np.array(sketched_distances(leading, sketch, level))
        if others is not None:
            # Intervals of a ratio to the largest distance hold only if that one is exact, without a
            # sketch: of the farthest points of different places, any of which it may be.
            farther, near = distances[0].copy(), _SAME_PLACE * distances[0].max()
            tips: list[int] = []
            Y = np.hstack([leading, sketch])
            while len(tips) < _TIPS and farther.max() > 0:
                tips.append(int(farther.argmax()))
                farther[np.linalg.norm(Y - Y[tips[-1]], axis=1) <= near] = 0.0
            units = others.unit_columns(others.vertex[tips]).toarray()
            units -= np.asarray(others.unit_columns(others.vertex[roots]).mean(axis=1))
            rest = np.linalg.norm(others.transposed(units, _TOLERANCE).astype(float), axis=0)
            exact = np.hypot(np.linalg.norm(leading[tips], axis=1), rest)
            distances[:, tips] = exact
            _, first, place = np.unique(others.vertex, return_index=True, return_inverse=True)
            distances = np.minimum(distances, exact.max())[:, first[place]]  # duplicates alike
    late = np.full((3, diffusion.n_points), np.inf)
    late[:, points] = distances / (distances[0].max() or 1.0)
    return Interval(*late)


def rows_of_component(
    diffusion: Diffusion, root: Any, time: Any, filter: str
) -> tuple[DiffusionRows, Array, Array]:
    """Return the rows of Σ_(s >= time) M A^(s-1) of one component, the roots in it, its points."""
    rows = diffusion.rows(time, filter=filter)
    rows = replace(rows, filter=GreensFilter(rows.filter))
    n = rows.n_points
    roots = np.atleast_1d(read_rows(root, n))
    if roots.dtype.kind == "b" and roots.shape == (n,):
        roots = np.flatnonzero(roots)
    if roots.ndim > 1 or roots.dtype.kind not in "iu" or not roots.size:
        raise ValueError(
            f"root is of dtype {roots.dtype} and shape {roots.shape}; pass the index of a point, "
            f"indices (r,), or a mask ({n},) of at least one point."
        )
    check_in_range(roots, "root", n)
    labels = diffusion.component_of
    if not labels.any():
        return rows, roots, np.arange(rows.n_points)
    count = len(np.unique(labels[roots]))
    if count > 1:
        raise ValueError(
            f"root has points of {count} components of the graph, between which nothing diffuses; "
            "pass points of one component."
        )
    points = np.flatnonzero(labels == labels[roots[0]])
    own, place = np.unique(rows.vertex[points], return_inverse=True)
    inside = DiffusionRows(
        within_component(diffusion, own[own < diffusion.n]),
        rows.filter,
        place,
        cast(Step, rows.step).restricted(own),
    )
    return inside, np.searchsorted(points, roots), points


def coordinates_from(
    rows: DiffusionRows, roots: Array, rng: Rng
) -> tuple[Array, Array, DiffusionRows | None]:
    """Return coordinates of points around their mean at the roots, whose distances are the rows'.

    Those by the slowest eigenvectors (points, k), a sketch (points, 32) of the others, and the rows
    without the slowest eigenvectors. Up to 2,048 points have all eigenvectors and no others.
    """
    A, f, others = rows.operator, rows.filter, None
    sketch = np.empty((rows.n_points, 0))
    if A.n <= SPECTRAL_LIMIT:
        values, vectors = all_eigenpairs(A)
    else:
        slowest = slowest_eigenpairs(A, min(N_PAIRS, A.n - 1), rng=0)
        values, vectors = slowest.values, np.asarray(slowest.vectors, A.dtype)
        last = float(values[-1])
        ends = min(A.ends[0][0], 0.0), last + _MARGIN * (1 - last)
        others = replace(rows, operator=Deflated(A.undeflated, A.deflated(vectors).V, ends))
        sketch = others.sketch(_COLUMNS, rng, _TOLERANCE).astype(float)
    check_range(f, A, (values.min(), values.max()))
    leading = rows.at_points(vectors * f(values).astype(vectors.dtype)).astype(float)
    leading, sketch = (Y - Y[roots].mean(axis=0) for Y in (leading, sketch))
    return leading, sketch, others


def sketched_distances(leading: Array, sketch: Array, level: float) -> Interval:
    """Return the lengths (points,) of rows, and their intervals, from `coordinates_from`."""
    exact, drawn = (np.square(Y).sum(axis=1) for Y in (leading, sketch))
    least, most = ratio_bounds(_COLUMNS, (1 - level) / 2)
    return Interval(*(np.sqrt(exact + drawn / ratio) for ratio in (1.0, most, least)))
