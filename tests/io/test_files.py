"""Files are read back as they were written, hostile ones refused, old ones never half replaced."""

import io as streams
import os
import signal
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from heatsketch import datasets, io

h5py = pytest.importorskip("h5py")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
TEXT = ("plain", 'quoted "a", b', "tab\there", "naïve 点", "", "two\nlines")


def table_of(n=6, d=3, source="made up", label="group", **extra):
    values = np.random.default_rng(0).standard_normal((n, d))
    words = np.array([TEXT[j % len(TEXT)] for j in range(n)], dtype=object)
    columns = {"id": np.arange(n) * 7, "group": words, **extra}
    return io.Table(values, tuple("abcdefgh"[:d]), columns, label, source)


def saved(folder, text, name="t.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir())


# Round trips

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
single = st.floats(allow_nan=False, allow_infinity=False, width=32)


@pytest.mark.parametrize("suffix", [s for s in io.SUFFIXES if s != ".h5ad"])
@pytest.mark.parametrize(("dtype", "numbers"), [(np.float64, finite), (np.float32, single)])
def test_embedding_survives_to_the_last_bit(tmp_path_factory, suffix, dtype, numbers):
    path = tmp_path_factory.mktemp("round") / f"t{suffix}"

    @settings(max_examples=12)
    @given(Y=arrays(dtype, (6, 2), elements=numbers))
    def check(Y):
        io.write_table(path, Y, ["u", "v"], table_of(), force=True)
        back = io.read_table(path)
        np.testing.assert_array_equal(back.values.astype(dtype), Y)
        if suffix not in TEXT_SUFFIXES:
            assert back.values.dtype == dtype
        assert back.columns == (("x0", "x1") if suffix == ".npy" else ("u", "v"))

    check()


@pytest.mark.parametrize("suffix", [".npz", *TEXT_SUFFIXES, ".parquet"])
def test_ids_and_labels_survive(tmp_path, suffix):
    table = table_of()
    io.write_table(tmp_path / f"t{suffix}", table.values, table.columns, table)
    back = io.read_table(tmp_path / f"t{suffix}")
    assert list(back.extra) == ["id", "group"]
    assert back.extra["id"].tolist() == table.extra["id"].tolist()
    assert back.extra["group"].tolist() == list(TEXT)
    assert back.label == "group"


@given(
    words=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")),
        min_size=2,
        max_size=2,
    )
)
def test_any_text_survives_csv(tmp_path_factory, words):
    words = [f"w{word}" for word in words]
    table = io.Table(np.eye(2), ("a", "b"), {"name": np.array(words, object)}, None, "made up")
    path = tmp_path_factory.mktemp("text") / "t.csv"
    io.write_table(path, table.values, table.columns, table)
    assert io.read_table(path).extra["name"].tolist() == words


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".h5ad"])
def test_builtin_set_is_read_back_with_the_same_features_and_label(tmp_path, suffix):
    for name in ("swiss_roll", "gaussian_clouds"):
        table = io.read_table(name)
        io.write_table(tmp_path / f"{name}{suffix}", table.values, table.columns, table)
        back = io.read_table(tmp_path / f"{name}{suffix}")
        np.testing.assert_array_equal(back.values, table.values)
        assert back.label == table.label
        for column, items in table.extra.items():
            np.testing.assert_array_equal(back.extra[column], items)


