"""Embed a source by blocks of rows: fit a sample, map every row by it, join the blocks."""

import builtins
import functools
import math
import re
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from heatsketch import _exceptions
from heatsketch._exceptions import ScaleWarning, rows_message, warn
from heatsketch._input_warnings import features_named
from heatsketch._optional import optional
from heatsketch._tiles import in_one_thread, track
from heatsketch._validation import check_choice, check_number
from heatsketch._version import __version__
from heatsketch.distributed.run import Run, Warned, assemble, check_output
from heatsketch.distributed.sample import gather, half_discrepancy, seed_of
from heatsketch.io import parquet
from heatsketch.io.blocks import Blocks
from heatsketch.io.files import check_target, suffix_of, write_atomically
from heatsketch.io.formats import DEFAULT_KEY, open_blocks
from heatsketch.io.models import read_facts, read_model, write_model
from heatsketch.io.refine import Learned, refined, with_label
from heatsketch.io.table import MISSING, Reading, Table

BLOCK_ROWS = 2**16
_WORKERS = re.compile(r"local:0*[1-9]\d*|(?!local:)[^:/]+:\d+|\w+://.+")  # names of a cluster
Keep = Callable[[int, Table], list[Warned]]  # number of a block, and the block as it was read


class Streamed(NamedTuple):
    """The result of `embed`: the fitted estimator and the output.

    Attributes
    ----------
    estimator : estimator
        The fitted estimator.
    n : int
        Number of points of the source. All are in the output, except rows left out by
        ``missing="drop"``.
    fit_points : int
        Number of points of the sample.
    discrepancy : float or None
        Relative difference of distances between fits of two halves of the sample, see `embed`; None
        if fewer than 20 points are outside of the sample.
    of_points : (float, float) or None
        The discrepancy due to the sampled points alone, without that of the random columns of a
        `HeatSketch`: an interval of about 95 %. None for other methods.
    output : path
        The file or folder written.
    notes : tuple of str
        Changes by reading: rows left out, gaps filled, columns standardised.
    metadata : dict
        How the output was made.

    See Also
    --------
    distributed.embed : Embed more points than memory holds.
    """

    estimator: Any
    n: int
    fit_points: int
    discrepancy: float | None
    of_points: tuple[float, float] | None
    output: Path
    notes: tuple[str, ...]
    metadata: dict[str, Any]

    def describe(self) -> str:
        """Describe the sample and its error in one line."""
        if self.discrepancy is None:
            count = "all" if self.fit_points >= self.n else f"{self.fit_points:,} of"
            return f"{count} {self.n:,} points were fitted"
        said = (
            f"{self.fit_points:,} of {self.n:,} points were fitted; distances of other points "
            f"differ by {100 * self.discrepancy:.2g} % between fits of two halves of them"
        )
        if self.of_points is None:
            return said
        low, high = (f"{100 * fraction:.2g}" for fraction in self.of_points)
        return f"{said} ({low} to {high} % because of the points, the rest by random columns)"


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

    The source is read twice, by blocks of rows: once to check every number and to draw the sample,
    once to map every row by `transform`, which depends on that row alone. Rows keep their order.
    The sample is uniform, without repetition, and depends only on the number of rows, its size and
    `random_state`, not on blocks or formats.

    Parameters
    ----------
    source : str, path or array-like of shape (n_samples, n_features)
        A .npy, .parquet, .csv (.tsv, .txt, also .gz), .h5ad or .zarr file (dense, or sparse and
        stored by rows). A folder of .npy, .parquet or .csv parts, which are read in the order of
        their names and numbers. Or an array that has slices: `numpy.memmap`, or one of zarr, h5py
        or dask.
    output : str or path
        A .npy file, a .parquet file (with the other columns of a .parquet or text source, or obs of
        an AnnData one; one row group a block). A .h5ad file: a copy of a .h5ad source with the
        coordinates in obsm. Without a suffix, a folder of .npy parts. It appears when it is
        complete.
    estimator : estimator with `transform`
        An unfitted estimator, such as `HeatSketch`, `HeatEmbedding` or `DiffusionMap`; it is
        cloned.
    fit_points : int >= 100, default=None
        Size of the sample; by default about as many as fit, with the work of their fit, in half of
        the available memory. If there are no more points than this, all are fitted, and the output
        is `embedding_` (of `TSNE` the places of `transform`).
    resume : bool, default=False
        Resume a killed run from the folder OUTPUT.partial. The result has the same bits as that of
        an uninterrupted run.
    force : bool, default=False
        Replace the output; discard an incomplete run and begin again.
    model : str or path, default=None
        File to which the fitted model is saved, for `load_model` and ``heatsketch transform``.
    output_key : str, default="X_heat"
        The entry of obsm in a .h5ad output.
    block_rows : int, default=65,536
        Rows that are mapped at a time. More rows take more memory; the result is the same. It has
        the same bits in neighbour graphs; with ``affinity="dense"``, of `MixtureDiffusion` and of
        classical methods it is the same up to rounding.
    cluster : str or dask.distributed.Client, default=None
        Workers of Dask that map the blocks: "local:4" starts four processes on this machine, which
        end with the run; or an address ("tcp://10.0.0.1:8786"), or a client. By default this
        process maps them. The output has the same bytes in all three cases. Every worker opens the
        source itself, which must be a file, and writes into OUTPUT.partial, so both must be in
        folders that all workers share under the same path; the model is fitted here. For a Dask
        array write ``model.transform(X)``, which is lazy.
    **reading
        `key`, `features`, `exclude`, `label`, `ids`, `missing` ("error" by default; "keep" for
        estimators that take gaps), `standardize` and, for one text or .parquet file, `encode` of
        `io.read_table`. Medians, means and scales are those of the sample; `TableEncoder` sees all
        rows, some columns at a time. With ``missing="drop"`` the rows that stay keep their order,
        and a .parquet output has their numbers in the source as the column `row` (`row_in_source`
        if there is one of that name).

    Returns
    -------
    Streamed
        The fitted estimator, the output, and the error from sampling.

    Raises
    ------
    ValueError
        A number that is not finite, with its row; a source that is not read by blocks; another
        source, or other options, than those of the run that is resumed; a damaged part of it.
    TypeError
        An estimator without `transform`, or one that is fitted to labels.
    FileExistsError
        The output exists, or the folder of an incomplete run.
    FileNotFoundError
        The run that is resumed has lost its model.
    Exception
        An error of Dask if workers or the scheduler are lost; continue with `resume`.

    See Also
    --------
    distributed.fit : Fit an estimator to a sample of a large source.
    distributed.Streamed : The result of `distributed.embed`.
    load_model : Read a model that `save_model` wrote.

    Notes
    -----
    The error from sampling is measured: each of two halves of the sample is fitted by itself, and
    both map 1,000 points outside of it. `discrepancy` is the root mean square difference of their
    distances in the two embeddings, relative to the root mean square distance. It holds for samples
    of half the size. For a `HeatSketch` it includes the error of the random columns, which alone is
    1/√k for k columns; `of_points` is an interval without this error, by a jackknife over the
    columns. The cost of this is two fits of half the size. In all, `embed` takes the memory of the
    fit and of some blocks; the time of the fit, twice, and of `transform` for all rows; on disk the
    output twice.

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
    how, points = _opened(source, estimator, reading)
    path = Path(source).absolute() if isinstance(source, str | Path) else None
    if cluster is not None:  # asked before the fit, which may take long
        optional("dask.distributed", "clusters need Dask", "dask")
        _check_cluster(cluster)
    if cluster is not None and path is None:
        lazy = "for a Dask array compute fit(X, estimator).transform(X), which is lazy"
        raise ValueError(f"source is an array, but workers open a file; write it to one; {lazy}.")
    target = Path(output).absolute()
    run = Run(target)
    rows = check_number(block_rows, "block_rows", low=1, integer=True)
    if not (resume and "whole" in run.facts):  # else the output may be there
        check_output(target, path, output_key, how.missing, force=force)
    if model is not None:
        check_target(model, force=force)
    with features_named(points.columns):
        about = {  # must be the same when a run resumes
            "heatsketch": __version__,
            "input": points.source,
            "content": {"rows": points.n, "columns": points.columns, "stamp": points.stamp()},
            "method": type(estimator).__name__,
            **estimator.get_params(deep=False),
            "fit_points": fit_points,
            "block_rows": rows,
            "reading": how.as_record(),
        }
        run.begin(about, resume=resume, force=force)
        if "fitted" in run.facts:
            fitted, _, learned = read_model(run.model)
        else:
            fitted, learned = _fit(points, estimator, fit_points, how, run, rows)
        facts = run.facts["fitted"]
        try:
            if "whole" not in run.facts:  # else the blocks of a folder have been moved
                numbers = range(math.ceil(points.n / rows))
                missing = [number for number in numbers if not run.part(number).exists()]
                mapped = _here(points, _keeper(fitted, learned, how, run, rows), rows, missing)
                if cluster is not None:
                    job = path, target, how, rows, secrets.token_hex(8)
                    mapped = _by_workers(job, missing, cluster)
                _map(run, mapped, len(missing))
            if points.stamp() != about["content"]["stamp"]:
                changed = f"{points.source} changed while it was read"
                raise ValueError(f"{changed}; begin again with force=True (--force).")
            columns = [str(name) for name in fitted.get_feature_names_out()]
            metadata = {"version": __version__, "model": read_facts(run.model), "columns": columns}
            metadata |= {"stream": facts, "reading": about["reading"]}
            assemble(run, target, path, output_key, metadata)
        except OSError as error:
            kept = f"complete parts are kept in {run.folder}"
            error.add_note(f"({kept}, and resume=True (--resume) goes on with it)")
            raise
    if model is not None:
        write_atomically(model, lambda draft: shutil.copyfile(run.model, draft), force=force)
    run.remove()
    of_points = facts["of_points"] and tuple(facts["of_points"])
    cost = facts["fit_points"], facts["discrepancy"], of_points
    return Streamed(fitted, points.n, *cost, Path(output), tuple(facts["notes"]), metadata)


