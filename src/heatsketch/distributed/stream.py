"""Embed a source by blocks of rows: fit a sample, map every row by it, put the blocks together."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import clone
from sklearn.utils import get_tags

from heatsketch._checks import check_number, features_named, logger
from heatsketch._version import __version__
from heatsketch.distributed.cluster import connect
from heatsketch.distributed.mapping import Mapping, here, stored
from heatsketch.distributed.output import Output, assemble, check_output
from heatsketch.distributed.sample import gather, half_discrepancy
from heatsketch.distributed.state import State, check_unchanged, told_of
from heatsketch.distributed.tasks import Job, begin, by_workers
from heatsketch.estimators._sample import LEAST_POINTS as LEAST_POINTS
from heatsketch.estimators._sample import Sample, most_fitted, seed_of
from heatsketch.io.blocks import Blocks
from heatsketch.io.files import check_target, write_atomically
from heatsketch.io.formats import DEFAULT_KEY, suffix_of
from heatsketch.io.models import read_facts, write_model
from heatsketch.io.reading import MISSING, Reading
from heatsketch.io.refine import Learned, check_others, reading_record
from heatsketch.io.sources import open_blocks

BLOCK_ROWS = 2**16


@dataclass(frozen=True, eq=False)
class Streamed:
    """What was fitted and written.

    Attributes
    ----------
    estimator : the fitted estimator
    n : int
        Points of the source, all of which are in the output, but for rows that were left out.
    fit_points : int
        Points of the sample.
    discrepancy : float or None
        How much distances differ between fits of two halves of the sample, see `embed`; None if
        all points were fitted.
    of_points : (float, float) or None
        How much of it is due to the points of the halves, and not to the random columns of a
        `HeatSketch`: an interval of about 95 %. None for other methods.
    output : path
    notes : tuple of str
        What reading changed: rows left out, gaps filled, columns standardised.
    """

    estimator: Any
    n: int
    fit_points: int
    discrepancy: float | None
    output: Path
    notes: tuple[str, ...] = ()
    of_points: tuple[float, float] | None = None

    def describe(self) -> str:
        """Say in one line what the sample is, and what it costs."""
        if self.discrepancy is None:
            return f"all {self.n:,} points were fitted"
        said = (
            f"{self.fit_points:,} of {self.n:,} points were fitted; distances of other points "
            f"differ by {_percent(self.discrepancy)} % between fits of two halves of them"
        )
        if self.of_points is None:
            return said
        low, high = map(_percent, self.of_points)
        return f"{said} ({low} to {high} % because of the points, the rest by random columns)"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}"


def embed(
    source: Any,
    output: str | Path,
    estimator: Any,
    *,
    fit_points: int | None = None,
    resume: bool = False,
    force: bool = False,
    model: str | Path | None = None,
    output_key: str = DEFAULT_KEY,
    block_rows: int = BLOCK_ROWS,
    cluster: Any = None,
    **reading: Any,
) -> Streamed:
    """Embed more points than memory holds: fit a sample, map all of them block by block.

    The source is read twice, by blocks of rows: once to look at every number and to draw the
    sample, once to map every row by `transform`, which depends on that row alone. Rows keep their
    order. The sample is uniform, without repetition, and depends on the number of rows and
    `random_state` alone, not on blocks or formats.

    Parameters
    ----------
    source : str, path or array (n, d)
        A .npy, .parquet, .h5ad or .zarr file (dense, or sparse and stored by rows), a folder of
        .npy or .parquet parts, which are read in the order of their names and numbers, or an array
        that has slices: `numpy.memmap`, or one of zarr, h5py or dask.
    output : str or path
        A .npy file, a .parquet file (with the other columns of a .parquet source, or obs of an
        AnnData one; one row group a block), a .h5ad file (of a .h5ad source: a copy of it with the
        coordinates in obsm), or, without a suffix, a folder of .npy parts. It appears when it is
        complete.
    estimator : estimator with `transform`
        As for `fit`; it is cloned. `HeatSketch`, `HeatEmbedding`, `DiffusionMap`, ...
    fit_points : int >= 100, optional
        Size of the sample; by default as many as fit in half of the memory there is
        (`memory.most_points`). If there are no more points than this, all are fitted, and the
        output is `embedding_`.
    resume : bool, default False
        Go on with a run that was killed, from the folder OUTPUT.partial. The bits are those of a
        run without a break.
    force : bool, default False
        Replace the output, and begin again where there is a run that was not completed.
    model : str or path, optional
        Keep the fitted model in this file, too, for `load_model` and ``heatsketch transform``.
    output_key : str, default "X_heatsketch"
        The entry of obsm in a .h5ad output.
    block_rows : int, default 65,536
        Rows that are mapped at a time.
    cluster : str or dask.distributed.Client, optional
        Workers of Dask that map the blocks: "local:4" starts four processes on this machine, which
        end with the run; or an address ("tcp://10.0.0.1:8786"), or a client. The output has the
        same bytes. Every worker opens the source itself and writes into OUTPUT.partial, so that
        both must be in folders that all workers share; the model is fitted here. A source that is
        no file must then be a Dask array.
    **reading
        `key`, `features`, `exclude`, `label`, `ids`, `missing` ("error" by default) and
        `standardize` of `io.read_table`. Medians, means and scales are those of the sample. With
        ``missing="drop"`` the rows that stay keep their order, and a .parquet output has their
        numbers in the source as the column `row` (`row_in_source` if there is one of that name).

    Returns
    -------
    Streamed

    Raises
    ------
    ValueError
        A number that is not finite, with its row; a source that is not read by blocks; another
        source, or other options, than those of the run that is resumed.
    TypeError
        An estimator without `transform`, or one that is fitted to labels.
    FileExistsError
        The output exists, or a run that was not completed.
    FileNotFoundError
        A worker does not see the folder of the output, or the source, as this process does.
    ChildProcessError
        A block ended every worker that mapped it; the message names it.
    ConnectionError
        The cluster does not answer, or has ended; `resume` goes on.

    Notes
    -----
    What the sample costs is measured: each of two halves of it is fitted by itself, and both map
    1,000 points outside of it. `discrepancy` is the root mean square difference of their distances
    in the two embeddings, relative to the root mean square distance. It is about samples of half
    the size. Of a `HeatSketch` it holds the random columns, too, which alone make it 1/√k for k
    columns; `of_points` is an interval of what is left without them, by a jackknife over the
    columns. Cost: two fits of half the size.

    Cost: memory of the fit and of some blocks; the time of the fit, twice, and of `transform` for
    all rows; on disk the output twice.

    Examples
    --------
    >>> import tempfile, numpy as np, heatsketch as hs
    >>> X, angle = hs.datasets.circle(3000, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/big.npy", X)
    ...     sketch = hs.HeatSketch(4, random_state=0)
    ...     done = hs.distributed.embed(
    ...         f"{folder}/big.npy", f"{folder}/out.npy", sketch, fit_points=500
    ...     )
    ...     Y = np.load(f"{folder}/out.npy")
    >>> Y.shape, np.allclose(Y[:9], done.estimator.transform(X[:9]))
    ((3000, 4), True)
    """
    how = _reading(reading)
    _check_estimator(estimator)
    points = _opened(source, how)
    path = Path(source) if isinstance(source, str | Path) else None
    target = Output(Path(output), path, output_key)
    rows = check_number(block_rows, "block_rows", low=1, integer=True)
    is_own = resume and State.of(target.path).is_whole
    suffix = check_output(target, how.missing, force=force, is_own=is_own)
    if model is not None:
        check_target(model, force=force)
    with features_named(points.columns), connect(cluster) as client:
        told = told_of(points, estimator, how, fit_points=fit_points, block_rows=rows)
        stamp = told["content"]["stamp"]
        state = State.begin(target.path, suffix, told, resume=resume, force=force)
        with state.removed_if_of_no_use():
            job = None if client is None else begin(client, source, stamp, how, state, rows)
            fitted, learned, facts = _fitted(points, estimator, fit_points, how, state, rows)
        if not state.is_whole:  # else the blocks of a folder are no longer here
            _map(Mapping(points, fitted, learned, how, state, rows), client, job, source)
        check_unchanged(points, told)
    columns = [str(name) for name in fitted.get_feature_names_out()]
    metadata = {"version": __version__, "model": read_facts(state.model), "columns": columns}
    assemble(target, state, metadata | {"stream": facts, "reading": told["reading"]})
    if model is not None:
        write_atomically(model, lambda draft: shutil.copyfile(state.model, draft), force=force)
    state.remove()
    return Streamed(
        fitted,
        points.n,
        facts["fit_points"],
        facts["discrepancy"],
        target.path,
        tuple(facts["notes"]),
        None if facts["of_points"] is None else tuple(facts["of_points"]),
    )


def fit(source: Any, estimator: Any, *, fit_points: int | None = None, **reading: Any) -> Any:
    """Fit an estimator to a uniform sample of a source larger than memory, and return it.

    Parameters
    ----------
    source, estimator, fit_points, **reading
        As of `embed`.

    Returns
    -------
    estimator
        Fitted; its `transform` maps blocks of the source, such as those of
        ``dask.array.map_blocks``.

    Raises
    ------
    ValueError
        A number that is not finite, with its row; a source that is not read by blocks.
    TypeError
        An estimator without `transform`, or one that is fitted to labels.
    MemoryError
        There is no memory for a sample.

    Notes
    -----
    Cost: one reading of the source, and the fit of the sample.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(3000, rng=0)
    >>> model = hs.distributed.fit(X, hs.HeatSketch(4, random_state=0), fit_points=500)
    >>> model.embedding_.shape, model.transform(X[:10]).shape
    ((500, 4), (10, 4))
    """
    how = _reading(reading)
    _check_estimator(estimator)
    points = _opened(source, how)
    sample = Sample.draw(points.n, size(points, estimator, fit_points), seed_of(estimator))
    values = gather(points, how, sample, BLOCK_ROWS).table.values
    with features_named(points.columns):
        return clone(estimator).fit(values)


def _reading(options: dict[str, Any]) -> Reading:
    how = Reading.of(**{"missing": "error"} | options)
    if how.missing not in MISSING:
        raise ValueError(
            f"missing={how.missing!r} but gaps have no place on a map; pass one of "
            f"{', '.join(map(repr, MISSING))}."
        )
    return how


def _opened(source: Any, how: Reading) -> Blocks:
    """Open a source, and look for points, and for the ids and labels that are named."""
    points = open_blocks(source, how)
    if points.n == 0:
        raise ValueError(f"{points.source} has no rows; pass at least 2 points.")
    if how.label or how.ids:
        check_others(next(points.tables(1)), how)
    return points


def _check_estimator(estimator: Any) -> None:
    """Raise for methods that cannot map other points than those of the sample."""
    name = type(estimator).__name__
    if not hasattr(estimator, "transform"):
        raise TypeError(
            f"{name} has no transform, by which points outside of the sample are mapped; pass "
            "another estimator, such as HeatEmbedding."
        )
    if get_tags(estimator).target_tags.required:
        raise TypeError(
            f"{name} is fitted to labels, which are not read by blocks; fit it to a sample "
            "(io.read_table) and map blocks by its transform."
        )


def size(points: Blocks, estimator: Any, fit_points: int | None = None) -> int:
    """Return how many points are fitted."""
    if fit_points is not None:
        least = check_number(fit_points, "fit_points", low=LEAST_POINTS, integer=True)
        return min(least, points.n)
    d = len(points.columns)
    return most_fitted(estimator, points.n, d, points.dtype, points.stored)


def _fitted(
    points: Blocks,
    estimator: Any,
    fit_points: int | None,
    how: Reading,
    state: State,
    rows: int,
) -> tuple[Any, Learned, dict[str, Any]]:
    """Return the model, what was learned of the columns, and facts: those kept, if there are."""
    facts = state.fitted
    if facts is not None:
        return *stored(state), facts
    count, seed = size(points, estimator, fit_points), seed_of(estimator)
    sample = Sample.draw(points.n, count, seed)
    logger.info("reading %s points, of which %s are fitted", f"{points.n:,}", f"{count:,}")
    found = gather(points, how, sample, rows)
    values, cost = found.table.values, None
    if count < points.n:
        logger.info("fitting two halves of the sample")
        cost = half_discrepancy(estimator, values, found.half, found.held_out.values)
    model = clone(estimator).fit(values)
    facts = {
        "points": points.n,
        "fit_points": values.shape[0],
        "seed": seed,
        "discrepancy": None if cost is None else cost.whole,
        "of_points": None if cost is None else cost.of_points,
        "notes": found.notes,
    }
    record = reading_record(found.table, suffix_of(points.source), how.as_record())
    write_model(model, state.model, record, force=True)
    state.keep_fitted(facts)
    return model, found.table.learned, facts


def _map(mapping: Mapping, client: Any, job: Job | None, source: Any) -> None:
    """Map the blocks that are not mapped yet, here or by the workers of a client."""
    if job is None:
        here(mapping)
    else:
        by_workers(client, mapping, job, source)
