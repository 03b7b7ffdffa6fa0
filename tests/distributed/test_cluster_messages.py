"""What is said where there is no Dask, no scheduler, no worker, or no task any more."""

import contextlib
import sys
import threading
import time
import warnings

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


@contextlib.contextmanager
def one_worker():
    """Yield a client of one worker, in this process, and the worker."""
    with (
        distributed.LocalCluster(n_workers=1, processes=False, **QUIET) as own,
        distributed.Client(own, set_as_default=False) as client,
    ):
        yield client, own.workers[0]


def test_a_worker_that_stays_paused_is_told(monkeypatch):
    monkeypatch.setattr(cluster, "_PAUSED", 0.3)

    def wait(client, worker, told):
        """Wait for a task that nobody begins, until that is told."""
        with cluster.connect(client):
            while worker.status.name != "paused":
                time.sleep(0.01)
            waiting, end = client.submit(abs, -1), time.monotonic() + 20
            while not told.list and time.monotonic() < end:
                time.sleep(0.01)
            return waiting.done()

    said = r"1 of 1 workers .* are paused by Dask, .* full of"
    with one_worker() as (client, worker):
        worker.memory_manager.memory_pause_fraction = 1e-9  # which the library itself takes
        with pytest.warns(UserWarning, match=said) as told:
            assert not wait(client, worker, told)


@pytest.mark.parametrize("left", [False, True])
def test_a_worker_that_pauses_or_leaves_for_a_while_is_not_told_of(left, monkeypatch):
    """It pauses again and again, but for a look; and so do all workers leave."""
    monkeypatch.setattr(cluster, "_PAUSED", 0.06)
    ended = threading.Event()

    class Client:
        looks = 0

        def scheduler_info(self, n_workers):
            self.looks += 1
            if self.looks > 3 * cluster._LOOKS:
                ended.set()
            status = "running" if self.looks % cluster._LOOKS == 0 else "paused"
            gone = left and status == "paused"
            return {"workers": {} if gone else {"tcp://10.0.0.7:4000": {"status": status}}}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cluster._watch(Client(), ended)
    assert ended.is_set()


def test_a_scheduler_that_goes_ends_the_looks(monkeypatch):
    monkeypatch.setattr(cluster, "_PAUSED", 0.01)

    class Client:
        def scheduler_info(self, n_workers):
            raise OSError("no more")

    cluster._watch(Client(), threading.Event())


def test_a_cluster_that_has_lost_all_workers_is_told(empty, monkeypatch):
    monkeypatch.setattr(cluster, "_PAUSED", 0.06)
    with empty.as_current(), pytest.warns(UserWarning, match="no workers are left of the cluster"):
        cluster._watch(empty, threading.Event())
