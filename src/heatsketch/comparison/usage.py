"""Seconds and memory that a call takes."""

import gc
import math
import mmap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

Result = TypeVar("Result")

_MEMORY_FILE = Path("/proc/self/statm")  # of Linux, in pages
_INTERVAL_SECONDS = 0.005


class PeakMemory:
    """The largest resident memory of the process, less that at the start, in bytes.

    A thread reads it 200 times a second, so that memory taken outside NumPy counts, too. NaN on
    systems that do not report it.
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
        while not self._done.wait(_INTERVAL_SECONDS):
            self._highest = max(self._highest, resident())
        self._highest = max(self._highest, resident())


def resident() -> float:
    """Return the resident memory of the process in bytes, NaN if the system does not report it."""
    try:
        return float(_MEMORY_FILE.read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError, ValueError):
        return math.nan


def measured(work: Callable[[], Result]) -> tuple[Result, float, float]:
    """Return the result of the work, its seconds, and its largest memory in bytes."""
    with PeakMemory() as peak:
        started = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - started
    return result, seconds, peak.bytes
