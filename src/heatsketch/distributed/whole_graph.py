"""The door to the whole-graph path: a source in, the sketch of all its points out."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from heatsketch._checks import check_number
from heatsketch._typing import Array
from heatsketch._version import __version__
from heatsketch.distributed.cluster import connect
from heatsketch.distributed.output import Output, assemble, check_output, writer_of
from heatsketch.distributed.shuffle import Source
from heatsketch.distributed.state import State, check_unchanged, told_of
from heatsketch.distributed.tasks import begin
from heatsketch.distributed.whole import embedding_of
from heatsketch.estimators._unread import is_dask, precision_of, shape_of
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.io.blocks import Blocks
from heatsketch.io.reading import Reading
from heatsketch.io.refine import refined
from heatsketch.io.sources import open_blocks
from heatsketch.io.table import Table

TILE_ROWS = 2**17
BLOCK_ROWS = 2**17
_LEAST_TILE_ROWS = 100


@dataclass(frozen=True, eq=False)
class Sketched:
    """The sketch of all points of a source.

    Attributes
    ----------
    embedding : Dask array (n, k) or None
        In the order of the source; None where it was written to `output`.
    n : int
        Number of points.
    diagnostics : dict
        `n_neighbors`, `duplicates`, `components`, `row_sum_error`, `log_scale` as of `HeatSketch`;
        `recall` of the neighbours, where their search is not exact; `tiles`, and of a product the
        rows that travel, as a share of all (`halo`), and the tiles from which a tile has them
        (`neighboring_tiles`, on average).
    output : path or None
    """

    embedding: Any
    n: int
    diagnostics: dict[str, Any]
    output: Path | None

    def describe(self) -> str:
        """Say in one line what the graph is, and what travels."""
        facts = self.diagnostics
        return (
            f"all {self.n:,} points in one graph, tiles: {facts['tiles']:,}; "
            f"{100 * facts['halo']:.2g} % of the rows travel at each product"
        )


def sketch(
    source: Any,
    estimator: HeatSketch,
    output: str | Path | None = None,
    *,
    cluster: Any = None,
    recall: float = 0.98,
    tile_rows: int = TILE_ROWS,
    resume: bool = False,
    force: bool = False,
    **reading: Any,
) -> Sketched:
    """Sketch all points of a source on their whole neighbour graph, in tiles on Dask.

    Unlike `embed`, which fits a sample, this is `HeatSketch` of all points: points are sorted into
    tiles of cells near each other, tiles ask each other for neighbours, and products by the
    operator are tasks, one a tile, to which rows of other tiles travel as far as they are needed.
    The result has the same bits for any number of workers, when some of them are lost, and however
    the source is cut into blocks. It is ``estimator.fit_transform(X, ids=range(n))`` up to
    rounding, where both find the same neighbours: in up to 8 dimensions, or with a `recall` of 1
    (and ``neighbors=NeighborIndex(X, recall=1)`` there).

    Parameters
    ----------
    source : str, path or array (n, d)
        As for `embed`: dense points in a file or folder that every worker can read, or an array;
        with a cluster a file, a folder or a Dask array.
    estimator : HeatSketch
        With ``affinity="knn"``, a number or "self-tuning" as `epsilon`, and an integer as
        `random_state`. It is not changed.
    output : str or path, optional
        A .npy or .parquet file, a folder of .npy parts, or of a .h5ad source a .h5ad file, as for
        `embed`; without ids and labels. Workers write the parts of it.
        By default the result is a Dask array.
    cluster : None, str or dask.distributed.Client
        As for `embed`; None: tasks run in this process. Without `output` a client, whose workers
        have the result.
    recall : float in (0, 1], default 0.98
        Share of the exact neighbours to be found in more than 8 dimensions; 1: all.
    tile_rows : int >= 100, default 131,072
        Points of a tile, at most, unless one cell has more. The random rows of points do not depend
        on it; the order of sums does.
    resume : bool, default False
        Go on with a run that was killed, from the folder OUTPUT.partial: with the neighbours, if
        their search was complete, and the blocks of the output that are written. The bits are those
        of a run without a break. All else is computed again.
    force : bool, default False
        Replace the output, and begin again where there is a run that was not completed.
    **reading
        `key`, `features`, `exclude`, `label`, `ids` of `io.read_table`.

    Returns
    -------
    Sketched

    Raises
    ------
    ImportError
        Dask is not installed.
    ValueError
        Options of the estimator that only one machine has; a number that is not finite, with its
        row; all points equal; another source, or other options, than those of the run that is
        resumed; `resume` without an output.
    FileExistsError
        The output exists, or a run that was not completed.
    ChildProcessError
        A tile ended every worker that had a task of it; the message names it.
    ConnectionError
        The cluster does not answer, or has ended; `resume` goes on.
    FileNotFoundError
        A worker does not see the folder of the output, or the source, as this process does; told
        before the work begins.

    Warns
    -----
    DisconnectedWarning
        The graph falls into components.

    Notes
    -----
    Cost: points are read four times; for each product 2 nnz k operations and the rows of halos, see
    docs/scale.md. Memory of all workers together: 1.4 kB a point with 8 features and 16
    columns, 32 bytes more for each column.
    Nothing but sums of tiles comes to the client, and the sample from which the cells are found.
    On disk, for an `output`: that twice, and 12 (n_neighbors + 1) + 8 bytes a point for the
    neighbours (of up to 2³¹ points).

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(2000, rng=0)
    >>> done = hs.distributed.sketch(X, hs.HeatSketch(4, random_state=0), tile_rows=500)
    >>> done.embedding.compute().shape, done.diagnostics["components"]
    ((2000, 4), 1)
    """
    model = _usable(estimator)
    check_number(recall, "recall", low=0, high=1, open_low=True)
    rows = check_number(tile_rows, "tile_rows", low=_LEAST_TILE_ROWS, integer=True)
    if output is None and isinstance(cluster, str):
        raise ValueError(
            f"cluster={cluster!r} without output: what its workers hold ends with them; name an "
            "output, or pass a dask.distributed.Client."
        )
    if output is None and resume:
        raise ValueError(
            "resume=True without output: of a run whose result is a Dask array nothing is kept; "
            "pass the output of the run."
        )
    how = Reading.of(**{"missing": "error"} | reading)
    if how.missing != "error" or how.standardize:
        raise ValueError(
            "points in tiles may have no gaps and are not standardised; drop or impute gaps, and "
            "standardise, first."
        )
    target, suffix = None, ""
    if output is not None:
        target = Output(Path(output), Path(source) if isinstance(source, str | Path) else None)
        is_own = resume and State.of(target.path).is_whole
        suffix = check_output(target, how.missing, force=force, is_own=is_own)
    with connect(cluster) as client, _scheduler(client):
        points = _source_of(source, how, model.metric, client)
        if target is None:
            embedding, facts = embedding_of(points, model, int(rows), recall)
            return Sketched(embedding, points.n, facts, None)
        seen = open_blocks(source, how)
        options = {"recall": recall, "tile_rows": rows, "block_rows": _block_rows(source, points)}
        told = told_of(seen, model, how, **options)
        state = State.begin(target.path, suffix, told, resume=resume, force=force)
        with state.removed_if_of_no_use():
            if client is not None:
                stamp = told["content"]["stamp"]
                state = begin(client, source, stamp, how, state, BLOCK_ROWS).state
            done = _written(points, model, int(rows), recall, state)
        check_unchanged(seen, told)
    facts = done["diagnostics"]
    parameters = {k: v for k, v in model.get_params(deep=False).items() if k != "memory"}
    metadata = {"version": __version__, "columns": done["columns"], "reading": told["reading"]}
    assemble(target, state, metadata | {"whole_graph": facts, "parameters": parameters})
    state.remove()
    return Sketched(None, points.n, facts, target.path)


def _usable(estimator: Any) -> HeatSketch:
    """Return a copy of an estimator that can be fitted in tiles, or raise."""
    if not isinstance(estimator, HeatSketch):
        raise TypeError(
            f"estimator is of type {type(estimator).__name__}; pass a HeatSketch, or use "
            "distributed.embed, which takes any."
        )
    model, epsilon = clone(estimator), estimator.epsilon
    model._checked_times()
    own = model.get_params(deep=False)
    if isinstance(epsilon, numbers.Real):
        check_number(epsilon, "epsilon", low=0, open_low=True)
    elif epsilon != "self-tuning":
        raise ValueError(
            f"epsilon={epsilon!r} needs all points at once; pass a number, or 'self-tuning'."
        )
    for name, value in (("affinity", "knn"), ("neighbors", None)):
        if own[name] != value:
            raise ValueError(
                f"{name}={own[name]!r} is not possible in tiles; pass {name}={value!r}, or use "
                "distributed.embed."
            )
    if not isinstance(estimator.random_state, numbers.Integral):
        raise TypeError(
            f"random_state={estimator.random_state!r} does not give all workers the same random "
            "matrix; pass an integer."
        )
    return model


@contextmanager
def _scheduler(client: Any) -> Iterator[None]:
    """Run tasks one after the other where there is no client: each has threads of its own."""
    try:
        import dask
    except ImportError as error:
        raise ImportError('tiles need Dask; pip install "heatsketch[dask]"') from error
    with dask.config.set(scheduler="synchronous") if client is None else nullcontext():
        yield


def _source_of(source: Any, how: Reading, metric: str, client: Any) -> Source:
    """Return the points by delayed blocks."""
    import dask.array as da
    from dask import delayed

    if isinstance(source, da.Array):
        return _source_of_dask(source, metric)
    points = open_blocks(source, how)
    starts = range(0, points.n, BLOCK_ROWS)
    sizes = tuple(min(BLOCK_ROWS, points.n - start) for start in starts)
    if isinstance(source, str | Path):
        read, path = delayed(_read), str(Path(source).absolute())  # workers may be elsewhere
        blocks = tuple(read(path, how, *rows) for rows in zip(starts, sizes, strict=True))
    elif client is not None:
        raise ValueError(
            f"source is an array of type {type(source).__name__}, which workers cannot read; pass "
            "a path that all of them can read, or a Dask array."
        )
    else:
        block = delayed(_block)
        blocks = tuple(block(points, how, *rows) for rows in zip(starts, sizes, strict=True))
    return Source(blocks, sizes, len(points.columns), points.dtype, metric)


def _source_of_dask(source: Any, metric: str) -> Source:
    from dask import delayed

    if source.ndim != 2:
        raise ValueError(f"source has shape {source.shape}, but points are rows; pass (n, d).")
    _, d = shape_of(source)
    source, dtype = source.rechunk({1: -1}), precision_of(source)
    sizes = tuple(int(size) for size in source.chunks[0])
    own = source.astype(dtype).to_delayed().ravel()
    blocks = tuple(delayed(_dense)(block) for block in own)
    return Source(blocks, sizes, d, dtype, metric)


def _read(source: str, how: Reading, start: int, size: int) -> Array:
    return _block(open_blocks(source, how), how, start, size)


def _block(points: Blocks, how: Reading, start: int, size: int) -> Array:
    """Return the values of some rows."""
    table = next(points.tables(size, start))
    table = refined(replace(table, extra={}), replace(how, missing="keep"))
    return _dense(table.values)


def _dense(values: Any) -> Array:
    if not isinstance(values, np.ndarray):
        raise ValueError("the points are sparse, but tiles have dense ones; pass X.toarray().")
    return values


def _block_rows(source: Any, points: Source) -> int | list[int]:
    """Return the rows of the blocks that are written: those of a Dask array are its chunks."""
    return list(points.sizes) if is_dask(source) else BLOCK_ROWS


def _written(
    points: Source, model: Any, tile_rows: int, recall: float, state: State
) -> dict[str, Any]:
    """Let workers write the blocks that are missing; return diagnostics and names of columns."""
    import dask
    from dask import delayed

    missing, done = state.missing(len(points.blocks)), state.fitted
    if done is not None and (state.is_whole or not missing):
        return done
    embedding, facts = embedding_of(points, model, tile_rows, recall, state)
    model.embedding_ = embedding  # of which it knows the names of the columns
    names = tuple(str(name) for name in model.get_feature_names_out())
    state.keep_fitted({"diagnostics": facts, "columns": names})
    keep, blocks = delayed(_keep), embedding.to_delayed().ravel()
    dask.compute(*(keep(blocks[i], state, i, names) for i in missing))
    return {"diagnostics": facts, "columns": names}


def _keep(Y: Array, state: State, number: int, names: tuple[str, ...]) -> int:
    """Write a block; return its rows."""
    table = Table(np.empty((len(Y), 0)), (), {}, None, "")
    state.keep_part(number, writer_of(state.suffix, Y, names, table))
    return len(Y)
