"""A column of vectors is points: the same numbers as the array, in whatever pieces it comes."""

from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet
from scipy import sparse

import heatsketch as hs
from heatsketch import io
from heatsketch.cli import main
from heatsketch.distributed import embed
from heatsketch.io.formats import open_blocks, read_like
from heatsketch.io.table import Reading, joined
from problems.clouds import cloud

N, D = 120, 5
X = cloud(N, D)
LISTS = pa.list_(pa.float64())
IDS, YEARS = [f"r{i}" for i in range(N)], 0.5 + np.arange(N) ** 2
SKETCH = hs.HeatSketch(8, random_state=0, affinity="dense")


def pieces(values, kind, count):
    """Return lists in `count` chunks, each a slice of a longer array with an offset."""
    found = []
    for part in np.array_split(values, count):
        flat = pa.array(np.pad(part, ((2, 1), (0, 0))).ravel())
        ends = D * np.arange(len(part) + 4)
        if kind == "fixed":
            made = pa.FixedSizeListArray.from_arrays(flat, D)
        elif kind == "large":
            made = pa.LargeListArray.from_arrays(ends, flat)
        else:
            made = pa.ListArray.from_arrays(ends.astype("i4"), flat)
        found.append(made.slice(2, len(part)))
    return pa.chunked_array(found)


def saved(path, vectors, more=None, **options):
    columns = {"id": IDS, "vector": vectors, "year": YEARS} if more is None else more
    parquet.write_table(pa.table(columns), path, **options)
    return path


@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u2"])
@pytest.mark.parametrize("count", [1, 4])
def test_lists_are_the_rows_of_the_array(tmp_path, kind, dtype, count):
    values = (20 * X).astype(dtype)
    np.save(tmp_path / "x.npy", values)
    path = saved(tmp_path / "x.parquet", pieces(values, kind, count), row_group_size=50)
    want, table = io.read_table(tmp_path / "x.npy"), io.read_table(path)
    assert table.values.dtype == want.values.dtype == (np.float64 if dtype in "f8i1i8u2" else "f4")
    assert np.array_equal(table.values, want.values)
    assert table.columns == tuple(f"vector[{j}]" for j in range(D))
    assert table.extra["id"].tolist() == IDS
    assert table.extra["year"].tolist() == YEARS.tolist()
    column = pieces(values, kind, count)
    for given in (column, column.combine_chunks()):
        assert np.array_equal(SKETCH.fit_transform(given), SKETCH.fit_transform(values))


@pytest.mark.parametrize("kind", ["list", "fixed"])
@pytest.mark.parametrize("start", [0, 33, N - 1])
def test_blocks_are_the_rows_of_the_whole_table(tmp_path, limits, kind, start):
    limits(block_bytes=400)  # some rows
    path = saved(tmp_path / "x.parquet", pieces(X, kind, 3), row_group_size=50)
    found = open_blocks(path, Reading())
    assert (found.n, found.dtype) == (N, X.dtype)
    tables = list(found.read(start))
    assert max(len(table.values) for table in tables) < N / 4  # lists count with all their entries
    table = joined(list(found.tables(7, start)))
    assert np.array_equal(table.values, X[start:])
    assert table.extra["id"].tolist() == IDS[start:]


def test_a_source_by_blocks_is_mapped_as_its_array_and_keeps_its_columns(tmp_path):
    np.save(tmp_path / "x.npy", X)
    saved(tmp_path / "x.parquet", pieces(X, "list", 3), row_group_size=50)
    for name in ("x.npy", "x.parquet"):
        embed(tmp_path / name, tmp_path / f"out-{name}", SKETCH, fit_points=100, block_rows=40)
    out = parquet.read_table(tmp_path / "out-x.parquet")
    assert out.column_names[:2] == ["id", "year"]
    assert out["id"].to_pylist() == IDS
    Y = np.stack([out[name].to_numpy() for name in out.column_names[2:]], axis=1)
    assert np.array_equal(Y, np.load(tmp_path / "out-x.npy"))


def test_parts_of_a_folder_are_alike_even_if_one_is_empty(tmp_path):
    for number, rows in enumerate((slice(0, 50), slice(50, 50), slice(50, None))):
        lists = pa.array(X[rows].tolist(), LISTS)
        saved(tmp_path / f"part-{number}.parquet", None, {"vector": lists})
    found = open_blocks(tmp_path, Reading())
    assert np.array_equal(joined(list(found.tables(N))).values, X)


