"""Tiles of rows on all cores, the threads of BLAS, progress, and the memory there is.

Tiles are fixed, so results have the same bits for any number of threads. Bars of tqdm are shown
within `progress()` alone.
"""

import functools
import logging
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TextIO, TypeVar
from weakref import WeakSet

import numpy as np
from threadpoolctl import ThreadpoolController
from tqdm import tqdm

from heatsketch._arrays import Array


def require_memory(size: float, what: str, instead: str) -> None:
    """Raise MemoryError if `size`, in bytes, exceeds the available memory.

    `what` names the arrays, in the plural; `instead` is the advice.
    """
    limit = available_memory()
    if size > limit:
        raise MemoryError(
            f"{what} take about {size / 1e9:,.3g} GB, but only {limit / 1e9:,.3g} GB is available; "
            f"{instead}"
        )


def available_memory(root: Path = Path("/")) -> float:
    """Return the bytes that are available to this process; infinity if the system does not say."""
    left = math.inf
    with suppress(AttributeError, OSError, ValueError):
        left = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, KeyError):  # Linux: memory that is free or can be freed at once
        left = 1024.0 * _numbers_in(root / "proc/meminfo")["MemAvailable:"]
    with suppress(OSError, KeyError, ValueError):  # a container; "max" is no limit
        group = root / "sys/fs/cgroup"
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        left = min(left, limit - used + _numbers_in(group / "memory.stat")["inactive_file"])
    return left


def _numbers_in(path: Path) -> dict[str, int]:
    """Return {name: number} of a file with a name and a number in each line."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {name: int(number) for name, number, *_ in lines}


Value = TypeVar("Value")
ROW_TILE = 1024  # rows of one unit of work: fixed, because results must not depend on threads


def row_tiles(n: int, tile: int = ROW_TILE) -> Iterator[slice]:
    """Cut range(n) into slices of `tile` rows."""
    return (slice(start, min(start + tile, n)) for start in range(0, n, tile))


def for_each_tile(
    work: Callable[[slice], Any], n: int, tile: int = ROW_TILE, bar: tqdm | None = None
) -> list[Any]:
    """Call `work(rows)` on every row tile, in parallel, and return the results in their order.

    Tiles are fixed and BLAS runs on one thread inside them, so results are bitwise the same for any
    number of threads. This thread works, too, and waits for no other to wake. `bar` counts the rows
    of tiles that are done or begun.
    """
    tiles = list(row_tiles(n, tile))
    waiting, results = deque(enumerate(tiles)), [None] * len(tiles)
    failed: list[tuple[int, BaseException]] = []

    def take_tiles(bar: tqdm | None = None) -> None:
        while waiting:
            try:
                place, rows = waiting.popleft()
            except IndexError:  # another thread has taken the last one
                return
            try:
                results[place] = work(rows)
            except BaseException as error:  # an interrupt, too, ends the work of all threads
                failed.append((place, error))
                waiting.clear()
            if bar is not None:
                bar.update(min((len(tiles) - len(waiting)) * tile, n) - bar.n)

    set_already = _inside.blas
    limit = single_threaded_blas() if set_already is None else nullcontext(set_already)
    with limit as n_threads, nullcontext() if bar is None else bar:
        outside = _inside.tile
        alone = n_threads == 1 or len(tiles) <= 1 or outside
        helpers = 0 if alone else min(n_threads, len(tiles)) - 1
        at_work = [_pool(n_threads).submit(take_tiles) for _ in range(helpers)]
        try:
            _inside.tile = outside or helpers > 0
            take_tiles(bar)
        finally:
            _inside.tile = outside
            waiting.clear()  # of an interrupted loop
        for helper in at_work:
            if not helper.cancel():
                helper.result()
        if bar is not None and not failed:
            bar.update(n - bar.n)
    if failed:
        raise min(failed)[1]
    return results


# No bit depends on the tiles of compiled loops, which release the lock of the interpreter: they are
# so small that small data, too, use all threads.
_TILES = 8
LOOP_ROWS = (512, 4_096)  # of a tile, at least and at most


def tiled(
    loop: Callable[..., None], n: int, *arguments: Any, limits: tuple[int, int] = LOOP_ROWS
) -> None:
    """Call loop(*arguments, start, stop) for n rows by tiles, in parallel."""
    tile = min(max(n // _TILES, limits[0]), limits[1])
    for_each_tile(lambda rows: loop(*arguments, rows.start, rows.stop), n, tile)


def filled(work: Callable[[slice], Array], shape: tuple[int, ...], tile: int = ROW_TILE) -> Array:
    """Return an array of this shape with the rows work(rows), computed as in `for_each_tile`."""
    out = np.empty(shape)
    for_each_tile(lambda rows: np.copyto(out[rows], work(rows)), shape[0], tile)
    return out


class _Inside(threading.local):
    tile = False  # whether this thread works on a tile; it runs inner tiles itself
    blas: int | None = None  # threads of BLAS before a whole fit in this thread set them to one


_inside = _Inside()


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Run tiles and BLAS in this thread alone, because others work beside it."""
    outside, _inside.tile = _inside.tile, True
    try:
        with single_threaded_blas():
            yield
    finally:
        _inside.tile = outside


