"""Blocks mapped by workers of Dask: the same bytes, whatever becomes of the workers."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.distributed import embed

distributed = pytest.importorskip("dask.distributed")

N, D, SAMPLE, ROWS = 1500, 4, 300, 128
SKETCH = hs.HeatSketch(3, random_state=0)
OPTIONS = {"fit_points": SAMPLE, "block_rows": ROWS}
pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")


@pytest.fixture(scope="module")
def client():
    from heatsketch.distributed.cluster import connect

    with connect("local:2") as client:
        yield client


@pytest.fixture
def source(tmp_path):
    """A curve and a cluster in a file, in no order."""
    rng = np.random.default_rng(5)
    t = rng.uniform(0, 6, N)
    X = np.stack([np.cos(t), np.sin(2 * t), t, 0 * t], axis=1) + 0.1 * rng.standard_normal((N, D))
    X[rng.random(N) < 0.3] += [5, 0, 0, 3]
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    return tmp_path / "x.npy"


@pytest.mark.parametrize("rows", [N, N // 2 - 1, 128, 1499 // 7, N - 1])
def test_bytes_are_those_of_one_process(rows, client, source, tmp_path):
    options = {"fit_points": SAMPLE, "block_rows": rows}
    outputs = [tmp_path / "one.npy", tmp_path / "two.npy"]
    for out, cluster in zip(outputs, (None, client), strict=True):
        embed(source, out, SKETCH, cluster=cluster, **options)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
