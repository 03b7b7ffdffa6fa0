"""Progress: what a stage says, how it is shown, and that nothing is shown unless asked for."""

import io
import itertools
import logging
import os
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import _progress
from heatsketch._array import for_each_tile
from heatsketch._progress import Stage, in_words, report, track
from heatsketch.cli import reporting

LOGGER = logging.getLogger("heatsketch")


class Terminal(io.StringIO):
    """A stream that lines can be written to again."""

    def isatty(self):
        return True

    def lines(self):
        """The lines as they stand at the end."""
        return [line.rpartition("\r")[2].rstrip() for line in self.getvalue().split("\n")[:-1]]


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test advances: it is a list of one number."""
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def at_once(monkeypatch):
    """Show stages from the beginning on, at every step."""
    monkeypatch.setattr(_progress, "_DELAY", 0.0)
    monkeypatch.setattr(_progress, "_SECONDS", 0.0)


def after_stamp(lines):
    return [line.split("] ")[1] for line in lines]


# What a stage says


def test_a_stage_says_how_far_how_fast_and_how_long(clock, caplog):
    caplog.set_level(logging.INFO, "heatsketch")
    with Stage("search", 1000, "points") as stage:
        clock[0] = 1.9
        stage.advance(100)  # too early
        clock[0] = 4.0
        stage.advance(300)  # 400 in 4 s: 600 are left, at 100 per second
        clock[0] = 5.9
        stage.advance(300)  # less than two seconds after the last report
        clock[0] = 10.0
        stage.advance(300)
        clock[0] = 11.0
    assert caplog.messages == [
        "search: 400 of 1,000 points, 100 per second, 6 s left",
        "search: 1,000 of 1,000 points, 100 per second, 0 s left",
        "search: 1,000 points in 11 s",
    ]


def test_slow_steps_and_unknown_totals(clock, caplog):
    caplog.set_level(logging.INFO, "heatsketch")
    for total in (4, None):
        with Stage("methods", total, "methods") as stage:
            clock[0] += 300.0
            stage.advance(2)
    assert caplog.messages[::2] == [
        "methods: 2 of 4 methods, 2 min each, 5 min left",
        "methods: 2 methods, 2 min each",
    ]


def test_what_is_short_or_fails_says_nothing_more(clock, caplog):
    caplog.set_level(logging.INFO, "heatsketch")
    with Stage("short", 2, "steps") as stage:
        stage.advance(2)

    def fail():
        with Stage("failing", 2, "steps") as stage:
            clock[0] = 3.0
            stage.advance()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert caplog.messages == ["failing: 1 of 2 steps, 3 s each, 3 s left"]


def test_track_yields_the_items_and_counts_them(clock, caplog):
    caplog.set_level(logging.INFO, "heatsketch")
    for _ in track(range(3), "loop", 3, "steps"):
        clock[0] += 2.0
    assert [int(text.split()[1]) for text in caplog.messages] == [1, 2, 3, 3]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89.4, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h")],
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words


def test_tiles_are_counted_by_rows(at_once, caplog):
    caplog.set_level(logging.INFO, "heatsketch")
    for_each_tile(lambda rows: None, 10_000, 100, Stage("tiles", 10_000, "rows"))
    counts = [int(text.split()[1].replace(",", "")) for text in caplog.messages]
    assert counts[-2:] == [10_000, 10_000]
    assert counts == sorted(counts)


# How it is shown


def shown(stream, *steps):
    """Write (pause, text, stage) as the library would, to a stream."""
    with hs.progress(stream):
        for pause, text, stage in steps:
            time.sleep(pause)
            LOGGER.info(text) if stage is None else report(stage, text)
    return stream.getvalue()


def test_nothing_is_shown_unless_it_is_asked_for(at_once, capsys):
    hs.diffusion(np.random.default_rng(0).standard_normal((300, 3)))
    assert capsys.readouterr() == ("", "")


def test_short_runs_show_nothing():
    """Nor does the timer that they leave behind."""
    stream = io.StringIO()
    with hs.progress(stream):
        timer = LOGGER.handlers[-1].timer
        LOGGER.info("one")
        LOGGER.info("two")
    timer.join(10)
    assert not timer.is_alive()
    assert stream.getvalue() == ""


def test_long_runs_show_the_current_stage_first(clock):
    """Two are kept for the timer, which another test waits for; the third is after it."""
    stream = io.StringIO()
    with hs.progress(stream):
        LOGGER.info("one")
        LOGGER.info("two")
        clock[0] = _progress._DELAY
        LOGGER.handlers[-1].timer.function()
        clock[0] += 0.3
        LOGGER.info("three")
    lines = stream.getvalue().splitlines()
    assert lines == ["[  2.0 s] two", "[  2.3 s] three"]


def test_what_is_kept_is_shown_after_the_delay(monkeypatch):
    monkeypatch.setattr(_progress, "_DELAY", 0.1)
    stream = io.StringIO()
    with hs.progress(stream):
        LOGGER.info("one")
        LOGGER.handlers[-1].timer.join(20)
    assert after_stamp(stream.getvalue().splitlines()) == ["one"]


@pytest.mark.usefixtures("at_once")
def test_a_terminal_has_one_line_for_each_stage(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    steps = [("1 of a longer line than there is room", "a"), ("2", "a"), ("words", None)]
    shown(stream, *[(0, text, stage) for text, stage in [*steps, ("1", "b"), ("2", "b")]])
    assert after_stamp(stream.lines()) == ["a: 2", "words", "b: 2"]
    assert max(map(len, re.split(r"[\r\n]", stream.getvalue()))) == 29


@pytest.mark.usefixtures("at_once")
def test_a_file_has_a_line_of_a_stage_every_half_minute(clock):
    stream = io.StringIO()
    with hs.progress(stream):
        for step in range(61):
            clock[0] = float(step)
            report("a", "%d", step)
        report("b", "1")
    assert after_stamp(stream.getvalue().splitlines()) == ["a: 0", "a: 30", "a: 60", "b: 1"]


@pytest.mark.usefixtures("at_once")
def test_a_notebook_is_written_like_a_terminal(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    text = shown(io.StringIO(), (0, "1", "a"), (0, "2", "a"))
    assert [text.count("\r"), text.count("\n")] == [2, 1]


@pytest.mark.usefixtures("at_once")
@pytest.mark.filterwarnings("default::UserWarning")
def test_a_warning_begins_on_a_line_of_its_own(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with reporting.report_to_stderr(quiet=False):
        report("a", "1")
        warnings.warn("careful", stacklevel=2)
        report("a", "2")
    first, warning, last = stream.lines()
    assert [*after_stamp([first, last]), warning] == [
        "a: 1",
        "a: 2",
        "heatsketch: warning: careful",
    ]


@pytest.mark.parametrize("quiet", [False, True])
def test_the_logger_is_left_as_it_was(quiet):
    before = (LOGGER.level, list(LOGGER.handlers), warnings.showwarning)
    with reporting.report_to_stderr(quiet=quiet):
        assert LOGGER.isEnabledFor(logging.INFO) is not quiet
    assert (LOGGER.level, list(LOGGER.handlers), warnings.showwarning) == before


def test_a_program_that_logs_more_still_does(monkeypatch):
    monkeypatch.setattr(LOGGER, "level", logging.DEBUG)
    with hs.progress():
        assert LOGGER.level == logging.DEBUG


# The long loops of the library


@pytest.mark.usefixtures("at_once")
def test_the_long_loops_report(caplog):
    caplog.set_level(logging.INFO, "heatsketch")
    X = np.random.default_rng(0).standard_normal((150, 3))
    model = hs.HeatEmbedding(time=4, random_state=0).fit(X)
    hs.sketch(model.diffusion_, hs.Power(2), n_components=4, rng=0)
    hs.Diffusion.from_points(X, normalization="bistochastic")
    hs.MixtureDiffusion(time=1).fit(X)
    hs.compare(X, ["isomap"], n_components=2, time=1)
    stages = {record.stage for record in caplog.records if hasattr(record, "stage")}
    asked = {"nearest neighbours", "products", "learning the map", "bistochastic scaling"}
    assert stages >= asked | {"mixture", "comparison", "shortest paths"}


# Interrupts


def test_an_error_ends_the_work_of_all_threads():
    """What other threads would still do is at most a tile each, not their whole share."""
    pytest.importorskip("threadpoolctl")
    from heatsketch import _array

    done, count = itertools.count(), 10_000

    def work(rows):
        if rows.start == 0:
            raise KeyboardInterrupt
        next(done)
        time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        for _ in _array._in_threads(work, [slice(i, i + 1) for i in range(count)], 2):
            pass
    time.sleep(0.05)
    reached = next(done)
    time.sleep(0.05)
    assert next(done) == reached + 1
    assert reached < count / 32  # a share


SHOWING_ALL = """
import signal
import sys
from heatsketch import _progress
from heatsketch.cli import main

_progress._DELAY = _progress._SECONDS = 0.0
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGINT for one process")
def test_an_interrupt_ends_a_run_at_once_and_leaves_no_file(tmp_path):
    """In the middle of the search of `heatsketch embed`: it is not finished, nothing follows."""
    np.save(tmp_path / "points.npy", np.random.default_rng(0).standard_normal((40_000, 20)))
    command = ["embed", "points.npy", "-o", "out.npy", "--method", "heat-sketch"]
    run = subprocess.Popen(
        [sys.executable, "-c", SHOWING_ALL, *command],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not re.search(r"nearest neighbours: [\d,]+ of 40,000", run.stderr.readline()):
        assert run.poll() is None
    run.send_signal(signal.SIGINT)
    _, printed = run.communicate(timeout=60)
    assert run.returncode == 130
    assert printed == "heatsketch: interrupted; no file was left half-written\n"
    assert [path.name for path in tmp_path.iterdir()] == ["points.npy"]
