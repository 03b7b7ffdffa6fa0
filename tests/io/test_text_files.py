"""Text tables and Parquet: which columns are features, and what is refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from heatsketch import io
from problems.messy_tables import saved

# Text tables


def test_numbers_and_booleans_are_features_and_named_columns_are_not(tmp_path):
    text = "ID,a,kind,flag,Target,b\n1,0.5,x,true,3,7\n2,,y,false,4,8\n"
    table = io.read_table(saved(tmp_path, text))
    assert table.columns == ("a", "flag", "b")
    np.testing.assert_array_equal(table.values, [[0.5, 1, 7], [np.nan, 0, 8]])
    assert list(table.extra) == ["ID", "kind", "Target"]
    assert table.label == "Target"


def test_label_and_ids_are_taken_from_the_features(tmp_path):
    path = saved(tmp_path, "a,b,c,word\n1,2,3,x\n4,5,6,y\n")
    table = io.read_table(path, label=["b"], ids="c")
    assert (table.columns, table.label) == (("a",), "b")
    assert (table.extra["b"].tolist(), table.extra["c"].tolist()) == ([2, 5], [3, 6])
    assert io.read_table(path).label == "word"
    assert io.read_table(path, ids="word").label is None
    with pytest.raises(ValueError, match=r"no id or label column 'd'; choose from word, a, b, c"):
        io.read_table(path, label="d")


def test_a_column_called_y_is_a_label_in_npz_alone(tmp_path):
    """In a table it may be a place beside x."""
    X, y = np.eye(3), [1.5, 2.5, 3.5]
    np.savez(tmp_path / "t.npz", X=X, y=y)
    assert io.read_table(tmp_path / "t.npz").label == "y"
    path = saved(tmp_path, "a,x,y\n" + "".join(f"{v},{v},{v}\n" for v in y))
    assert io.read_table(path, features="a").label is None


def test_text_with_many_values_is_no_label(tmp_path):
    rows = "".join(f"{j},w{j}\n" for j in range(51))
    assert io.read_table(saved(tmp_path, "a,w\n" + rows)).label is None
    assert io.read_table(saved(tmp_path, "a,w\n" + rows.replace("w50", "w0"))).label == "w"


def test_ids_keep_their_characters(tmp_path):
    accounts = ["12345678901234567890", "12345678901234567891"]
    text = "id,label,account,a\n007,1.50,{},1\n008,2.5,{},2\n".format(*accounts)
    table = io.read_table(saved(tmp_path, text), exclude="account")
    assert table.extra["id"].tolist() == ["007", "008"]
    assert table.extra["account"].tolist() == accounts
    assert table.extra["label"].tolist() == [1.5, 2.5]
    assert table.columns == ("a",)


def test_pandas_index_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index([5, 6], name="cell"))
    frame.to_parquet(tmp_path / "t.parquet")
    frame.rename_axis(None).to_csv(tmp_path / "t.csv")
    assert io.read_table(tmp_path / "t.parquet").columns == ("a",)
    assert io.read_table(tmp_path / "t.csv").columns == ("a",)
    assert io.read_table(tmp_path / "t.parquet").extra["cell"].tolist() == [5, 6]
    frame.set_index(pd.Index(["u", "v"], name="cell")).to_parquet(tmp_path / "t.parquet")
    assert io.read_table(tmp_path / "t.parquet").label is None


@pytest.mark.parametrize("sep", [",", ";", "|"])
def test_blanks_before_quotes_are_left_out(tmp_path, sep):
    rows = [
        '"athlete"~ "code"~   "time"',
        '"Bolt, Usain"~      "JAM" ~9.58',
        '"Gay ""T"""~ "USA"\t~ 9.69',
    ]
    table = io.read_table(saved(tmp_path, "\n".join(rows).replace("~", sep)))
    assert table.columns == ("time",)
    assert table.extra["code"].tolist() == ["JAM", "USA"]
    assert table.extra["athlete"].tolist() == ["Bolt, Usain", 'Gay "T"']
    np.testing.assert_array_equal(table.values, [[9.58], [9.69]])


# Parquet


def test_parquet_keeps_types_and_features_with_gaps_become_floats(tmp_path):
    columns = {
        "a": pa.array([1, 2], pa.float32()),
        "kind": pa.array(["x", None]).dictionary_encode(),
        "label": pa.array([1, None], pa.int16()),
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    table = io.read_table(tmp_path / "t.parquet")
    assert table.values.dtype == np.float32
    assert table.extra["kind"].tolist() == ["x", None]
    assert table.extra["label"].tolist() == [1, None]
    columns = {"a": pa.array([1, None]), "b": pa.array([True, None])}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    found = io.read_table(tmp_path / "t.parquet").values
    np.testing.assert_array_equal(found, [[1, 1], [np.nan, np.nan]])


# What is refused


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "t.csv is empty"),
        ("t.csv", b"a,b\nx,y\n", "no numeric column to use as a feature; its columns are a, b"),
        ("t.csv", b"a,a\n1,2\n", "columns with the same name: a"),
        ("t.csv", b"a,b\n1,\xff\xfe\n", "t.csv cannot be read: .*utf-8.*save it as UTF-8"),
        ("t.csv", b"a,\xff\xfe\n1,2\n", "t.csv cannot be read: .*utf-8"),
        ("t.doc", b"1,2\n", r"t.doc has no known suffix; choose from \.npy.*h5ad"),
        ("t.parquet", b"PAR1 but not really", r"t\.parquet cannot be read"),
        ("t.parquet", {"a": ["b"], "v": [["c"]]}, r"no numeric column .*left out: v \(list<"),
    ],
)
def test_bad_files_are_explained(tmp_path, name, content, words):
    if isinstance(content, dict):
        parquet.write_table(pa.table(content), tmp_path / name)
    else:
        saved(tmp_path, content, name)
    with pytest.raises(ValueError, match=words):
        io.read_table(tmp_path / name)
