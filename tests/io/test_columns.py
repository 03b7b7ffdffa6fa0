"""Which columns of a table are features, and in which units."""

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from pyarrow import parquet
from scipy import sparse

from heatsketch import io
from heatsketch.io.formats import read_like
from heatsketch.io.table import Reading, Table, refined
from problems.messy_tables import X, saved, text


def written(folder, suffix, columns):
    """Write a table of named columns (n,)."""
    values = np.stack(list(columns.values()), axis=1)
    table = io.Table(values, tuple(columns), {}, None, "made up")
    io.write_table(folder / f"t{suffix}", table.values, table.columns, table)
    return folder / f"t{suffix}"


# Integers that float64 does not tell apart

LARGE = 2**53 + 1 + 2 * np.arange(30)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy", ".npz"])
def test_integers_beyond_float64_are_refused_unless_they_are_ids(tmp_path, suffix):
    path, array = tmp_path / f"t{suffix}", np.stack([LARGE, np.arange(30)], axis=1)
    if suffix == ".csv":
        saved(tmp_path, "x0,x1\n" + "".join(f"{a},{b}.5\n" for a, b in array))
    elif suffix == ".parquet":
        parquet.write_table(pa.table({"x0": LARGE, "x1": X[:, 0]}), path)
    else:
        np.save(path, array) if suffix == ".npy" else np.savez(path, X=array)
    with pytest.raises(ValueError, match=r"'x0' holds 900719925474[0-9]+.*an id\? .*--id x0"):
        io.read_table(path)
    table = io.read_table(path, ids="x0")
    assert table.extra["x0"].tolist() == LARGE.tolist()
    assert "x0" not in table.columns
    assert "x0" not in io.read_table(path, exclude="x0").columns


def test_large_numbers_that_are_not_integers_are_features(tmp_path):
    path = saved(tmp_path, "a,b\n1e300,9007199254740993.0\n-1e300,1\n9007199254740990,2\n")
    np.testing.assert_array_equal(
        io.read_table(path).values, [[1e300, 2.0**53], [-1e300, 1], [2.0**53 - 2, 2]]
    )


def test_a_sheet_with_numbers_and_numbers_in_text_is_read(tmp_path):
    book = openpyxl.Workbook()
    for row in (["a", "b", "label"], [1.5, "2,5", 3], [2, 4.25, 4], [0.5, "1", None]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    table = io.read_table(tmp_path / "t.xlsx", decimal=",")
    np.testing.assert_array_equal(table.values, [[1.5, 2.5], [2, 4.25], [0.5, 1]])
    np.testing.assert_array_equal(table.extra["label"], [3, 4, np.nan])
    book.active["A3"] = True
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match="column 'a' holds 'True' in row 1"):
        io.read_table(tmp_path / "t.xlsx", decimal=",")


# Choice of columns


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_features_are_chosen_or_excluded(tmp_path, suffix):
    path = written(tmp_path, suffix, dict(zip(("x", "y", "id"), X.T, strict=True)))
    chosen = io.read_table(path, features=["id", "x"])
    assert chosen.columns == ("id", "x")
    np.testing.assert_array_equal(chosen.values, X[:, [2, 0]])
    without = io.read_table(path, exclude=["y", "id"])
    np.testing.assert_array_equal(without.values, X[:, :1])
    for option in ("features", "exclude"):
        with pytest.raises(ValueError, match=r"no column 'Y'; .*did you mean 'y'"):
            io.read_table(path, **{option: "Y"})


def test_a_feature_that_is_asked_for_must_be_numbers(tmp_path):
    path = saved(tmp_path, "a,when,word\n1,2024-01-01,x\n2,2024-01-02,3\n")
    with pytest.raises(ValueError, match="column 'when' holds '2024-01-01' in row 0"):
        io.read_table(path, features=["a", "when"])
    with pytest.raises(ValueError, match="column 'word' holds 'x' in row 0"):
        io.read_table(path, features=["word"])


def test_text_columns_of_parquet_follow_the_same_rule(tmp_path):
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
        ({"sep": "ab"}, ValueError, r"sep='ab' \(--read sep=ab\) is not a separator"),
        ({"standardize": "yes"}, TypeError, "standardize='yes'"),
        ({"header": 0}, TypeError, "header=0"),  # in pandas the first row; equal to False
        ({"header": "no"}, TypeError, r"^header='no'; pass True or False\."),
        ({"exclude": [1]}, TypeError, "exclude="),
    ],
)
def test_wrong_options_are_named(tmp_path, options, error, words):
    with pytest.raises(error, match=words):
        io.read_table(saved(tmp_path, text()), **options)


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
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_matrix(np.eye(4) * [1, 2, 3, 4]))
    values = io.read_table(tmp_path / "t.npz", standardize=True).values
    np.testing.assert_allclose(values.toarray(), np.eye(4) / np.sqrt(3 / 16))


def test_scales_of_sparse_points_are_those_of_the_same_points_in_an_array(tmp_path):
    points = np.eye(4) * [1, 2, 3, 4]
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_matrix(points))
    np.save(tmp_path / "t.npy", points)
    given = io.read_table(tmp_path / "t.npz", standardize=True)
    dense = read_like(tmp_path / "t.npy", given.learned)
    np.testing.assert_allclose(dense.values, given.values.toarray())
    centred = io.read_table(tmp_path / "t.npy", standardize=True).learned
    with pytest.raises(ValueError, match=r"t\.npz is sparse, but .* centred .* a dense array"):
        read_like(tmp_path / "t.npz", centred)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_the_order_of_rows_changes_no_bit_of_standardised_columns(make):
    rng = np.random.default_rng(5)
    X = rng.normal(3, 20, (900, 4)) * (rng.random((900, 4)) < 0.6)
    p = rng.permutation(900)

    def standardised(X):
        table = Table(make(X), tuple("abcd"), {}, None, "X")
        values = refined(table, Reading(standardize=True)).values
        return values.toarray() if sparse.issparse(values) else values

    assert_array_equal(standardised(X[p]), standardised(X)[p])
