"""Sparse points of a damaged file are refused alike, whatever format holds them."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from heatsketch import io
from heatsketch.io.formats import open_blocks
from heatsketch.io.reading import Reading

N, D = 12, 5


def row_pointers_beyond_the_entries(parts):
    parts["indptr"][-1] = 1000


def a_column_beyond_the_last(parts):
    parts["indices"][0] = D


def a_negative_column(parts):
    parts["indices"][3] = -1


def row_pointers_that_go_back(parts):
    parts["indptr"][2] = parts["indptr"][1] - 1


def as_it_was(parts):
    """Leave the file as it is."""


HARMS = (
    row_pointers_beyond_the_entries,
    a_column_beyond_the_last,
    a_negative_column,
    row_pointers_that_go_back,
)
MATRIX = sparse.random(N, D, 0.4, format="csr", random_state=0)


def save_npz(path, harm):
    parts = {name: getattr(MATRIX, name).copy() for name in ("data", "indices", "indptr")}
    harm(parts)
    np.savez(path, **parts, shape=MATRIX.shape, format=b"csr")


def save_h5ad(path, harm):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("anndata").AnnData(MATRIX).write_h5ad(path)
    with h5py.File(path, "r+") as file:
        harm(file["X"])


def save_zarr(path, harm):
    zarr = pytest.importorskip("zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("anndata").AnnData(MATRIX).write_zarr(path)
    harm(zarr.open(str(path), mode="r+")["X"])


FORMATS = {"npz": save_npz, "h5ad": save_h5ad, "zarr": save_zarr}


@pytest.mark.parametrize("form", FORMATS)
def test_whole_sparse_points_are_read(form, tmp_path):
    FORMATS[form](tmp_path / f"x.{form}", as_it_was)
    given = io.read_table(tmp_path / f"x.{form}").values
    np.testing.assert_array_equal(given.toarray(), MATRIX.toarray())


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_sparse_matrix_is_refused_by_the_name_of_its_file(form, harm, tmp_path):
    FORMATS[form](tmp_path / f"x.{form}", harm)
    with pytest.raises(ValueError, match=rf"x\.{form} cannot be read: \w.*; save it again"):
        io.read_table(tmp_path / f"x.{form}")


def without_the_last_row(parts):
    pointers = parts["indptr"][:-1]
    del parts["indptr"]
    parts["indptr"] = pointers


def test_by_blocks_too(tmp_path):
    save_h5ad(tmp_path / "x.h5ad", without_the_last_row)
    with pytest.raises(ValueError, match=r"x\.h5ad .*; save it again"):
        list(open_blocks(tmp_path / "x.h5ad", Reading()).tables(5))