@functools.cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Return the pool of the process, whose threads are started once."""
    return ThreadPoolExecutor(n_threads, "heatsketch", lambda: setattr(_inside, "tile", True))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def sum_over_tiles(work: Callable[[slice], Array], n: int, tile: int = ROW_TILE) -> Array:
    """Return the sum of `work(rows)` over the row tiles, in their order.

    The sum has the same bits for any number of threads.
    """
    return np.asarray(np.sum(for_each_tile(work, n, tile), axis=0))


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def shared(setting: Callable[[], Iterator[Value]]) -> Callable[[], Iterator[Value]]:
    """Let several threads be in the context of a setting of the process at once.

    The first thread to enter sets it, and the last one to leave, in any order, sets it back. Only
    the thread that forks lives on in the child: if it is not inside, the setting is set back there.
    """
    lock = threading.Lock()
    inside: list[int] = []  # threads, once for each entry
    in_force: list[tuple[Iterator[Value], Value]] = []

    def set_back() -> None:
        if in_force and not inside:
            next(in_force.pop()[0], None)

    def context() -> Iterator[Value]:
        thread = threading.get_ident()
        with lock:
            if not in_force:  # it may be, with nobody inside, if Ctrl-C came before `set_back`
                steps = setting()
                in_force.append((steps, next(steps)))
            inside.append(thread)
            value = in_force[0][1]
        try:
            yield value
        finally:
            with lock:
                inside.remove(thread)
                set_back()

    def in_child() -> None:
        inside[:] = [thread for thread in inside if thread == threading.get_ident()]
        set_back()
        lock.release()

    if hasattr(os, "register_at_fork"):  # the lock is free, and what it guards whole, in the child
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=in_child
        )
    return context


@contextmanager
@shared
def single_threaded_blas() -> Iterator[int]:
    """Limit BLAS to one thread and yield its former number."""
    reported = (library.num_threads for library in _controller().lib_controllers)
    threads_outside = max(reported, default=0) or _threads_allowed()
    if threads_outside == 1:
        yield 1
        return
    _let_any_thread_set_limits()
    limiter = _controller().limit(limits=1)
    try:
        yield threads_outside
    finally:  # also where Ctrl-C arrives as it is set back
        _let_any_thread_set_limits()
        limiter.restore_original_limits()
        _let_any_thread_set_limits()


@contextmanager
def one_thread_of_blas() -> Iterator[None]:
    """Limit BLAS to one thread during a fit, whose loops over tiles need not do it again."""
    before = _inside.blas
    with single_threaded_blas() as _inside.blas:
        try:
            yield
        finally:
            _inside.blas = before


def _threads_allowed() -> int:
    """Return the number of threads if BLAS does not report it, as Accelerate on macOS."""
    asked = (os.environ.get(name, "") for name in ("VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS"))
    return next((int(n) for n in asked if n.isdecimal() and int(n)), os.cpu_count() or 1)


def _let_any_thread_set_limits() -> None:
    """Let every thread change the limit of BLAS threads, not only the one that set it first.

    OpenBLAS has one limit for the process. From threadpoolctl 3.8 on, changes by other threads than
    the first are ignored silently; here the last thread to leave need not be the first to enter.
    """
    for library in _controller().lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


# Progress

_logger = logging.getLogger("heatsketch")
_DELAY = 2.0  # seconds before anything is shown, and between messages
_SECONDS, _SECONDS_IN_A_FILE = 0.5, 30.0  # between updates of a bar; a file keeps each
_streams: list[TextIO] = []  # of the `progress()` blocks that are open
_bars: WeakSet[tqdm] = WeakSet()  # that exist


def track(items: Iterable[Any] | None, name: str, total: int | None, unit: str) -> tqdm:
    """Return an iterable over the items that shows a bar after two seconds within `progress()`.

    `total` is the number of steps, None if it is not known, and `unit` their name in the plural.
    The steps of a bar without items are counted by its `update`.
    """
    stream = _streams[-1] if _streams else sys.stderr
    rare = not (stream.isatty() or "ipykernel" in sys.modules)
    bar = tqdm(
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
    _bars.add(bar)
    return bar


def stop_clocks(seconds: float) -> None:
    """Leave out the seconds just past of the time that bars count: they say nothing of a step."""
    for bar in list(_bars):
        if not bar.disable:
            bar.start_t += seconds
            bar.last_print_t += seconds


@contextmanager
def progress(stream: TextIO | None = None) -> Iterator[None]:
    """Show progress bars and messages of the library in a ``with`` block.

    A loop that takes more than two seconds has a bar of tqdm with its speed and the time left.
    Other steps are reported by records of the logger "heatsketch" at the level INFO, at most one
    every two seconds. Log handlers of your own program get these records, too, in the block.

    Parameters
    ----------
    stream : text stream, default=None
        Where to write; standard error by default.

    See Also
    --------
    show_versions : Print the versions on which results depend.

    Notes
    -----
    The cost is one comparison of times for each step of a loop.

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
    """Write records above the bars, at most one in two seconds and none in the first two.

    A record with a true `at_once` is always written.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(logging.INFO)
        self._stream = stream
        self._start = self._last = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless another has just been written."""
        now = time.monotonic()
        if now - self._last >= _DELAY or getattr(record, "at_once", False):
            self._last = now
            tqdm.write(f"[{now - self._start:5.1f} s] {record.getMessage()}", file=self._stream)
