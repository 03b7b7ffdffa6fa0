"""Compilation of loops; only modules of loops import this one, because it imports numba."""

import time
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import event

from heatsketch._messages import logger
from heatsketch._threads import stop_clocks

# Sums may be computed in any order, as vector instructions need; infinities are kept. Division
# follows NumPy: a check of every divisor would prevent vector instructions. Loops release the lock
# of the interpreter, for the tiles of `_threads.for_each_tile`.
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


class _Compilation(event.Listener):
    """Say that a function is compiled, and stop the clocks of bars meanwhile.

    Numba compiles under a lock, and functions that a function calls while it compiles that one.
    """

    def __init__(self) -> None:
        self._depth, self._started = 0, 0.0

    def on_start(self, event: Any) -> None:
        """Report a function of this package, at its first call on this machine."""
        function = event.data["dispatcher"].py_func
        if (function.__module__ or "").startswith("heatsketch."):  # generated code has no module
            logger.info("compiling %s, once", function.__qualname__)
        if self._depth == 0:
            self._started = time.time()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Let the clocks go on."""
        self._depth -= 1
        if self._depth == 0:
            stop_clocks(time.time() - self._started)


event.register("numba:compile", _Compilation())
