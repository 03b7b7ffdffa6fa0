"""Progress of long work: how far it is, how fast it goes, and the time that is left.

A stage writes records to the library's logger, which has no handler of its own: nothing is shown
unless a program asks for it, by `progress` or by a handler. One text serves terminals, notebooks
and log files.
"""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TextIO, TypeVar

from heatsketch._checks import logger

T = TypeVar("T")

_DELAY = 2.0  # seconds before anything is shown
_SECONDS = 2.0  # that a stage takes before it is reported, and between its reports
_SECONDS_IN_A_FILE = 30.0  # between lines of one stage where a line cannot be written again


class Stage:
    """A piece of work that may be long: every two seconds a record says how far it is.

    Used as a context; what ends within two seconds writes nothing.

    Parameters
    ----------
    name : str
        What is done, as the record begins.
    total : int or None
        How much there is; None if that is not known before.
    unit : str
        Of what, in the plural.
    """

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        self.name, self.total, self.unit = name, total, unit
        self.done = 0
        self._start = self._last = time.monotonic()
        self._reported = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Close the line that was begun with what was done, and how long it took."""
        if self._reported and kind is None:
            seconds = time.monotonic() - self._start
            self._log(f"{self.done:,} {self.unit} in {in_words(seconds)}")

    def advance(self, count: int = 1) -> None:
        """Count what has been done."""
        self.done += count
        now = time.monotonic()
        if now - self._last >= _SECONDS:
            self._last, self._reported = now, True
            self._log(self._text(now - self._start))

    def _text(self, seconds: float) -> str:
        rate = max(1, self.done) / max(seconds, 1e-3)  # some clocks have steps of 15 ms
        speed = f"{rate:,.0f} per second" if rate >= 1 else f"{in_words(1 / rate)} each"
        if self.total is None:
            return f"{self.done:,} {self.unit}, {speed}"
        left = in_words(max(0, self.total - self.done) / rate)
        return f"{self.done:,} of {self.total:,} {self.unit}, {speed}, {left} left"

    def _log(self, text: str) -> None:
        report(self.name, "%s", text)


def report(stage: str, message: str, *values: object) -> None:
    """Log how far a stage is; the next record of the same stage takes the place of this one."""
    logger.info("%s: " + message, stage, *values, extra={"stage": stage})


def track(items: Iterable[T], name: str, total: int | None, unit: str) -> Iterator[T]:
    """Yield the items, and report after each of them as a `Stage`."""
    with Stage(name, total, unit) as stage:
        for item in items:
            yield item
            stage.advance()


def in_words(seconds: float) -> str:
    """Return a duration: "42 s", "3 min" or "2.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def progress(stream: TextIO | None = None) -> Iterator[Progress]:
    """Show what the library is doing, while the block runs.

    From two seconds after the beginning on, one line for each stage: in a terminal or a notebook
    the line is written again as the stage goes on, with its rate and the time left; in a file
    another line follows every half minute. The lines are the records of the logger "heatsketch" at
    the level INFO; a program that has handlers of its own sees them, too, within the block.

    Parameters
    ----------
    stream : text stream, optional
        Where to write; standard error by default.

    Notes
    -----
    Cost: one comparison of times for each step of a loop.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, _ = hs.datasets.digits()
    >>> with hs.progress():  # this one takes less than two seconds, and shows nothing
    ...     Y = hs.HeatSketch(n_components=8, time=4, random_state=0).fit_transform(X)
    >>> Y.shape
    (1797, 8)
    """
    level, handler = logger.level, Progress(stream)
    logger.addHandler(handler)
    logger.setLevel(min(level or logging.INFO, logging.INFO))
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        handler.close()


class Progress(logging.Handler):
    """Write a line for each stage, but nothing for a run that ends within two seconds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(logging.INFO)
        self._stream = sys.stderr if stream is None else stream
        self._again = can_write_again(self._stream)
        self.start = time.monotonic()
        self.latest: logging.LogRecord | None = None
        self._stage: str | None = None  # that the last line is about
        self._written = -_SECONDS_IN_A_FILE  # when it was written
        self._open = False  # the line has no end yet
        self.timer = threading.Timer(_DELAY, self._write_latest)
        self.timer.daemon = True
        self.timer.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record for the timer, or write it if the delay is over."""
        self.latest = record
        if time.monotonic() - self.start >= _DELAY:
            self._write_latest()

    def close(self) -> None:
        """Stop the timer, and end the line."""
        self.timer.cancel()
        self.latest = None
        self.end_line()
        super().close()

    def end_line(self) -> None:
        """Let what others write to the stream begin on a new line."""
        if self._open:
            self._stream.write("\n")
            self._stream.flush()
        self._open, self._stage = False, None

    def _write_latest(self) -> None:
        with self.lock or threading.RLock():
            record, self.latest = self.latest, None
            if record is None:
                return
            now, stage = time.monotonic() - self.start, getattr(record, "stage", None)
            same = stage is not None and stage == self._stage
            if same and not self._again and now - self._written < _SECONDS_IN_A_FILE:
                return
            if not same:
                self.end_line()
            self._stage, self._written = stage, now
            self._write(f"[{now:5.1f} s] {record.getMessage()}", stage is not None)

    def _write(self, line: str, again: bool) -> None:
        """Write a line, in the place of the last one if that has no end."""
        if again and self._again:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r{line[:width]:<{width}}")
        else:
            self._stream.write(f"{line}\n")
        self._open = again and self._again
        self._stream.flush()


def can_write_again(stream: TextIO) -> bool:
    """Say whether a line can be written again: in a terminal, and in a notebook."""
    return stream.isatty() or "ipykernel" in sys.modules
