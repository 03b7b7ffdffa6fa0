"""A cache of eigenpairs and densities that several steps need."""

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

    The caller opens the block, because it knows that the same results will be needed again. They
    are as large as 64 coordinates of all points, too much to be kept by a model or a process.
    """
    token = _RESULTS.set([] if _RESULTS.get() is None else _RESULTS.get())
    try:
        yield
    finally:
        _RESULTS.reset(token)


def cached(function: _Function) -> _Function:
    """Make a function of an operator return the result of an earlier call, within `caching`.

    Two operators are equal if the same directions are deflated in the same operator.
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
