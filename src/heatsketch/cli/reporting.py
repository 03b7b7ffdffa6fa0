"""What is printed: progress, warnings and errors on stderr, results on stdout."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TextIO

import numpy as np

from heatsketch._checks import logger as logger  # of the commands, too
from heatsketch._progress import progress

_EXPECTED_ERRORS = (ValueError, OSError, ImportError, ArithmeticError)


def say(text: str) -> None:
    """Print a line to stderr."""
    print(f"heatsketch: {text}", file=sys.stderr, flush=True)


def describe(error: Exception) -> str:
    """Return an error in one line, with its type if that is unexpected."""
    text = " ".join(" ".join([str(error), *getattr(error, "__notes__", [])]).split())
    if isinstance(error, MemoryError):
        return f"out of memory; {text or 'use fewer points or --affinity knn'}"
    if isinstance(error, _EXPECTED_ERRORS) and text:
        return text
    return f"{type(error).__name__}: {text} (--debug prints the traceback)"


@contextmanager
def report_to_stderr(*, quiet: bool) -> Iterator[None]:
    """Send the library's log records and warnings to stderr, as lines, while the block runs."""
    with (
        nullcontext() if quiet else progress() as shown,
        warnings.catch_warnings(),
    ):
        if quiet:
            warnings.simplefilter("ignore")

        said: set[str] = set()

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            text = " ".join(str(message).split())
            if text not in said:
                if shown is not None:
                    shown.end_line()
                say(f"warning: {text}")
            said.add(text)

        warnings.showwarning = show
        yield


@contextmanager
def remembered(*, quiet: bool) -> Iterator[list[str]]:
    """Keep what is warned of while the block runs, beside showing it; also if it is not shown."""
    kept: list[str] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("default", category=UserWarning)
        shown = warnings.showwarning

        def keep(message: Warning | str, *where: Any, **more: Any) -> None:
            text = " ".join(str(message).split())
            if text not in kept:
                kept.append(text)
            if not quiet:
                shown(message, *where, **more)

        warnings.showwarning = keep
        yield kept


def print_lines(lines: dict[str, str], stream: TextIO | None = None) -> None:
    """Print names and texts in two columns, to stdout by default."""
    for name, text in lines.items():
        print(f"{name:<12} {text}", file=stream)


def print_json(facts: dict[str, Any]) -> None:
    """Print facts as JSON."""
    print(json.dumps(_plain(facts), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """Return plain numbers and lists, with None for NaN and infinities, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