def test_gaps_in_labels_stay_gaps(tmp_path):
    table = table_of(3, mark=np.array(["a", None, "b"], object))
    for suffix, gap in ((".parquet", None), (".csv", ""), (".npz", "")):
        io.write_table(tmp_path / f"t{suffix}", table.values, table.columns, table)
        assert io.read_table(tmp_path / f"t{suffix}").extra["mark"].tolist() == ["a", gap, "b"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_label_named_like_a_coordinate_is_kept_beside_it(tmp_path, suffix):
    taken = "embedding" if suffix == ".npz" else "u"
    table = table_of(2, **{taken: np.array(["p", "q"], object)})
    io.write_table(tmp_path / f"t{suffix}", np.eye(2), ["u", "v"], table)
    back = io.read_table(tmp_path / f"t{suffix}")
    np.testing.assert_array_equal(back.values, np.eye(2))
    assert back.extra[f"{taken}_input"].tolist() == ["p", "q"]


# Sources


def test_builtin_sets_are_the_same_every_time():
    for name in datasets.DATASETS:
        first, again = io.read_table(name), io.read_table(name)
        np.testing.assert_array_equal(first.values, again.values)
        assert first.source == name
        assert first.label in first.extra


def test_builtin_name_means_the_set_and_a_dot_means_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert io.read_table("digits").values.shape == (1797, 64)
    with pytest.raises(FileNotFoundError, match="t10k-images-idx3-ubyte"):
        io.read_table("./digits")


def test_folder_of_mnist_files(tmp_path):
    pixels = np.arange(2 * 784, dtype=np.uint8)
    header = struct.pack(">4I", 0x803, 2, 28, 28)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(header + pixels.tobytes())
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, 2) + b"\x04\x02")
    table = io.read_table(tmp_path, key="train")
    np.testing.assert_array_equal(table.values.ravel(), pixels)
    assert (table.label, table.extra["label"].tolist()) == ("label", [4, 2])


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("missing.csv", FileNotFoundError, "missing.csv does not exist.*swiss_roll"),
        ("notes.doc", ValueError, r"notes.doc has no known suffix; choose from \.npy.*\.h5ad"),
    ],
)
def test_unreadable_source_is_named(tmp_path, name, error, words):
    saved(tmp_path, "1,2\n", "notes.doc")
    with pytest.raises(error, match=words):
        io.read_table(tmp_path / name)


def test_key_is_refused_where_there_is_nothing_to_choose(tmp_path):
    for source in ("digits", saved(tmp_path, "a\n1\n")):
        with pytest.raises(ValueError, match="key='X'"):
            io.read_table(source, key="X")


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


@pytest.mark.filterwarnings("ignore:column .a. of")
def test_text_with_many_values_is_no_label(tmp_path):
    rows = "".join(f"{j},w{j}\n" for j in range(51))
    assert io.read_table(saved(tmp_path, "a,w\n" + rows)).label is None
    assert io.read_table(saved(tmp_path, "a,w\n" + rows.replace("w50", "w0"))).label == "w"


def test_ids_keep_their_characters(tmp_path):
    text = "id,label,other,a\n007,1.50,01,1\n008,2.5,02,2\n"
    table = io.read_table(saved(tmp_path, text), ids="other")
    assert table.extra["id"].tolist() == ["007", "008"]
    assert table.extra["other"].tolist() == ["01", "02"]
    assert table.extra["label"].tolist() == [1.5, 2.5]
    assert table.columns == ("a",)


def test_dates_pass_through_as_written(tmp_path):
    table = io.read_table(saved(tmp_path, "when,a\n2024-01-02T03:04:05,1\n2024-01-03,2\n"))
    assert table.extra["when"].tolist() == ["2024-01-02T03:04:05", "2024-01-03"]


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("1,2\n3,4\n", ("x0", "x1"), 2),
        ("1,,nan\n3,4,5\n", ("x0", "x1", "x2"), 2),
        ("-1e-3\n2\n", ("x0",), 2),
        ("a,1\n3,4\n", ("a", "1"), 1),
        ("0,1,2\n3,4,5\n", ("0", "1", "2"), 1),
        (",0,1\n0,4,5\n1,6,7\n", ("0", "1"), 2),
        ("\ufeffa,b\n3,4\n", ("a", "b"), 1),
        ("1_0,2\n3,4\n", ("1_0", "2"), 1),
    ],
)
def test_header_is_told_from_data(tmp_path, text, columns, rows):
    table = io.read_table(saved(tmp_path, text))
    assert table.columns == columns
    assert table.values.shape == (rows, len(columns))


def test_pandas_index_is_no_feature(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index([5, 6], name="cell"))
    frame.to_parquet(tmp_path / "t.parquet")
    frame.rename_axis(None).to_csv(tmp_path / "t.csv")
    assert io.read_table(tmp_path / "t.parquet").columns == ("a",)
    assert io.read_table(tmp_path / "t.csv").columns == ("a",)
    assert io.read_table(tmp_path / "t.parquet").extra["cell"].tolist() == [5, 6]