def fit(source: Any, estimator: Any, *, fit_points: int | None = None, **reading: Any) -> Any:
    """Fit an estimator to a uniform sample of a source larger than memory, and return it.

    Parameters
    ----------
    source : str, path or array-like of shape (n_samples, n_features)
        A file, a folder of parts, or an array that has slices, see `embed`.
    estimator : estimator with `transform`
        An unfitted estimator, such as `HeatSketch`, `HeatEmbedding` or `DiffusionMap`; it is
        cloned.
    fit_points : int >= 100, default=None
        Size of the sample; by default about as many as fit, with the work of their fit, in half of
        the available memory.
    **reading
        `key`, `features`, `exclude`, `label`, `ids`, `missing` ("error" by default), `standardize`
        and `encode` of `io.read_table`, as in `embed`.

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

    See Also
    --------
    distributed.embed : Embed more points than memory holds.

    Notes
    -----
    The cost is one reading of the source, and the fit of the sample.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(3000, rng=0)
    >>> model = hs.distributed.fit(X, hs.HeatSketch(4, random_state=0), fit_points=500)
    >>> model.embedding_.shape, model.transform(X[:10]).shape
    ((500, 4), (10, 4))
    """
    how, points = _opened(source, estimator, reading)
    table, _ = gather(points, estimator, fit_points, how, BLOCK_ROWS)
    with features_named(points.columns):
        return clone(estimator).fit(table.values)


