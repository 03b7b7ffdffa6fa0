"""Points that workers of Dask map, and what happens to the workers."""

import contextlib
import json
import subprocess
import sys
import time

import numpy as np

import heatsketch as hs

N, D, SAMPLE, ROWS = 1500, 4, 300, 100
BLOCKS = N // ROWS
SKETCH = hs.HeatSketch(3, random_state=0)
OPTIONS = {"fit_points": SAMPLE, "block_rows": ROWS}


def points():
    """A curve and a cluster, in no order."""
    rng = np.random.default_rng(5)
    t = rng.uniform(0, 6, N)
    X = np.stack([np.cos(t), np.sin(2 * t), t, 0 * t], axis=1) + 0.1 * rng.standard_normal((N, D))
    X[rng.random(N) < 0.3] += [5, 0, 0, 3]
    return X.astype(np.float32)


def spoil(client, before):
    """Let every worker, also those to come, call before(mapping, number) ahead of each block."""

    from dask import distributed

    class Spoil(distributed.WorkerPlugin):
        name = "spoil"

        def setup(self, worker):
            from heatsketch.distributed.mapping import Mapping

            kept = self.kept = Mapping.keep_block

            def keep_block(own, number, raw):
                before(own, number)
                return kept(own, number, raw)

            Mapping.keep_block = keep_block

        def teardown(self, worker):
            from heatsketch.distributed.mapping import Mapping

            Mapping.keep_block = self.kept

    client.register_plugin(Spoil())


@contextlib.contextmanager
def spoilt(client, before):
    spoil(client, before)
    yield
    client.unregister_worker_plugin("spoil")


def at_tasks(client, do):
    """Let every worker, also those to come, call do(name of the function) as it begins a task."""
    from dask import distributed
    from dask.utils import key_split

    class Tasks(distributed.WorkerPlugin):
        name = "tasks"

        def transition(self, key, start, finish, **_):
            if finish == "executing":
                do(key_split(key))

    client.register_plugin(Tasks())


@contextlib.contextmanager
def own_scheduler(found):
    """Start a scheduler, which writes to a file, and a worker; yield its process and address."""
    given = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(found)]
    with contextlib.ExitStack() as stack:

        def start(name, *options):
            command = [sys.executable, "-m", f"distributed.cli.dask_{name}", *given, *options]
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = start("scheduler", "--port", "0")
        while not (found.exists() and found.read_text().endswith("}")):  # written whole
            time.sleep(0.05)
        start("worker", "--nthreads", "1", "--no-nanny")
        yield scheduler, json.loads(found.read_text())["address"]


@contextlib.contextmanager
def own_cluster(failures=3):
    """Start two workers of a test; a task may end so many of them, and one more."""
    import dask

    from heatsketch.distributed.cluster import connect

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": failures}),
        connect("local:2") as client,
    ):
        yield client
