"""Memory that may be taken: what is available, and a refusal before work of n x n begins."""

from __future__ import annotations

import math
import os
from pathlib import Path

_CGROUP_FILES = (  # of versions 2 and 1 of Linux control groups
    ("memory.max", "memory.current", "inactive_file", "memory.stat"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "total_inactive_file",
        "memory/memory.stat",
    ),
)


def require(size: float, what: str, instead: str) -> None:
    """Raise MemoryError if some work takes more bytes than are available.

    `what` takes them, in the plural; `instead` says what to do.
    """
    limit = available()
    if size > limit:
        raise MemoryError(
            f"{what} take about {_in_words(size)}, but only {_in_words(limit)} is available; "
            f"{instead}"
        )


def _in_words(size: float) -> str:
    return f"{math.ceil(size / 1e6):,} MB" if size < 1e9 else f"{size / 1e9:,.1f} GB"


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