def test_type_of_a_column_is_decided_by_all_its_rows(tmp_path):
    rows = ["1"] * 700_000 + ["1.5"]
    table = io.read_table(saved(tmp_path, "a\n" + "\n".join(rows) + "\n"))
    assert table.values[-1, 0] == 1.5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "t.csv is empty"),
        (b"a,b\n1,2\n3,4,5\n", "t.csv cannot be read: .*Row #3: Expected 2 columns, got 3"),
        (b"a,b\nx,y\n", "no numeric column to use as a feature; its columns are a, b"),
        (b"a;b\nx;y\n", "no numeric column to use as a feature; its columns are a, b"),
        (b"a,a\n1,2\n", "columns with the same name: a"),
        (b"a,b\n1,\xff\xfe\n", "t.csv cannot be read: .*utf-8.*save it as UTF-8"),
        (b"a,\xff\xfe\n1,2\n", "t.csv cannot be read: .*utf-8"),
    ],
)
def test_bad_csv_is_explained(tmp_path, content, words):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        io.read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_formulas_are_disarmed_and_numbers_are_not(tmp_path, suffix):
    words = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a=1", "", None]
    table = table_of(9, **{"=name": np.array(words, object), "number": -np.arange(9.0)})
    io.write_table(tmp_path / f"t{suffix}", -np.eye(9), list("qrstuvwxy"), table)
    back = io.read_table(tmp_path / f"t{suffix}", ids="number")
    escaped = [f"'{word}" for word in words[:6]]
    assert back.extra["'=name"].tolist() == [*escaped, "a=1", "", ""]
    np.testing.assert_array_equal(back.values, -np.eye(9))
    np.testing.assert_array_equal(back.extra["number"].astype(float), -np.arange(9.0))


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


