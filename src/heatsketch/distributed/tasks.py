"""Blocks mapped by workers of Dask, which open source and model themselves and write the parts."""

from __future__ import annotations

import functools
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._array import in_one_thread
from heatsketch._typing import Array
from heatsketch._version import __version__
from heatsketch.distributed.cluster import results
from heatsketch.distributed.mapping import Mapping, follow, runs, stored
from heatsketch.distributed.state import State
from heatsketch.estimators._unread import is_dask
from heatsketch.io.blocks import of_array
from heatsketch.io.reading import Reading
from heatsketch.io.sources import open_blocks

_RUNS_PER_THREAD = 32  # tasks of a thread of the cluster, so that all threads end together


@dataclass(frozen=True)
class Job:
    """What a worker is told; everything else it reads from the source and the folder of the run."""

    source: str | None  # None: tasks hold the blocks of an array
    stamp: str
    how: Reading
    state: State
    block_rows: int
    version: str = __version__

    def __call__(self, start: int, stop: int) -> int:
        """Map a run of blocks and keep them, as a task; return how many rows."""
        with in_one_thread():
            return sum(_opened(self).keep(start, stop))

    def keep_values(self, number: int, values: Array) -> int:
        """Map the rows of one block and keep them, as a task; return how many."""
        (raw,) = of_array(values).tables(max(1, len(values)))
        with in_one_thread():
            return _opened(self).keep_block(number, raw)


def begin(client: Any, source: Any, stamp: Any, how: Reading, state: State, block_rows: int) -> Job:
    """Return the job of a run, after every worker has seen its folder and its source.

    Raises
    ------
    ValueError
        The source is an array that only this process has.
    RuntimeError
        A worker has another version of heatsketch.
    FileNotFoundError
        A worker does not see the folder of the output, or the source, as this process does.
    """
    path = str(Path(source).absolute()) if isinstance(source, str | Path) else None
    if path is None and not is_dask(source):
        raise ValueError(
            f"X is of type {type(source).__name__}, which only this process has, but a cluster is "
            "to map it; write it to a file (.npy, .zarr) and pass its path, or pass a Dask array."
        )
    state = State(state.folder.absolute(), state.suffix, run=secrets.token_hex(16))
    state.keep_token(state.run)
    job = Job(path, repr(stamp), how, state, block_rows)
    client.run(_check, job)
    return job


def _check(job: Job) -> None:
    """Raise if a worker is of another version, or sees another run or source than the client."""
    own = f"the worker on {socket.gethostname()} (process {os.getpid()})"
    if job.version != __version__:
        raise RuntimeError(
            f"{own} has heatsketch {__version__}, but the client has {job.version}; install the "
            "same version on both."
        )
    missing = "the folder of the output" if job.state.token != job.state.run else None
    if missing is None and job.source is not None and _stamp(job) != job.stamp:
        missing = f"the source {job.source}"
    if missing is not None:
        raise FileNotFoundError(
            f"{own} does not see {missing} as the client does (the run is kept in "
            f"{job.state.folder}); use folders that all workers share under the same path."
        )


def _stamp(job: Job) -> str | None:
    try:
        return repr(open_blocks(job.source, job.how).stamp())
    except (OSError, ValueError):  # the client could open it
        return None


@functools.lru_cache(maxsize=1)
def _opened(job: Job) -> Mapping:
    """Open source and model, once in a process."""
    _check(job)
    points = open_blocks(np.empty((0, 1)) if job.source is None else job.source, job.how)
    return Mapping(points, *stored(job.state), job.how, job.state, job.block_rows)


def _close() -> None:
    """Let go of the last model."""
    _opened.cache_clear()


def by_workers(client: Any, mapping: Mapping, job: Job, source: Any) -> None:
    """Map the blocks that are missing by tasks, of which the client is told counts alone."""
    missing = mapping.missing()
    if not missing:
        return
    tasks = list(_tasks(client, missing, job.source is None))
    if job.source is None:
        values = source.rechunk((job.block_rows, -1)).to_delayed().ravel()
        futures = _of_values(client, job, missing, values)
    else:
        starts, stops = zip(*tasks, strict=True)
        key = f"heatsketch-{secrets.token_hex(8)}"
        keys = [(key, start) for start in starts]
        futures = client.map(job, starts, stops, key=keys, pure=False)

    def name(i: int) -> str:
        start, stop = tasks[i]
        number = next((b for b in range(start, stop) if not job.state.part(b).exists()), start)
        first = number * job.block_rows
        last = min(mapping.points.n, first + job.block_rows) - 1
        return f"block {number} (rows {first:,} to {last:,} of {mapping.points.source})"

    follow(results(futures, name), missing, mapping)
    client.run(_close, on_error="ignore")


def _tasks(client: Any, missing: list[int], single: bool) -> Iterator[tuple[int, int]]:
    """Yield the runs (start, stop) of blocks that are tasks."""
    threads = max(1, sum(client.nthreads().values()))
    return runs(missing, 1 if single else max(1, len(missing) // (_RUNS_PER_THREAD * threads)))


def _of_values(client: Any, job: Job, missing: list[int], blocks: Any) -> list[Any]:
    from dask import delayed

    keep = delayed(job.keep_values, pure=False)
    return list(client.compute([keep(number, blocks[number]) for number in missing]))
