"""AnnData files: points, keys, copies, and what is refused."""

import sys

import numpy as np
import pytest
from scipy import sparse

from heatsketch import io
from problems.tables import saved

h5py = pytest.importorskip("h5py")


@pytest.fixture(autouse=True, params=["child", "here"])
def process(request, monkeypatch):
    """Read in a process of its own, and in this one, as a program without an interpreter does."""
    if request.param == "here":
        monkeypatch.setattr(sys, "frozen", True, raising=False)


# AnnData


@pytest.fixture
def cells(tmp_path):
    anndata = pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")
    obs = pd.DataFrame(
        {
            "depth": [1.5, 2.5, 3.5],
            "type": pd.Categorical(["B", None, "T"]),
            "note": ["x", "y", "z"],
            "batch": pd.array([1, None, 2], dtype="Int64"),
        },
        index=pd.Index(["c1", "c2", "c3"], name="cell"),
    )
    X = sparse.csr_matrix(np.array([[0, 1], [2, 0], [0, 3]], dtype=np.float32))
    data = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=["g1", "g2"]))
    data.obsm["X_pca"] = np.arange(9.0).reshape(3, 3)
    data.layers["counts"] = X.tocsc() * 2
    data.layers["dense"] = X.toarray()
    data.uns["note"] = "kept"
    path = tmp_path / "cells.h5ad"
    data.write_h5ad(path)
    return path


def test_h5ad_gives_points_genes_and_obs(cells):
    table = io.read_table(cells)
    np.testing.assert_array_equal(table.values.toarray(), [[0, 1], [2, 0], [0, 3]])
    assert table.values.dtype == np.float32
    assert table.columns == ("g1", "g2")
    assert {name: column.tolist() for name, column in table.extra.items()} == {
        "cell": ["c1", "c2", "c3"],
        "depth": [1.5, 2.5, 3.5],
        "type": ["B", None, "T"],
        "note": ["x", "y", "z"],
        "batch": [1, None, 2],
    }
    assert table.label == "type"
    assert io.read_table(cells, label="depth").label == "depth"


@pytest.mark.parametrize(
    ("key", "want"),
    [
        ("obsm/X_pca", np.arange(9).reshape(3, 3)),
        ("X_pca", np.arange(9).reshape(3, 3)),
        ("layers/counts", [[0, 2], [4, 0], [0, 6]]),
        ("dense", [[0, 1], [2, 0], [0, 3]]),
    ],
)
def test_h5ad_key_chooses(cells, key, want):
    values = io.read_table(cells, key=key).values
    values = values.toarray() if sparse.issparse(values) else values
    np.testing.assert_array_equal(values, want)


@pytest.mark.parametrize("key", ["obsm/counts", "umap", "uns/note", "obsm/../X"])
def test_h5ad_missing_key_lists_what_is_there(cells, key):
    with pytest.raises(ValueError, match="obsm: X_pca; layers: counts, dense"):
        io.read_table(cells, key=key)


def test_h5ad_copy_adds_the_embedding_and_touches_nothing_else(cells, tmp_path):
    anndata = pytest.importorskip("anndata")
    table, Y = io.read_table(cells), np.arange(6, dtype=np.float32).reshape(3, 2)
    io.write_table(tmp_path / "out.h5ad", Y, ["a", "b"], table, key="obsm/X_mine")
    before, after = anndata.read_h5ad(cells), anndata.read_h5ad(tmp_path / "out.h5ad")
    np.testing.assert_array_equal(after.obsm["X_mine"], Y)
    assert after.obsm["X_mine"].dtype == np.float32
    assert "X_mine" not in before.obsm
    assert before.obs.equals(after.obs)
    assert (before.X != after.X).nnz == 0
    assert set(after.layers) == set(before.layers)
    assert after.uns["note"] == "kept"
    again = io.read_table(tmp_path / "out.h5ad")
    with pytest.raises(FileExistsError, match=r"out.h5ad has an entry 'X_mine'.*--force"):
        io.write_table(tmp_path / "twice.h5ad", Y + 1, ["a", "b"], again, key="X_mine")
    assert not (tmp_path / "twice.h5ad").exists()
    io.write_table(tmp_path / "twice.h5ad", Y + 1, ["a", "b"], again, key="X_mine", force=True)
    np.testing.assert_array_equal(
        io.read_table(tmp_path / "twice.h5ad", key="X_mine").values, Y + 1
    )


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_new_h5ad_is_read_by_anndata(tmp_path, kind):
    anndata = pytest.importorskip("anndata")
    values = np.array([[0, 1.5], [2, 0], [0, 3]])
    words = np.array(["B", None, "B"], object)
    extra = {"id": np.array([3, 1, 2]), "kind": words, "age": np.array([1, 2, 3], np.int8)}
    table = io.Table(kind(values), ("g1", "g2"), extra, "kind", "made up")
    io.write_table(tmp_path / "t.h5ad", np.eye(3), ["a", "b", "c"], table)
    data = anndata.read_h5ad(tmp_path / "t.h5ad")
    dense = data.X.toarray() if sparse.issparse(data.X) else data.X
    np.testing.assert_array_equal(dense, values)
    np.testing.assert_array_equal(data.obsm["X_heatsketch"], np.eye(3))
    assert data.var_names.tolist() == ["g1", "g2"]
    assert data.obs_names.tolist() == ["3", "1", "2"]
    assert data.obs["age"].dtype == np.int8
    assert data.obs["kind"].isna().tolist() == [False, True, False]
    back = io.read_table(tmp_path / "t.h5ad")
    assert (back.label, back.extra["kind"].tolist()) == ("kind", ["B", None, "B"])
    data.write_h5ad(tmp_path / "again.h5ad")


