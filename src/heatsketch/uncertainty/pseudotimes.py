"""Pseudotime: how far the diffusion says that points are from where something starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heatsketch._checks import check_in_range, check_level
from heatsketch._typing import Array, Rng
from heatsketch.markov.coordinates import COLUMNS_AT_A_TIME
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import DiffusionRows
from heatsketch.operators import Deflated
from heatsketch.operators.operator import spectrum_ends
from heatsketch.spectral.apply import SPECTRAL_LIMIT
from heatsketch.spectral.dense import all_eigenpairs
from heatsketch.spectral.filters import GreensFilter
from heatsketch.spectral.shift_invert import slowest_eigenpairs
from heatsketch.uncertainty.distances import Interval
from heatsketch.uncertainty.laws import ratio_bounds

N_PAIRS = 32  # eigenpairs; 64 take twice as long, and the error bars of trees hardly change
_MOST_ENTRIES = 2**27  # of eigenvectors that tell components from each other
_TOLERANCE = 1e-6  # of the series: its error is far below that of the sketch
_TIPS, _SAME_PLACE = 16, 0.05  # exact distances of the farthest points, this share of them apart
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
    summed = SummedRows.of(diffusion, root, time, filter, rng)
    distance = summed.distances(level)
    if summed.rest is not None:
        # The law of a sketched distance is that of its ratio to a unit only if this is known.
        tips = summed.farthest_points(distance.value)
        exact = summed.exact_distances(tips)
        for ends in distance:
            ends[tips] = exact
            np.minimum(ends, exact.max(), out=ends)
    unit = float(distance.value.max(initial=0.0)) or 1.0
    return Interval(*(np.where(summed.reached, ends / unit, np.inf) for ends in distance))


@dataclass(frozen=True, eq=False)
class SummedRows:
    """Rows of Σ_(s >= time) M A^(s-1), less their mean at a root, divided by e^log_scale.

    Attributes
    ----------
    known : array (points, k)
        Their part in the slowest eigenvectors.
    sketch : array (points, 32)
        Of the part in the others; (points, 0) if there are none.
    rest : DiffusionRows or None
        That part itself.
    roots : array (r,)
    reached : mask (points,)
        The points of the component of the root.
    log_scale : float
    """

    known: Array
    sketch: Array
    rest: DiffusionRows | None
    roots: Array
    reached: Array
    log_scale: float

    @classmethod
    def of(
        cls, diffusion: Diffusion, root: Any, time: Any, filter: str, rng: Rng = None
    ) -> SummedRows:
        """Compute them, or raise for a root that is none, or in several components."""
        rows = diffusion.rows(time, filter=filter)
        roots = _rows_of(root, rows.n_points)
        rows = replace(rows, filter=GreensFilter(rows.filter))
        labels = diffusion.operator.components()
        labels = np.zeros(diffusion.n, int) if labels is None else labels
        of_points = labels[rows.vertex]
        reached = of_points == of_points[roots[0]]
        if not reached[roots].all():
            raise ValueError(
                f"root has points of {len(np.unique(of_points[roots]))} components of the graph, "
                "between which nothing diffuses; pass points of one component."
            )
        if diffusion.diagnostics["is_constant"]:  # all distances are zero
            nothing = np.zeros((rows.n_points, 0))
            return cls(nothing, nothing, None, roots, reached, 0.0)
        known, sketch, rest, log_scale = _coordinates(rows, int(labels.max()), rng)
        Y, Z = known.astype(float), sketch.astype(float)
        Y -= Y[roots].mean(axis=0)
        Z -= Z[roots].mean(axis=0)
        return cls(Y, Z, rest, roots, reached, log_scale)

    def distances(self, level: float) -> Interval:
        """Return the distances (points,) from the mean at the root, with their intervals."""
        known, drawn = (np.einsum("ij,ij->i", Y, Y) for Y in (self.known, self.sketch))
        least, most = ratio_bounds(max(self.sketch.shape[1], 1), (1 - level) / 2, "gaussian")
        ends = (known + drawn * factor for factor in (1.0, 1 / most, 1 / least))
        return Interval(*(np.where(self.reached, np.sqrt(end), 0.0) for end in ends))

    def farthest_points(self, distances: Array) -> Array:
        """Return points that may be the farthest: the farthest of different places."""
        left = distances.copy()
        tips: list[int] = []
        near = _SAME_PLACE * left.max()
        Y = np.hstack([self.known, self.sketch])
        while len(tips) < _TIPS and left.max() > 0:
            tips.append(int(left.argmax()))
            left[np.linalg.norm(Y - Y[tips[-1]], axis=1) <= near] = 0.0
        return np.array(tips, dtype=np.int64)

    def exact_distances(self, points: Array) -> Array:
        """Return the distances of some points (m,) from the mean at the root, without a sketch.

        Cost: a series of products with m columns.
        """
        assert self.rest is not None
        vertex = self.rest.vertex
        rows, roots = (at if vertex is None else vertex[at] for at in (points, self.roots))
        units = self.rest.unit_columns(rows).toarray()
        units -= np.asarray(self.rest.unit_columns(roots).mean(axis=1))
        left = self.rest.transposed(units, _TOLERANCE).astype(float)
        left *= math.exp(self.rest.log_scale - self.log_scale)
        squares = np.sum(np.square(self.known[points]), axis=1) + np.sum(np.square(left), axis=0)
        return np.sqrt(squares)


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


def _coordinates(
    rows: DiffusionRows, extra: int, rng: Rng
) -> tuple[Array, Array, DiffusionRows | None, float]:
    """Return the rows in the slowest eigenvectors, a sketch of the others, these, and a scale.

    The first `extra` eigenvectors tell components from each other, and are left out of both.
    """
    A = rows.operator
    if A.n <= SPECTRAL_LIMIT:
        values, vectors = (found[..., ::-1] for found in all_eigenpairs(A))
        rows = replace(rows, operator=A.deflated(vectors[:, :extra]))
        known = rows.leading((values[extra:], vectors[:, extra:]))[0]
        return known, np.empty((rows.n_points, 0)), None, rows.log_scale
    if extra * A.n > _MOST_ENTRIES:
        raise ValueError(
            f"The graph has {extra + 1:,} components, too many to tell from each other; pass a "
            "larger n_neighbors, or the points of one component."
        )
    found = slowest_eigenpairs(A, min(extra + N_PAIRS, A.n - 1), rng=0)
    last = float(found.values[-1])
    low = min(spectrum_ends(A)[0][0], 0.0)
    left = Deflated(A.undeflated, A.deflated(found.vectors).V, (low, last + _MARGIN * (1 - last)))
    rest = replace(rows, operator=left)
    rows = replace(rows, operator=A.deflated(found.vectors[:, :extra]))
    vectors = np.asarray(found.vectors[:, extra:], A.dtype)
    known = rows.leading((found.values[extra:], vectors))[0]
    sketch = rest.sketch(COLUMNS_AT_A_TIME, rng, _TOLERANCE)
    return known, sketch * math.exp(rest.log_scale - rows.log_scale), rest, rows.log_scale
