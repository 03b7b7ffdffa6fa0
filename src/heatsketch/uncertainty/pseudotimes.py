"""Pseudotime: how far the diffusion says that points are from where something starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from heatsketch._checks import check_in_range, check_level
from heatsketch._typing import Array, Rng
from heatsketch.markov.coordinates import COLUMNS_AT_A_TIME, Remaining
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import DiffusionRows
from heatsketch.operators.properties import component_labels
from heatsketch.spectral.accumulated import Accumulated
from heatsketch.spectral.apply import SPECTRAL_LIMIT, Block
from heatsketch.spectral.chebyshev import spectrum_ends
from heatsketch.spectral.dense import all_eigenpairs
from heatsketch.spectral.shift_invert import slowest_eigenpairs
from heatsketch.uncertainty.distances import Interval
from heatsketch.uncertainty.laws import ratio_bounds

N_PAIRS = 32  # eigenpairs; 64 take twice as long, and the error bars of trees hardly change
_MOST_ENTRIES = 2**27  # of eigenvectors that tell components from each other
_TOLERANCE = 1e-6  # of the series: its error is far below that of the sketch
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
    distance = accumulated_distance(diffusion, root, time, filter=filter, level=level, rng=rng)[0]
    finite = np.isfinite(distance.value)
    unit = float(distance.value[finite].max(initial=0.0)) or 1.0
    return Interval(*(ends / unit for ends in distance))


def accumulated_distance(
    diffusion: Diffusion,
    root: Any,
    time: Any,
    *,
    filter: str = "power",
    level: float = 0.95,
    rng: Rng = None,
) -> tuple[Interval, float]:
    """Return distances (points,) of the rows of Σ_(s >= time) M A^(s-1) from their mean at a root.

    Divided by e^s, and s. Infinite between components.
    """
    level = check_level(level)
    rows = diffusion.rows(time, filter=filter)
    roots = _rows_of(root, rows.n_points)
    rows = replace(rows, filter=Accumulated(rows.filter))
    labels = component_labels(diffusion.operator)
    labels = np.zeros(diffusion.n, int) if labels is None else labels
    of_points = rows.of_points(labels)
    here = of_points == of_points[roots[0]]
    if not here[roots].all():
        raise ValueError(
            f"root has points of {len(np.unique(of_points[roots]))} components of the graph, "
            "between which nothing diffuses; pass points of one component."
        )
    if diffusion.diagnostics["flat"]:  # all distances are zero
        return Interval(*(np.where(here, 0.0, np.inf) for _ in range(3))), 0.0
    known, rest = _coordinates(rows, int(labels.max()), rng)
    squares, drawn = (_squares(block.values, roots) for block in (known, rest))
    drawn *= np.exp(2 * (rest.log_scale - known.log_scale))
    least, most = ratio_bounds(max(rest.values.shape[1], 1), (1 - level) / 2, "gaussian")
    ends = (squares + drawn * factor for factor in (1.0, 1 / most, 1 / least))
    found = Interval(*(np.where(here, np.sqrt(end), np.inf) for end in ends))
    return found, known.log_scale


def _rows_of(root: Any, n: int) -> Array:
    """Return the rows of a root: an index, indices, or a mask (n,); or raise."""
    found = np.atleast_1d(np.asarray(root))
    if found.dtype.kind == "b":
        if found.shape != (n,):
            raise ValueError(
                f"root is a mask of shape {found.shape} but there are {n} points; pass ({n},)."
            )
        found = np.flatnonzero(found)
    elif found.dtype.kind not in "iu" and found.size:
        raise TypeError(
            f"root is of dtype {found.dtype}; pass the index of a point, indices, or a mask."
        )
    if found.size == 0:
        raise ValueError("root has no points; pass the index of a point, indices, or a mask.")
    if found.ndim > 1:
        raise ValueError(f"root has shape {found.shape}; pass an index, indices (r,), or a mask.")
    check_in_range(found, "root", n)
    return found


def _coordinates(rows: DiffusionRows, extra: int, rng: Rng) -> tuple[Block, Block]:
    """Return the part of the rows in the slowest eigenvectors, and a sketch of the others.

    The first `extra` eigenvectors tell components from each other, and are left out of both.
    """
    A = rows.operator
    if A.n <= SPECTRAL_LIMIT:
        values, vectors = (found[..., ::-1][..., extra:] for found in all_eigenpairs(A))
        known = rows.leading((values, vectors))[0]
        return known, Block(np.empty((rows.n_points, 0)), known.log_scale)
    if extra * A.n > _MOST_ENTRIES:
        raise ValueError(
            f"The graph has {extra + 1:,} components, too many to tell from each other; pass a "
            "larger n_neighbors, or the points of one component."
        )
    found = slowest_eigenpairs(A, min(extra + N_PAIRS, A.n - 1), rng=0)
    last = float(found.values[-1])
    low = min(spectrum_ends(A)[0][0], 0.0)
    left = Remaining(A.A, A.without(found.vectors).V, low, last + _MARGIN * (1 - last))
    sketch = replace(rows, operator=left).sketch(COLUMNS_AT_A_TIME, rng, _TOLERANCE)
    vectors = np.asarray(found.vectors[:, extra:], A.dtype)
    return rows.leading((found.values[extra:], vectors))[0], sketch


def _squares(Y: Array, roots: Array) -> Array:
    """Return squared distances (n,) from the mean of some rows of Y (n, k)."""
    moved = Y.astype(float) - Y[roots].mean(axis=0, dtype=float)
    squares: Array = np.einsum("ij,ij->i", moved, moved)
    return squares
