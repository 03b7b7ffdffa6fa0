"""Tables of columns of all types in files: the numbers of `TableEncoder`, for new files too."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import heatsketch as hs
from heatsketch import io
from heatsketch.cli import main
from heatsketch.io.table import Reading

pa = pytest.importorskip("pyarrow")

N = 60
COLUMNS = {
    "weight": np.random.default_rng(0).normal(60, 9, N).round(3),
    "colour": ["red", "green", "blue"] * (N // 3),
    "born": [f"19{50 + i % 40}-07-01" for i in range(N)],
    "smokes": ["true", "false"] * (N // 2),
    "id": [f"person{i}" for i in range(N)],
    "outcome": ["ill", "well", "well", "ill"] * (N // 4),
}
FEATURES = ("weight", "colour", "born", "smokes")
MEANT = {name: COLUMNS[name] for name in FEATURES} | {"smokes": [1.0, 0.0] * (N // 2)}


def write(path, rows=slice(None), **changed):
    columns = {name: list(column)[rows] for name, column in (COLUMNS | changed).items()}
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "people.csv")


def test_the_numbers_are_those_of_the_encoder(file):
    table = io.read_table(file, label="outcome", encode=True)
    encoder = hs.TableEncoder()
    assert_array_equal(table.values, encoder.fit_transform(MEANT))
    assert list(table.columns) == encoder.get_feature_names_out().tolist()
    assert {*table.extra} == {"id", "outcome"}
    said = table.learned["encoder"].describe()
    assert "born: date" in said
    assert "colour: 3 categories" in said
    columns = encoder.columns_.values()
    left_out = [column for column in columns if column.kind == "left out"]
    *_, aside, told = table.notes
    assert aside == "labels are no features: outcome"
    used = len(columns) - len(left_out)
    counted, _, named = told.partition("; left out: ")
    assert counted == f"{table.values.shape[1]} features of {used} columns"
    assert named == ", ".join(f"{column.name} ({column.why})" for column in left_out)


def test_parquet_has_the_types_of_its_columns(tmp_path):
    from pyarrow import parquet

    parquet.write_table(pa.table(MEANT), tmp_path / "people.parquet")
    table = io.read_table(tmp_path / "people.parquet", encode=True)
    assert_array_equal(table.values, hs.TableEncoder().fit_transform(MEANT))


def test_columns_of_arrays_count_alike_too(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3)) * [1, 10, 100]
    np.save(tmp_path / "X.npy", X)
    table = io.read_table(tmp_path / "X.npy", encode=True)
    assert_array_equal(table.values, hs.TableEncoder().fit_transform(X))


def test_named_features_may_be_of_any_type(file):
    table = io.read_table(file, features=("colour", "weight"), encode=True)
    assert table.columns == ("colour=blue", "colour=green", "colour=red", "weight")
    with pytest.raises(ValueError, match="--encode"):
        io.read_table(file, features=("colour", "weight"))


def test_gaps_are_filled_by_medians_and_frequent_categories(tmp_path):
    colours, weights = list(COLUMNS["colour"]), list(COLUMNS["weight"])
    colours[:3] = ["NA", "red", "red"]
    weights[1] = ""
    file = write(tmp_path / "gaps.csv", colour=colours, weight=weights)
    how = {"features": ("colour", "weight"), "encode": True}
    kept = io.read_table(file, **how).values
    filled = io.read_table(file, **how, missing="median").values
    assert np.isnan(kept[0, :3]).all()
    assert np.isnan(kept[1, 3])
    assert_array_equal(filled[0, :3], filled[1, :3])  # red is the most frequent one
    assert filled[1, 3] == np.nanmedian(kept[:, 3])


def test_words_that_look_like_numbers_in_another_file_stay_words(tmp_path):
    codes = ["1", "x", "y", "z"] * (N // 4)
    file = write(tmp_path / "codes.csv", colour=codes)
    table = io.read_table(file, features=("colour", "weight"), encode=True)
    rows = [row for row in range(N) if codes[row] == "1"]
    lines = [f"{COLUMNS['weight'][row]},{codes[row]}" for row in rows]
    (tmp_path / "new.csv").write_text("\n".join(["weight,colour", *lines]))
    new = io.formats.read_like(tmp_path / "new.csv", table.learned)
    assert_array_equal(new.values, table.values[rows])


def test_standardised_columns_and_blocks_of_arrays_are_refused(file, tmp_path):
    with pytest.raises(ValueError, match="leave out standardize"):
        io.read_table(file, encode=True, standardize=True)
    np.save(tmp_path / "X.npy", np.eye(9))
    for source in (tmp_path / "X.npy", tmp_path, np.eye(9)):
        with pytest.raises(ValueError, match=r"for one text, \.parquet or \.arrow file"):
            io.formats.open_blocks(source, Reading(encode=True))


def long_table(n=4_000):
    """Return columns that look otherwise in some of their blocks than in all rows."""
    rng = np.random.default_rng(1)
    codes = np.array(list("vwxyz"))[rng.integers(0, 5, n)]
    codes[: n // 3] = rng.integers(0, 2, n // 3)
    late = np.array([""] * (n - 900) + ["north", "south", "west"] * 300, object)
    words = np.array([f"rare {i % 97}" if i % 50 == 0 else "ab"[i % 2] for i in range(n)], object)
    return {
        "weight": rng.normal(70, 9, n).round(3).astype(str),
        "gaps": np.where(rng.random(n) < 0.2, "NA", rng.integers(0, 99, n).astype(str)),
        "code": codes,  # numbers in the first blocks
        "late": late,  # nothing in these
        "word": words,
        "born": np.datetime_as_string(np.datetime64("1950-01-01") + rng.integers(0, 9999, n)),
        "smokes": np.array(["true", "false"])[rng.integers(0, 2, n)],
        "name": np.array([f"person {i}" for i in range(n)]),
        "outcome": np.array(["ill", "well"])[rng.integers(0, 2, n)],
    }


@pytest.fixture(params=[".csv", ".parquet"])
def long_file(request, tmp_path, limits):
    """Return a file that is read by many blocks."""
    limits(block_bytes=2**15)
    columns, path = long_table(), tmp_path / f"people{request.param}"
    if request.param == ".csv":
        lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
    else:
        from pyarrow import parquet

        typed = columns | {"weight": columns["weight"].astype(float)}
        parquet.write_table(pa.table(typed), path)
    return path


@pytest.mark.parametrize("room", [2**40, 2**10])  # columns together, or one by one
def test_blocks_have_the_numbers_of_the_whole_table(long_file, room, limits):
    want = io.read_table(long_file, label="outcome", encode=True)
    limits(available=lambda: room)
    points = io.formats.open_blocks(long_file, Reading(label="outcome", encode=True))
    found = list(points.read(0))
    assert len(found) > 5
    assert_array_equal(np.vstack([block.values for block in found]), want.values)
    assert points.columns == want.columns
    assert points.notes == want.notes == ("labels are no features: outcome", want.notes[-1])
    assert f"{len(points.columns)} features of " in want.notes[-1]
    assert "code: 7 categories" in want.learned["encoder"].describe()
    start = sum(len(block.values) for block in found[:3])
    rest = np.vstack([block.values for block in points.read(start)])
    assert_array_equal(rest, want.values[start:])


@pytest.mark.parametrize("missing", ["median", "keep"])
def test_a_map_by_blocks_is_that_of_the_encoded_table(long_file, missing, tmp_path):
    """All points are fitted, so that the sample is no other set."""
    out, model = tmp_path / "map.npy", str(tmp_path / "m.model")
    how = {"label": "outcome", "encode": True, "missing": missing}
    method = hs.DiffusionMap(2, 2)
    hs.distributed.embed(long_file, out, method, fit_points=4_000, model=model, **how)
    want = method.fit_transform(io.read_table(long_file, **how).values)
    assert_array_equal(np.load(out), want)
    assert main(["transform", model, str(long_file), "-o", str(tmp_path / "again.npy"), "-q"]) == 0
    np.testing.assert_allclose(np.load(tmp_path / "again.npy"), want, atol=1e-9)


def test_the_command_reads_by_blocks(long_file, tmp_path, capsys):
    how = ["--encode", "--label", "outcome", "--missing", "keep", "--method", "diffusion-map"]
    out, model = str(tmp_path / "map.npy"), str(tmp_path / "a.model")
    how += ["--save-model", model]
    assert main(["embed", str(long_file), "-o", out, *how, "--fit-points", "1000", "-q"]) == 0
    said = capsys.readouterr().out
    assert "read by blocks" in said
    assert "labels are no features: outcome; 17 features of " in said
    assert "code: 7 categories" not in said
    again = [model, str(long_file), "-o", out, "--force", "--missing", "keep"]
    assert main(["transform", *again, "--verbose"]) == 0
    assert "code: 7 categories" in capsys.readouterr().out
    assert len(np.load(out)) == 4_000


def test_a_model_encodes_new_rows_as_its_own(file, tmp_path, capsys):
    model, first, again = (str(tmp_path / name) for name in ("m.model", "a.csv", "b.csv"))
    given = ["--label", "outcome", "--encode", "--method", "diffusion-map", "-q"]
    assert main(["embed", file, "-o", first, *given, "--save-model", model, "--verbose"]) == 0
    said = capsys.readouterr().out
    assert "smokes: number" in said
    assert "colour: 3 categories (blue, green, red)" in said
    part = write(tmp_path / "part.csv", slice(0, 9))
    assert main(["transform", model, part, "-o", again, "-q"]) == 0
    want, found = io.read_table(first).values, io.read_table(again).values
    assert_array_equal(found, want[:9])
    assert main(["score", file, first, *given[:3], "--time", "1", "-q"]) == 0


def test_what_is_asked_for_already_is_not_advised(tmp_path):
    path = tmp_path / "weights.csv"
    path.write_text("weight\n" + "\n".join([*(str(w) for w in range(20)), "heavy"]) + "\n")
    with pytest.raises(ValueError, match=r"'heavy' in .*encode=True"):
        io.read_table(path)
    with pytest.raises(ValueError, match="'heavy' in") as found:
        io.read_table(path, encode=True)
    assert "encode" not in str(found.value)


def test_an_impossible_date_is_named_with_its_file(tmp_path, capsys):
    lines = ["when,x", *(f"2024-01-{day},{day}.5" for day in range(10, 29)), "2024-02-30,7"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    for more in ([], ["--fit-points", "10"]):
        how = ["--encode", "--method", "heat-sketch", *more]
        assert main(["embed", str(path), "-o", str(tmp_path / "o.csv"), *how, "-q"]) == 1
        said = capsys.readouterr().err
        assert f"{path}: Column 'when' holds '2024-02-30' in row 19" in said
        assert "suffix" not in said


@pytest.mark.parametrize("kind", ["numbers", "text"])
def test_a_column_of_lists_is_not_encoded(kind, tmp_path):
    from pyarrow import parquet

    lists = pa.array([[1.0, 2.0] if kind == "numbers" else ["a", "b"]] * 9)
    parquet.write_table(pa.table({"x": np.arange(9.0), "lists": lists}), tmp_path / "t.parquet")
    if kind == "text":
        table = io.read_table(tmp_path / "t.parquet", encode=True)
        assert table.columns == ("x",)
        assert "left out: lists (list<" in table.notes[0]
        return
    with pytest.raises(ValueError, match=r"'lists' holds lists, .*--exclude lists"):
        io.read_table(tmp_path / "t.parquet", encode=True)
    found = io.read_table(tmp_path / "t.parquet", encode=True, exclude="lists")
    assert found.columns == ("x",)


def test_dates_that_are_read_as_categories_are_named(tmp_path):
    days = [f"{11 + i % 4}/0{1 + i % 4}/2024" for i in range(N)]
    table = io.read_table(write(tmp_path / "days.csv", born=days), label="outcome", encode=True)
    *_, named = table.notes[-1].partition("; categories: ")
    assert named.startswith("born (looks like dates, day or month first?")
    plain = io.read_table(write(tmp_path / "plain.csv"), label="outcome", encode=True)
    assert "day or month first?" not in "".join(plain.notes)
