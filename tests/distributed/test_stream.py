"""Embedding by blocks: the rows of `transform`, in order, whatever the format or the blocks."""

import subprocess
import sys
import time
from pathlib import Path

import anndata
import numpy as np
import pyarrow as pa
import pytest
import zarr
from pyarrow import parquet

import heatsketch as hs
from heatsketch import distributed
from heatsketch.distributed import Run, assemble, drawn, embed, fit
from heatsketch.io.formats import open_blocks
from heatsketch.io.table import Reading
from problems.clusters import OPTIONS, ROWS, SAMPLE, SKETCH, D, N, points, written

X = points()
pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")


KINDS = ("npy", "fortran", "parquet", "csv", "zarr", "h5ad", "parts", "array")
READING = {"h5ad": {"key": "X_pca"}, "csv": {"decimal": ","}}


def source_of(kind, folder):
    """Write the points in a format; return the path, or an array that is not in memory."""
    path = folder / f"x.{kind}"
    if kind in ("npy", "fortran", "array"):
        path = path.with_suffix(".npy")
        np.save(path, np.asfortranarray(X) if kind == "fortran" else X)
    elif kind == "parquet":
        # Gaps in an id only in some row groups: their types differ.
        ids = [None if i < 600 else f"cell {i}" for i in range(N)]
        table = pa.table({"id": ids} | {f"gene {j}": x for j, x in enumerate(X.T)})
        parquet.write_table(table, path, row_group_size=350)
    elif kind == "csv":
        lines = [";".join(repr(float(x)).replace(".", ",") for x in row) for row in X]
        path.write_text("\n".join(["a;b;c;d", *lines]) + "\n")
    elif kind == "zarr":
        zarr.open(str(path), mode="w", shape=X.shape, chunks=(97, 3), dtype="f4")[:] = X
    elif kind == "h5ad":
        anndata.AnnData(np.zeros((N, 2), np.float32), obsm={"X_pca": X}).write_h5ad(path)
    else:
        path.mkdir()
        for number, part in enumerate(np.array_split(X, 12)):  # part-10 comes after part-2
            np.save(path / f"part-{number}.npy", part)
    return np.load(path, mmap_mode="r") if kind == "array" else path


@pytest.fixture(scope="module")
def mapped():
    """The rows of the whole table, by the model of the sample."""
    return fit(X, SKETCH, fit_points=SAMPLE).transform(X)


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_rows_of_transform_in_order(kind, tmp_path, mapped):
    source, how = source_of(kind, tmp_path), READING.get(kind, {})
    name = "out.parquet" if kind == "parquet" else "out.npy"
    done = embed(source, tmp_path / name, SKETCH, **OPTIONS, **how)
    assert (done.n, done.fit_points) == (N, SAMPLE)
    table = hs.io.read_table(done.output)
    if kind == "csv":  # in double precision
        np.testing.assert_allclose(table.values, mapped, rtol=1e-4, atol=1e-5)
    else:
        assert table.values.dtype == np.float32
        assert np.array_equal(table.values, mapped)
    if kind == "parquet":
        ids = table.extra["id"][[0, 599, 600, N - 1]].tolist()
        assert ids == [None, None, "cell 600", "cell 1499"]
        assert table.metadata["stream"]["fit_points"] == SAMPLE
    assert not Run(done.output).folder.exists()
    for start in (0, 349, 350, 1001, N - 1, N):  # blocks may begin anywhere
        tables = list(open_blocks(source, Reading(**how)).tables(100, start))
        rows = np.concatenate([t.values for t in tables] or [np.empty((0, D))])
        assert np.array_equal(rows, X[start:])
        assert all(len(t.values) == 100 for t in tables[:-1])


def test_rows_do_not_depend_on_the_blocks(tmp_path, mapped):
    for rows in (1, 700, N, 10 * N):
        small = X[:40] if rows == 1 else X
        out = tmp_path / f"{rows}.npy"
        done = embed(small, out, SKETCH, fit_points=SAMPLE, block_rows=rows)
        assert (done.discrepancy is None) == (rows == 1)  # all points are fitted
        whole = mapped if rows > 1 else hs.HeatSketch(3, random_state=0).fit_transform(small)
        np.testing.assert_allclose(np.load(out), whole, rtol=1e-5, atol=1e-7)


