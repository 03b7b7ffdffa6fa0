"""Nearest neighbours of points in tiles: each tile asks those that may hold nearer points.

Within a tile the search is `NeighborIndex`. A tile is asked for the neighbours of a point x if the
ball around the centre m of one of its cells, of which the farthest point is at R, may hold a nearer
one than the k of the point's own tile: |x - m| - R <= r; and, where cells are exact, the half-space
on the other side of the plane between the centres. So the neighbours are the exact ones where those
within tiles are. In many dimensions that excludes little; then only the cells of the nearest
centres are asked, as many as hold the required share of the neighbours of some points, which are
computed exactly (`recall`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from heatsketch._array import row_tiles
from heatsketch._blocks import held
from heatsketch._typing import Array
from heatsketch.distributed import cells as cells_module
from heatsketch.distributed.cells import Cells
from heatsketch.distributed.recall import Exact
from heatsketch.distributed.shuffle import Tile
from heatsketch.neighbors import NeighborIndex, Neighbors

_ROUNDING = 1e-9  # relative error of a distance by which a ball might be missed
_POINTS_AT_A_TIME = 512


class Found(NamedTuple):
    """Neighbours by their number among all vertices, and by the row that breaks ties."""

    distances: Array  # (m, k), infinite where there is none
    vertices: Array  # (m, k)
    rows: Array  # (m, k), the first row of the source


class Local(NamedTuple):
    """What a tile knows by itself."""

    search: NeighborIndex
    near: Found  # (n_t, k), each point first
    cells: Array  # its cells
    radii: Array  # of these


def neighbors_of(
    tiles: Sequence[Any], starts: Sequence[int], cells: Cells, k: int, recall: float
) -> tuple[list[Any], dict[str, float]]:
    """Return the k nearest points of every point, itself first, and their recall.

    One delayed `Neighbors` a tile, with the numbers of vertices among all.

    Parameters
    ----------
    tiles : delayed Tile
    starts : sequence of int
        The number of the first vertex of each tile, and of all.
    cells : Cells
    k : int
        At most the number of vertices.
    recall : float
        Share of the exact neighbours that is to be found.
    """
    import dask
    from dask import delayed

    exact, n_probe = None, len(cells.centres)
    if recall < 1 and not cells.exact:
        exact = Exact.of(tiles, starts, k)
        recall = math.sqrt(recall)  # what is lost within tiles, and between them
        n_probe = exact.n_probe(cells, recall)
    search, shared = delayed(_search_tile), delayed(cells, traverse=False)  # sent once
    local = held(
        *(
            search(tile, start, shared, k, recall)
            for tile, start in zip(tiles, starts[:-1], strict=True)
        )
    )
    outline = delayed(_outline)
    radius = np.zeros(len(cells.centres))
    for own, largest in dask.compute(*(outline(part) for part in local)):
        radius[own] = largest
    ask, balls = delayed(_wanted), delayed(radius, traverse=False)
    asked = partners(
        [
            ask(tile, part, t, shared, balls, n_probe)
            for t, (tile, part) in enumerate(zip(tiles, local, strict=True))
        ]
    )
    take, answer, merge = delayed(_points_at), delayed(_answer), delayed(_merged)
    merged = []
    for t, whom in enumerate(asked):
        others = sorted(whom.items())
        answers = [answer(local[u], take(tiles[t], rows), starts[u], k) for u, rows in others]
        merged.append(merge(local[t], *(rows for _, rows in others), *answers))
    found = list(held(*merged))
    return found, {} if exact is None else _recall(exact, found, starts)


def _recall(exact: Exact, found: Sequence[Any], starts: Sequence[int]) -> dict[str, float]:
    import dask
    from dask import delayed

    at = np.searchsorted(exact.vertices, starts)
    take = delayed(_distances_at)
    parts = (
        take(part, exact.vertices[at[t] : at[t + 1]] - starts[t]) for t, part in enumerate(found)
    )
    measured = exact.recall(np.concatenate(dask.compute(*parts)))
    return {"recall": measured.value, "recall_error": measured.error}


def _distances_at(near: Neighbors, rows: Array) -> Array:
    return near.distances[rows]


def partners(found: Sequence[Any]) -> list[dict[int, Any]]:
    """Return delayed dicts as dicts of delayed values: of these only the keys are looked at."""
    import dask
    from dask import delayed

    found = held(*found)
    keys = dask.compute(*(delayed(sorted)(pairs) for pairs in found))
    return [{u: pairs[u] for u in own} for pairs, own in zip(found, keys, strict=True)]


def _search_tile(tile: Tile, start: int, cells: Cells, k: int, recall: float) -> Local:
    index = NeighborIndex(tile.points, recall=recall)
    near = _found(index.of_points(min(k, index.n)), tile.inputs.first_rows, start, k)
    own, member = np.unique(tile.cell, return_inverse=True)
    radii = cells_module.radii(tile.points, member, cells.centres[own])
    return Local(index, near, own, radii)


def _outline(local: Local) -> tuple[Array, Array]:
    return local.cells, local.radii


def _found(near: Neighbors, first_rows: Array, start: int, k: int) -> Found:
    """Return neighbours within a tile by their number among all; fewer than k are filled up."""
    m, width = near.indices.shape
    found = Found(np.full((m, k), np.inf), np.full((m, k), -1), np.full((m, k), -1))
    found.distances[:, :width] = near.distances
    found.vertices[:, :width] = start + near.indices
    found.rows[:, :width] = first_rows[near.indices]
    return found


def _wanted(
    tile: Tile, local: Local, t: int, cells: Cells, radius: Array, n_probe: int
) -> dict[int, Array]:
    """Return the points (increasing) for which each other tile is asked.

    These are the tiles of the `n_probe` cells of the nearest centres (of all cells, where the own
    tile has too few points), without those that are too far; `radius` (cells,) is that of balls.
    """
    asked = [np.empty(0, np.int64)]  # numbers of tile and point in one
    reach = local.near.distances[:, -1] * (1 + _ROUNDING)
    n, others = len(tile.points), cells.tile != t
    for cell, ball in zip(local.cells, local.radii, strict=True):
        members = np.flatnonzero(tile.cell == cell)
        apart = np.sqrt(((cells.centres - cells.centres[cell]) ** 2).sum(axis=1))
        near = np.flatnonzero(apart * (1 - _ROUNDING) - radius <= ball + reach[members].max())
        for part in row_tiles(len(members), _POINTS_AT_A_TIME):
            own = members[part]
            away = cdist(tile.points[own], cells.centres[near])
            wanted = others[near] & (away * (1 - _ROUNDING) - radius[near] <= reach[own, None])
            if cells.exact:
                beyond = _beyond_bisector(away, np.searchsorted(near, cell), apart[near])
                wanted &= beyond <= reach[own, None]
            if n_probe < len(near):
                last = np.partition(away, n_probe - 1, axis=1)[:, n_probe - 1]
                wanted &= (away <= last[:, None]) | np.isinf(reach[own, None])
            i, j = np.nonzero(wanted)
            asked.append(cells.tile[near[j]] * n + own[i])
    whom, row = np.divmod(np.unique(np.concatenate(asked)), n)
    return {int(u): row[whom == u] for u in np.unique(whom)}


def _beyond_bisector(away: Array, own: Any, apart: Array) -> Array:
    """Return how far points are, at least, from those of other cells, (m, cells).

    The points of a cell are nearer to its centre than to the own one, so that they lie beyond the
    plane in the middle. `away` (m, cells) are the distances from the centres, `apart` (cells,)
    those of the centres from the own one, which is number `own`.
    """
    squares = away**2
    difference = squares * (1 - _ROUNDING) - squares[:, [own]] * (1 + _ROUNDING)
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond: Array = np.nan_to_num(difference / (2 * apart), nan=-np.inf)
    return beyond


def _points_at(tile: Tile, rows: Array) -> Array:
    return tile.points[rows]


def _answer(local: Local, x: Array, start: int, k: int) -> Found:
    own_rows = local.near.rows[:, 0]
    return _found(local.search.query(x, min(k, local.search.n)), own_rows, start, k)


def _merged(local: Local, *asked: Any) -> Neighbors:
    """Return the k nearest of those in the own tile and of the answers of others.

    `asked` are the points for which each of the others was asked, then its answers.
    """
    rows_asked, answers = asked[: len(asked) // 2], asked[len(asked) // 2 :]
    nearest = Found(*(values.copy() for values in local.near))
    k = nearest.distances.shape[1]
    for rows, answer in zip(rows_asked, answers, strict=True):
        both = Found(
            *(np.hstack([own[rows], new]) for own, new in zip(nearest, answer, strict=True))
        )
        first = np.lexsort((both.rows, both.distances), axis=1)[:, :k]
        for own, values in zip(nearest, both, strict=True):
            own[rows] = np.take_along_axis(values, first, axis=1)
    return Neighbors(nearest.distances, nearest.vertices)
