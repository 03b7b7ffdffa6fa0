"""AnnData files: points, keys, copies, and what is refused."""

import warnings
from dataclasses import replace

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from heatsketch import io
from heatsketch.io.formats import open_blocks
from heatsketch.io.table import Reading


@pytest.fixture
def cells(tmp_path):
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


def test_h5ad_key_chooses(cells):
    counts, components = np.array([[0, 2], [4, 0], [0, 6]]), np.arange(9).reshape(3, 3)
    np.testing.assert_array_equal(
        io.read_table(cells, key="layers/counts").values.toarray(), counts
    )
    np.testing.assert_array_equal(io.read_table(cells, key="dense").values, counts / 2)
    for key in ("obsm/X_pca", "X_pca"):
        np.testing.assert_array_equal(io.read_table(cells, key=key).values, components)


@pytest.mark.parametrize("key", ["obsm/counts", "umap", "uns/note", "obsm/../X"])
def test_h5ad_missing_key_lists_what_is_there(cells, key):
    with pytest.raises(ValueError, match="choose from X, obsm/X_pca, layers/counts, layers/dense"):
        io.read_table(cells, key=key)


def test_h5ad_features_are_no_ids_and_no_labels(cells):
    name = io.read_table(cells).columns[0]
    for choice in ({"label": name}, {"ids": name}):
        with pytest.raises(ValueError, match=f"{name!r} of .* is a feature, and no id or lab"):
            io.read_table(cells, **choice)


def test_h5ad_copy_adds_embedding_and_columns_and_touches_nothing_else(cells, tmp_path):
    table, Y = io.read_table(cells), np.arange(6, dtype=np.float32).reshape(3, 2)
    late = {"heat_pseudotime": np.array([0, 0.5, np.inf])}
    more = replace(table, extra=table.extra | late)
    io.write_table(tmp_path / "out.h5ad", Y, ["a", "b"], more, key="obsm/X_mine")
    before, after = anndata.read_h5ad(cells), anndata.read_h5ad(tmp_path / "out.h5ad")
    np.testing.assert_array_equal(after.obsm["X_mine"], Y)
    assert after.obsm["X_mine"].dtype == np.float32
    assert "X_mine" not in before.obsm
    assert after.obs["heat_pseudotime"].tolist() == [0, 0.5, np.inf]
    assert before.obs.equals(after.obs.drop(columns="heat_pseudotime"))
    assert (before.X != after.X).nnz == 0
    assert set(after.layers) == set(before.layers)
    assert after.uns["note"] == "kept"
    again, twice = io.read_table(tmp_path / "out.h5ad"), tmp_path / "twice.h5ad"
    with pytest.raises(FileExistsError, match=r"out.h5ad has an entry 'X_mine'.*--force"):
        io.write_table(twice, Y + 1, ["a", "b"], again, key="X_mine")
    assert not twice.exists()
    io.write_table(twice, Y + 1, ["a", "b"], again, key="X_mine", force=True)
    np.testing.assert_array_equal(io.read_table(twice, key="X_mine").values, Y + 1)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_new_h5ad_is_read_by_anndata(tmp_path, kind):
    values = np.array([[0, 1.5], [2, 0], [0, 3]])
    words = np.array(["B", None, "B"], object)
    extra = {"id": np.array([3, 1, 2]), "kind": words, "age": np.array([1, 2, 3], np.int8)}
    extra["empty"] = np.full(3, None)
    table = io.Table(kind(values), ("g1", "g2"), extra, "kind", "made up")
    io.write_table(tmp_path / "t.h5ad", np.eye(3), ["a", "b", "c"], table)
    data = anndata.read_h5ad(tmp_path / "t.h5ad")
    dense = data.X.toarray() if sparse.issparse(data.X) else data.X
    np.testing.assert_array_equal(dense, values)
    np.testing.assert_array_equal(data.obsm["X_heat"], np.eye(3))
    assert data.var_names.tolist() == ["g1", "g2"]
    assert data.obs_names.tolist() == ["3", "1", "2"]
    assert data.obs["age"].dtype == np.int8
    assert data.obs["kind"].isna().tolist() == [False, True, False]
    back = io.read_table(tmp_path / "t.h5ad")
    assert (back.label, back.extra["kind"].tolist()) == ("kind", ["B", None, "B"])
    assert back.extra["empty"].tolist() == [None] * 3
    data.write_h5ad(tmp_path / "again.h5ad")


@pytest.mark.parametrize("names", [["r1", "r2", "r3"], ["r1", "r1", None]])
def test_row_names_without_a_name_are_kept(tmp_path, names):
    """As the first column of a table of R."""
    table = io.Table(np.eye(3), ("a", "b", "c"), {"": np.array(names, object)}, None, "made up")
    io.write_table(tmp_path / "t.h5ad", np.eye(3), list("uvw"), table)
    data = anndata.read_h5ad(tmp_path / "t.h5ad")
    if None in names:
        assert data.obs["rownames"].tolist()[:2] == names[:2]
    else:
        assert data.obs_names.tolist() == names


