"""Compilation of loops; only modules of loops import this one, because it imports numba."""

from collections.abc import Callable
from typing import Any

from numba import njit

# Sums may be computed in any order, as vector instructions need; infinities are kept. Division
# follows NumPy: a check of every divisor would prevent vector instructions. Loops release the lock
# of the interpreter, for the tiles of `_tiles.for_each_tile`.
_ANY_ORDER = frozenset({"reassoc", "contract", "nsz", "arcp"})


def compiled(
    function: Callable[..., Any], fastmath: frozenset[str] = _ANY_ORDER
) -> Callable[..., Any]:
    """Compile a function at its first call; cache the result on disk if a folder is writable."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath)}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package nor the home folder is writable
        return njit(**options)(function)


def compiled_as_written(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile without reordering of operations, for algorithms that depend on rounding."""
    return compiled(function, frozenset({"contract"}))
