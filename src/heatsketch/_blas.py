"""BLAS on one thread, while threads of our own work on tiles: no result depends on their number."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


_lock = threading.Lock()
_nesting = 0
_limiter = None
_threads_outside = 1


@contextmanager
def single_threaded_blas() -> Iterator[int]:
    """Limit BLAS to one thread and yield how many it had; several threads may enter."""
    global _nesting, _limiter, _threads_outside
    with _lock:
        if _nesting == 0:
            known = (library["num_threads"] for library in _controller().info())
            _threads_outside = max(known, default=0) or _threads_allowed()
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
    """Return the number of threads where BLAS does not say it, as Accelerate on macOS."""
    asked = (os.environ.get(name, "") for name in ("VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS"))
    return next((int(n) for n in asked if n.isdecimal() and int(n)), os.cpu_count() or 1)


def _let_any_thread_set_limits() -> None:
    """Let every thread change the limit, not only the one that set it first.

    OpenBLAS has one limit for the process. From threadpoolctl 3.8 on, changes by other threads than
    the first are ignored silently; here the last thread to leave need not be the first to enter.
    """
    for library in _controller().lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)
