"""The parts that a map is learned for, each by itself, and where they stand beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from heatsketch._typing import Array
from heatsketch.isometry.learn import MAX_ROWS
from heatsketch.markov.coordinates import Coordinates, present

_ROWS, _LEAST_ROWS = 8_192, 64  # that maps of all parts are learned from, and that of each part
_JUDGED, _JUDGED_SIZE = 8, 0.2  # parts that choose the time; their size relative to the largest
_GAP, _LEAST_GAP = 0.2, 0.1  # between discs: of the median radius, and of the largest
_ROUNDING = 1e-12  # of a shift, relative to the largest


class Parts(NamedTuple):
    """The whole, or the components of a graph, the largest first.

    Attributes
    ----------
    rows : array (p,)
        Vertices whose rows the maps are learned from, in an order that says nothing.
    learned : list of index arrays or slices
        The positions in `rows` of each part.
    vertices : list of index arrays or slices
        All vertices of each part.
    columns : list of index arrays or slices
        The vectors of the coordinates that are not 0 on the part.
    """

    rows: Array
    learned: Sequence[Any]
    vertices: Sequence[Any]
    columns: Sequence[Any]

    @classmethod
    def whole(cls, order: Array) -> Parts:
        """Return one part, all vertices, which are given in an order that says nothing."""
        return cls(order[:MAX_ROWS], [slice(None)], [slice(None)], [slice(None)])

    @classmethod
    def components(cls, order: Array, labels: Array, coordinates: Coordinates) -> Parts:
        """Return the components with these labels (n,), in an order that is not that of the rows.

        Among components of one size the first is that of the first vertex in `order`.
        """
        sizes, first = np.bincount(labels), np.unique(labels[order], return_index=True)[1]
        by_size = np.lexsort((first, -sizes))
        rank = np.argsort(by_size)
        ends = np.cumsum(sizes[by_size])
        vertices = np.split(order[np.argsort(rank[labels[order]], kind="stable")], ends[:-1])
        rows = [part[: max(_LEAST_ROWS, _ROWS // len(sizes))] for part in vertices]
        ends = np.cumsum([len(part) for part in rows])
        learned = np.split(np.arange(ends[-1]), ends[:-1])
        columns = present(coordinates.vectors, labels)[by_size]
        return cls(np.concatenate(rows), learned, vertices, [np.flatnonzero(c) for c in columns])

    def columns_of(self, n_pairs: int, width: int) -> list[Any]:
        """Return the columns of each part among `width`: first those of pairs."""
        if isinstance(self.columns[0], slice):
            return list(self.columns)
        others = np.arange(n_pairs, width)
        return [np.append(own[own < n_pairs], others) for own in self.columns]

    def judged(self, n_rows: int) -> tuple[list[Any], Array]:
        """Return positions in `rows` of some of each part that counts, and its share of the pairs.

        Some `n_rows` positions in all.
        """
        sizes = np.array([len(part) for part in self.vertices if not isinstance(part, slice)])
        if not len(sizes):
            return [slice(0, n_rows)], np.ones(1)
        sizes = sizes[:_JUDGED][sizes[:_JUDGED] >= _JUDGED_SIZE * sizes[0]].astype(float)
        some = [part[: n_rows // len(sizes)] for part in self.learned[: len(sizes)]]
        return some, sizes * (sizes - 1) / max(np.sum(sizes * (sizes - 1)), 1.0)


def side_by_side(Y: Array, parts: Sequence[Array], mass: Array) -> Array:
    """Return shifts (C, k) of parts of Y (n, k) after which their discs stand in rows, apart.

    The discs are around the means, the largest one comes first; with k = 1 there is one row. `mass`
    (C,) is that of the parts: the mean of the shifts is 0.
    """
    means = np.array([Y[part].mean(axis=0, dtype=float) for part in parts])
    reach = [
        np.linalg.norm(Y[part] - mean, axis=1).max()
        for part, mean in zip(parts, means, strict=True)
    ]
    shifts = _in_rows(np.array(reach, dtype=float), Y.shape[1]) - means
    shifts = shifts - mass @ shifts / mass.sum()
    return np.where(np.abs(shifts) > _ROUNDING * np.abs(shifts).max(), shifts, 0.0)


def _in_rows(radii: Array, k: int) -> Array:
    """Return centres (C, k) of discs in rows, as in a text, in about a square."""
    gap = max(_GAP * float(np.median(radii)), _LEAST_GAP * float(radii.max())) or 1.0
    steps = 2 * radii + gap
    width = np.inf if k == 1 else max(np.sqrt(np.sum(steps**2)), steps.max())
    centres, x, y, height = np.zeros((len(radii), k)), 0.0, 0.0, 0.0
    for disc in np.argsort(-radii, kind="stable"):
        step = steps[disc]
        if x + step > width * (1 + 1e-9):  # the next row
            x, y, height = 0.0, y - height, 0.0
        height = max(height, step)  # discs hang from the upper edge of their row
        centres[disc, 0] = x + step / 2
        if k > 1:
            centres[disc, 1] = y - step / 2
        x += step
    return centres
