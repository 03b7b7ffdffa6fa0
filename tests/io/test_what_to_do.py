"""Whatever cannot be read, the error names the file, the reason and what to do."""

import gzip
import re

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import io
from problems.clouds import cloud

X = cloud(30, 4)


def written(path):
    """Write points in the format of a suffix."""
    name = path.name.partition(".")[2]
    if name == "model":
        hs.save_model(hs.classical.PCA(2).fit(X), path)
    elif name == "mtx":
        path.write_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n2 1 1\n")
    elif name == "xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for row in X.tolist():
            book.active.append(row)
        book.save(path)
    else:
        if name == "parquet":
            pytest.importorskip("pyarrow")
        if name == "h5ad":
            pytest.importorskip("h5py")
        source = path.with_name("points.npy")
        np.save(source, X)
        io.write_table(path, X, list("abcd"), io.read_table(source))
    return path.read_bytes()


DAMAGE = {
    "half": lambda content: content[: len(content) // 2],
    "other": lambda content: b"something else\n",
    "noise": lambda content: np.random.default_rng(0).bytes(500),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    "suffix", ["npz", "npy", "parquet", "xlsx", "h5ad", "csv.gz", "mtx", "model"]
)
def test_an_error_of_a_damaged_file_says_what_to_do(tmp_path, suffix, damage):
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(DAMAGE[damage](written(path)))
    read = {"mtx": io.read_graph, "model": hs.load_model}.get(suffix, io.read_table)
    with pytest.raises(ValueError, match=re.escape(str(path))) as refused:
        read(path)
    assert re.search(r"[;,] (save|pass|give) [^;]+\.$", str(refused.value)), refused.value


def test_rows_of_different_lengths_in_a_packed_table(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n5,6,7\n"))
    with pytest.raises(ValueError, match=r"Expected 2 columns, got 3.*; give every row the same"):
        io.read_table(path)


def test_a_damaged_zarr_store_says_what_to_do(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.save(str(tmp_path / "a.zarr"), X)
    for file in (tmp_path / "a.zarr").rglob("*"):
        if file.is_file():
            file.write_bytes(b"{")
    with pytest.raises(ValueError, match=r"a\.zarr cannot be read: .+; save it again, or"):
        io.read_table(tmp_path / "a.zarr")
