"""The neighbours of all points, which a run with an output keeps when their search is complete.

All that comes later is made of them, so that a run that has ended goes on from there, and a worker
that takes over from a lost one reads them, instead of searching again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heatsketch._blocks import held
from heatsketch._typing import Array
from heatsketch.distributed.cells import TRAINING_PER_CELL, number_of_cells, train
from heatsketch.distributed.search import neighbors_of
from heatsketch.distributed.shuffle import Inputs, Source, Tile, to_tiles
from heatsketch.distributed.state import State
from heatsketch.graphs.neighborhoods import feasible_neighbors
from heatsketch.neighbors import Neighbors
from heatsketch.operators.order import index_type


class Searched(NamedTuple):
    """Neighbours in tiles, and what else their graph is made of."""

    inputs: tuple[Any, ...]  # delayed Inputs, one a tile
    near: tuple[Any, ...]  # delayed Neighbors: the numbers of vertices among all
    starts: tuple[int, ...]  # the first vertex of each tile, and their number
    n_neighbors: int
    epsilon: float | None  # in the units of the distances, squared; None: self-tuning
    recall: dict[str, float]


def searched(
    source: Source, model: Any, tile_rows: int, recall: float, state: State | None
) -> Searched:
    """Search the neighbours of all points, or read those that a run has kept.

    Where there is a `state`, they are kept, and what is returned reads them from there.
    """
    from dask import delayed

    if state is None:
        return _search(source, model, tile_rows, recall)
    facts = state.searched
    if facts is None:
        done = _search(source, model, tile_rows, recall)
        _keep(done, state)
    else:
        n_neighbors = feasible_neighbors(model.n_neighbors, facts["starts"][-1])
        known = tuple(facts["starts"]), n_neighbors, facts["epsilon"], facts["recall"]
        done = Searched((), (), *known)
    numbers = range(len(done.starts) - 1)
    inputs, near = delayed(_read_inputs), delayed(_read_near)
    return done._replace(
        inputs=tuple(inputs(state, t) for t in numbers), near=tuple(near(state, t) for t in numbers)
    )


def _search(source: Source, model: Any, tile_rows: int, recall: float) -> Searched:
    import dask
    from dask import delayed

    n_cells = number_of_cells(source.n, tile_rows)
    count = min(source.n, TRAINING_PER_CELL * n_cells)
    rows = np.sort(np.random.default_rng(0).choice(source.n, count, replace=False))
    tiles, cells = to_tiles(source, train(source.sample(rows), n_cells), tile_rows)
    inputs = held(*(delayed(_inputs)(tile) for tile in tiles))
    sizes = dask.compute(*(delayed(_size)(own) for own in inputs))
    starts = tuple(int(start) for start in np.concatenate([[0], np.cumsum(sizes)]))
    if starts[-1] < 2:
        raise ValueError(
            "All distances are zero: every row of X is the same point; pass distinct points."
        )
    k = feasible_neighbors(model.n_neighbors, starts[-1])
    near, recall_facts = neighbors_of(tiles, starts, cells, k + 1, recall)
    self_tuning = model.epsilon == "self-tuning"
    epsilon = None if self_tuning else float(cells.frame.squared(float(model.epsilon)))
    return Searched(inputs, tuple(near), starts, k, epsilon, recall_facts)


def _inputs(tile: Tile) -> Inputs:
    return tile.inputs


def _size(inputs: Inputs) -> int:
    return inputs.n_vertices


def _keep(done: Searched, state: State) -> None:
    """Let workers keep their tiles, and then what is known of all, which says that they are."""
    from dask import delayed

    keep = delayed(_keep_tile)
    pairs = zip(done.inputs, done.near, strict=True)
    held(*(keep(state, t, *own) for t, own in enumerate(pairs)))
    state.keep_searched({"starts": done.starts, "epsilon": done.epsilon, "recall": done.recall})


def _keep_tile(state: State, t: int, inputs: Inputs, near: Neighbors) -> None:
    rows, vertex, indices = map(_small, (inputs.rows, inputs.vertex, near.indices))
    arrays = {"rows": rows, "vertex": vertex, "distances": near.distances, "indices": indices}
    state.keep(state.tile(t), lambda draft: np.savez(draft, allow_pickle=False, **arrays))


def _small(numbers: Array) -> Array:
    return numbers.astype(index_type(1 + int(numbers.max())))


def _read_inputs(state: State, t: int) -> Inputs:
    return Inputs(*_arrays(state, t, "rows", "vertex"))


def _read_near(state: State, t: int) -> Neighbors:
    return Neighbors(*_arrays(state, t, "distances", "indices"))


def _arrays(state: State, t: int, *names: str) -> list[Array]:
    with np.load(state.tile(t), allow_pickle=False) as kept:
        found = [kept[name] for name in names]
    return [a.astype(np.int64) if a.dtype.kind == "i" else a for a in found]