def test_numbers_beside_lists_are_passed_through_unless_the_lists_are_excluded(tmp_path):
    path = saved(tmp_path / "x.parquet", pieces(X, "list", 1))
    table = io.read_table(path)
    assert "passed through: year (to embed these: --exclude vector)" in table.notes[0]
    assert np.array_equal(io.read_table(path, features="vector").values, X)
    for options in ({"exclude": "vector"}, {"features": "year"}):
        table = io.read_table(path, **options)
        assert table.columns == ("year",)
        assert "left out: vector (list<" in table.notes[0]


REFUSED = {
    "two columns": ({"a": X, "b": X}, {}, r"several columns of lists: a, b; name .*--features a"),
    "with others": ({"a": X, "n": YEARS}, {"features": ["a", "n"]}, "'a' are points by themselves"),
    "encoded": ({"a": X}, {"encode": True}, "leave out encode=True .*--exclude a"),
    "empty lists": ({"a": X[:, :0]}, {}, "no numbers in its lists"),
    "no rows": ({"a": X[:0]}, {}, "no rows; pass a table with some"),
    "no rows of numbers": (
        {"a": np.empty(0)},
        {"missing": "error"},
        "no rows; pass a table with some",
    ),
    "first size": ({"a": [X[0, :2], *X]}, {}, f"'a' holds 2 numbers in row 0, not {D}"),
    "other size": ({"a": [*X, X[0, :2]]}, {}, f"'a' holds 2 numbers in row {N}, not {D}"),
    "integers": ({"a": [[1], [2**53 + 1]]}, {}, r"'a' holds integers in row 1, .* float64"),
    "no numbers": (
        {"a": [["b"], ["c"]], "n": [1, 2]},
        {"features": "a"},
        "'a' holds list<.*string",
    ),
    "of text": ({"a": [["b"], ["c"]]}, {}, r"no numeric column .*; left out: a \(list<.*string"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_point_is_refused_by_name_and_row(tmp_path, name):
    columns, options, words = REFUSED[name]
    arrow = {key: pa.array(list(x)) for key, x in columns.items()}
    arrow = {key: x.cast(LISTS) if x.type == pa.null() else x for key, x in arrow.items()}
    path = saved(tmp_path / "x.parquet", None, arrow)
    with pytest.raises(ValueError, match=words):
        io.read_table(path, **options)


@pytest.mark.parametrize("options", [{}, {"exclude": "v"}, {"features": ["v[0]", "v[1]"]}])
def test_a_column_with_the_name_of_an_entry_is_refused_however_it_is_read(tmp_path, options):
    lists = pa.array(X[:, :2].tolist())
    learned = io.read_table(saved(tmp_path / "x.parquet", None, {"v": lists})).learned
    more = {"v": lists, "v[0]": X[:, 2], "v[1]": X[:, 3]}
    path = saved(tmp_path / "both.parquet", None, more)
    said = r"'v\[0\]' has the name of an entry of the lists in column 'v'; rename"
    for read in (
        lambda: io.read_table(path, **options),
        lambda: open_blocks(path, Reading(**options)),
        lambda: read_like(path, learned),
    ):
        with pytest.raises(ValueError, match=said):
            read()


@pytest.mark.parametrize("blocks", [False, True])
def test_missing_lists_and_entries_are_gaps_of_their_rows(tmp_path, limits, blocks):
    limits(block_bytes=400)
    lists = X.tolist()
    lists[3], lists[77][2] = None, None
    for kind in (LISTS, pa.list_(pa.float64(), D)):
        path = saved(tmp_path / "x.parquet", pa.array(lists, kind))
        if blocks:
            table = joined(list(open_blocks(path, Reading()).tables(N)))
        else:
            table = io.read_table(path)
            dropped = io.read_table(path, missing="drop")
            assert np.array_equal(dropped.values, np.delete(X, [3, 77], axis=0))
            with pytest.raises(ValueError, match=r"first in row 3, column 'vector\[0\]'"):
                io.read_table(path, missing="error")
        gaps = np.isnan(table.values)
        assert gaps[3].all()
        assert gaps[77].tolist() == [False, False, True, False, False]
        assert gaps.sum() == D + 1
        assert np.array_equal(table.values[~gaps], X[~gaps])


def test_new_rows_have_the_same_column_and_size(tmp_path):
    learned = io.read_table(saved(tmp_path / "x.parquet", pieces(X, "list", 2))).learned
    more = {"year": YEARS, "other": pieces(2 * X, "fixed", 1), "vector": pieces(X, "fixed", 1)}
    new = saved(tmp_path / "new.parquet", None, more)
    assert np.array_equal(read_like(new, learned).values, X)
    cases = {
        "no column 'vector' of lists; its lists are other: rename": {
            "other": pieces(X, "fixed", 1)
        },
        "no column 'vector'; choose from year": {"year": YEARS},
        "holds 4 numbers in row 0, not 5": {"vector": pa.array(X[:, :4].tolist())},
        "holds double, not lists of 5 numbers": {"vector": X[:, 0]},
    }
    for words, columns in cases.items():
        with pytest.raises(ValueError, match=words):
            read_like(saved(tmp_path / "new.parquet", None, columns), learned)


def test_a_model_of_an_array_and_one_of_lists_say_what_the_other_needs(tmp_path):
    np.save(tmp_path / "x.npy", X)
    path = saved(tmp_path / "x.parquet", pieces(X, "list", 2))
    of_array, of_lists = (io.read_table(tmp_path / n).learned for n in ("x.npy", "x.parquet"))
    with pytest.raises(
        ValueError, match=r"no names of columns, .* write lists in a column 'vector'"
    ):
        read_like(tmp_path / "x.npy", of_lists)
    with pytest.raises(ValueError, match=r"write np\.stack of its column 'vector' to a \.npy file"):
        read_like(path, of_array)
    np.save(tmp_path / "new.npy", np.stack(pd.read_parquet(path)["vector"]))
    assert np.array_equal(read_like(tmp_path / "new.npy", of_array).values, X)


def test_commands_keep_the_columns_beside_lists_and_map_new_rows_alike(tmp_path):
    path, np_path = saved(tmp_path / "x.parquet", pieces(X, "fixed", 2)), tmp_path / "x.npy"
    np.save(np_path, X)
    how = ["-q", "-m", "heat-sketch", "--n-components", "4"]
    model, out, new = (str(tmp_path / name) for name in ("my.model", "out.parquet", "new.parquet"))
    assert main(["embed", str(path), "-o", out, "--save-model", model, *how]) == 0
    assert main(["embed", str(np_path), "-o", str(tmp_path / "y.npy"), *how]) == 0
    assert main(["transform", model, str(path), "-o", new, "-q"]) == 0
    for name in (out, new):
        table = parquet.read_table(name)
        assert table["id"].to_pylist() == IDS
        Y = np.stack([table[name].to_numpy() for name in table.column_names[-4:]], axis=1)
        assert np.array_equal(Y, np.load(tmp_path / "y.npy"))


def test_lists_are_no_picture_unless_they_are_named(tmp_path):
    xy = {"umap_1": X[:, 0], "umap_2": X[:, 1], "vector": pieces(X, "list", 1)}
    path = saved(tmp_path / "picture.parquet", None, xy)
    assert io.formats.read_embedding(path).columns == ("umap_1", "umap_2")
    found = io.formats.read_embedding(path, coordinates=["vector"])
    assert np.array_equal(found.values, X)


def test_half_precision_is_read_as_single(tmp_path):
    half = X.astype("f2")
    path = saved(tmp_path / "x.parquet", None, {f"x{j}": half[:, j] for j in range(D)})
    table = io.read_table(path)
    assert table.values.dtype == np.float32
    assert np.array_equal(table.values, half)
    A = sparse.csr_matrix(half.astype("f4"))
    A.data = A.data.astype("f2")  # SciPy makes none by itself
    assert np.array_equal(SKETCH.fit_transform(A), SKETCH.fit_transform(A.astype("f4")))


FORMS = {
    "pandas, arrays": lambda: pd.Series([*X], index=range(5, N + 5)),
    "pandas, lists": lambda: pd.Series(X.tolist()),
    "pandas, Arrow": lambda: pd.Series(pieces(X, "list", 2), dtype=pd.ArrowDtype(LISTS)),
    "polars, lists": lambda: pl.Series(X.tolist()),
    "polars, arrays": lambda: pl.Series(X, dtype=pl.Array(pl.Float64, D)),
    "Arrow": lambda: pieces(X, "list", 3),
    "objects": lambda: np.array([*X, None], object)[:-1],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_column_of_arrays_is_an_array_in_python(form):
    column, expected = FORMS[form](), SKETCH.fit_transform(X)
    model = SKETCH.fit(column)
    assert np.array_equal(model.embedding_, expected)
    assert np.array_equal(model.transform(column), model.transform(X))
    assert hs.ksum(column).epsilon == hs.ksum(X).epsilon


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_with_one_column_of_arrays_is_that_column(make):
    frame = make({"vector": pl.Series(X.tolist()) if make is pl.DataFrame else X.tolist()})
    model = SKETCH.fit(frame)
    assert np.array_equal(model.embedding_, SKETCH.fit_transform(X))
    assert np.array_equal(model.transform(frame), model.transform(X))
    features = [one["name"] for one in hs.report(model, frame).facts["columns"]]
    assert features == [one["name"] for one in hs.report(model, X).facts["columns"]]


@pytest.mark.parametrize("make", [pd.Series, pl.Series, pa.array])
@pytest.mark.parametrize("row", [0, 3, N - 1])
def test_the_row_that_differs_is_the_one_unlike_most(make, row):
    for other in ([0.0] * (D + 1), [0.0] * (D - 1)):
        with pytest.raises(ValueError, match=f"row {row} differs from most"):
            SKETCH.fit(make([*X[:row].tolist(), other, *X[row:].tolist()]))


DEEP = X[:, :4].reshape(N, 2, 2)
NO_POINTS = {
    "arrays": (pd.Series([*DEEP]), r"row 0 \(rows count from 0\) has 2 dimensions; pass a one-dim"),
    "one array": (pd.Series([*X, DEEP[0]]), f"row {N} .* has 2 dimensions; pass a one-dim"),
    "polars": (pl.Series(DEEP.tolist()), "lists of .*list<.*; pass a one-dimensional array"),
    "Arrow": (pa.array(DEEP.tolist()), "lists of list<.*; pass a one-dimensional array"),
    "words": (pa.array([["a"], ["b"]]), "lists of string; pass a one-dimensional array of numbers"),
    "nothing": (pd.Series([], dtype=object), "X is a column without rows; pass"),
    "nothing of polars": (pl.Series([], dtype=pl.List(pl.Float64)), "a column without rows; pass"),
    "nothing of Arrow": (pa.array([], LISTS), "X is a column without rows; pass"),
}


@pytest.mark.parametrize("name", NO_POINTS)
def test_a_column_of_something_else_is_refused_with_what_to_pass(name):
    column, words = NO_POINTS[name]
    with pytest.raises(ValueError, match=words):
        SKETCH.fit(column)


@pytest.mark.filterwarnings("error")
def test_a_lazy_frame_is_to_be_collected():
    frame = pl.DataFrame({"v": X.tolist()})
    with pytest.raises(TypeError, match=r"LazyFrame, .* pass X\.collect\(\)"):
        SKETCH.fit(frame.lazy())
    assert np.array_equal(SKETCH.fit_transform(frame.lazy().collect()), SKETCH.fit_transform(X))


def test_advice_for_gaps_in_lists_is_followed(tmp_path):
    """A row without any number can only be dropped; a gap in a row can be filled."""
    for lists, ways in (
        ([*X[:9].tolist(), None, *X[10:].tolist()], {"drop"}),
        ([*X[:9].tolist(), [None, *X[9, 1:]], *X[10:].tolist()], {"drop", "median", "keep"}),
    ):
        path = saved(tmp_path / "x.parquet", None, {"v": pa.array(lists)})
        with pytest.raises(ValueError, match="row 9") as caught:
            io.read_table(path, missing="error")
        advice = str(caught.value).rpartition(";")[2]
        assert {way for way in ("drop", "median", "keep") if way in advice} == ways
        assert "exclude" not in str(caught.value)
        for way in ways:
            SKETCH.fit(io.read_table(path, missing=way).values)


def test_markers_advises_no_option_that_it_lacks(tmp_path, capsys):
    more = {"vector": pieces(X, "list", 1), "year": YEARS, "group": ["a", "b"] * (N // 2)}
    path = saved(tmp_path / "x.parquet", None, more)
    assert main(["markers", str(path), "--label", "group"]) == 0
    said = capsys.readouterr()
    assert "passed through: year" in said.out + said.err
    assert "--exclude" not in said.out + said.err


def test_columns_of_arrays_of_other_sizes_are_refused_with_the_row():
    ragged, gap = [*X], [*X]
    ragged[7], gap[7] = X[7, :2], None
    lists = pa.array([*map(np.ndarray.tolist, ragged)])
    for column in (pd.Series(ragged), pd.Series(gap), lists, pd.Series([np.nan, *X])):
        row = 0 if len(column) > N else 7
        with pytest.raises(ValueError, match=f"not of one size: row {row} differs"):
            SKETCH.fit(column)
    with pytest.raises(ValueError, match=r"'vector' holds arrays, .* pass X\['vector'\]"):
        SKETCH.fit(pd.DataFrame({"vector": [*X], "year": YEARS}))


def arrow_stream(table, path):
    with ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table, max_chunksize=50)


def arrow_file(table, path):
    with ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=50)


ARROW = {
    "stream": ("x.arrow", arrow_stream),
    "file": ("x.arrow", arrow_file),
    "feather": ("x.feather", feather.write_feather),
    "zstd": ("x.feather", lambda *given: feather.write_feather(*given, compression="zstd")),
    "polars": ("X.ARROW", lambda table, path: pl.from_arrow(table).write_ipc(path)),
}


@pytest.mark.parametrize("form", ARROW)
@pytest.mark.parametrize("columns", ["lists", "numbers"])
def test_a_file_of_arrow_is_read_as_the_same_in_parquet(tmp_path, limits, form, columns):
    name, write = ARROW[form]
    single = X.astype("f4")
    points = {"v": pieces(single, "list", 3)}
    if columns == "numbers":
        points = {f"x{j}": single[:, j] for j in range(D)}
    table = pa.table({"id": IDS, "word": pa.array(IDS).dictionary_encode(), **points})
    write(table, tmp_path / name)
    parquet.write_table(table, tmp_path / "x.parquet")
    want, found = io.read_table(tmp_path / "x.parquet"), io.read_table(tmp_path / name)
    limits(block_bytes=400)
    for start in (0, 33, N - 1):
        pieces_of = open_blocks(tmp_path / name, Reading())
        assert (pieces_of.n, pieces_of.dtype) == (N, np.float32)
        assert max(len(one.values) for one in pieces_of.read(start)) < N / 2
        for one in (found.take(slice(start, None)), joined(list(pieces_of.tables(7, start)))):
            assert one.values.dtype == np.float32
            assert np.array_equal(one.values, want.values[start:])
            assert one.columns == want.columns
            extra = {key: x.tolist() for key, x in one.extra.items()}
            assert extra == {key: x[start:].tolist() for key, x in want.extra.items()}


def test_a_folder_of_streams_and_an_index_of_pandas(tmp_path):
    frame = pd.DataFrame({"v": [*X]}, index=pd.Index(IDS, name="key"))
    table = pa.Table.from_pandas(frame)
    (tmp_path / "state.json").write_text("{}")  # as Hugging Face datasets stores them
    for number, at in enumerate((0, 70)):
        part = table.slice(at, 70)
        arrow_stream(part, tmp_path / f"data-0000{number}-of-00002.arrow")
    found = joined(list(open_blocks(tmp_path, Reading()).tables(N)))
    assert np.array_equal(found.values, X)
    assert found.extra["key"].tolist() == IDS


def test_a_graph_of_arrow_is_that_of_parquet(tmp_path):
    table = pa.table({"source": ["a", "b"], "target": ["b", "c"], "weight": [2.0, 1.0]})
    arrow_file(table, tmp_path / "g.arrow")
    parquet.write_table(table, tmp_path / "g.parquet")
    one, other = (io.read_graph(tmp_path / name) for name in ("g.arrow", "g.parquet"))
    assert (one.values != other.values).nnz == 0
    assert one.extra["id"].tolist() == other.extra["id"].tolist()


@pytest.mark.parametrize("form", ["stream", "file", "zstd"])
def test_a_damaged_file_of_arrow_is_an_error_or_the_same_shape(tmp_path, form):
    """A wrong offset would let Arrow read beyond its memory."""
    name, write = ARROW[form]
    write(pa.table({"id": IDS, "v": pieces(X, "list", 1)}), tmp_path / name)
    whole, rng = (tmp_path / name).read_bytes(), np.random.default_rng(0)
    for at in rng.integers(0, len(whole), 150):
        damaged = bytearray(whole)
        damaged[at : at + 4] = rng.bytes(4)
        (tmp_path / name).write_bytes(damaged)
        with suppress(ValueError):
            assert io.read_table(tmp_path / name).values.ndim == 2
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=f"{name} cannot be read"):
        io.read_table(tmp_path / name)


def test_an_arrow_file_is_only_read(tmp_path):
    table = io.read_table(saved(tmp_path / "x.parquet", pieces(X, "list", 1)))
    with pytest.raises(ValueError, match=r"no known suffix; choose from .*\.parquet"):
        io.write_table(tmp_path / "y.arrow", X[:, :2], ["a", "b"], table)