def test_parquet_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(io.files, "_FREE_BYTES", 2**20)
    parquet.write_table(pa.table({"a": np.zeros(10**6)}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="would unpack"):
        io.read_table(tmp_path / "t.parquet")


# NumPy files


@pytest.mark.parametrize(
    ("dtype", "want"),
    [
        ("f4", "f4"),
        (">f4", "f4"),
        ("f8", "f8"),
        (">f8", "f8"),
        ("f2", "f8"),
        ("u1", "f8"),
        ("i8", "f8"),
        ("?", "f8"),
    ],
)
def test_npy_becomes_native_floats(tmp_path, dtype, want):
    X = np.array([[0, 1], [1, 1], [0, 0]], dtype=dtype)
    np.save(tmp_path / "t.npy", X)
    values = io.read_table(tmp_path / "t.npy").values
    assert values.dtype == np.dtype(want)
    np.testing.assert_array_equal(values, X)


def test_npy_is_mapped_not_loaded(tmp_path):
    np.save(tmp_path / "t.npy", np.eye(3))
    values = io.read_table(tmp_path / "t.npy").values
    assert isinstance(values, np.memmap)
    assert not values.flags.writeable


def npy(shape, descr="<f8", content=b"", version=1):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + content


HOSTILE_NPY = {
    "claims more than it holds": (npy((10**6, 100)), "claims 800,000,"),
    "claims more than integers hold": (npy((2**62, 2**62)), "claims"),
    "negative": (npy((-1, 3)), "claims the shape"),
    "cut in the header": (npy((2, 2))[:20], "no valid .npy header"),
    "no header": (b"not numpy", "no valid .npy header"),
    "empty": (b"", "no valid .npy header"),
    "code in the header": (npy("__import__('os').getcwd()"), "no valid .npy header"),
    "unknown version": (npy((1, 1), version=3, content=b"0" * 8), "no valid .npy header"),
    "pickle": (npy((1, 1), "|O", b"cos\nsystem\n(S'x'\ntR."), "object array"),
    "text": (npy((1, 1), "<U2", b"\0" * 8), "dtype <U2"),
    "complex": (npy((1, 1), "<c8", b"\0" * 8), "dtype complex64"),
    "one-dimensional": (npy((2,), content=b"\0" * 16), r"shape \(2,\)"),
}


@pytest.mark.parametrize("case", HOSTILE_NPY)
def test_hostile_npy_is_refused(tmp_path, case):
    content, words = HOSTILE_NPY[case]
    (tmp_path / "t.npy").write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        io.read_table(tmp_path / "t.npy")
    assert "t.npy" in str(caught.value)


@given(place=st.integers(0, 127), byte=st.integers(0, 255))
def test_npy_with_one_wrong_byte_is_read_or_refused(tmp_path_factory, place, byte):
    buffer = streams.BytesIO()
    np.save(buffer, np.eye(2))
    content = bytearray(buffer.getvalue())
    content[place] = byte
    path = tmp_path_factory.mktemp("byte") / "t.npy"
    path.write_bytes(content)
    try:
        assert io.read_table(path).values.size <= 32
    except ValueError as error:
        assert "t.npy" in str(error)  # noqa: PT017


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


@pytest.mark.parametrize(
    ("arrays", "key", "words"),
    [
        ({"P": np.eye(2), "Q": np.eye(2)}, None, "2 2-d arrays.*P, Q"),
        ({"v": np.zeros(2)}, None, r"0 2-d arrays.*v \(2,\)"),
        ({"P": np.eye(2)}, "Q", "no array 'Q'; choose from P"),
        ({"X": np.zeros(3)}, None, r"X in .* has shape \(3,\)"),
        ({"X": np.eye(2), "label": np.array([1, "a"], object)}, None, "label in .*object array"),
        ({"X": np.array([["a", "b"]])}, None, "X in .* has dtype"),
    ],
)
def test_bad_npz_is_explained(tmp_path, arrays, key, words):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(ValueError, match=words):
        io.read_table(tmp_path / "t.npz", key=key)


def zipped(path, members, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_npz_that_claims_more_than_it_holds_is_refused(tmp_path):
    zipped(tmp_path / "t.npz", {"X.npy": npy((10**9, 10**9))})
    with pytest.raises(ValueError, match=r"X in .* claims"):
        io.read_table(tmp_path / "t.npz")


def test_npz_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(io.files, "_FREE_BYTES", 2**20)
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((2**10, 2**10)))
    with pytest.raises(ValueError, match="would unpack"):
        io.read_table(tmp_path / "t.npz")


def test_damaged_zip_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "t.npz", X=np.random.default_rng(0).standard_normal((50, 2)))
    whole = (tmp_path / "t.npz").read_bytes()
    broken = [b"", b"PK\x03\x04", whole[:-30], whole[:300] + b"\xff" * 30 + whole[330:]]
    for content in broken:
        (tmp_path / "t.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"t\.npz"):
            io.read_table(tmp_path / "t.npz")


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_sparse_npz_is_read_as_csr(tmp_path, kind, dtype):
    X = np.array([[0, 2, 0], [1, 0, 0]], dtype=dtype)
    sparse.save_npz(tmp_path / "t.npz", kind(X))
    values = io.read_table(tmp_path / "t.npz").values
    assert values.format == "csr"
    assert values.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_array_equal(values.toarray(), X)


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize(
    "change",
    [
        {"indices": [0, 999]},
        {"indices": [0, -1]},
        {"indptr": [0, 5, 2]},
        {"indptr": [0, 1]},
        {"data": [1.0]},
        {"data": ["a", "b"]},
        {"shape": [10**15, 10**15]},
        {"shape": [-2, 2]},
        {"shape": [2, 2, 2]},
        {"shape": [2.5, np.nan]},
        {"format": "evil"},
    ],
)
def test_sparse_npz_with_wild_indices_is_refused(tmp_path, layout, change):
    parts = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2], "shape": [2, 2]}
    np.savez(tmp_path / "t.npz", **{"format": layout, **parts, **change})
    with pytest.raises(ValueError, match=r"t\.npz"):
        io.read_table(tmp_path / "t.npz")


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