def _opened(source: Any, estimator: Any, options: dict[str, Any]) -> tuple[Reading, Blocks]:
    """Return the options of reading and the points; raise if these cannot be embedded by blocks."""
    name = type(estimator).__name__
    if not hasattr(estimator, "transform"):
        raise TypeError(f"{name} has no transform; pass an estimator that maps new points.")
    if get_tags(estimator).target_tags.required:
        raise TypeError(
            f"{name} is fitted to labels, which are not read by blocks; pass another estimator."
        )
    how = Reading(**{"missing": "error"} | options)
    # Gaps have no place on a map, unless it fills them.
    fills = get_tags(estimator).input_tags.allow_nan
    check_choice(how.missing, "missing", (*MISSING, "keep") if fills else MISSING)
    points = open_blocks(source, how)
    if points.n == 0:
        raise ValueError(f"{points.source} has no rows; pass at least 2 points.")
    with_label(next(points.tables(1)), how)  # raises if an id or label is no column
    return how, points


def _fit(
    points: Blocks, estimator: Any, fit_points: int | None, how: Reading, run: Run, rows: int
) -> tuple[Any, Learned]:
    """Fit a sample; return and keep the model and the record of the columns."""
    try:
        table, held_out = gather(points, estimator, fit_points, how, rows)
        half = table.extra["half"]
        cost, of_points = half_discrepancy(estimator, table.values, half, held_out.values)
        options = how.as_record() | {"missing": how.missing}
        record = {"suffix": suffix_of(points.source), "options": options}
        model = clone(estimator).fit(table.values)
        write_model(model, run.model, table.learned | record, force=True)
    except BaseException:
        run.remove()  # a run without a model cannot resume
        raise
    facts = {
        "points": points.n,
        "fit_points": len(half),
        "seed": seed_of(estimator),
        "discrepancy": cost,
        "of_points": of_points,
        "notes": table.notes,
    }
    run.update(fitted=facts)
    return model, table.learned