@pytest.mark.statistical
def test_samples_are_uniform_and_so_are_their_halves():
    """Counts of 20 rows in 4,000 samples of 6: each within 5.5 standard deviations, 1e-6 in all."""
    trials, n, size = 4000, 20, 6
    counts, halves = np.zeros(n), np.zeros(n)
    for seed in range(trials):
        rows, half, held_out = drawn(n, size, seed)
        assert (np.diff(rows) > 0).all()
        assert len(np.intersect1d(rows, held_out)) == 0
        counts[rows] += 1
        halves[rows[half]] += 1
    for found, share in ((counts, size / n), (halves, size / 2 / n)):
        assert np.abs(found - trials * share).max() < 5.5 * np.sqrt(trials * share * (1 - share))


def test_columns_are_standardised_by_the_sample(tmp_path):
    values = X * np.float32([1, 100, 1, 1])
    done = embed(values, tmp_path / "out.npy", SKETCH, fit_points=SAMPLE, standardize=True)
    rows = drawn(N, SAMPLE, 0)[0]
    scaled = (values - values[rows].mean(axis=0)) / values[rows].std(axis=0)
    Y = done.estimator.transform(scaled.astype(np.float32))
    np.testing.assert_allclose(np.load(done.output), Y, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["out.npy", "out.parquet", "out"])
def test_a_run_that_stopped_goes_on_to_the_same_bytes(name, tmp_path, stop):
    source = source_of("parquet", tmp_path)
    whole, broken = tmp_path / f"whole-{name}", tmp_path / name
    embed(source, whole, SKETCH, **OPTIONS)
    calls = stop(4)
    with pytest.raises(InterruptedError):
        embed(source, broken, SKETCH, **OPTIONS)
    assert not broken.exists()
    with pytest.raises(FileExistsError, match="--resume"):
        embed(source, broken, SKETCH, **OPTIONS)
    embed(source, broken, SKETCH, resume=True, **OPTIONS)
    assert len(calls) == 5 + N // ROWS - 4  # four blocks are not mapped again
    assert written(broken) == written(whole)


@pytest.mark.parametrize("name", ["out.npy", "out"])
def test_a_run_that_stopped_when_its_output_was_there(name, source, tmp_path, monkeypatch, stop):
    """A folder takes the blocks along, so that there are none to map or to put together."""
    out = tmp_path / name

    def assembled_then_stop(*args):
        assemble(*args)
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(distributed, "assemble", assembled_then_stop)
        with pytest.raises(InterruptedError):
            embed(source, out, SKETCH, **OPTIONS)
    whole, calls = written(out), stop(0)
    embed(source, out, SKETCH, resume=True, **OPTIONS)
    assert written(out) == whole
    assert calls == []
    assert not Run(out).folder.exists()


def test_another_run_is_not_gone_on_with(source, tmp_path, stop):
    out = tmp_path / "out.npy"
    stop(0)
    with pytest.raises(InterruptedError):
        embed(source, out, SKETCH, fit_points=SAMPLE)
    with pytest.raises(ValueError, match="time was 8, is 4"):
        embed(source, out, hs.HeatSketch(3, time=4, random_state=0), fit_points=SAMPLE, resume=True)
    with pytest.raises(ValueError, match="fit_points was 300, is 301"):
        embed(source, out, SKETCH, fit_points=301, resume=True)
    np.save(source, X + np.float32(1))
    with pytest.raises(ValueError, match="content was"):
        embed(source, out, SKETCH, fit_points=SAMPLE, resume=True)
    done = embed(source, out, SKETCH, fit_points=SAMPLE, force=True)  # begins again
    assert np.array_equal(np.load(out), done.estimator.transform(X + np.float32(1)))


def test_a_run_that_has_lost_its_model_says_how_to_begin_again(source, tmp_path, stop):
    out = tmp_path / "out.npy"
    stop(1)
    with pytest.raises(InterruptedError):
        embed(source, out, SKETCH, **OPTIONS)
    Run(out).model.unlink()
    with pytest.raises(FileNotFoundError, match=r"fitted\.model is lost.*force=True \(--force\)"):
        embed(source, out, SKETCH, resume=True, **OPTIONS)
    whole = embed(source, tmp_path / "whole.npy", SKETCH, **OPTIONS)
    embed(source, out, SKETCH, force=True, **OPTIONS)
    assert written(out) == written(whole.output)


