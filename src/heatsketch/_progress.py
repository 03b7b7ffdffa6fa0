"""Progress of long steps: bars of tqdm, shown within `progress()` alone.

Outside of it nothing is shown. The logger is "heatsketch", without a handler of its own.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from tqdm import tqdm

_logger = logging.getLogger("heatsketch")
_DELAY = 2.0  # seconds before anything is shown, and between messages
_SECONDS, _SECONDS_IN_A_FILE = 0.5, 30.0  # between updates of a bar; a file keeps each
_streams: list[TextIO] = []  # of the `progress()` blocks that are open


def track(items: Iterable[Any] | None, name: str, total: int | None, unit: str) -> tqdm:
    """Return an iterable over the items that shows a bar after two seconds within `progress()`.

    `total` is the number of steps, None if it is not known, and `unit` their name in the plural.
    The steps of a bar without items are counted by its `update`.
    """
    stream = _streams[-1] if _streams else sys.stderr
    rare = not (stream.isatty() or "ipykernel" in sys.modules)
    return tqdm(
        items,
        desc=name,
        total=total,
        unit=f" {unit}",
        file=stream,
        disable=not _streams,
        delay=_DELAY,
        mininterval=_SECONDS_IN_A_FILE if rare else _SECONDS,
        dynamic_ncols=True,
    )


@contextmanager
def progress(stream: TextIO | None = None) -> Iterator[None]:
    """Show progress bars and messages of the library while the block runs.

    A loop that takes more than two seconds has a bar of tqdm with its speed and the time left.
    Other steps are reported by records of the logger "heatsketch" at the level INFO, at most one
    every two seconds. Within the block handlers of the program get these records, too.

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
    stream = sys.stderr if stream is None else stream
    level, handler = _logger.level, _Messages(stream)
    _streams.append(stream)
    _logger.addHandler(handler)
    _logger.setLevel(min(level or logging.INFO, logging.INFO))
    try:
        yield
    finally:
        _streams.pop()
        _logger.removeHandler(handler)
        _logger.setLevel(level)


class _Messages(logging.Handler):
    """Write records above the bars, at most one in two seconds and none in the first two."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(logging.INFO)
        self._stream = stream
        self._start = self._last = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless another has just been written."""
        now = time.monotonic()
        if now - self._last >= _DELAY:
            self._last = now
            tqdm.write(f"[{now - self._start:5.1f} s] {record.getMessage()}", file=self._stream)
