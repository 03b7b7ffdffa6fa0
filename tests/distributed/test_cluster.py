"""Blocks mapped by workers of Dask: the same bytes, and what each of them holds."""

import json
import os
import pickle
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.cli import main
from heatsketch.distributed import embed, mapping, sketch, tasks
from heatsketch.distributed.caught import caught_warnings
from heatsketch.distributed.state import State
from problems.clusters import (
    BLOCKS,
    OPTIONS,
    ROWS,
    SAMPLE,
    SKETCH,
    D,
    N,
    own_cluster,
    points,
    spoilt,
)

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("dask.distributed")
psutil = pytest.importorskip("psutil")

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")


@pytest.mark.parametrize("rows", [N, N // 2 - 1, 128, 214, N - 1])
def test_bytes_are_those_of_one_process_whatever_the_blocks(rows, client, source, tmp_path):
    done = [
        embed(source, tmp_path / name, SKETCH, cluster=cluster, fit_points=SAMPLE, block_rows=rows)
        for name, cluster in (("one.npy", None), ("two.npy", client))
    ]
    assert done[0].output.read_bytes() == done[1].output.read_bytes()
    assert done[0].describe() == done[1].describe()
    assert not State.of(done[1].output).folder.exists()


@pytest.mark.parametrize("name", ["out.parquet", "out"])
def test_other_outputs_are_the_same(name, client, source, tmp_path):
    pytest.importorskip("pyarrow")
    one, two = tmp_path / f"one-{name}", tmp_path / f"two-{name}"
    for out, where in ((one, None), (two, client)):
        embed(source, out, SKETCH, cluster=where, **OPTIONS)
    files = [[out] if out.is_file() else sorted(out.iterdir()) for out in (one, two)]
    assert [f.read_bytes() for f in files[0]] == [f.read_bytes() for f in files[1]]


@pytest.mark.parametrize("chunks", [(N, D), (211, 3), ((N - 1, 1), (D,))])
def test_dask_arrays_are_mapped_where_their_blocks_are(chunks, client, tmp_path, expected):
    array = da.from_array(points(), chunks=chunks)
    done = embed(array, tmp_path / "out.npy", SKETCH, cluster=client, **OPTIONS)
    assert done.output.read_bytes() == expected


def test_lazy_coordinates_are_computed_by_workers(client):
    model = hs.HeatSketch(3, random_state=0).fit(points()[:SAMPLE])
    lazy = model.transform(da.from_array(points(), chunks=(211, 3)))
    assert np.array_equal(client.compute(lazy).result(), model.transform(points()))


def test_a_client_of_threads_is_used_and_left_open(source, tmp_path, expected):
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as own:
        done = embed(source, tmp_path / "out.npy", SKETCH, cluster=own, **OPTIONS)
        assert done.output.read_bytes() == expected
        assert own.submit(abs, -1).result() == 1


def test_an_address_is_found(client, source, tmp_path, expected):
    address = client.scheduler.address
    done = embed(source, tmp_path / "out.npy", SKETCH, cluster=address, **OPTIONS)
    assert done.output.read_bytes() == expected


@pytest.mark.parametrize("cluster", ["local:0", "local:", "local:two", "here", 4])
def test_other_clusters_are_refused_before_anything_is_written(cluster, source, tmp_path):
    with pytest.raises(ValueError, match=r"pass 'local:4' for four processes"):
        embed(source, tmp_path / "out.npy", SKETCH, cluster=cluster, **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_the_command_takes_a_cluster(client, source, tmp_path, expected, capsys):
    out = tmp_path / "out.npy"
    command = ["embed", str(source), "-o", str(out), "--method", "heat-sketch"]
    command += ["--n-components", "3", "--fit-points", "300", "--cluster"]
    assert main([*command, client.scheduler.address]) == 0
    assert "300 of 1,500 points were fitted" in capsys.readouterr().out
    assert out.read_bytes() == expected
    assert main([*command, "here", "--force"]) == 1
    assert "cluster='here' is unknown; pass 'local:4'" in capsys.readouterr().err
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    command[1] = str(tmp_path / "x.csv")
    assert main([*command[:6], "--cluster", "local:2"]) == 2
    assert "--cluster is for points in .npy" in capsys.readouterr().err


def test_arrays_of_this_process_are_refused(client, tmp_path):
    with pytest.raises(ValueError, match=r"only this process has.*pass its path"):
        embed(points(), tmp_path / "out.npy", SKETCH, cluster=client, **OPTIONS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("what", "error", "text"),
    [
        ("version", RuntimeError, "has heatsketch 0, but the client has"),
        ("folder", FileNotFoundError, "does not see the folder of the output"),
        ("source", FileNotFoundError, "does not see the source /"),
    ],
)
@pytest.mark.parametrize(
    "run",
    [
        lambda x, out, client: embed(x, out, SKETCH, cluster=client, **OPTIONS),
        lambda x, out, client: sketch(x, SKETCH, out, cluster=client),
    ],
)
def test_workers_that_see_something_else_are_told(run, what, error, text, client, source, tmp_path):
    def differ():
        tasks.kept = tasks.__version__, State.token, tasks._stamp
        if what == "version":
            tasks.__version__ = "0"
        elif what == "folder":
            State.token = None
        else:
            tasks._stamp = lambda job: None

    def mend():
        tasks.__version__, State.token, tasks._stamp = tasks.kept

    client.run(differ)
    try:
        with pytest.raises(error, match=text):
            run(source, tmp_path / "out.npy", client)
    finally:
        client.run(mend)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_an_error_names_the_block_and_the_others_are_kept(
    client, source, tmp_path, expected, mapped
):
    def fail(own, number):
        if number == 7:
            raise OSError(28, "No space left on device")

    out = tmp_path / "out.npy"
    with spoilt(client, fail), pytest.raises(OSError, match="No space left on device"):
        embed(source, out, SKETCH, cluster=client, **OPTIONS)
    left = len(list(State.of(out).parts.glob("part-*")))
    embed(source, out, SKETCH, resume=True, **OPTIONS)
    assert 7 in mapped
    assert BLOCKS - len(mapped) >= left
    assert out.read_bytes() == expected


@pytest.mark.parametrize("cluster", [False, True])
def test_an_error_within_a_block_says_which(cluster, client, source, tmp_path):
    """A point that no sample holds, so far away that its coordinates cannot be computed."""

    def refuse():
        hs.HeatSketch.kept = hs.HeatSketch.transform

        def transform(self, X):
            if len(X) == ROWS and 70 in set(X[:, 3]):
                raise ArithmeticError("no coordinates")
            return hs.HeatSketch.kept(self, X)

        hs.HeatSketch.transform = transform

    def mend():
        hs.HeatSketch.transform = hs.HeatSketch.kept

    values = points()
    values[7 * ROWS + 5, 3] = 70
    np.save(source, values)
    client.run(refuse) if cluster else refuse()
    try:
        where = client if cluster else None
        with pytest.raises(ArithmeticError, match="no coordinates") as caught:
            embed(source, tmp_path / "out.npy", SKETCH, cluster=where, **OPTIONS)
    finally:
        client.run(mend) if cluster else mend()
    assert f"(in block 7: 100 rows of {source} from 700 on)" in caught.value.__notes__[0]


def test_a_bad_number_is_named_by_its_row(client, source, tmp_path):
    values = points()
    values[7 * ROWS + 5, 2] = np.nan
    np.save(source, values)
    with pytest.raises(ValueError, match=rf"NaN.* first in row {7 * ROWS + 5}, column 'x2'"):
        embed(source, tmp_path / "out.npy", SKETCH, cluster=client, **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_tasks_are_few_and_small(client, source, tmp_path):
    state = State(tmp_path)
    job = tasks.Job(str(source), "x" * 500, None, state, 100)
    assert len(pickle.dumps(job)) < 2000  # 1,000 blocks: 2 MB
    for count in (1, 5, 1000, 10_000):
        cut = list(tasks._tasks(client, list(range(count)), single=False))
        assert [i for run in cut for i in range(*run)] == list(range(count))
        assert len(cut) <= min(count, 2 * 64)


def test_tasks_of_a_run_that_is_gone_write_nothing(tmp_path):
    state = State(tmp_path, ".npy", run="this")
    state.parts.mkdir()
    state.keep_token("this")
    state.keep_part(0, lambda draft: draft.write_text("a"))
    state.keep_token("another")
    with pytest.raises(FileNotFoundError, match="no longer that of the run"):
        state.keep_part(1, lambda draft: draft.write_text("a"))
    assert [path.name for path in state.parts.iterdir()] == ["part-000000.npy"]


def test_threads_catch_their_own_warnings():
    """Two of them, of which the first to begin is the first to end, which ends nothing."""
    filters, both, caught = warnings.filters[:], threading.Barrier(2, timeout=20), {}

    def work(name):
        if name == "second":
            both.wait()
        with caught_warnings() as caught[name]:
            if name == "first":
                both.wait()
            both.wait()
            warnings.warn(name, stacklevel=1)
            both.wait()
            if name == "second":
                both.wait()
            warnings.warn(name, stacklevel=1)
        if name == "first":
            both.wait()

    threads = [threading.Thread(target=work, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, found in caught.items():
        assert [str(warning.message) for warning in found] == [name, name]
    assert warnings.filters == filters
    with pytest.warns(UserWarning, match="outside"):
        warnings.warn("outside", stacklevel=1)


def test_runs_are_of_neighbours():
    assert list(mapping.runs([], 3)) == []
    assert list(mapping.runs([0, 1, 2, 3, 5, 8, 9], 3)) == [(0, 3), (3, 4), (5, 6), (8, 10)]


def test_local_workers_keep_freed_memory_for_the_next_block(client):
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"):
        kept = client.run(os.environ.get, name).values()
        assert all(int(size) >= 2**25 for size in kept)  # Dask's own is 2**16


def test_workers_take_one_thread_and_listen_on_this_machine_alone(client, source, tmp_path):
    def look(own, number):
        from threadpoolctl import threadpool_info

        found = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
        (tmp_path / f"threads-{number}").write_text(json.dumps(found))

    with spoilt(client, look):
        embed(source, tmp_path / "out.npy", SKETCH, cluster=client, **OPTIONS)
    threads = [json.loads(path.read_text()) for path in tmp_path.glob("threads-*")]
    assert len(threads) == BLOCKS
    assert {count for each in threads for count in each} == {1}
    own = psutil.Process()
    workers = list(client.run(os.getpid).values())
    assert len(workers) == 2
    for process in [own, *map(psutil.Process, workers)]:
        listening = [c for c in process.net_connections() if c.status == psutil.CONN_LISTEN]
        assert {c.laddr.ip for c in listening} <= {"127.0.0.1"}


def peak():
    """Return the most memory that a process has held, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs files of Linux")


@linux
@pytest.mark.slow
def test_memory_of_workers_does_not_grow_with_the_file(tmp_path):
    """Of files of 50 and 200 MB, once the 34 MB are held that workers keep for the next block."""
    values = np.random.default_rng(0).standard_normal((200_000, 250), np.float32)
    found = []
    with own_cluster() as client:
        for run, n in enumerate((50_000, 50_000, 200_000)):
            np.save(tmp_path / f"{n}.npy", values[:n])
            where = {"fit_points": 300, "block_rows": 1600, "cluster": client}
            embed(tmp_path / f"{n}.npy", tmp_path / f"out-{run}.npy", SKETCH, **where)
            found.append(client.run(peak))
    for worker, before in found[1].items():
        assert found[2][worker] < 1.1 * before


@linux
@pytest.mark.slow
def test_arrays_that_the_workers_spill_are_mapped(tmp_path):
    """140 MB in two workers that keep 30 MB each in memory."""
    columns, rows, chunks = 500, 2_500, 28

    def made(block_info=None):
        number = block_info[None]["chunk-location"][0]
        return np.random.default_rng(number).standard_normal((rows, columns), np.float32)

    with (
        dask.config.set({"distributed.worker.memory.target": 0.03}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="1GB",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        shape = ((rows,) * chunks, (columns,))
        lazy = da.map_blocks(made, chunks=shape, dtype=np.float32, meta=np.empty((0, 0)))
        held = client.persist(lazy)
        with client.as_current():
            distributed.wait(held)
        done = embed(
            held, tmp_path / "out.npy", SKETCH, fit_points=100, block_rows=1000, cluster=client
        )
        spilled = client.run(lambda dask_worker: len(dask_worker.data.slow))
    assert sum(spilled.values()) > 0
    Y = np.load(done.output, mmap_mode="r")
    for number in (0, 13, chunks - 1):
        X = np.random.default_rng(number).standard_normal((rows, columns), np.float32)
        some = slice(number * rows, number * rows + 200)
        assert np.array_equal(Y[some], done.estimator.transform(X[:200]))
