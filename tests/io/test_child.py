"""What a file does to the process that reads it stays there."""

import gzip
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from heatsketch import io
from heatsketch.cli import main
from heatsketch.io.child import from_child
from heatsketch.io.hdf5 import gathered, slabs

posix = pytest.mark.skipif(os.name != "posix", reason="limits and signals are those of POSIX")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "points.h5ad"
    table = io.Table(np.eye(4), tuple("abcd"), {}, None, "made up")
    io.write_table(path, np.eye(4), list("wxyz"), table)
    return path


def test_what_a_function_yields_arrives(path):
    assert list(from_child(path, range, 5)) == [0, 1, 2, 3, 4]


def test_an_error_is_that_of_the_function(path):
    with pytest.raises(ValueError, match="invalid literal for int"):
        list(from_child(path, int, "seven"))


@posix
def test_death_is_an_error_that_names_the_file(path):
    with pytest.raises(ValueError, match=r"points\.h5ad cannot be read.*SIGABRT.*damaged"):
        list(from_child(path, os.abort))


@posix
@pytest.mark.skipif(sys.platform != "linux", reason="its memory is not limited")
def test_memory_beyond_that_of_the_file_is_refused(path):
    with pytest.raises(ValueError, match=r"points\.h5ad cannot be read.*memory"):
        list(from_child(path, bytearray, 2**36))


def test_a_reader_that_stops_early_leaves_no_process(path):
    items = from_child(path, range, 10**9)
    assert next(items) == 0
    start = time.monotonic()
    items.close()  # waits for the process, which would run for minutes
    assert time.monotonic() - start < 30


@posix
def test_a_crash_within_hdf5_is_an_error_of_the_command(path, tmp_path, monkeypatch, capsys):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "h5py.py").write_text("import os\nos.abort()\n")
    monkeypatch.syspath_prepend(tmp_path / "broken")
    with pytest.raises(ValueError, match="SIGABRT"):
        io.read_table(path)
    assert main(["embed", str(path), "-o", str(tmp_path / "out.npy")]) == 1
    assert "points.h5ad cannot be read: it ended the process" in capsys.readouterr().err
    assert not (tmp_path / "out.npy").exists()


def test_the_file_that_crashed_hdf5_is_refused(tmp_path):
    # Case 1305 of the fuzzer: a segmentation fault of HDF5 1.14 on Linux, elsewhere only damage.
    path = tmp_path / "crash.h5ad"
    path.write_bytes(gzip.decompress(Path(__file__).with_name("crash.h5ad.gz").read_bytes()))
    with pytest.raises(ValueError, match=r"crash\.h5ad"):
        io.read_table(path)


@pytest.mark.parametrize("shape", [(), (0,), (7,), (5, 0), (1000, 3), (4, 3, 2)])
@pytest.mark.parametrize("chunks", [None, True])
def test_slabs_put_together_are_the_array(tmp_path, shape, chunks, monkeypatch):
    h5py = pytest.importorskip("h5py")
    monkeypatch.setattr("heatsketch.io.hdf5._SLAB_BYTES", 256)
    want = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    if chunks and 0 in (*shape, len(shape)):
        return
    with h5py.File(tmp_path / "a.h5", "w") as file:
        node = file.create_dataset("a", data=want, chunks=chunks)
        got = gathered(slabs(node), node.shape, node.dtype)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.create_dataset("layers/a", (4, 2**26), "i1", chunks=(1, 1)), "chunks"),
        (
            lambda f: f.create_dataset("layers/a", (4, 4), "f4", chunks=(4, 4), maxshape=(4, 9)),
            None,
        ),
        (lambda f: f.create_dataset("layers/a", (4, 4), dtype="S5"), "real numbers"),
    ],
)
def test_storage_is_looked_at_before_data_are_read(path, change, words):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "r+") as file:
        if "layers" not in file:
            file.create_group("layers")
        change(file)
    if words is None:
        assert io.read_table(path, key="layers/a").values.shape == (4, 4)
        return
    with pytest.raises(ValueError, match=words):
        io.read_table(path, key="layers/a")


def test_a_filter_that_is_not_installed_is_named(path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "r+") as file:
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((4, 4))
        plan.set_filter(32_099, h5py.h5z.FLAG_OPTIONAL, (1,))
        space = h5py.h5s.create_simple((4, 4))
        h5py.h5d.create(file["layers"].id, b"a", h5py.h5t.NATIVE_DOUBLE, space, plan)
    with pytest.raises(ValueError, match="filter 32099, which is not installed"):
        io.read_table(path, key="layers/a")
