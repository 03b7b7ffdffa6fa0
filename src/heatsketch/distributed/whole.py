"""The heat sketch of all points of a source on their whole neighbour graph, in tiles on Dask."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsketch._array import random_block
from heatsketch._blocks import held
from heatsketch._checks import CertificateError, DisconnectedWarning, name_rows
from heatsketch._ids import numbers_at, numbers_of
from heatsketch._typing import Array
from heatsketch.distributed.graph import Graph, affinity, component_sizes
from heatsketch.distributed.searched import searched
from heatsketch.distributed.shuffle import Inputs, Source, to_blocks
from heatsketch.distributed.state import State
from heatsketch.estimators._blocks import on_scale
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.normalization import Scaling, bistochastic_scaling, markov_scaling
from heatsketch.operators.dask_tiles import DaskTiles, DeflatedTiles, blocks_of, tiled
from heatsketch.operators.sparse import is_large
from heatsketch.scales.bandwidth import scale_order
from heatsketch.spectral.filters import make_filter, times_of
from heatsketch.spectral.sketch import sketch_blocks

_MAX_MEASURE_ERROR = 1e-6


@dataclass(frozen=True, eq=False)
class WholeGraph:
    """The diffusion of all points in tiles.

    Attributes
    ----------
    diffusion : Diffusion
        Its operators are `DaskTiles`, its measure a Dask array, of the vertices in tiles.
    inputs : tuple of delayed Inputs
        Of each tile.
    source : Source
    """

    diffusion: Diffusion
    inputs: tuple[Any, ...]
    source: Source

    @property
    def sizes(self) -> tuple[int, ...]:
        """Vertices of each tile."""
        return self.diffusion.operator.halo.sizes  # type: ignore[attr-defined]

    def of_inputs(self, values: Any) -> Any:
        """Return rows of the vertices (n, k), a Dask array, in the order of the source."""
        return to_blocks(blocks_of(values), self.inputs, self.source, values.shape[1], values.dtype)


def embedding_of(
    source: Source, model: Any, tile_rows: int, recall: float, state: State | None = None
) -> tuple[Any, dict]:
    """Return the heat sketch (n, k) of a source, a Dask array, and diagnostics.

    A run with a `state` keeps there what it goes on with when it has ended.
    """
    graph = whole_graph(source, model, tile_rows, recall, state)
    diffusion = graph.diffusion
    times = times_of(model.time)
    filters = [make_filter(model.filter, float(t)).quotient() for t in times]
    root = np.sqrt(diffusion.measure)
    A = DeflatedTiles(diffusion.operator, root / np.linalg.norm(root))  # type: ignore[arg-type]
    blocks = sketch_blocks(A, filters, _random_columns(graph, model))
    H, log_scales = on_scale(blocks, diffusion.operator.dtype)
    product: Any = diffusion.smooth(np.hstack([H, root[:, None].astype(H.dtype)]))
    markov, width = model.normalization == "markov", H.shape[1]
    rows = product[:, :-1] / product[:, -1:] if markov else product[:, :-1]
    rows = rows.rechunk((graph.sizes, width)).astype(source.dtype)
    log_scale = log_scales if len(times) > 1 else log_scales[0]
    return graph.of_inputs(*held(rows)), diffusion.diagnostics | {"log_scale": log_scale}


def whole_graph(
    source: Source, model: Any, tile_rows: int, recall: float, state: State | None
) -> WholeGraph:
    """Build the diffusion of a source as an estimator describes it."""
    done = searched(source, model, tile_rows, recall, state)
    order = scale_order(done.n_neighbors)
    built = affinity(done.near, done.starts, order, done.epsilon)
    facts = {
        "n_neighbors": done.n_neighbors,
        "duplicates": source.n - done.starts[-1],
        **done.recall,
        "tiles": len(done.near),
        **_halo_facts(built.affinity),
    }
    dtype = source.dtype if is_large(source.n) else np.dtype(np.float64)
    return WholeGraph(_normalized(built, model, dtype, facts), done.inputs, source)


def _halo_facts(K: DaskTiles) -> dict[str, float]:
    """Return the rows of other tiles that a product takes, as a share, and their tiles."""
    import dask

    rows = dask.compute(*(dask.delayed(len)(rows) for t in K.halo.lists for rows in t.values()))
    pairs = len(rows)
    return {"halo": sum(rows) / K.n, "neighboring_tiles": pairs / len(K.rows)}


def _normalized(built: Graph, model: Any, dtype: Any, facts: dict[str, Any]) -> Diffusion:
    """Normalise the affinity, as `Diffusion.from_points` does."""
    from dask import delayed

    K = built.affinity
    if model.normalization == "bistochastic":
        scaling = bistochastic_scaling(K, model.tol, model.max_iter)
    else:
        scaling = markov_scaling(K, model.alpha if model.normalization == "markov" else 1.0)
    facts = facts | scaling.diagnostics | _connectivity(K, scaling.row_sums)
    s, measure = K.asarray(scaling.s), K.asarray(scaling.measure)
    A = Scaling(s, measure, scaling.row_sums).of(K, dtype)
    wide = K.halo.extended(blocks_of(s))
    weight = scaling.density_weight
    weights = [None] * len(wide) if weight is None else K.halo.extended(blocks_of(weight))
    step = delayed(_own_rows)
    rows = held(
        *(
            step(own, left, right, scaling.alpha, dtype)
            for own, left, right in zip(built.own, wide, weights, strict=True)
        )
    )
    M = DaskTiles(rows, K.halo, (-math.inf, math.inf), dtype)
    facts["row_sum_error"] = _measure_error(A, measure)
    return Diffusion(A, measure, None, model.normalization, M, diagnostics=facts)  # type: ignore[arg-type]


def _own_rows(own: Any, s: Array, weight: Array | None, alpha: float, dtype: Any) -> Any:
    """Return the rows of a tile before they were made symmetric, by the rule for new points."""
    return Scaling(s, s, s, weight, alpha).rows(own, dtype)


def _connectivity(K: DaskTiles, sums: Any) -> dict[str, int]:
    sizes = component_sizes(K, sums)
    if len(sizes) > 1:
        warnings.warn(
            f"The affinity falls into {len(sizes)} components (sizes {name_rows(sizes)}): nothing "
            "diffuses between them, and the distance between components says only that they are "
            "apart. A larger n_neighbors would connect them.",
            DisconnectedWarning,
            stacklevel=5,
        )
    return {"components": len(sizes)}


def _measure_error(A: Any, measure: Any) -> float:
    """Return how well A √π = √π holds, or raise if it is off."""
    root = np.sqrt(measure)
    error = float(abs((A @ root) / root - 1).max())
    allowed = max(_MAX_MEASURE_ERROR, 50 * float(np.finfo(A.dtype).eps))
    if not error <= allowed:
        raise CertificateError(
            f"A √π = √π is off by {error:.1e} where rounding explains {allowed:.0e}."
        )
    return error


def _random_columns(graph: WholeGraph, model: Any) -> Any:
    """Return G (n, k), of which a row depends on the seed and the row of its point alone."""
    from dask import delayed

    k, sizes = model._columns_wanted(), graph.sizes
    draw = delayed(_random_rows)
    blocks = [draw(own, k, model.kind, model.random_state) for own in graph.inputs]
    return tiled(blocks, sizes, (k,), np.float64)


def _random_rows(inputs: Inputs, k: int, kind: str, seed: int) -> Array:
    n = inputs.n_vertices
    numbers = numbers_at(numbers_of(inputs.rows), inputs.vertex, n)
    return random_block(n, k, kind, seed, numbers=numbers)
