"""Workers, schedulers and clients that end before a run of the whole graph does, or are slow."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.distributed import search, searched, sketch, whole
from heatsketch.distributed.cluster import connect
from heatsketch.distributed.state import State
from problems.clusters import at_tasks, own_cluster, own_scheduler, points

dask = pytest.importorskip("dask")
pytest.importorskip("dask.distributed")
if os.name != "posix":
    pytest.skip("processes are ended by signals", allow_module_level=True)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning"),
]

OPTIONS = {"tile_rows": 300}
SKETCH = hs.HeatSketch(3, time=3, random_state=0)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    np.save(folder / "x.npy", points())
    return folder / "x.npy"


@pytest.fixture(scope="module")
def expected(source):
    """The bytes that one process writes."""
    sketch(source, SKETCH, source.with_name("one.npy"), **OPTIONS)
    return source.with_name("one.npy").read_bytes()


def test_one_worker_writes_the_same_bytes(source, expected, tmp_path):
    """As two do, below."""
    done = sketch(source, SKETCH, tmp_path / "y.npy", cluster="local:1", **OPTIONS)
    assert done.output.read_bytes() == expected


def test_results_of_early_phases_that_are_lost_are_computed_again(
    source, expected, tmp_path, monkeypatch
):
    """Ahead of every phase, one of two workers is killed, with what it has of those before."""
    killed = []
    with own_cluster(failures=10) as client:

        def after_a_loss(phase):
            def run(*given, **named):
                while len(client.scheduler_info()["workers"]) < 2:
                    time.sleep(0.05)
                killed.append(min(client.run(os.getpid).values()))
                os.kill(killed[-1], signal.SIGKILL)
                return phase(*given, **named)

            return run

        phases = (searched, "neighbors_of"), (whole, "affinity"), (whole, "sketch_blocks")
        for module, name in phases:
            monkeypatch.setattr(module, name, after_a_loss(getattr(module, name)))
        done = sketch(source, SKETCH, tmp_path / "y.npy", cluster=client, **OPTIONS)
    assert len(set(killed)) == 3
    assert done.output.read_bytes() == expected


def poison(monkeypatch, failure):
    """Let the search of tile 2 fail, on whatever worker it is tried."""
    own, phase = search._search_tile, searched.neighbors_of

    def run(tiles, starts, *rest):
        def search_tile(tile, start, *more):
            if start == starts[2]:
                failure()
            return own(tile, start, *more)

        monkeypatch.setattr(search, "_search_tile", search_tile)
        return phase(tiles, starts, *rest)

    monkeypatch.setattr(searched, "neighbors_of", run)


def test_a_tile_that_kills_workers_is_named(source, expected, tmp_path, monkeypatch):
    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    out = tmp_path / "y.npy"
    with own_cluster(failures=1) as client:
        with monkeypatch.context() as patch:
            poison(patch, kill)
            task = r"tile \d+ of \d+ \(task search_tile\)"
            said = rf"^({task} or )*tile 2 of .*\(task search_tile\)( or {task})* ended 2 workers"
            with pytest.raises(ChildProcessError, match=said):
                sketch(source, SKETCH, out, cluster=client, **OPTIONS)
        assert not list(tmp_path.iterdir())
        sketch(source, SKETCH, out, cluster=client, **OPTIONS)  # which is not poisoned
    assert out.read_bytes() == expected


def test_an_error_names_its_tile(source, tmp_path, monkeypatch):
    def fail():
        raise MemoryError("no more")

    poison(monkeypatch, fail)
    with own_cluster() as client, pytest.raises(MemoryError, match="no more") as caught:
        sketch(source, SKETCH, tmp_path / "y.npy", cluster=client, **OPTIONS)
    assert "tile 2 of" in caught.value.__notes__[-1]
    assert not list(tmp_path.iterdir())


@pytest.fixture
def goes_on(source, expected, monkeypatch):
    """Go on with a run in this process; return whether it searched."""

    def run(out):
        searched, own = [], search._search_tile
        monkeypatch.setattr(search, "_search_tile", lambda *a: searched.append(a) or own(*a))
        sketch(source, SKETCH, out, resume=True, **OPTIONS)
        assert out.read_bytes() == expected
        assert not State.of(out).folder.exists()
        return bool(searched)

    return run


_RUN = """
import importlib, os, signal, sys
import heatsketch as hs
source, out, module, name, cluster = sys.argv[1:]
module = importlib.import_module(f"heatsketch.distributed.{module}")
if __name__ == "__main__":
    setattr(module, name, lambda *given: os.kill(os.getpid(), signal.SIGKILL))
    model = hs.HeatSketch(3, time=3, random_state=0)
    hs.distributed.sketch(source, model, out, cluster=cluster or None, tile_rows=300)
"""


@pytest.mark.parametrize(
    ("module", "name", "cluster", "searches"),
    [
        ("search", "_merged", "", True),
        ("whole", "affinity", "local:2", False),
        ("output", "_write_npy", "", False),
    ],
)
def test_a_client_that_is_killed(module, name, cluster, searches, source, tmp_path, goes_on):
    out = tmp_path / "y.npy"
    command = [sys.executable, "-c", _RUN, str(source), str(out), module, name, cluster]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert not out.exists()
    assert State.of(out).folder.exists()
    assert goes_on(out) == searches


def test_a_scheduler_that_is_killed(source, tmp_path, goes_on, monkeypatch):
    out = tmp_path / "y.npy"
    with (
        own_scheduler(tmp_path / "scheduler.json") as (scheduler, address),
        connect(address) as client,
        dask.config.set({"distributed.comm.timeouts.connect": "3s"}),
        monkeypatch.context() as patch,
    ):
        own = whole.affinity

        def affinity(*given):
            scheduler.kill()
            return own(*given)

        patch.setattr(whole, "affinity", affinity)
        with pytest.raises(ConnectionError, match="the scheduler has ended"):
            sketch(source, SKETCH, out, cluster=client, **OPTIONS)
    assert not goes_on(out)


def test_a_worker_that_is_killed_in_a_task_of_each_phase(source, expected, tmp_path):
    product = "from-value-multiply-concatenate"
    phases = ("collect", "search_tile", "keep_tile", "symmetric", product, "keep")

    def kill_once(name):
        killed = tmp_path / f"killed-{name}"
        if name in phases and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    with own_cluster(failures=10) as client:
        at_tasks(client, kill_once)
        done = sketch(source, SKETCH, tmp_path / "y.npy", cluster=client, **OPTIONS)
    killed = {path.name.partition("-")[2] for path in tmp_path.glob("killed-*")}
    assert killed == set(phases)
    assert done.output.read_bytes() == expected


def test_a_slow_worker(source, expected, tmp_path):
    """It answers to nobody for a while at each of its tasks."""

    def sleep(name):
        slow = tmp_path / "slow"
        if not slow.exists():
            slow.write_text(str(os.getpid()))
        if slow.read_text() == str(os.getpid()):
            time.sleep(0.02)
            with (tmp_path / "tasks").open("a") as log:
                log.write(f"{name}\n")

    with own_cluster() as client:
        at_tasks(client, sleep)
        done = sketch(source, SKETCH, tmp_path / "y.npy", cluster=client, **OPTIONS)
    assert len((tmp_path / "tasks").read_text().split()) > 20
    assert done.output.read_bytes() == expected
