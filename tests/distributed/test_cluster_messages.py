"""What is said where there is no Dask, no scheduler, no worker, or no task any more."""

import sys

import pytest

from heatsketch._blocks import losses_named
from heatsketch.distributed import cluster

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("dask.distributed")
CommClosedError = pytest.importorskip("distributed.comm").CommClosedError
# A port that no other cluster on this machine has.
QUIET = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}}


def opened(where):
    with cluster.connect(where):
        pass


def test_no_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(ImportError, match=r'clusters need Dask; pip install "heatsketch\[dask\]"'):
        opened("local:2")


@pytest.mark.parametrize("where", ["local", "local:0", "local:two", "10.0.0.1", 4])
def test_no_cluster_by_this_name(where):
    with pytest.raises(ValueError, match=r"cluster=.* is unknown; pass 'local:4' for four proc"):
        opened(where)


def test_processes_that_cannot_start(monkeypatch):
    """As where a script without a main guard starts itself again."""

    def refuse(**options):
        raise RuntimeError("before its bootstrapping phase")

    monkeypatch.setattr(distributed, "LocalCluster", refuse)
    with pytest.raises(RuntimeError, match=r"2 processes could not .* under: if __name__ =="):
        opened("local:2")


def test_no_scheduler():
    short = {"distributed.comm.timeouts.connect": "200ms"}
    with dask.config.set(short), pytest.raises(ConnectionError, match="no scheduler of Dask ans"):
        opened("tcp://127.0.0.1:1")


@pytest.fixture
def empty():
    """Yield a client of a scheduler without workers, in this process."""
    with (
        distributed.LocalCluster(n_workers=0, processes=False, **QUIET) as own,
        distributed.Client(own, set_as_default=False) as client,
    ):
        yield client


def test_no_workers(empty, monkeypatch):
    monkeypatch.setattr(cluster, "_WAIT", 0.2)
    with pytest.raises(ConnectionError, match=r"has no workers; start some \(dask worker\)"):
        opened(empty)


def test_a_task_that_is_cancelled(empty):
    future = empty.submit(abs, -1)
    empty.cancel([future])
    with (
        empty.as_current(),
        pytest.raises(ConnectionError, match="the tasks were cancelled, or the scheduler has"),
    ):
        list(cluster.results([future], str))


def fails(client, error):
    with client.as_current(), losses_named(lambda: "a task"):
        raise error


@pytest.mark.parametrize(
    ("error", "status"), [(CommClosedError("reset"), "running"), (OSError("late"), "connecting")]
)
def test_a_scheduler_that_goes_while_it_is_asked(empty, error, status, monkeypatch):
    monkeypatch.setattr(empty, "status", status)
    with pytest.raises(ConnectionError, match="or the scheduler has ended"):
        fails(empty, error)


@pytest.mark.parametrize(
    ("error", "status"), [(FileNotFoundError("x"), "connecting"), (OSError("full"), "running")]
)
def test_other_errors_stay_as_they_are(empty, error, status, monkeypatch):
    monkeypatch.setattr(empty, "status", status)
    with pytest.raises(OSError, match=str(error)) as caught:
        fails(empty, error)
    assert caught.value is error


class Died(distributed.KilledWorker):
    """As the library raises it, whose arguments differ between versions."""

    class last_worker:
        address = "tcp://10.0.0.7:4000"

    allowed_failures = 3

    def __init__(self):
        pass


class Lost:
    """A future of which the workers have died, or that has failed by itself."""

    status = "error"

    def __init__(self, error):
        self.error = error

    def exception(self):
        return self.error

    def result(self):
        raise self.error

    def release(self):
        self.released = True


def test_tasks_of_which_one_ended_its_workers(monkeypatch):
    """Dask blames tasks that waited on these workers, too: each is named."""
    monkeypatch.setattr(distributed, "as_completed", lambda futures: reversed(futures))
    futures = [Lost(Died()), Lost(KeyError("of its own")), Lost(Died())]
    said = r"^block 0 or block 2 ended 4 workers .* tcp://10\.0\.0\.7"
    with pytest.raises(ChildProcessError, match=said):
        list(cluster.results(futures, "block {}".format))
    assert all(future.released for future in futures)
