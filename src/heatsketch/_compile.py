"""The one way loops are compiled; importing this module imports numba, so only kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

# Sums may be taken in any order, which vector instructions need; infinities stay infinities.
# Division is NumPy's: a check of every divisor would keep loops from being vectorised. Loops run
# without the interpreter's lock, in the tiles of `_array.for_each_tile`.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile at the first call, and keep the result on disk where there is a place for it."""
    return _compile(function, _OPTIONS)


def compiled_as_written(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile likewise, with every operation in its place: for tricks with rounding."""
    return _compile(function, {**_OPTIONS, "fastmath": {"contract"}})


def _compile(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package nor the home folder can be written to
        return njit(**options)(function)
