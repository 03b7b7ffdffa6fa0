"""What is printed: progress, warnings and errors on stderr, results on stdout."""

import json
import logging
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np

from heatsketch._checks import logger

_EXPECTED_ERRORS = (ValueError, OSError, ImportError, ArithmeticError)


def say(text: str) -> None:
    """Print a line to stderr."""
    print(f"heatsketch: {text}", file=sys.stderr, flush=True)


def describe(error: Exception) -> str:
    """Return an error in one line, with its type if that is unexpected."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"out of memory; {text or 'use fewer points or --affinity knn'}"
    if isinstance(error, _EXPECTED_ERRORS) and text:
        return text
    return f"{type(error).__name__}: {text} (--debug prints the traceback)"


@contextmanager
def report_to_stderr(*, quiet: bool) -> Iterator[None]:
    """Send the library's log records and warnings to stderr, as lines, while the block runs."""
    level, progress = logger.level, None if quiet else Progress()
    if progress is not None:
        logger.addHandler(progress)
        logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            if quiet:
                warnings.simplefilter("ignore")
            warnings.showwarning = _show_warning
            yield
    finally:
        if progress is not None:
            logger.removeHandler(progress)
            logger.setLevel(level)
            progress.close()


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"warning: {' '.join(str(message).split())}")


class Progress(logging.Handler):
    """Write one line per log record, but nothing for a run that ends within `delay` seconds."""

    def __init__(self, delay: float = 2.0) -> None:
        super().__init__(logging.INFO)
        self.start, self.delay = time.monotonic(), delay
        self.latest: str | None = None
        self.timer = threading.Timer(delay, self._write_latest)
        self.timer.daemon = True
        self.timer.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record for the timer, or write it if the delay is over."""
        self.latest = record.getMessage()
        if time.monotonic() - self.start >= self.delay:
            self._write_latest()

    def close(self) -> None:
        """Stop the timer."""
        self.timer.cancel()
        self.latest = None
        super().close()

    def _write_latest(self) -> None:
        with self.lock or threading.RLock():
            if self.latest is not None:
                seconds = time.monotonic() - self.start
                print(f"[{seconds:5.1f} s] {self.latest}", file=sys.stderr, flush=True)
                self.latest = None


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
