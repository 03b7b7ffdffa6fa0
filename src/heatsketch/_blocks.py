"""Row tiles of blocks (n, k): arrays go through many, on all threads; a tensor is one.

Those of a Dask array are where its workers have them, and are never changed: another array is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from heatsketch._array import ROW_TILE, for_each_tile
from heatsketch._tensors import is_lazy, is_tensor


def for_each_tile_of(X: Any, work: Callable[[slice], None], tile: int = ROW_TILE) -> None:
    """Call `work(rows)` on the row tiles of a block, in parallel; each writes its own rows only.

    A tensor is one tile: torch divides the work among the threads of its device.
    """
    if is_tensor(X):
        work(slice(0, len(X)))
    else:
        for_each_tile(work, len(X), tile)


Change = Callable[..., None]
_SUSPECTS = 8  # tasks that are named


def changed(works: Sequence[tuple[Any, Change]], *others: Any) -> list[Any]:
    """Return blocks Y after `work(Y[rows], *(X[rows] for X in others))`, which writes to Y[rows].

    Arrays and tensors are changed in place, tile by tile, so that the cache holds what is in work.
    Of Dask arrays, all in the same chunks, others are computed, which stay on their workers.
    """
    if any(is_lazy(Y) for Y, _ in works):
        return list(held(*(_in_chunks(Y, work, others) for Y, work in works)))

    def change(rows: slice) -> None:
        parts = [X[rows] for X in others]
        for Y, work in works:
            work(Y[rows], *parts)

    if works:
        for_each_tile_of(works[0][0], change)
    return [Y for Y, _ in works]


def _in_chunks(Y: Any, work: Change, others: Sequence[Any]) -> Any:
    return Y.map_blocks(_copied_and_changed, *others, work=work, dtype=Y.dtype, meta=Y._meta)


def _copied_and_changed(Y: Any, *others: Any, work: Change) -> Any:
    return changed([(Y.copy(), work)], *others)[0]


def held(*values: Any) -> tuple[Any, ...]:
    """Compute delayed values and Dask arrays, each where it then stays: on a worker, if there are.

    What they are made of may be released afterwards. Not before: a scheduler that hears of the
    release first knows nothing of it when the tasks arrive.

    Raises
    ------
    ChildProcessError
        A task has ended every worker that ran it: the message says of which tile it was.
    ConnectionError
        The scheduler has gone.
    """
    import dask

    found: tuple[Any, ...] = dask.persist(*values)
    futures = [_futures_of(value) for value in found]
    if any(futures):
        from dask.distributed import wait

        wait(futures)
        tasks = {future: (i, len(found)) for i, own in enumerate(futures) for future in own}
        for future in tasks:
            if future.status in ("error", "cancelled"):
                _raise(future, tasks)
    return found


def _raise(future: Any, tasks: dict[Any, tuple[int, int]]) -> None:
    """Raise what a task has ended with, and say which one it was; values are one of each tile."""
    with losses_named(lambda: suspects(tasks, lambda task: _name(task, *tasks[task]))):
        try:
            future.result()
        except Exception as error:
            error.add_note(f"(in {_name(future, *tasks[future])})")
            raise


def _name(future: Any, i: int, count: int) -> str:
    from dask.utils import key_split

    is_chunk = isinstance(future.key, tuple)  # of an array, else the i-th value
    name = f"tile {future.key[1]}" if is_chunk else f"tile {i} of {count}"
    return f"{name} (task {key_split(future.key).strip('_')})"


def suspects(futures: Iterable[Any], name: Callable[[Any], str]) -> str:
    """Name the tasks of which one has ended its workers: Dask blames those that waited there, too.

    Futures without a result are asked what they ended with.
    """
    from dask.distributed import KilledWorker

    failed = (future for future in futures if future.status == "error")
    names = [name(task) for task in failed if isinstance(task.exception(), KilledWorker)]
    return " or ".join(names[:_SUSPECTS]) + (" or another" if len(names) > _SUSPECTS else "")


@contextmanager
def losses_named(name: Callable[[], str]) -> Iterator[None]:
    """Say which task has ended its workers, and that the scheduler has gone.

    A scheduler that goes shows as tasks that are cancelled, or as a connection that is closed or
    not made, by what the client was waiting for.

    Raises
    ------
    ChildProcessError
        A task has ended every worker that ran it: `name()` says which one.
    ConnectionError
        The scheduler has gone.
    """
    from dask.distributed import CancelledError, KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise ChildProcessError(
            f"{name()} ended {error.allowed_failures + 1} workers that ran it, the last at "
            f"{error.last_worker.address}: too little memory, or a fault in a library; look into "
            "the log of the worker, or pass smaller blocks or tiles."
        ) from error
    except (CancelledError, OSError) as error:
        if isinstance(error, OSError) and not _is_of_connection(error):
            raise
        raise ConnectionError(
            f"the tasks were cancelled, or the scheduler has ended ({error}); start it again."
        ) from error


def _is_of_connection(error: OSError) -> bool:
    from dask.distributed import Client
    from distributed.comm import CommClosedError

    if isinstance(error, CommClosedError):
        return True
    lost = Client.current().status != "running"
    return lost and type(error) is OSError  # which Dask raises where nobody answers


def _futures_of(values: Any) -> list[Any]:
    try:
        from dask.distributed import futures_of
    except ImportError:  # tasks run here
        return []
    return list(futures_of(values))


def sum_over_tiles(X: Any, work: Callable[[slice], Any], tile: int = ROW_TILE) -> Any:
    """Return the sum of `work(rows)` over the row tiles of a block, in their order.

    So the bits of the sum of arrays are the same for any number of threads.
    """
    if is_tensor(X):
        return work(slice(0, len(X)))
    parts: list[Any] = [None] * -(-len(X) // tile)

    def keep(rows: slice) -> None:
        parts[rows.start // tile] = work(rows)

    for_each_tile(keep, len(X), tile)
    return np.sum(parts, axis=0)
