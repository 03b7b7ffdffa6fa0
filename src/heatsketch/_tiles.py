"""Row tiles, the threads that work on them, and BLAS in one thread meanwhile.

Tiles are fixed, so results have the same bits for any number of threads.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController
from tqdm import tqdm

from heatsketch._typing import Array

ROW_TILE = 1024  # rows of one unit of work: fixed, because results must not depend on threads


def row_tiles(n: int, tile: int = ROW_TILE) -> Iterator[slice]:
    """Cut range(n) into slices of `tile` rows."""
    return (slice(start, min(start + tile, n)) for start in range(0, n, tile))


def for_each_tile(
    work: Callable[[slice], Any], n: int, tile: int = ROW_TILE, bar: tqdm | None = None
) -> list[Any]:
    """Call `work(rows)` on every row tile, in parallel, and return the results in their order.

    Tiles are fixed and BLAS runs on one thread inside them, so results are bitwise the same for any
    number of threads. `bar` counts the rows that are done.
    """
    tiles = list(row_tiles(n, tile))
    with single_threaded_blas() as n_threads, nullcontext() if bar is None else bar:
        alone = n_threads == 1 or len(tiles) <= 1 or getattr(_inside, "tile", False)
        results: list[Any] = []
        for found in (map if alone else _pool(n_threads).map)(work, tiles):
            results.append(found)
            if bar is not None:
                bar.update(min(len(results) * tile, n) - bar.n)
    return results


def filled(work: Callable[[slice], Array], shape: tuple[int, ...], tile: int = ROW_TILE) -> Array:
    """Return an array of this shape with the rows work(rows), computed as in `for_each_tile`."""
    out = np.empty(shape)
    for_each_tile(lambda rows: np.copyto(out[rows], work(rows)), shape[0], tile)
    return out


_inside = threading.local()  # whether this thread works on a tile; it runs inner tiles itself


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Run tiles and BLAS in this thread alone, because others work beside it."""
    outside = getattr(_inside, "tile", False)
    _inside.tile = True
    try:
        with single_threaded_blas():
            yield
    finally:
        _inside.tile = outside


@functools.cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Return the pool of the process, whose threads are started once."""
    return ThreadPoolExecutor(n_threads, "heatsketch", lambda: setattr(_inside, "tile", True))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def sum_over_tiles(work: Callable[[slice], Array], n: int, tile: int = ROW_TILE) -> Array:
    """Return the sum of `work(rows)` over the row tiles, in their order.

    The sum has the same bits for any number of threads.
    """
    return np.asarray(np.sum(for_each_tile(work, n, tile), axis=0))


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


_lock = threading.Lock()
_nesting = 0
_limiter = None
_threads_outside = 1


@contextmanager
def single_threaded_blas() -> Iterator[int]:
    """Limit BLAS to one thread and yield its former number; several threads may enter."""
    global _nesting, _limiter, _threads_outside
    with _lock:
        if _nesting == 0:
            known = (library.num_threads for library in _controller().lib_controllers)
            _threads_outside = max(known, default=0) or _threads_allowed()
            _limiter = None
            if _threads_outside > 1:
                _let_any_thread_set_limits()
                _limiter = _controller().limit(limits=1)
        _nesting += 1
    try:
        yield _threads_outside
    finally:
        with _lock:
            _nesting -= 1
            if _nesting == 0 and _limiter is not None:
                _let_any_thread_set_limits()
                _limiter.restore_original_limits()
                _let_any_thread_set_limits()


def _threads_allowed() -> int:
    """Return the number of threads if BLAS does not report it, as Accelerate on macOS."""
    asked = (os.environ.get(name, "") for name in ("VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS"))
    return next((int(n) for n in asked if n.isdecimal() and int(n)), os.cpu_count() or 1)


def _let_any_thread_set_limits() -> None:
    """Let every thread change the limit of BLAS threads, not only the one that set it first.

    OpenBLAS has one limit for the process. From threadpoolctl 3.8 on, changes by other threads than
    the first are ignored silently; here the last thread to leave need not be the first to enter.
    """
    for library in _controller().lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)
