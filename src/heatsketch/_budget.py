"""Memory that may be taken: what is available, a budget, and a refusal before work begins."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from heatsketch._checks import check_number

GB = 1e9

_CGROUP_FILES = (  # of versions 2 and 1 of Linux control groups
    ("memory.max", "memory.current", "inactive_file", "memory.stat"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "total_inactive_file",
        "memory/memory.stat",
    ),
)

_budget_of_block: ContextVar[float | None] = ContextVar("budget", default=None)


def require(size: float, what: str, instead: str, *, budget: float | None = None) -> None:
    """Raise MemoryError if some work takes more memory than the budget.

    Parameters
    ----------
    size : float
        Bytes.
    what : str
        What takes them, in the plural.
    instead : str
        What to do.
    budget : float, optional
        As of `check`.

    Examples
    --------
    >>> from heatsketch import memory
    >>> try:
    ...     memory.require(8e12, "All distances", "use landmarks.", budget=1e9)
    ... except MemoryError as error:
    ...     print(error)
    All distances take about 8,000.0 GB, but only 1.0 GB is available; use landmarks.
    """
    limit = limit_of(budget)
    if size > limit:
        raise MemoryError(
            f"{what} take about {in_words(size)}, but only {in_words(limit)} is available; "
            f"{instead}"
        )


def limit_of(budget: float | None) -> float:
    """Return the bytes of a budget; by default those of `memory_budget`, else what is available."""
    return next(b for b in (budget, _budget_of_block.get(), available()) if b is not None)


def in_words(size: float) -> str:
    """Write a number of bytes in MB or GB.

    Examples
    --------
    >>> from heatsketch import memory
    >>> memory.in_words(2.5e6), memory.in_words(1.25e10)
    ('3 MB', '12.5 GB')
    """
    return f"{math.ceil(size / 1e6):,} MB" if size < GB else f"{size / GB:,.1f} GB"


@contextmanager
def memory_budget(size: float | None) -> Iterator[None]:
    """Let fits inside the block take so many bytes, more or fewer than seem available.

    Parameters
    ----------
    size : float or None
        Bytes; None changes nothing.

    Examples
    --------
    >>> from heatsketch import memory
    >>> with memory.memory_budget(1e6):
    ...     try:
    ...         memory.check(10_000, 3, method="heat-sketch", n_components=8)
    ...     except MemoryError as error:
    ...         print("refused")
    refused
    """
    if size is not None:
        size = check_number(size, "size", low=0, open_low=True)
    token = _budget_of_block.set(_budget_of_block.get() if size is None else size)
    try:
        yield
    finally:
        _budget_of_block.reset(token)


def available() -> float:
    """Return the bytes this process may still take; infinity if the system does not report them."""
    return min(_of_machine(), _of_group())


def _of_machine(path: Path = Path("/proc/meminfo")) -> float:
    """Return what is free or could be freed at once; on systems other than Linux, all memory."""
    try:
        lines = path.read_text().splitlines()
        return 1024.0 * next(int(x.split()[1]) for x in lines if x.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def _of_group(folder: Path = Path("/sys/fs/cgroup")) -> float:
    """Return what the limit of a container leaves; cached files could be dropped."""
    left = math.inf
    for limit, used, files, statistics in _CGROUP_FILES:
        try:
            lines = (folder / statistics).read_text().splitlines()
            cached = next(int(x.split()[1]) for x in lines if x.startswith(files + " "))
            # The limit of version 2 reads "max" where there is none.
            bounds = (int((folder / name).read_text()) for name in (limit, used))
            left = min(left, next(bounds) - next(bounds) + cached)
        except (OSError, ValueError, StopIteration):
            continue
    return float(left)
