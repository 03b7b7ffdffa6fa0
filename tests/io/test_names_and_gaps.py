"""Names that are alike, and a gap in the first cell."""

import numpy as np
import pytest

from heatsketch import io


def test_columns_whose_names_become_one_are_both_written(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    extra = {"a/b": np.arange(30), "a_b": 10 * np.arange(30), "_index": np.zeros(30, int)}
    table = io.Table(X, ("x", "y", "z"), extra, None, "source")
    io.write_table(tmp_path / "out.h5ad", X[:, :2], ["u", "v"], table)
    anndata = pytest.importorskip("anndata")
    obs = anndata.read_h5ad(tmp_path / "out.h5ad").obs
    assert obs["a_b"].tolist() == list(range(30))
    assert obs["a_b_input"].tolist() == list(range(0, 300, 10))
    assert obs["_index_input"].tolist() == [0] * 30


def test_a_gap_in_the_first_cell_is_no_comment(tmp_path):
    path = tmp_path / "gap.csv"
    path.write_text("#N/A,1,2\n" + "0.5,1.5,2.5\n" * 30)
    values = io.read_table(path, header=False, missing="keep").values
    assert values.shape == (31, 3)
    assert np.isnan(values[0, 0])


def test_a_feature_that_is_named_twice_counts_once(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,y\n" + "0.5,1.5\n" * 5)
    assert io.read_table(path, features=["x", "x", "y"]).columns == ("x", "y")


def test_repeated_names_in_an_archive_are_refused(tmp_path):
    np.savez(tmp_path / "table.npz", X=np.ones((5, 3)), columns=np.array(["a", "a", "b"]))
    with pytest.raises(ValueError, match="columns with the same name: a"):
        io.read_table(tmp_path / "table.npz")
