"""The whole graph on workers that end before the run does: the same bytes, or the tile is named."""

import os
import signal
import time

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.distributed import search, searched, sketch, whole
from problems.clusters import own_cluster, points

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


@pytest.mark.parametrize("cluster", ["local:1", "local:2"])
def test_any_number_of_workers_writes_the_same_bytes(cluster, source, expected, tmp_path):
    done = sketch(source, SKETCH, tmp_path / "y.npy", cluster=cluster, **OPTIONS)
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
            with pytest.raises(
                ChildProcessError, match=r"^tile 2 of \d+ \(task search_tile\) ended 2 workers"
            ):
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
