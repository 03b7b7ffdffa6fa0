"""Seconds and memory that a piece of work takes."""

from __future__ import annotations

import gc
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

Result = TypeVar("Result")

_STATUS = Path("/proc/self/statm")
_PAGE = 4096
_INTERVAL = 0.005  # seconds between two looks


class PeakMemory:
    """The most resident memory of the process beyond what it held at the start, in bytes.

    Looked at 200 times a second, so that memory taken outside NumPy counts too. NaN on systems that
    do not say.
    """

    def __init__(self) -> None:
        self.bytes = math.nan
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        gc.collect()
        self._start = self._highest = resident()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        self.bytes = max(0.0, self._highest - self._start)

    def _watch(self) -> None:
        while not self._done.wait(_INTERVAL):
            self._highest = max(self._highest, resident())
        self._highest = max(self._highest, resident())


def resident() -> float:
    """Return the resident memory of the process in bytes; NaN where the system does not say."""
    try:
        return float(_STATUS.read_text().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return math.nan


def measured(work: Callable[[], Result]) -> tuple[Result, float, float]:
    """Return what the work returns, its seconds, and its peak of memory in bytes."""
    with PeakMemory() as peak:
        started = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - started
    return result, seconds, peak.bytes