def replaced(path, place, content):
    with h5py.File(path, "r+") as file:
        del file[place]
        if content is not None:
            file[place] = content
    return path


@pytest.mark.parametrize(
    ("place", "content", "words"),
    [
        ("obs/depth", [1.0, 2.0], "cannot be read: .*; save it again"),
        ("obs/type/codes", [0, 1, 99], "cannot be read: .*; save it again"),
        ("X/indices", [0, 10**6, 1], "cannot be read: .*; save it again"),
        ("X/indptr", [0, 0, 0], "cannot be read"),
        ("X/data", None, "cannot be read"),
        ("X", [["a", "b"]] * 3, "X in .* has dtype object; pass real numbers"),
        ("X", np.eye(2), "damaged: it has 2 points but 3 rows in obs"),
    ],
)
def test_damaged_h5ad_is_explained_read_whole_and_by_blocks(cells, place, content, words):
    path = replaced(cells, place, content)
    with pytest.raises(ValueError, match=words):
        io.read_table(path)
    with pytest.raises(ValueError, match=words):
        list(open_blocks(path, Reading()).tables(2))


def test_a_copy_has_the_points_of_the_file(cells, tmp_path):
    gap = replaced(cells, "obsm/X_pca", [[np.nan] * 3, [1.0] * 3, [2.0] * 3])
    table = io.read_table(gap, key="X_pca", missing="drop")
    with pytest.raises(ValueError, match=r"\.h5ad has 3 points but the embedding 2 rows"):
        io.write_table(tmp_path / "out.h5ad", np.eye(2), ["a", "b"], table)


def test_the_format_before_anndata_0_7_is_refused_with_the_way_to_the_present_one(tmp_path):
    path = tmp_path / "old.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.eye(3)
        file["obs"] = np.array([(b"a",), (b"b",), (b"c",)], dtype=[("index", "S1")])
        file["var"] = np.array([(b"g%d" % j,) for j in range(3)], dtype=[("index", "S3")])
    for read in (io.read_table, lambda path: open_blocks(path, Reading())):
        with pytest.raises(ValueError, match=r"before anndata 0\.7; .*read_h5ad\(path\)"):
            read(path)
    anndata.read_h5ad(path).write_h5ad(path)
    np.testing.assert_array_equal(io.read_table(path).values, np.eye(3))


@pytest.mark.parametrize("form", ["h5ad", "zarr"])
@pytest.mark.filterwarnings("ignore:Writing zarr v2")
def test_the_array_is_the_one_that_scanpy_searches_neighbours_in(form, tmp_path):
    X = np.random.default_rng(0).normal(size=(9, 60))
    many, few = anndata.AnnData(X), anndata.AnnData(X[:, :50].copy())
    bare = many.copy()
    for data in (many, few):
        data.obsm["X_pca"] = X[:, :4].copy()
    for name, data in (("many", many), ("few", few), ("bare", bare)):
        getattr(data, f"write_{form}")(tmp_path / f"{name}.{form}")

    def read(name, key=None):
        table = io.read_table(tmp_path / f"{name}.{form}", key=key)
        (block,) = open_blocks(tmp_path / f"{name}.{form}", Reading(key=key)).tables(10)
        np.testing.assert_array_equal(block.values, table.values)
        return table.values

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        np.testing.assert_array_equal(read("many"), X[:, :4])
        np.testing.assert_array_equal(read("many", "X"), X)
        np.testing.assert_array_equal(read("few", "X"), X[:, :50])
        np.testing.assert_array_equal(read("few", "X_pca"), X[:, :4])
        np.testing.assert_array_equal(read("bare", "X"), X)
    with pytest.warns(UserWarning, match=r"has X_pca but only 50 genes, .* of X.*read key=X\)"):
        np.testing.assert_array_equal(read("few"), X[:, :50])
    with pytest.warns(UserWarning, match=r"no X_pca, .* all 60 genes in X.*\(--read key=X\)"):
        np.testing.assert_array_equal(read("bare"), X)


def test_a_frame_in_obsm_has_names_of_columns(tmp_path):
    data = anndata.AnnData(np.eye(3))
    data.obsm["signs"] = pd.DataFrame({"a": [1.0, 2, 3], "b": [4.0, 5, 6]}, index=data.obs_names)
    data.write_h5ad(tmp_path / "x.h5ad")
    table = io.read_table(tmp_path / "x.h5ad", key="signs")
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.values, data.obsm["signs"])
