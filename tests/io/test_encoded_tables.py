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
    assert "born: date" in table.notes[-1]
    assert "colour: 3 categories" in table.notes[-1]


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


def test_blocks_and_standardised_columns_are_refused(file):
    with pytest.raises(ValueError, match="leave out standardize"):
        io.read_table(file, encode=True, standardize=True)
    with pytest.raises(ValueError, match="needs the whole"):
        io.formats.open_blocks(file, Reading(encode=True))


def test_a_model_encodes_new_rows_as_its_own(file, tmp_path, capsys):
    model, first, again = (str(tmp_path / name) for name in ("m.model", "a.csv", "b.csv"))
    given = ["--label", "outcome", "--encode", "--method", "diffusion-map", "-q"]
    assert main(["embed", file, "-o", first, *given, "--save-model", model]) == 0
    said = capsys.readouterr().out
    assert "smokes: number" in said
    assert "colour: 3 categories (blue, green, red)" in said
    part = write(tmp_path / "part.csv", slice(0, 9))
    assert main(["transform", model, part, "-o", again, "-q"]) == 0
    want, found = io.read_table(first).values, io.read_table(again).values
    assert_array_equal(found, want[:9])
    assert main(["score", file, first, *given[:3], "--time", "1", "-q"]) == 0
