"""Progress: bars within `progress()`, from two seconds on, and nothing elsewhere."""

import contextlib
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

import numba
import numpy as np
import pytest
from numba.core import event

import heatsketch as hs
from heatsketch import _threads
from heatsketch._threads import for_each_tile, track
from heatsketch.cli import printing
from heatsketch.core import loops
from problems.clouds import cloud

LOGGER = logging.getLogger("heatsketch")


@pytest.fixture
def at_once(limits):
    """Show bars and messages from the beginning on, at every step."""
    limits(show_after=0.0, show_every=0.0, show_in_a_file_every=0.0)


@pytest.fixture
def stream():
    """Where progress is shown, during a test."""
    with hs.progress(shown := io.StringIO()):
        yield shown


# How it is shown


def test_a_bar_shows_how_far_how_fast_and_how_long(at_once, stream):
    for _ in track(range(3), "loop", 3, "steps"):
        time.sleep(0.01)
    with track(None, "search", None, "points") as bar:
        bar.update(100)
    shown = re.split(r"[\r\n]+", stream.getvalue())
    assert any(re.match(r"loop:  67%.* 2/3 \[00:00<00:00, .* steps/s\]", line) for line in shown)
    assert any(re.match(r"search: 100 points \[00:00, .* points/s\]", line) for line in shown)


def test_messages_wait_for_two_seconds_unless_they_are_said_at_once(stream):
    LOGGER.info("a step")
    LOGGER.info("about an hour", extra={"at_once": True})
    LOGGER.info("no haste", extra={"at_once": False})
    assert re.fullmatch(r"\[ *\d+\.\d s\] about an hour\n", stream.getvalue())


def test_clocks_of_bars_stand_while_a_loop_is_compiled(at_once, stream):
    started = time.time()
    with track(None, "loop", 3, "steps") as bar:
        with event.trigger_event("numba:compile", data={"dispatcher": loops.along_edges}):
            time.sleep(0.3)
        assert bar.format_dict["elapsed"] <= time.time() - started - 0.3
    assert "compiling along_edges, once\n" in stream.getvalue()


def test_tiles_are_counted_by_rows(at_once, stream):
    for_each_tile(lambda rows: None, 10_000, 100, track(None, "tiles", 10_000, "rows"))
    counts = [int(n) for n in re.findall(r"(\d+)/10000", stream.getvalue())]
    assert counts[-1] == 10_000
    assert counts == sorted(counts)


def test_nothing_is_shown_unless_it_is_asked_for(at_once, capsys):
    hs.diffusion(np.random.default_rng(0).standard_normal((300, 3)))
    for _ in track(range(3), "loop", 3, "steps"):
        LOGGER.info("one more")
    assert capsys.readouterr() == ("", "")


def test_short_runs_show_nothing(stream):
    LOGGER.info("one")
    for _ in track(range(3), "loop", 3, "steps"):
        LOGGER.info("two")
    assert stream.getvalue() == ""