@pytest.mark.parametrize(
    ("change", "words"),
    [
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


def test_no_hdf5_is_explained(tmp_path):
    with pytest.raises(ValueError, match=r"t\.h5ad cannot be read"):
        io.read_table(saved(tmp_path, "not HDF5", "t.h5ad"))


# Refusals before anything is written


@pytest.mark.parametrize("suffix", io.SUFFIXES)
def test_existing_file_is_kept_without_force(tmp_path, suffix):
    path = saved(tmp_path, "old", f"t{suffix}")
    table = table_of(2)
    with pytest.raises(FileExistsError, match=r"exists; pass force=True \(--force\)"):
        io.write_table(path, np.eye(2), ["u", "v"], table)
    assert path.read_text() == "old"
    io.write_table(path, np.eye(2), ["u", "v"], table, force=True)
    assert path.read_bytes() != b"old"
    assert leftovers(tmp_path) == [path.name]


def test_input_is_never_replaced(tmp_path):
    path = saved(tmp_path, "a,b\n1,2\n3,4\n")
    (tmp_path / "alias.csv").symlink_to(path)
    table = io.read_table(path)
    for name in ("t.csv", "alias.csv"):
        with pytest.raises(ValueError, match="is also the input"):
            io.write_table(tmp_path / name, np.eye(2), ["u", "v"], table, force=True)
    assert path.read_text() == "a,b\n1,2\n3,4\n"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_embedding_that_is_not_finite_is_refused(tmp_path, bad):
    with pytest.raises(ValueError, match="NaN or infinite"):
        io.write_table(tmp_path / "t.csv", np.array([[1.0], [bad]]), ["u"], table_of(2))
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("Y", "names", "words"),
    [
        (np.eye(3), ["u", "v", "w"], "3 rows but made up has 2 points"),
        (np.eye(2), ["u"], "pass 2 different names"),
        (np.eye(2), ["u", "u"], "pass 2 different names"),
        (np.zeros(2), ["u"], "shape"),
        (np.array([["a"], ["b"]]), ["u"], "dtype"),
    ],
)
def test_embedding_that_does_not_fit_is_refused(tmp_path, Y, names, words):
    with pytest.raises(ValueError, match=words):
        io.write_table(tmp_path / "t.csv", Y, names, table_of(2))
    assert leftovers(tmp_path) == []


def test_unwritable_places_are_named(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    arguments = np.eye(2), ["u", "v"], table_of(2)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        io.write_table(tmp_path / "folder.csv", *arguments)
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        io.write_table(tmp_path / "nowhere" / "t.csv", *arguments)
    with pytest.raises(ValueError, match=r"no known suffix; choose from \.npy"):
        io.write_table(tmp_path / "t.xlsx", *arguments)
    for key in ("obsm/", "a/b"):
        with pytest.raises(ValueError, match="key="):
            io.write_table(tmp_path / "t.h5ad", *arguments, key=key)


# Atomic writing


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), SystemExit(1)])
@pytest.mark.parametrize("old", [None, "old"])
def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, error, old):
    path = tmp_path / "t.txt"
    if old is not None:
        path.write_text(old)

    def half(draft):
        draft.write_text("half")
        raise error

    with pytest.raises(type(error)):
        io.write_atomically(path, half, force=True)
    assert leftovers(tmp_path) == ([] if old is None else ["t.txt"])
    assert old is None or path.read_text() == old


def test_draft_is_beside_the_target_with_its_suffix(tmp_path):
    drafts = []
    io.write_atomically(tmp_path / "t.png", lambda draft: drafts.append(draft))
    assert drafts[0].parent == tmp_path.resolve()
    assert drafts[0].suffix == ".png"
    assert drafts[0].name != "t.png"


def test_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "t.txt"
    with pytest.raises(FileExistsError, match="exists"):
        io.write_atomically(path, lambda draft: path.write_text("theirs"))
    assert path.read_text() == "theirs"
    assert leftovers(tmp_path) == ["t.txt"]


def test_link_is_followed_and_permissions_are_ordinary(tmp_path):
    (tmp_path / "deep").mkdir()
    real = saved(tmp_path / "deep", "old", "real.txt")
    (tmp_path / "link.txt").symlink_to(real)
    io.write_atomically(tmp_path / "link.txt", lambda draft: draft.write_text("new"), force=True)
    assert (tmp_path / "link.txt").is_symlink()
    assert real.read_text() == "new"
    plain = saved(tmp_path, "plain", "plain.txt")
    assert real.stat().st_mode == plain.stat().st_mode


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")
def test_killed_process_leaves_the_old_file(tmp_path):
    path = saved(tmp_path, "old", "t.txt")
    heard, told = os.pipe()

    def write(draft):
        draft.write_text("half")
        os.write(told, b"started")
        signal.pause()

    child = os.fork()
    if child == 0:
        try:
            io.write_atomically(path, write, force=True)
        finally:
            os._exit(1)
    os.close(told)
    assert os.read(heard, 7) == b"started"
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(heard)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert path.read_text() == "old"
