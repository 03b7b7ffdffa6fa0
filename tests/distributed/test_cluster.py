"""Blocks mapped by workers of Dask: the same bytes as of one process."""

import os
import signal

import dask.array as da
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import heatsketch as hs
from heatsketch import distributed, io
from heatsketch.cli import main
from heatsketch.distributed import Run, drawn, embed
from problems.clusters import OPTIONS, SAMPLE, SKETCH, N, points, warned_of, written

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning"),
]


@pytest.fixture(scope="module")
def client():
    with distributed._client("local:2") as client:
        yield client


@pytest.mark.parametrize("name", ["out.npy", "out.parquet", "out"])
def test_bytes_are_those_of_one_process(name, client, source, tmp_path):
    one, two = tmp_path / f"one-{name}", tmp_path / f"two-{name}"
    ids = [f"p{i}" for i in range(N)]
    if name == "out.parquet":
        source = tmp_path / "x.parquet"
        columns = dict(zip("abcd", points().T, strict=True)) | {"id": ids}
        parquet.write_table(pa.table(columns), source, row_group_size=130)
    done = [
        embed(source, out, SKETCH, cluster=c, **OPTIONS) for out, c in ((one, None), (two, client))
    ]
    assert done[0].describe() == done[1].describe()
    assert written(one) == written(two)
    assert not Run(two).folder.exists()
    if name == "out.parquet":
        assert io.read_table(two).extra["id"].tolist() == ids


def test_the_command_takes_an_address(client, source, tmp_path, expected, capsys):
    out = tmp_path / "out.npy"
    command = ["embed", str(source), "-o", str(out), "--method", "heat-sketch"]
    command += ["--n-components", "3", "--fit-points", "300"]
    assert main([*command, "--cluster", client.scheduler.address]) == 0
    assert "300 of 1,500 points were fitted" in capsys.readouterr().out
    assert out.read_bytes() == expected


def test_a_run_goes_on_with_other_workers_or_none(client, source, tmp_path, expected, stop):
    out = tmp_path / "out.npy"
    stop(5)
    with pytest.raises(InterruptedError):
        embed(source, out, SKETCH, **OPTIONS)
    embed(source, out, SKETCH, cluster=client, resume=True, **OPTIONS)
    assert out.read_bytes() == expected


@pytest.mark.slow  # it starts workers of its own
def test_a_worker_that_is_killed_is_replaced(source, tmp_path, expected):
    with distributed._client("local:2") as client:
        pids = list(client.run(os.getpid).values())
        os.kill(pids[0], signal.SIGKILL)
        done = embed(source, tmp_path / "out.npy", SKETCH, cluster=client, **OPTIONS)
    assert done.output.read_bytes() == expected


def test_far_points_are_warned_of_once(client, tmp_path):
    X = points()
    far = np.setdiff1d(np.arange(N), drawn(N, SAMPLE, 0)[0])[::97]
    X[far] += 1e6
    np.save(tmp_path / "x.npy", X)
    with pytest.warns(hs.ScaleWarning) as caught:
        embed(tmp_path / "x.npy", tmp_path / "o.npy", SKETCH, cluster=client, **OPTIONS)
    warned_of(caught, far)


def test_a_dask_array_is_mapped_lazily_by_the_workers(client, tmp_path):
    model = hs.HeatSketch(3, random_state=0).fit(points()[:SAMPLE])
    array = da.from_array(points(), chunks=(211, 3))
    lazy = model.transform(array)
    assert isinstance(lazy, da.Array)
    assert np.array_equal(client.compute(lazy).result(), model.transform(points()))
    with pytest.raises(ValueError, match=r"workers open a file; .*transform\(X\), which is lazy"):
        embed(array, tmp_path / "out.npy", SKETCH, cluster=client, **OPTIONS)
    assert list(tmp_path.iterdir()) == []