def test_messages_are_shown_every_two_seconds_at_most(monkeypatch, limits, usual_delay):
    limits(show_after=usual_delay)
    now = [0.0]
    monkeypatch.setattr(_threads.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    with hs.progress(stream):
        for second in (1, 2, 3, 5):
            now[0] = float(second)
            LOGGER.info("eigenpairs: %d done", second)
    assert stream.getvalue().splitlines() == [
        "[  2.0 s] eigenpairs: 2 done",
        "[  5.0 s] eigenpairs: 5 done",
    ]


@pytest.mark.usefixtures("at_once")
@pytest.mark.filterwarnings("default::UserWarning")
def test_a_warning_begins_on_a_line_of_its_own(capsys):
    with printing.report_to_stderr(quiet=False):
        for _ in track(range(2), "loop", 2, "steps"):
            warnings.warn("careful", stacklevel=2)
    lines = re.split(r"[\r\n]", capsys.readouterr().err)
    assert "heatsketch: warning: careful" in lines


@pytest.mark.parametrize("quiet", [False, True])
def test_the_logger_is_left_as_it_was(quiet):
    before = (LOGGER.level, list(LOGGER.handlers), warnings.showwarning)
    with printing.report_to_stderr(quiet=quiet):
        assert LOGGER.isEnabledFor(logging.INFO) is not quiet
    assert (LOGGER.level, list(LOGGER.handlers), warnings.showwarning) == before


def test_a_program_that_logs_more_still_does(monkeypatch):
    monkeypatch.setattr(LOGGER, "level", logging.DEBUG)
    with hs.progress():
        assert LOGGER.level == logging.DEBUG


# The long loops of the library


def test_the_long_loops_show_bars(at_once, stream, limits):
    limits(few_steps=0)
    X = np.random.default_rng(0).standard_normal((150, 3))
    model = hs.HeatEmbedding(time=4, layout="linear", random_state=0).fit(X)
    hs.HeatEmbedding(time=4, random_state=0).fit(X)
    hs.sketch(model.diffusion_, hs.Power(2), n_components=4, rng=0)
    hs.Diffusion.from_points(X, normalization="bistochastic")
    hs.MixtureDiffusion(time=1).fit(X)
    hs.compare(X, ["isomap"], n_components=2, time=1)
    hs.diffusion(cloud(5000, 2), affinity="dense", epsilon=1.0)  # too many to be stored
    asked = {"nearest neighbours", "products", "learning the map", "bistochastic scaling"}
    asked |= {"free layout", "mixture", "comparison", "shortest paths", "product with the kernel"}
    assert {name for name in asked if f"{name}:" not in stream.getvalue()} == set()


# Interrupts


def test_an_error_ends_the_work_of_all_threads(monkeypatch):
    """Other threads finish the group of tiles that they have begun, 1/32 of all, and no more."""
    monkeypatch.setattr(_threads, "single_threaded_blas", lambda: contextlib.nullcontext(2))
    done, count = itertools.count(), 3_200

    def work(rows):
        if rows.start == 0:
            raise KeyboardInterrupt
        next(done)
        time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        for_each_tile(work, count, 1)
    time.sleep(0.6)  # in which 560 more would be done
    assert next(done) < count / 8


SHOWING_ALL = """
import signal
import sys
from heatsketch import _threads
from heatsketch.cli import main

_threads._DELAY = _threads._SECONDS = _threads._SECONDS_IN_A_FILE = 0.0
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
sys.exit(main(sys.argv[1:]))
"""


HANGING = """
import os
import sys
import time
from heatsketch.cli import main

def hang(_):
    print("hangs", flush=True)
    for _ in range(6000):  # a signal just before a sleep begins does not end it
        time.sleep(0.01)

os.fsync = hang
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGTERM")
def test_a_run_that_is_terminated_removes_its_draft(tmp_path):
    np.save(tmp_path / "points.npy", cloud(20, 2))
    command = ["embed", "points.npy", "-o", "out.npy", "--method", "pca", "-q"]
    run = subprocess.Popen(
        [sys.executable, "-c", HANGING, *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout.readline() == "hangs\n"
    run.terminate()
    _, printed = run.communicate(timeout=60)
    assert run.returncode == 128 + signal.SIGTERM
    assert printed == "heatsketch: interrupted; no file was left half-written\n"
    assert [path.name for path in tmp_path.iterdir()] == ["points.npy"]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGINT for one process")
def test_an_interrupt_ends_a_run_at_once_and_leaves_no_file(tmp_path):
    """In the middle of the search of `heatsketch embed`: it is not finished, nothing follows."""
    np.save(tmp_path / "points.npy", np.random.default_rng(0).standard_normal((20_000, 20)))
    command = ["embed", "points.npy", "-o", "out.npy", "--method", "heat-sketch"]
    run = subprocess.Popen(
        [sys.executable, "-c", SHOWING_ALL, *command],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not re.search(r"nearest neighbours: .*/20000", run.stderr.readline()):
        assert run.poll() is None
    run.send_signal(signal.SIGINT)
    _, printed = run.communicate(timeout=60)
    assert run.returncode == 130
    assert printed.endswith("heatsketch: interrupted; no file was left half-written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["points.npy"]


def test_functions_of_others_without_a_module_are_compiled_as_if_we_were_not_there():
    """As pynndescent 0.7 generates them: numba tells every listener of every function."""
    scope = {}
    exec("def twice(x):\n    return 2 * x", scope)
    scope["twice"].__module__ = None
    import heatsketch._compile  # noqa: F401  (it listens from now on)

    assert numba.njit(scope["twice"])(3) == 6