@pytest.mark.parametrize("name", ["out.npy", "out.parquet", "out"])
def test_a_part_that_was_cut_is_named_and_can_be_mapped_again(name, tmp_path, stop):
    source = source_of("parquet", tmp_path)
    whole, broken = tmp_path / f"whole-{name}", tmp_path / name
    embed(source, whole, SKETCH, **OPTIONS)
    stop(2)
    with pytest.raises(InterruptedError):
        embed(source, broken, SKETCH, **OPTIONS)
    part = Run(broken).part(1)
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(ValueError, match=f"{part.name} cannot be read: .*delete it, and pass res"):
        embed(source, broken, SKETCH, resume=True, **OPTIONS)
    assert not broken.exists()
    part.unlink()
    embed(source, broken, SKETCH, resume=True, **OPTIONS)
    assert written(broken) == written(whole)


_RUN = """
import sys, heatsketch as hs
hs.distributed.embed(
    sys.argv[1], sys.argv[2], hs.HeatSketch(3, random_state=0),
    fit_points=300, block_rows=30, resume=True,
)
"""


def test_a_run_that_is_killed_at_random_goes_on_to_the_same_bytes(source, tmp_path, stop):
    """It has stopped before, so that also what goes on is killed."""
    out, given = tmp_path / "out.npy", {"fit_points": SAMPLE, "block_rows": 30}
    embed(source, tmp_path / "whole.npy", SKETCH, **given)
    moments = np.sort(np.random.default_rng().integers(1, N // 30 - 10, size=2))
    stop(moments[0])
    with pytest.raises(InterruptedError):
        embed(source, out, SKETCH, **given)
    process = subprocess.Popen([sys.executable, "-c", _RUN, str(source), str(out)])
    parts = Path(f"{out}.partial", "parts")
    while process.poll() is None and len(list(parts.glob("part-*"))) < moments[1]:
        time.sleep(0.002)
    process.kill()
    process.wait()
    embed(source, out, SKETCH, resume=True, **given)
    assert out.read_bytes() == (tmp_path / "whole.npy").read_bytes(), moments
    assert not Path(f"{out}.partial").exists()


def test_outputs_that_exist_are_kept(source, tmp_path):
    out = tmp_path / "out.npy"
    out.write_text("mine")
    for given in ({}, {"resume": True}):
        with pytest.raises(FileExistsError, match="--force"):
            embed(source, out, SKETCH, fit_points=SAMPLE, **given)
    assert out.read_text() == "mine"
    assert not Path(f"{out}.partial").exists()


@pytest.mark.parametrize("cluster", ["local:0", "local:-1", "local:x", "local:", "local", "", "4"])
def test_a_cluster_without_workers_is_refused_before_the_fit(cluster, source, tmp_path):
    pytest.importorskip("distributed")
    out = tmp_path / "out.npy"
    with pytest.raises(ValueError, match=f"cluster='{cluster}' .* names no workers; pass local:N"):
        embed(source, out, SKETCH, cluster=cluster, **OPTIONS)
    assert not Run(out).folder.exists()


def test_a_cluster_without_dask_is_refused_before_the_fit(source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    out = tmp_path / "out.npy"
    with pytest.raises(ImportError, match=r'clusters need Dask; pip install "heatsketch\[dask\]"'):
        embed(source, out, SKETCH, cluster="local:2", **OPTIONS)
    assert not Run(out).folder.exists()


def test_parts_that_do_not_match_are_refused(tmp_path):
    parts = source_of("parts", tmp_path)
    np.save(parts / "part-12.npy", X[:5, :2])
    with pytest.raises(ValueError, match="write all parts alike"):
        embed(parts, tmp_path / "out.npy", SKETCH)


_MEASURED = """
import sys
from pathlib import Path
import heatsketch as hs

def peak():  # ru_maxrss is at least that of the process that started this one
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

model = hs.HeatSketch(2, random_state=0)
options = {"fit_points": 500, "block_rows": 4096}
hs.distributed.embed(sys.argv[1], sys.argv[3], model, **options)
before = peak()
hs.distributed.embed(sys.argv[2], sys.argv[4], model, **options)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the files of Linux")
def test_memory_does_not_grow_with_the_file(tmp_path):
    """A file of 96 MB takes at most 24 MB, four blocks, more than one of 24 MB."""
    values = np.random.default_rng(0).standard_normal((60_000, 400), np.float32)
    files = [str(tmp_path / name) for name in ("few.npy", "all.npy", "small.npy", "out.npy")]
    np.save(files[0], values[:15_000])
    np.save(files[1], values)
    command = [sys.executable, "-c", _MEASURED, *files]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(run.stdout) / 1024 < 24
    assert np.load(files[3], mmap_mode="r").shape == (60_000, 2)
