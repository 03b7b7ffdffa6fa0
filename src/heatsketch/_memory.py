"""The memory that is available, and a refusal of arrays that do not fit."""

import math
import os
from contextlib import suppress
from pathlib import Path


def require_memory(size: float, what: str, instead: str) -> None:
    """Raise MemoryError if `size`, in bytes, exceeds the available memory.

    `what` names the arrays, in the plural; `instead` is the advice.
    """
    limit = available_memory()
    if size > limit:
        raise MemoryError(
            f"{what} take about {size / 1e9:,.3g} GB, but only {limit / 1e9:,.3g} GB is available; "
            f"{instead}"
        )


def available_memory(root: Path = Path("/")) -> float:
    """Return the bytes that are available to this process; infinity if the system does not say."""
    left = math.inf
    with suppress(AttributeError, OSError, ValueError):
        left = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, KeyError):  # Linux: memory that is free or can be freed at once
        left = 1024.0 * _numbers_in(root / "proc/meminfo")["MemAvailable:"]
    with suppress(OSError, KeyError, ValueError):  # a container; "max" is no limit
        group = root / "sys/fs/cgroup"
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        left = min(left, limit - used + _numbers_in(group / "memory.stat")["inactive_file"])
    return left


def _numbers_in(path: Path) -> dict[str, int]:
    """Return {name: number} of a file with a name and a number in each line."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {name: int(number) for name, number, *_ in lines}
