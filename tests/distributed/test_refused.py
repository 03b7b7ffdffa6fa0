"""What the whole graph and streams refuse, and their certificate."""

import sys

import numpy as np
import pytest
from scipy import sparse

import heatsketch as hs
from heatsketch.distributed import embed, sketch, whole, whole_graph
from heatsketch.io.reading import Reading
from heatsketch.io.sources import open_blocks
from problems.clouds import cloud

X = cloud(40, 3)
SKETCH = hs.HeatSketch(2, random_state=0)


@pytest.mark.parametrize("reading", [{"missing": "drop"}, {"standardize": True}])
def test_tiles_have_no_gaps_and_their_own_units(reading):
    with pytest.raises(ValueError, match="points in tiles may have no gaps and are not standard"):
        sketch(X, SKETCH, **reading)


def test_tiles_are_dense():
    points = open_blocks(sparse.csr_matrix(X), Reading())
    with pytest.raises(ValueError, match=r"sparse, but tiles have dense ones; pass X\.toarray"):
        whole_graph._block(points, Reading(), 0, 10)
    with pytest.raises(ValueError, match=r"sparse, but tiles have dense ones; pass X\.toarray"):
        sketch(sparse.csr_matrix(X), SKETCH)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda x: x.map_blocks(sparse.csr_matrix), r"sparse, but tiles .* pass X\.toarray"),
        (lambda x: x[:, 0], r"has shape \(40,\), but points are rows; pass \(n, d\)"),
        (lambda x: x[x[:, 0] > 0], r"call compute_chunk_sizes\(\) on it first"),
        (
            lambda x: x.map_blocks(lambda block: np.where(block == X[30, 1], np.nan, block)),
            "row 30, column 1; drop or impute them",
        ),
    ],
)
def test_dask_arrays_that_tiles_cannot_take(made, said):
    array = pytest.importorskip("dask.array").from_array(X, chunks=(25, 3))
    with pytest.raises(ValueError, match=said):
        sketch(made(array), SKETCH)


def test_an_array_of_this_process_is_not_there_for_workers():
    pytest.importorskip("dask")
    with pytest.raises(ValueError, match="source is an array of type ndarray, which workers can"):
        whole_graph._source_of(X, Reading(), "euclidean", object())


def test_tiles_need_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match="tiles need Dask"), whole_graph._scheduler(None):
        pass


def test_the_root_of_the_measure_is_certified():
    A = hs.Diffusion.from_affinity(np.exp(-(((X[:, None] - X) ** 2).sum(axis=2))))
    assert whole._measure_error(A.operator, A.measure) < 1e-12
    with pytest.raises(hs.CertificateError, match=r"A √π = √π is off by"):
        whole._measure_error(A.operator, np.linspace(1, 2, 40) / 60)


def test_a_source_without_rows(tmp_path):
    np.save(tmp_path / "x.npy", np.empty((0, 3)))
    with pytest.raises(ValueError, match=r"x\.npy has no rows; pass at least 2 points"):
        embed(tmp_path / "x.npy", tmp_path / "o.npy", SKETCH)


def test_columns_of_cells_of_another_length(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)  # as without an interpreter to start
    h5py = pytest.importorskip("h5py")
    data = pytest.importorskip("anndata").AnnData(X)
    data.obs["depth"] = np.arange(40.0)
    data.write_h5ad(tmp_path / "x.h5ad")
    with h5py.File(tmp_path / "x.h5ad", "r+") as file:
        del file["obs/depth"]
        file["obs/depth"] = [1.0, 2.0]
    with pytest.raises(ValueError, match="its 40 points do not fit column depth of obs"):
        list(open_blocks(tmp_path / "x.h5ad", Reading()).tables(10))
