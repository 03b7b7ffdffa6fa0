"""The warnings of one thread, while other threads of the process have theirs."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_thread = threading.local()
_outside = warnings.catch_warnings()
_inside = 0  # threads


@contextmanager
def caught_warnings() -> Iterator[list[Any]]:
    """Catch the warnings of this thread; of several, `warnings.catch_warnings` mixes them up."""
    global _inside, _outside
    with _lock:
        if _inside == 0:
            _outside = warnings.catch_warnings()
            _outside.__enter__()
            warnings.simplefilter("always")
            warnings.showwarning = functools.partial(_show, warnings.showwarning)
        _inside += 1
    found: list[Any] = []
    _thread.found = found
    try:
        yield found
    finally:
        _thread.found = None
        with _lock:
            _inside -= 1
            if _inside == 0:
                _outside.__exit__(None, None, None)


def _show(outside: Any, message: Any, category: Any, filename: str, lineno: int, *_: Any) -> None:
    found = getattr(_thread, "found", None)
    if found is None:  # a thread that catches nothing
        outside(message, category, filename, lineno)
    else:
        found.append(warnings.WarningMessage(message, category, filename, lineno))
