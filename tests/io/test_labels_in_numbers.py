"""Labels in numbers and counters of rows are no features, and whole numbers that are stay."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

import heatsketch as hs
from heatsketch import io
from heatsketch.cli import main
from heatsketch.io.formats import open_blocks
from heatsketch.io.table import Reading
from problems.clouds import cloud

X = cloud(60, 3, seed=1)
CODES = np.arange(60) % 3


def test_labels_in_another_file_are_told_where_they_go(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(9))
    np.save(tmp_path / "well.npy", np.arange(9))
    for given in ("label", "ids"):
        with pytest.raises(ValueError, match=r"well\.npy is a file, but labels and ids"):
            io.read_table(tmp_path / "X.npy", **{given: str(tmp_path / "well.npy")})


def written(path, values, names, **columns):
    table = pd.DataFrame(dict(zip(names, np.asarray(values).T, strict=True)) | columns)
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("name", ["Outcome", "cluster", "species", "y", "leiden"])
def test_few_whole_numbers_under_the_name_of_a_label_are_labels(tmp_path, name, suffix):
    path = written(tmp_path / f"t{suffix}", X, "abc", **{name: CODES})
    table = io.read_table(path)
    assert table.columns == ("a", "b", "c")
    assert table.label == name
    assert table.extra[name].tolist() == CODES.tolist()
    (note,) = table.notes
    assert note.startswith(f"{name!r} is passed through as labels")
    blocks = open_blocks(path, Reading())
    assert blocks.columns == table.columns
    assert blocks.notes == table.notes
    asked = io.read_table(path, features=["a", name])
    assert asked.columns == ("a", name)
    assert asked.notes == ()
    np.testing.assert_array_equal(asked.values[:, 1], CODES)


@pytest.mark.parametrize("n", [8, 40, 60])
def test_text_that_repeats_is_a_label_before_text_that_names_each_point(tmp_path, n):
    names, kinds = [f"s{i}" for i in range(n)], [f"k{i % 4}" for i in range(n)]
    path = written(tmp_path / "t.csv", X[:n], "abc", sample=names, kind=kinds)
    assert io.read_table(path).label == "kind"
    assert io.read_table(path, label="sample").label == "sample"


def test_labels_of_which_none_repeats_agree_with_nothing(tmp_path, capsys):
    path = written(tmp_path / "t.csv", X[:20], "abc", sample=[f"s{i}" for i in range(20)])
    assert main(["embed", str(path), "-o", str(tmp_path / "map.npy"), "--time", "4"]) == 0
    assert "agreement" not in capsys.readouterr().out


def test_embed_says_which_labels_it_leaves_out(tmp_path, capsys):
    path = written(tmp_path / "t.csv", X, "abc", Outcome=CODES)
    assert main(["embed", str(path), "-o", str(tmp_path / "map.npy"), "--time", "4"]) == 0
    said = capsys.readouterr().out
    assert "3 features: a, b, c (passed through: Outcome)" in said
    assert "'Outcome' is passed through as labels" in said
    assert "(Outcome by 10 nearest, leave one out)" in said
    expected = hs.HeatEmbedding(time=4, random_state=0).fit_transform(X)
    np.testing.assert_allclose(np.load(tmp_path / "map.npy"), expected, atol=1e-9)


def test_several_parts_by_blocks_say_so_too(tmp_path):
    written(tmp_path / "part-1.csv", cloud(300, 3), "abc", outcome=np.arange(300) % 3)
    done = hs.distributed.embed(
        tmp_path, tmp_path.with_suffix(".npy"), hs.HeatSketch(2, random_state=0), fit_points=100
    )
    assert done.estimator.n_features_in_ == 3
    assert "'outcome' is passed through as labels" in done.notes[0]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("place", [0, 2, 3])
@pytest.mark.parametrize(
    "counter", [np.arange(60), 1990 + CODES.argsort(), 10 * np.arange(60, 0, -1)]
)
def test_whole_numbers_in_equal_steps_are_ids(tmp_path, counter, place, suffix):
    path, names = tmp_path / f"t{suffix}", list("abc")
    names.insert(place, "Player No")
    written(path, np.insert(X, place, counter, axis=1), names)
    table, blocks = io.read_table(path), open_blocks(path, Reading())
    assert table.columns == blocks.columns == ("a", "b", "c")
    np.testing.assert_array_equal(table.values, X)
    np.testing.assert_array_equal(table.extra["Player No"], counter)
    assert table.label is None
    (note,) = table.notes
    assert blocks.notes == table.notes
    assert note.startswith("'Player No' is passed through as an id")
    asked = io.read_table(path, features=names)
    np.testing.assert_array_equal(asked.values[:, place], counter)
    assert asked.notes == ()


def test_a_short_part_has_the_features_of_the_first(tmp_path):
    for part, rows in enumerate((slice(50), slice(50, None))):
        counted = np.arange(60)[rows]
        written(tmp_path / f"part-{part}.csv", X[rows], "abc", number=counted)
    assert open_blocks(tmp_path, Reading()).columns == ("a", "b", "c")
    excluded = open_blocks(tmp_path, Reading(exclude="a"))
    assert excluded.columns == ("b", "c")
    np.testing.assert_array_equal(next(excluded.tables(60)).values, X[:, 1:])


def one_hot():
    return np.eye(3)[CODES], ["species_0", "species_1", "species_2"]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (load_digits().data[:100], [f"pixel{j}" for j in range(64)]),
        (load_wine().data, load_wine().feature_names),
        (load_iris().data, load_iris().feature_names),
        one_hot(),
        (np.column_stack([X, np.arange(60) ** 2]), ["a", "b", "c", "cluster"]),  # not few
        (np.column_stack([X, np.arange(60) / 2]), "abcd"),  # not whole
        (np.column_stack([X, np.arange(60) // 2]), "abcd"),  # not different
        (np.column_stack([X[:19], np.arange(19)]), "abcd"),  # too few rows
        (np.column_stack([np.arange(60), np.arange(60)[::-1]]), "ab"),  # nothing else
        (np.column_stack([X, X[:, 0]]), ["a", "b", "c", "species"]),  # not whole
        (np.indices((8, 8)).reshape(2, -1).T, "xy"),  # a grid
        (CODES[:, None], ["group"]),  # nothing else
    ],
)
def test_other_columns_stay_features(tmp_path, values, names):
    table = io.read_table(written(tmp_path / "t.csv", values, names))
    assert table.columns == tuple(names)
    assert table.notes == ()
    np.testing.assert_array_equal(table.values, values)


def test_a_column_that_is_kept_and_excluded_is_refused(tmp_path):
    path = written(tmp_path / "t.csv", X, "abc")
    with pytest.raises(ValueError, match=r"\(--features and --exclude\) both name 'a'; leave it"):
        io.read_table(path, features=["a", "b"], exclude="a")
