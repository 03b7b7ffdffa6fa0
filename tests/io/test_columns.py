"""Which columns of a table are features, in which units; those that number the rows are noticed."""

import numpy as np
import pytest

from heatsketch import io
from problems.messy_tables import X, saved, text

pytest.importorskip("pyarrow")


def test_a_column_that_counts_the_rows_is_noticed(tmp_path):
    path = saved(tmp_path, text(header=("nr", "x", "y", "z"), front=str))
    with pytest.warns(UserWarning, match=r"column 'nr' .* counts the rows"):
        assert io.read_table(path).columns == ("nr", "x", "y", "z")
    assert io.read_table(path, ids="nr").columns == ("x", "y", "z")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_that_number_the_rows_are_noticed_wherever_they_stand(tmp_path, suffix):
    rng = np.random.default_rng(0)
    columns = {
        "height": rng.normal(size=40),
        "time_ps": np.arange(40) * 0.1,
        "patient_id": 1000.0 + rng.permutation(40),
        "count": np.sort(rng.integers(0, 10**6, 40)).astype(float),
        "acid": 1000.0 + rng.permutation(40),
    }
    table = io.Table(np.stack(list(columns.values()), axis=1), tuple(columns), {}, None, "made up")
    path = tmp_path / f"t{suffix}"
    io.write_table(path, table.values, table.columns, table)
    with pytest.warns(UserWarning, match="used as a feature") as noticed:
        io.read_table(path)
    said = [str(warning.message) for warning in noticed]
    assert len(said) == 2
    assert "'time_ps'" in said[0]
    assert "same step" in said[0]
    assert "'patient_id'" in said[1]
    assert io.read_table(path, exclude=["time_ps", "patient_id"]).values.shape == (40, 3)
    assert io.read_table(path, features=["time_ps"]).values.shape == (40, 1)


# Choice of columns


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_features_are_chosen_or_excluded(tmp_path, suffix):
    table = io.Table(X, ("x", "y", "id"), {}, None, "made up")
    path = tmp_path / f"t{suffix}"
    io.write_table(path, X, table.columns, table)
    chosen = io.read_table(path, features=["id", "x"])
    assert chosen.columns == ("id", "x")
    np.testing.assert_array_equal(chosen.values, X[:, [2, 0]])
    without = io.read_table(path, exclude=["y", "id"])
    np.testing.assert_array_equal(without.values, X[:, :1])
    for option in ("features", "exclude"):
        with pytest.raises(ValueError, match=r"no column 'Y'; .*did you mean 'y'"):
            io.read_table(path, **{option: "Y"})
    with pytest.raises(ValueError, match="column 'x' is named as a feature and"):
        io.read_table(path, features="x", exclude="x")


def test_a_feature_that_is_asked_for_must_be_numbers(tmp_path):
    path = saved(tmp_path, "a,when,word\n1,2024-01-01,x\n2,2024-01-02,3\n")
    with pytest.raises(ValueError, match="column 'when' holds values of type date"):
        io.read_table(path, features=["a", "when"])
    with pytest.raises(ValueError, match="column 'word' holds 'x' in row 0"):
        io.read_table(path, features=["word"])


def test_text_columns_of_parquet_follow_the_same_rule(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"a": ["1,5", "2,5"], "b": ["1", " 2.5"], "c": ["x", "y"]}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="column 'a' holds '1,5' in row 0"):
        io.read_table(tmp_path / "t.parquet")
    table = io.read_table(tmp_path / "t.parquet", exclude="a")
    np.testing.assert_array_equal(table.values, [[1], [2.5]])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"missing": "dorp"}, ValueError, "did you mean 'drop'"),
        ({"decimal": ";"}, ValueError, "decimal"),
        ({"sep": "ab"}, ValueError, "sep='ab' is not a separator"),
        ({"sep": 5}, ValueError, "sep=5"),
        ({"standardize": "yes"}, TypeError, "standardize='yes'"),
        ({"header": "no"}, TypeError, "header='no'"),
        ({"features": 3}, TypeError, "features=3"),
        ({"exclude": [1]}, TypeError, "exclude="),
    ],
)
def test_wrong_options_are_named(tmp_path, options, error, words):
    with pytest.raises(error, match=words):
        io.read_table(saved(tmp_path, text()), **options)


@pytest.mark.parametrize("option", [{"sep": ";"}, {"decimal": ","}, {"header": False}])
def test_options_of_text_are_refused_elsewhere(tmp_path, option):
    np.save(tmp_path / "t.npy", X)
    for source in (tmp_path / "t.npy", "digits"):
        with pytest.raises(ValueError, match="is for tables in text"):
            io.read_table(source, **option)


# Scales


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_standardised_columns_do_not_depend_on_units(tmp_path, dtype):
    np.save(tmp_path / "a.npy", X.astype(dtype))
    np.save(tmp_path / "b.npy", (X * [1, 4096, 0.125] + [0, 512, 8]).astype(dtype))
    first, second = (
        io.read_table(tmp_path / f"{name}.npy", standardize=True).values for name in "ab"
    )
    assert first.dtype == dtype
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-3 if dtype == np.float32 else 1e-12)
    np.testing.assert_allclose(first.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(first.std(axis=0), 1, atol=1e-6)


def test_sparse_points_are_scaled_and_stay_sparse(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_matrix(np.eye(4) * [1, 2, 3, 4]))
    values = io.read_table(tmp_path / "t.npz", standardize=True).values
    np.testing.assert_allclose(values.toarray(), np.eye(4) / np.sqrt(3 / 16))
