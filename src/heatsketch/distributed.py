"""Data larger than memory, and clusters: a model from a sample, all points mapped in blocks.

`stream` writes blocks to a file as they are done and goes on where it was interrupted; with Dask,
blocks are mapped by workers.
"""

import builtins
import functools
import json
import math
import numbers
import re
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.utils import get_tags

from heatsketch import _messages, _threads
from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_number, features_named
from heatsketch._messages import ScaleWarning, logger, rows_message, rows_numbered, warn
from heatsketch._threads import in_one_thread, track
from heatsketch._version import __version__
from heatsketch._words import optional
from heatsketch.estimators import HeatSketch
from heatsketch.io import anndata_files, parquet
from heatsketch.io.files import DRAFT, blame, check_target, need, suffix_of, write_atomically
from heatsketch.io.formats import DEFAULT_KEY, check_key, open_blocks
from heatsketch.io.metadata import decoded, encoded, plain, write_metadata
from heatsketch.io.models import read_facts, read_model, write_model
from heatsketch.io.table import (
    MISSING,
    Blocks,
    Learned,
    Reading,
    Table,
    joined,
    note_of_gaps,
    refined,
    rows_with_gaps,
    with_label,
)
from heatsketch.spectral.filters import times_of
from heatsketch.uncertainty.resampling import independent_columns

HELD_OUT = 1000  # rows outside of the sample, on which two halves of it are compared
LEAST_POINTS = 100  # of a sample
_STREAM = 19  # random numbers apart from those of the estimator, which has the same seed
_LEAST_HELD_OUT = 20
_NAMED = 5  # rows with gaps; further ones are counted
_GROUPS, _LEAST_COLUMNS = 32, 8  # of random columns that are left out together; for an interval


