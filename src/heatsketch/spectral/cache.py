"""Eigenpairs and densities that several steps ask for, computed once for all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])
# function, operator, other arguments, result
_RESULTS: ContextVar[list[tuple[Any, Any, tuple[Any, ...], Any]] | None] = ContextVar(
    "_RESULTS", default=None
)


@contextmanager
def caching() -> Iterator[None]:
    """Keep the results of `cached` functions until the outermost such block ends.

    Only a caller knows that the same ones will be asked for again. They are as large as 64
    coordinates of all points, too much to be held by a model or for the life of a process.
    """
    token = _RESULTS.set([] if _RESULTS.get() is None else _RESULTS.get())
    try:
        yield
    finally:
        _RESULTS.reset(token)


def cached(function: _Function) -> _Function:
    """Let a function of an operator return the result of an earlier call, within `caching`.

    Two operators are one if the same directions are taken out of the same operator.
    """

    @functools.wraps(function)
    def call(A: Any, *others: Any) -> Any:
        results = _RESULTS.get()
        for same_function, B, arguments, result in results or ():
            same = (same_function, arguments) == (function, others)
            if same and A.undeflated is B.undeflated and np.array_equal(A.V, B.V):
                return result
        result = function(A, *others)
        if results is not None:
            results.append((function, A, others, result))
        return result

    return call  # type: ignore[return-value]