def _keeper(model: Any, learned: Learned, how: Reading, run: Run, rows: int) -> Keep:
    """Return a function that maps a block of `rows` rows, keeps it, and returns its warnings."""
    names = tuple(str(name) for name in model.get_feature_names_out())

    def keep(number: int, block: Table) -> list[Warned]:
        start = number * rows
        table = refined(block, how, learned, first_row=start)
        rows_left = np.arange(table.values.shape[0]) if table.rows is None else table.rows
        in_source = start + rows_left
        if how.missing == "drop":
            name = "row" if "row" not in block.extra else "row_in_source"
            table = replace(table, extra={name: in_source} | table.extra)
        Y = np.empty((0, len(names)), table.values.dtype)  # for a block whose rows all have gaps
        with warnings.catch_warnings(record=True, action="always") as caught:
            if len(in_source):
                Y = np.asarray(model.transform(table.values))

        def write(draft: Path) -> None:
            if run.suffix == ".parquet":
                parquet.write(draft, Y, names, table, "", "")
            else:
                np.save(draft, Y, allow_pickle=False)

        write_atomically(run.part(number), write, force=True)
        found = []
        for warning in caught:
            message = warning.message
            about = message.about if isinstance(message, ScaleWarning) else None
            which, matter = about or ((), str(message))
            found.append((warning.category.__name__, matter, in_source[list(which)].tolist()))
        return found

    return keep


def _map(run: Run, mapped: Iterator[list[Warned]], count: int) -> None:
    """Map `count` blocks; at the end, give each warning once for all blocks."""
    for found in track(mapped, "mapping", count, "blocks"):
        run.warn(found)
    for matter, one in run.facts["warned"].items():
        category = getattr(_exceptions, one["kind"], getattr(builtins, one["kind"], UserWarning))
        about_rows = rows_message(one["first"], matter, one["count"])
        warn(category, about_rows if one["count"] else matter)


def _here(points: Blocks, keep: Keep, rows: int, missing: list[int]) -> Iterator[list[Warned]]:
    """Map blocks one after the other in this process; yield their warnings."""
    if missing:
        for number, block in enumerate(points.tables(rows, missing[0] * rows), missing[0]):
            if number in missing:
                yield keep(number, block)


def _by_workers(job: tuple[Any, ...], missing: list[int], cluster: Any) -> Iterator[list[Warned]]:
    """Map blocks by the workers of a cluster, in any order; yield their warnings."""
    from dask.distributed import as_completed

    with _client(cluster) as client:
        futures = client.map(functools.partial(_keep_by_worker, job), missing, pure=False)
        for _, result in as_completed(futures, loop=client.loop, with_results=True):
            yield result


def _keep_by_worker(job: tuple[Any, ...], number: int) -> list[Warned]:
    points, keep, rows = _opened_by_worker(*job)
    with in_one_thread(), features_named(points.columns):
        return keep(number, next(points.tables(rows, number * rows)))


@functools.lru_cache(maxsize=1)
def _opened_by_worker(
    source: Path, output: Path, how: Reading, rows: int, token: str
) -> tuple[Blocks, Keep, int]:
    """Open source and model, once in a worker; the token identifies the run."""
    run = Run(output)
    model, _, learned = read_model(run.model)
    return open_blocks(source, how), _keeper(model, learned, how, run, rows), rows


def _check_cluster(cluster: Any) -> None:
    """Raise unless it is a client, a cluster of Dask, or a text that names workers."""
    if not (hasattr(cluster, "scheduler_info") or _WORKERS.fullmatch(str(cluster))):
        raise ValueError(
            f"cluster={cluster!r} (--cluster {cluster}) names no workers; pass local:N for N >= 1 "
            "processes on this machine, or the address of a scheduler, tcp://HOST:PORT."
        )


@contextmanager
def _client(cluster: Any) -> Iterator[Any]:
    """Yield a client: the given one, one for an address, or one of new local processes."""
    from dask import distributed

    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    how: dict[str, Any] = {"address": cluster}
    if str(cluster).startswith("local:"):
        count = int(str(cluster).removeprefix("local:"))
        any_port = "127.0.0.1:0"  # for the dashboard
        how = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": any_port}
    with distributed.Client(**how, set_as_default=False) as client:
        yield client