def drawn(n: int, count: int, seed: int) -> tuple[Array, Array, Array]:
    """Draw rows uniformly without repetition, by n, count and seed alone.

    Returns the rows to be fitted (count,), increasing; which of them are in the first of two
    halves, drawn at random; and other rows, held out, increasing.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(_STREAM,))
    held_out = min(HELD_OUT, n - count)
    rows = np.random.default_rng(sequence).choice(n, count + held_out, replace=False)
    order = np.argsort(rows[:count])
    return rows[:count][order], (order < count // 2), np.sort(rows[count:])


def gather(
    points: Blocks, estimator: Any, fit_points: int | None, how: Reading, block_rows: int
) -> tuple[Table, Table]:
    """Read a sample in one pass that checks every number; return it with the rows left out.

    The sample has the columns `half`, true for rows in the first of two halves, and `row`, their
    numbers in the source. Its `notes` name the
    changes by reading in the whole source; its `learned` comes from its own rows. With
    `missing="drop"` it has no rows with gaps.

    Raises
    ------
    ValueError
        For infinity, and for gaps that `how` does not mend, with the number of the row in the
        source.
    """
    count = size(points, estimator, fit_points)
    rows, half, held_out = drawn(points.n, count, seed_of(estimator))
    logger.info("reading %d points, of which %d are fitted", points.n, count)
    whole = replace(how, standardize=False)
    # A gap that the model fills is no fault, but a row of gaps alone is, as for medians.
    checked = replace(whole, missing="median") if how.missing == "keep" else whole
    found: tuple[list[Table], list[Table]] = ([], [])
    start, n_gaps, first_gaps = 0, 0, np.empty(0, int)
    for raw in points.tables(block_rows):
        table = refined(replace(raw, extra={}), replace(whole, missing="keep"))
        zeros: Learned = {"medians": np.zeros(len(table.columns))}
        refined(table, checked, zeros, first_row=start)  # raises for infinity and gaps
        if how.fills_gaps:
            gaps = start + np.flatnonzero(rows_with_gaps(table.values))
            n_gaps, first_gaps = n_gaps + len(gaps), np.append(first_gaps, gaps)[:_NAMED]
        stop = start + table.values.shape[0]
        for tables, wanted in zip(found, (rows, held_out), strict=True):
            first, last = np.searchsorted(wanted, (start, stop))
            own = wanted[first:last] - start
            if len(own) or not tables:
                tables.append(replace(table, values=table.values[own]))
        start = stop
    sample, others = (joined(tables) for tables in found)
    table = refined(replace(sample, extra={"half": half, "row": rows}), how)
    notes = [*points.notes]
    if n_gaps:
        note = note_of_gaps(how.missing, first_gaps, points.n, n_gaps)
        notes.append(note.replace("with medians", "with medians of the sample"))
    if how.standardize:
        notes.append("columns standardised by the sample")
    others = replace(others, extra={"row": held_out})
    return replace(table, notes=tuple(notes)), refined(others, how, table.learned, first_row=0)


def half_discrepancy(
    estimator: Any, values: Any, half: Array, held_out: Any
) -> tuple[float | None, tuple[float, float] | None]:
    """Fit each half of a sample by itself; measure how much distances of other points differ.

    Other points are outside of both halves, with distances D and E in the two embeddings. Returns
    √(Σ (D - E)² / Σ (D² + E²)/2) over pairs, from 0 to √2, and for random columns an interval of
    95 % of its value without them; None if there are too few points. In messages the numbers of
    other points follow those of the values. The second half is fitted with the time that the first
    one chose.
    """
    if held_out.shape[0] < _LEAST_HELD_OUT:
        return None, None
    logger.info("fitting two halves of the sample")
    model, maps = clone(estimator), []
    others = len(half) + np.arange(held_out.shape[0])
    for rows in (np.flatnonzero(half), np.flatnonzero(~half)):
        # The fit of the whole sample warns already.
        with warnings.catch_warnings(action="ignore"), rows_numbered(rows):
            model.fit(values[rows])
        with warnings.catch_warnings(action="ignore"), rows_numbered(others):
            maps.append(np.asarray(model.transform(held_out), dtype=float))
        columns = independent_columns(model)[1] if isinstance(model, HeatSketch) else None
        chosen = getattr(model, "time_", None)
        model = clone(model) if chosen is None else clone(model).set_params(time=chosen)
    Y, Z = maps
    whole = math.sqrt(_difference(pdist(Y, "sqeuclidean"), pdist(Z, "sqeuclidean")))
    if columns is None or columns.shape[1] < _LEAST_COLUMNS:
        return whole, None
    square, error = _without_columns(Y, Z, columns)
    low, high = (math.sqrt(max(0.0, square + side * 2 * error)) for side in (-1, 1))
    return whole, (low, high)


def _without_columns(Y: Array, Z: Array, columns: Array) -> tuple[float, float]:
    """Return the squared discrepancy for infinitely many random columns, and its error.

    `columns` (T, k) of Y and Z are those of T times with the same random numbers. With k columns it
    is larger by b/k, to first order (b = 1 for one time and Gaussian columns). The jackknife, which
    leaves out some columns at a time, removes b/k for any b.
    """
    D, E = pdist(Y, "sqeuclidean"), pdist(Z, "sqeuclidean")
    count = min(_GROUPS, columns.shape[1])
    without = []
    for group in range(count):
        own = columns[:, group::count].ravel()
        d, e = (pdist(each[:, own], "sqeuclidean") for each in (Y, Z))
        without.append(_difference(D - d, E - e))
    pseudo = count * _difference(D, E) - (count - 1) * np.array(without)
    return float(pseudo.mean()), float(pseudo.std(ddof=1)) / math.sqrt(count)


def _difference(D: Array, E: Array) -> float:
    """Return the squared discrepancy of two vectors of squared distances."""
    D, E = np.maximum(D, 0), np.maximum(E, 0)  # a difference may be negative by rounding
    size = float(D.sum() + E.sum()) / 2
    return float(np.sum((np.sqrt(D) - np.sqrt(E)) ** 2)) / size if size > 0 else 0.0


def seed_of(estimator: Any) -> int:
    """Return the seed for drawing rows: that of the estimator if it is an integer, else 0."""
    seed = estimator.get_params(deep=False).get("random_state", 0)
    return int(seed) if isinstance(seed, numbers.Integral) else 0


def size(points: Blocks, estimator: Any, fit_points: int | None = None) -> int:
    """Return how many points are fitted: `fit_points`, or as many as half of the memory holds.

    A point takes its coordinates three times, 100 bytes for each neighbour, and nine blocks of as
    many columns as an estimator computes, at least 64 eigenvectors and half as many again.
    """
    if fit_points is not None:
        return min(points.n, check_number(fit_points, "fit_points", low=LEAST_POINTS, integer=True))
    given = estimator.get_params(deep=False)
    wanted, neighbors = given.get("n_components"), given.get("n_neighbors")
    columns = int(wanted) if isinstance(wanted, numbers.Integral) else 64
    columns *= len(times_of(given.get("time", 1)))
    neighbors = int(neighbors) if isinstance(neighbors, numbers.Integral) else 15
    d = len(points.columns) if points.stored is None else 2 * points.stored / max(1, points.n)
    each = 3 * points.dtype.itemsize * d + 100 * (neighbors + 1) + 9 * 8 * max(96, columns)
    return min(points.n, max(LEAST_POINTS, int(_threads.available_memory() / 2 / each)))


SUFFIXES = (".npy", ".parquet", ".h5ad", "")  # the last of a folder
Warned = tuple[str, str, list[int]]  # class of a warning, its problem, its rows
_AGAIN = "to begin again pass force=True (--force) without resume"
_OWN = (DRAFT, "part", "fitted.model", "whole.")  # prefixes of the names in the folder


class Run:
    """A folder: run.json, the model, and a part for each block that is mapped.

    Each file appears complete or not at all, so an existing part is done. In run.json, `about`
    holds the options that must be the same when the run resumes, `fitted` the facts of the fit,
    `warned` the warnings of blocks; `whole` is there once the parts are joined: the number of rows.
    """

    def __init__(self, output: Path) -> None:
        self.folder = output.absolute().with_name(f"{output.name}.partial")
        self.parts, self.model = self.folder / "parts", self.folder / "fitted.model"
        self.suffix = ".parquet" if suffix_of(output) == ".parquet" else ".npy"  # of the parts
        file = self.folder / "run.json"
        self.facts: dict[str, Any] = decoded(file.read_text("utf-8")) if file.exists() else {}

    def begin(self, about: dict[str, Any], *, resume: bool, force: bool) -> None:
        """Begin in an empty folder, or go on with the same run.

        Raises
        ------
        FileExistsError
            If the folder is there and neither `resume` nor `force` is true.
        ValueError
            If it is the folder of another run; the message names the difference.
        FileNotFoundError
            If the model of the run is lost.
        """
        about = plain(about)
        others = [path for path in self.folder.rglob("*") if not path.name.startswith(_OWN)]
        if self.facts and resume:
            before = self.facts["about"]
            differing = [
                f"{name} was {json.dumps(before.get(name))[:160]}, is {json.dumps(now)[:160]}"
                for name, now in (dict.fromkeys(before) | about).items()
                if before.get(name) != now
            ]
            if differing:
                other = f"{self.folder} holds another run: {'; '.join(differing)}"
                raise ValueError(f"{other}. Pass the same, or {_AGAIN}.")
            if "fitted" in self.facts and not self.model.exists():
                raise FileNotFoundError(
                    f"{self.model} is lost, without which the run cannot go on; {_AGAIN}."
                )
        elif self.facts and not force:
            raise FileExistsError(
                f"{self.folder} holds a run that was not completed; pass resume=True (--resume) to "
                f"go on with it, or {_AGAIN}."
            )
        elif not self.facts and others:
            raise FileExistsError(f"{self.folder} holds something else than a run; move it away.")
        else:
            self.remove()
            self.parts.mkdir(parents=True)
            self.facts = {}
            self.update(about=about, warned={})
        for draft in self.folder.rglob(f"{DRAFT}*"):
            draft.unlink()

    def update(self, **facts: Any) -> None:
        """Add facts to run.json."""
        self.facts |= plain(facts)
        write_metadata(self.folder / "run.json", self.facts, force=True)

    def part(self, number: int) -> Path:
        """Return the file of a block."""
        return self.parts / f"part-{number:06d}{self.suffix}"

    def warn(self, found: Iterable[Warned]) -> None:
        """Keep the warnings of a block: each problem once, with its first rows."""
        for kind, matter, rows in found:
            entry = self.facts["warned"].setdefault(matter, {"kind": kind, "count": 0, "first": []})
            entry["count"] += len(rows)
            entry["first"] = sorted(entry["first"] + rows)[:_NAMED]
            self.update()

    def remove(self) -> None:
        """Remove the folder, parts first: with run.json and the model left, a run can resume."""
        if self.folder.exists():
            shutil.rmtree(self.parts, ignore_errors=True)
            (self.folder / "run.json").unlink(missing_ok=True)
            shutil.rmtree(self.folder)


def check_output(output: Path, source: Path | None, key: str, missing: str, *, force: bool) -> None:
    """Raise if an output could not be written."""
    suffix = suffix_of(output)
    if suffix not in SUFFIXES:
        raise ValueError(f"{output} cannot be written by blocks; name a .npy, .parquet or folder.")
    if not suffix and output.exists():
        raise FileExistsError(f"{output} exists; name a folder that does not exist yet.")
    check_target(output, force=force, source=source or "")
    if suffix == ".h5ad":
        if source is None or suffix_of(source) != ".h5ad":
            raise ValueError(f"{output}: only a .h5ad source becomes one; name a .npy file.")
        if missing == "drop":
            raise ValueError(
                f"missing='drop' leaves out rows, but {output} is a copy of {source} with all of "
                "them; pass missing='median' (--missing median), or name a .npy file."
            )
        check_key(output, source, key, force=force)


def assemble(
    run: Run, output: Path, source: Path | None, key: str, metadata: dict[str, Any]
) -> None:
    """Join the parts in the folder of the run, then move the result to the output.

    One part at a time is in memory; for a .h5ad output they are first joined in a .npy file.
    """
    suffix, note = suffix_of(output), encoded(metadata)
    parts = sorted(run.parts.glob(f"part-*{run.suffix}"))
    whole, rows = run.folder / f"whole{suffix}" if suffix else run.parts, run.folder / "whole.rows"

    def write(draft: Path) -> None:
        if suffix == ".parquet":
            parquet.write_parts(draft, parts, note)
        elif suffix == ".npy" or source is None:
            _write_npy(draft, parts)
        else:
            _write_npy(rows, parts)
            Y = np.asarray(np.load(rows, mmap_mode="r"))  # not read yet
            anndata_files.write_copy(draft, Y, source, key, note, {})

    if "whole" not in run.facts:
        count = 0
        for part in parts:
            with blame(part, "delete it, and pass resume=True (--resume) to map its rows again"):
                count += _rows_of_part(part)
        if suffix:
            write_atomically(whole, write, force=True)
        run.update(whole=count)
    if whole.exists():
        whole.replace(output)


def _rows_of_part(part: Path) -> int:
    """Return the number of rows of a part; raise if it is not complete."""
    if part.suffix == ".npy":
        return len(np.load(part, mmap_mode="r"))
    return int(need("pyarrow.parquet", part).read_metadata(part).num_rows)


def _write_npy(path: Path, parts: list[Path]) -> None:
    """Concatenate .npy files into one."""
    blocks = [np.load(part, mmap_mode="r") for part in parts]
    shape = sum(len(block) for block in blocks), blocks[0].shape[1]
    header = {"descr": np.lib.format.dtype_to_descr(blocks[0].dtype), "fortran_order": False}
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header | {"shape": shape})
        for part in parts:
            stream.write(np.load(part).data)


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
    n_written : int
        Number of points of the output.

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
    n_written: int

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
        A .npy, .parquet, .arrow, .feather, .csv (.tsv, .txt, also .gz), .h5ad or .zarr file (dense,
        or sparse and stored by rows). A folder of .npy, .parquet, .csv or .arrow parts, which are
        read in the order of their names and numbers. Or an array that has slices: `numpy.memmap`,
        or one of zarr, h5py or dask.
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
        estimators that take gaps), `standardize` and, for one text, .parquet or .arrow file,
        `encode` of `io.read_table`. Medians, means and scales are those of the sample;
        `TableEncoder` sees all rows, some columns at a time. With ``missing="drop"`` the rows that
        stay keep their order, and a .parquet output has their numbers in the source as the column
        `row` (`row_in_source` if there is one of that name).

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
    n_written = run.facts["whole"]
    run.remove()
    of_points = facts["of_points"] and tuple(facts["of_points"])
    cost = facts["fit_points"], facts["discrepancy"], of_points
    return Streamed(
        fitted, points.n, *cost, Path(output), tuple(facts["notes"]), metadata, n_written
    )


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
    with features_named(points.columns), rows_numbered(table.extra["row"]):
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
        own, half = table.extra["row"], table.extra["half"]
        with rows_numbered(np.append(own, held_out.extra["row"])):
            cost, of_points = half_discrepancy(estimator, table.values, half, held_out.values)
        options = how.as_record() | {"missing": how.missing}
        record = {"suffix": suffix_of(points.source), "options": options}
        with rows_numbered(own):
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
                with rows_numbered(in_source):
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
            found.append((warning.category.__name__, matter, [*map(int, which)]))
        return found

    return keep


def _map(run: Run, mapped: Iterator[list[Warned]], count: int) -> None:
    """Map `count` blocks; at the end, give each warning once for all blocks."""
    for found in track(mapped, "mapping", count, "blocks"):
        run.warn(found)
    for matter, one in run.facts["warned"].items():
        category = getattr(_messages, one["kind"], getattr(builtins, one["kind"], UserWarning))
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


__all__ = ["Streamed", "embed", "fit"]
