"""What is said to users: exceptions, warnings, texts that docstrings share."""

import inspect
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from sklearn import exceptions

from heatsketch._arrays import Array

logger = logging.getLogger("heatsketch")  # without a handler of its own


class CertificateError(ArithmeticError):
    """A check after a computation proved the result wrong, so it is not returned."""


class ConvergenceWarning(exceptions.ConvergenceWarning):
    """A computation stopped before its tolerance; the result is less accurate but usable."""


class DisconnectedWarning(UserWarning):
    """The affinity has several components, between which nothing diffuses."""


class ScaleWarning(UserWarning):
    """Warning that a scale leaves little information in the result.

    It is the scale of a feature, of the bandwidth, or of new points.

    `about` is (row numbers, problem) for a warning about rows of X, else None.
    """

    about: tuple[Array, str] | None = None


# Callers of our functions that stand between them and the code of the user.
_WRAPPERS = {"heatsketch", "sklearn", "joblib", "contextlib"}


def warn(category: type[Warning], text: str, about: tuple[Array, str] | None = None) -> None:
    """Warn at the line that called the package, also through scikit-learn.

    `about` is that of a `ScaleWarning`.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _WRAPPERS:
        frame, level = frame.f_back, level + 1
    warning = category(text)
    if about is not None:
        warning.about = about  # type: ignore[attr-defined]
    warnings.warn(warning, stacklevel=level)


# Warnings of rows

_numbers: ContextVar[Array | None] = ContextVar("numbers", default=None)


@contextmanager
def rows_numbered(rows: Array) -> Iterator[None]:
    """Let messages within the block name these rows, for some of all rows such as a tile."""
    outer = _numbers.get()
    token = _numbers.set(rows if outer is None else outer[rows])
    try:
        yield
    finally:
        _numbers.reset(token)


def numbered(rows: Array) -> Array:
    """Return the numbers by which messages name some rows."""
    numbers = _numbers.get()
    return rows if numbers is None else numbers[rows]


def warn_of_rows(rows: Array, problem: str) -> None:
    """Warn of a problem with new points (ScaleWarning)."""
    rows = numbered(rows)
    warn(ScaleWarning, rows_message(rows, problem), (rows, problem))


def rows_message(rows: Sequence[int] | Array, problem: str, count: int | None = None) -> str:
    """Return a message about a problem with rows, which are all or the first of `count`."""
    number = len(rows) if count is None else count
    return f"{number} new point(s) (rows {name_rows(rows, count)}) {problem}"


def name_rows(rows: Sequence[int] | Array, count: int | None = None) -> str:
    """Name the first five rows and count the others, with `count` in all: "3, 7, 12 and 4 more"."""
    count = len(rows) if count is None else count
    shown = ", ".join(str(int(r)) for r in rows[:5])
    return shown if count <= 5 else f"{shown} and {count - 5} more"


Documented = TypeVar("Documented")

_ENTRY = re.compile(r"^(\S.*)\n((?: {4}.*\n?)+)", re.MULTILINE)  # of a section: its head and text
_AS_IN = re.compile(r"^(\S.*)\n {4}As in `([\w.]+)`\.( ?)", re.MULTILINE)


def texts_from(*homes: Any) -> Callable[[Documented], Documented]:
    """Replace "As in `home`." in an entry by what the docstring of home says under the same name.

    What follows in the entry stays. The source is true without this, so that a reader of the code,
    or of an editor that does not run it, still knows where to look.
    """
    texts = {
        (_last(home.__qualname__), _name(head)): text.rstrip()
        for home in homes
        for head, text in _ENTRY.findall(inspect.cleandoc(home.__doc__ or ""))
    }

    def text_of(found: re.Match[str]) -> str:
        head, home, more = found.groups()
        return f"{head}\n{texts[_last(home), _name(head)]}" + ("\n    " if more else "")

    def documented(target: Documented) -> Documented:
        if target.__doc__:  # python -OO leaves none
            target.__doc__ = _AS_IN.sub(text_of, inspect.cleandoc(target.__doc__))
        return target

    return documented


def _name(head: str) -> str:
    return head.partition(" : ")[0]


def _last(name: str) -> str:
    return name.rpartition(".")[2]  # a method may stand in a base of the class by which it is named


@contextmanager
def device_memory() -> Iterator[None]:
    """Say what to pass where the memory of a device does not suffice."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise MemoryError(
            f"The device has too little memory ({str(error).split('. ')[0]}); pass points in "
            "float32, a smaller n_neighbors or n_components, fit a sample and map the others "
            "(heatsketch.distributed), or pass device=None for the processor."
        ) from error
