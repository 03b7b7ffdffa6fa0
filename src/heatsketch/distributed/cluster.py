"""Clients of Dask's workers, which are started here or found at an address."""

from __future__ import annotations

import importlib
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from heatsketch._blocks import losses_named, suspects
from heatsketch._budget import limit_of
from heatsketch.io.files import listed

LOCAL = "local:"
_WAIT = 30  # seconds for the first worker at an address
_LEAST_MEMORY = 1e9  # of a worker
_PAUSED, _LOOKS = 60.0, 6  # seconds, and looks, at which a worker is paused before that is told
_NONE = ""  # stands for all workers, where there are none

# Dask's workers return freed memory at once, and each block then waits for new pages: twice the
# CPU seconds. These bytes are kept for the next block (variables of the C library).
_KEPT = {"MALLOC_TRIM_THRESHOLD_": 2**27, "MALLOC_MMAP_THRESHOLD_": 2**25}
_BEFORE_START = "distributed.nanny.pre-spawn-environ"


@contextmanager
def connect(cluster: Any) -> Iterator[Any]:
    """Yield the client of a cluster, which is the current one within the block.

    Parameters
    ----------
    cluster : None, str or dask.distributed.Client
        "local:4": four processes of one thread each, started on this machine, which listen on
        127.0.0.1 alone and end with the block. An address: "tcp://10.0.0.1:8786". A client is left
        open. None: nothing is started, and None is yielded.

    Raises
    ------
    ImportError
        Dask is not installed.
    ValueError
        `cluster` is something else.
    ConnectionError
        Nobody answers at the address, there are no workers, or the scheduler goes before the block
        ends.
    ChildProcessError
        A task has ended every worker that ran it.

    Warns
    -----
    UserWarning
        Dask has paused workers for lack of memory, or none are left, and that has stayed so: a run
        may wait for them for ever.
    """
    if cluster is None:
        yield None
        return
    with _client(cluster) as client, client.as_current(), losses_named(lambda: "a task"):
        _wait_for_workers(client)
        with _waits_told(client):
            yield client


def _client(cluster: Any) -> AbstractContextManager[Any]:
    distributed = _distributed()
    if isinstance(cluster, distributed.Client):
        return nullcontext(cluster)
    if isinstance(cluster, str):
        count = cluster.removeprefix(LOCAL)
        if cluster.startswith(LOCAL) and count.isdecimal() and int(count):
            return _local(distributed, int(count))
        if "://" in cluster:
            return _at(distributed, cluster)
    raise ValueError(
        f"cluster={cluster!r} is unknown; pass 'local:4' for four processes on this machine, an "
        "address such as 'tcp://10.0.0.1:8786', or a dask.distributed.Client."
    )


def _distributed() -> Any:
    try:
        return importlib.import_module("dask.distributed")
    except ImportError as error:
        raise ImportError('clusters need Dask; pip install "heatsketch[dask]"') from error


@contextmanager
def _local(distributed: Any, count: int) -> Iterator[Any]:
    config = importlib.import_module("dask").config
    try:
        with config.set({f"{_BEFORE_START}.{name}": size for name, size in _KEPT.items()}):
            cluster = distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # a port that no other has
                memory_limit=max(limit_of(None) / count, _LEAST_MEMORY),
                silence_logs=logging.ERROR,
            )
    except RuntimeError as error:
        raise RuntimeError(
            f"{count} processes could not be started ({error}); if a script calls this, put the "
            "call under: if __name__ == '__main__':"
        ) from error
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def _at(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no scheduler of Dask answers at {address} ({error}); start one there (dask "
            "scheduler), and workers."
        ) from error
    with client:
        yield client


def _wait_for_workers(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=_WAIT)
    except TimeoutError:
        raise ConnectionError(
            f"the cluster at {client.scheduler.address} has no workers; start some (dask worker)."
        ) from None


@contextmanager
def _waits_told(client: Any) -> Iterator[None]:
    """Warn, once within the block, of what keeps a run waiting for some time without a break."""
    ended = threading.Event()
    threading.Thread(target=_watch, args=(client, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _watch(client: Any, ended: threading.Event) -> None:
    looks: dict[str, int] = {}  # in a row, at which it was the same
    while not ended.wait(_PAUSED / _LOOKS):
        try:
            workers = client.scheduler_info(n_workers=-1)["workers"]
        except Exception:  # what becomes of the cluster is told by the tasks
            return
        paused = [name for name, facts in workers.items() if facts["status"] == "paused"]
        looks = {name: looks.get(name, 0) + 1 for name in (paused if workers else [_NONE])}
        stuck = [name for name, count in looks.items() if count >= _LOOKS]
        if stuck and not ended.is_set():
            warnings.warn(_why(stuck, len(workers)), stacklevel=1)
            return


def _why(stuck: list[str], count: int) -> str:
    if stuck == [_NONE]:
        return (
            f"for {_PAUSED:.0f} s no workers are left of the cluster, and the run waits for some: "
            "start them (dask worker), or stop the run."
        )
    return (
        f"{len(stuck)} of {count} workers ({listed(stuck, 3)}) are paused by Dask, which begins no "
        f"task on them: for {_PAUSED:.0f} s their memory has been nearly full of what cannot go to "
        "disk. If that does not pass, the run will not end: stop it, and use workers with more "
        "memory (fewer on a machine), or smaller tiles."
    )


def results(futures: list[Any], name: Callable[[int], str]) -> Iterator[Any]:
    """Yield the results of tasks as they are complete; the others are released at the end.

    Raises
    ------
    ChildProcessError
        A task has ended every worker that ran it; `name` says what the i-th one is.
    ConnectionError
        The scheduler has gone.
    """
    done = _distributed().as_completed(futures)
    numbers = {future: i for i, future in enumerate(futures)}
    try:
        with losses_named(lambda: suspects(futures, lambda task: name(numbers[task]))):
            for future in done:
                yield future.result()
                future.release()  # or it would be computed again if its worker were lost
    finally:
        for future in futures:
            future.release()