def hostile(path, change):
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def test_h5ad_that_points_elsewhere_is_refused(cells, tmp_path):
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["data"] = np.eye(3)
        file.create_group("group")["data"] = np.eye(3)
    layout = h5py.VirtualLayout((3, 3), float)
    layout[:] = h5py.VirtualSource(str(tmp_path / "secret.h5"), "data", (3, 3))
    raw = [(str(tmp_path / "secret.h5"), 0, 72)]
    changes = {
        "link": lambda f: f["obsm"].__setitem__("far", h5py.ExternalLink("secret.h5", "data")),
        "deep": lambda f: f.create_group("uns/a/b").__setitem__(
            "far", h5py.ExternalLink("secret.h5", "group")
        ),
        "virtual": lambda f: f["obsm"].create_virtual_dataset("far", layout),
        "raw": lambda f: f["obsm"].create_dataset("far", (3, 3), "f8", external=raw),
    }
    for name, change in changes.items():
        path = tmp_path / f"{name}.h5ad"
        path.write_bytes(cells.read_bytes())
        with pytest.raises(ValueError, match="far in another file"):
            io.read_table(hostile(path, change))


def test_h5ad_with_a_ring_of_groups_is_read(cells):
    hostile(cells, lambda file: file["uns"].__setitem__("ring", file["/"]))
    assert io.read_table(cells).values.shape == (3, 2)


def bad_codes(file):
    file["obs/type/codes"][...] = [0, 1, 99]


def huge(file):
    del file["X"]
    file.create_dataset("X", (10**8, 10**4), "f8", chunks=(1000, 1000))


def wild(file):
    file["X/indices"][...] = [0, 10**6, 1]


def other_length(file):
    del file["obs/depth"]
    file["obs/depth"] = [1.0, 2.0]


def no_values(file):
    del file["X"]
    file.create_dataset("X", data=h5py.Empty("f8"))


def packed_by_a_filter_that_is_missing(file):
    del file["X"]
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((3, 2))
    plan.set_filter(32_100, h5py.h5z.FLAG_OPTIONAL, ())  # of the numbers that are not registered
    space = h5py.h5s.create_simple((3, 2))
    h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, space, plan)


def chunks_beyond_the_file(file):
    del file["X"]
    file.create_dataset("X", (3, 10**5), "i1", chunks=(1, 1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_length, "is damaged: X does not fit depth"),
        (no_values, "X in .* is not an array; choose another key"),
        (packed_by_a_filter_that_is_missing, "compressed by the filter 32100, .*save it with gzip"),
        (chunks_beyond_the_file, "claims 300,000 chunks in 0 bytes; save it uncompressed"),
        (bad_codes, "codes that no category"),
        (huge, "would unpack"),
        (wild, "damaged sparse matrix"),
        (lambda file: file.pop("X"), "no array 'X'.*obsm: X_pca"),
        (lambda file: file["obs"].attrs.pop("_index"), "AnnData format"),
        (lambda file: file["obs"].pop("depth"), "cannot be read"),
        (lambda file: file["X"].pop("data"), "cannot be read"),
        (lambda file: file["X"].attrs.pop("shape"), "cannot be read"),
        (lambda file: file["X"].attrs.__setitem__("shape", [2, 2]), "damaged"),
    ],
)
def test_damaged_h5ad_is_explained(cells, change, words):
    with pytest.raises(ValueError, match=words):
        io.read_table(hostile(cells, change))


def test_a_copy_has_the_points_of_the_file(cells, tmp_path):
    gap = hostile(cells, lambda file: file["obsm/X_pca"].__setitem__((0, 0), np.nan))
    table = io.read_table(gap, key="X_pca", missing="drop")
    with pytest.raises(ValueError, match=r"\.h5ad has 3 points but the embedding 2 rows"):
        io.write_table(tmp_path / "out.h5ad", np.eye(2), ["a", "b"], table)


def test_no_hdf5_is_explained(tmp_path):
    with pytest.raises(ValueError, match=r"t\.h5ad cannot be read"):
        io.read_table(saved(tmp_path, "not HDF5", "t.h5ad"))


def test_the_format_before_anndata_0_7_is_named(tmp_path):
    path = tmp_path / "old.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.ones((3, 2))
        file["obs"] = np.array([(b"a",), (b"b",), (b"c",)], dtype=[("index", "S1")])
        file["obsm"] = np.zeros(3, dtype=[("X_pca", "<f4", (2,))])
    for key in (None, "X_pca"):
        with pytest.raises(
            ValueError, match=r"not in the AnnData format .* since 0\.7; .*write_h5ad"
        ):
            io.read_table(path, key=key)
    with pytest.raises(ValueError, match="not in the AnnData format"):
        io.h5ad.has_entry(path, "X_pca")
