"""Text tables and Parquet: which columns are features, and what is refused."""

import gzip

import numpy as np
import pytest

from heatsketch import io
from problems.tables import saved, table_of

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


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


@pytest.mark.filterwarnings("ignore:.*may be ids")
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
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index([5, 6], name="cell"))
    frame.to_parquet(tmp_path / "t.parquet")
    frame.rename_axis(None).to_csv(tmp_path / "t.csv")
    assert io.read_table(tmp_path / "t.parquet").columns == ("a",)
    assert io.read_table(tmp_path / "t.csv").columns == ("a",)
    assert io.read_table(tmp_path / "t.parquet").extra["cell"].tolist() == [5, 6]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "t.csv is empty"),
        (b"a,b\nx,y\n", "no numeric column to use as a feature; its columns are a, b"),
        (b"a,a\n1,2\n", "columns with the same name: a"),
        (b"a,b\n1,\xff\xfe\n", "t.csv cannot be read: .*utf-8.*save it as UTF-8"),
        (b"a,\xff\xfe\n1,2\n", "t.csv cannot be read: .*utf-8"),
    ],
)
def test_bad_csv_is_explained(tmp_path, content, words):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        io.read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".CSV.GZ", ".tsv.gz"])
def test_ids_and_labels_are_written_as_they_are(tmp_path, suffix):
    words = ["=1+1", "+1", "-3a", "@SUM(A1)", "\t=1", "a=1", "007", " b ", '"c"']
    table = table_of(9, **{"-name": np.array(words, object), "number": -np.arange(9.0)})
    path = tmp_path / f"t{suffix}"
    io.write_table(path, -np.eye(9), list("qrstuvwxy"), table)
    content = (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb").read()
    assert content.splitlines()[0].count(b"," if "csv" in suffix.lower() else b"\t") == 12
    back = io.read_table(path, ids="number")
    assert back.extra["-name"].tolist() == words
    np.testing.assert_array_equal(back.values, -np.eye(9))
    np.testing.assert_array_equal(back.extra["number"].astype(float), -np.arange(9.0))


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


def test_parquet_keeps_types(tmp_path):
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


def test_feature_of_whole_numbers_with_gaps_becomes_float(tmp_path):
    columns = {"a": pa.array([1, None]), "b": pa.array([True, None])}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    np.testing.assert_array_equal(
        io.read_table(tmp_path / "t.parquet").values, [[1, 1], [np.nan, np.nan]]
    )


def test_bad_parquet_is_explained(tmp_path):
    path = saved(tmp_path, "PAR1 but not really", "t.parquet")
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read"):
        io.read_table(path)
    nested = pa.table({"a": [1.0], "v": [[1.0, 2.0]]})
    parquet.write_table(nested, path)
    with pytest.raises(ValueError, match=r"v in .* has type list"):
        io.read_table(path)
