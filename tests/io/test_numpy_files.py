"""NumPy files: .npy and .npz, dense and sparse, hostile and damaged."""

import struct

import numpy as np
import pytest
from scipy import sparse

from heatsketch import io

# NumPy files


@pytest.mark.parametrize("dtype", ["f4", ">f4", "f8", ">f8", "f2", "u1", "i8", "?"])
def test_npy_becomes_native_floats(tmp_path, dtype):
    X = np.array([[0, 1], [1, 1], [0, 0]], dtype=dtype)
    np.save(tmp_path / "t.npy", X)
    values = io.read_table(tmp_path / "t.npy").values
    assert values.dtype == np.dtype("f4" if dtype in ("f2", "f4", ">f4") else "f8")
    np.testing.assert_array_equal(values, X)
    assert type(values) is np.ndarray  # of which estimators take no sample
    if dtype in ("f4", "f8"):  # mapped, not loaded
        assert isinstance(values.base, np.memmap)
        assert not values.flags.writeable


def npy(shape, descr="<f8", content=b""):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


def test_npz_prefers_x_and_passes_vectors_through(tmp_path):
    X = np.arange(6.0).reshape(3, 2)
    np.savez(
        tmp_path / "t.npz",
        Z=X + 1,
        X=X,
        y=[1, 2, 1],
        names=["a", "b", "c"],
        other=[1, 2],
        columns=["p", "q"],
        info=np.array({"a": 1}, dtype=object),
    )
    table = io.read_table(tmp_path / "t.npz")
    np.testing.assert_array_equal(table.values, X)
    assert table.columns == ("p", "q")
    assert {name: column.tolist() for name, column in table.extra.items()} == {
        "y": [1, 2, 1],
        "names": ["a", "b", "c"],
    }
    np.testing.assert_array_equal(io.read_table(tmp_path / "t.npz", key="Z").values, X + 1)
    with pytest.raises(ValueError, match="no array 'Q'; choose from Z, X"):
        io.read_table(tmp_path / "t.npz", key="Q")


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_sparse_npz_is_read_as_csr(tmp_path, kind, dtype):
    X = np.array([[0, 2, 0], [1, 0, 0]], dtype=dtype)
    sparse.save_npz(tmp_path / "t.npz", kind(X))
    values = io.read_table(tmp_path / "t.npz").values
    assert values.format == "csr"
    assert values.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_array_equal(values.toarray(), X)


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_every_format_that_scipy_saves_is_read(tmp_path, form, kind):
    n = 40
    ring = sparse.diags([1, 2, 3], [-1, 0, 2], shape=(n, 6), format="csr")
    ring[0, 5] = 7
    sparse.save_npz(tmp_path / "t.npz", getattr(sparse, f"{form}_{kind}")(ring))
    table = io.read_table(tmp_path / "t.npz")
    assert table.values.format == "csr"
    np.testing.assert_array_equal(table.values.toarray(), ring.toarray())


def test_entries_of_coo_that_repeat_do_not_overflow(tmp_path):
    entries = np.array([200, 100], dtype=np.uint8), (np.zeros(2, int), np.zeros(2, int))
    sparse.save_npz(tmp_path / "t.npz", sparse.coo_matrix(entries, shape=(2, 2)))
    assert io.read_table(tmp_path / "t.npz").values[0, 0] == 300


def test_arrays_with_the_names_of_a_matrix_are_arrays(tmp_path):
    X = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "t.npz", data=X, format=np.array(["a", "b", "c"]), shape=[3, 2])
    np.testing.assert_array_equal(io.read_table(tmp_path / "t.npz").values, X)


WILD = [
    {"indices": [0, 999]},
    {"indices": [0, -1]},
    {"indptr": [0, 5, 2]},
    {"data": [1.0]},
    {"data": ["a", "b"]},
    {"shape": [10**15, 10**15]},
    {"format": "evil"},
]
PARTS = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2], "shape": [2, 2]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npy((10**6, 100)), "mmap length is greater"),
        (b"", "cannot be read"),
        (npy("__import__('os').getcwd()"), "malformed node"),
        (npy((1, 1), "|O", b"cos\nsystem\n(S'x'\ntR."), "Python objects"),
        (npy((1, 1), "<U2", b"\0" * 8), "dtype <U2"),
        (npy((1, 1), "<c8", b"\0" * 8), "dtype complex64"),
        (npy((2,), content=b"\0" * 16), r"shape \(2,\)"),
        ({"P": np.eye(2), "Q": np.eye(2)}, "holds P, Q, none of them"),
        ({"v": np.zeros(2)}, r"holds v \(2,\), none of them"),
        ({"X": np.zeros(3)}, r"X in .* has shape \(3,\)"),
        ({"X": np.eye(2), "label": np.array([1, "a"], object)}, "label: Object arrays"),
        ({"X": np.array([["a", "b"]])}, "X in .* has dtype"),
        *(({"format": form} | PARTS | wild, "") for form in ("csr", "csc") for wild in WILD),
        *(({"format": "dia", "offsets": [0]} | PARTS | wild, "") for wild in (WILD[4], WILD[5])),
        ({"format": "dia", "offsets": [0, 1, 2]} | PARTS, ""),
        *(({"format": "coo"} | PARTS | {"row": [0, row], "col": [0, 1]}, "") for row in (-1, 2)),
        ({"format": "coo", "data": [1.0], "coords": [[1], [1], [1]], "shape": [2, 2, 2]}, ""),
        ({"format": "bsr"} | PARTS | {"data": np.ones((2, 3, 3))}, ""),
    ],
)
def test_hostile_files_are_refused(tmp_path, content, words):
    path = tmp_path / ("t.npy" if isinstance(content, bytes) else "t.npz")
    path.write_bytes(content) if isinstance(content, bytes) else np.savez(path, **content)
    with pytest.raises(ValueError, match=words) as caught:
        io.read_table(path)
    assert path.name in str(caught.value)
