"""Rows that were left out, and columns with the names of coordinates: nothing may shift."""

import numpy as np
import pandas as pd
import pytest

import heatsketch as hs
from heatsketch import io
from problems.clouds import cloud


def write(path, X, **columns):
    pd.DataFrame(dict(zip("xyz", X.T, strict=True)) | columns).to_csv(path, index=False)


def test_rows_keep_their_numbers_where_others_are_left_out(run):
    X = cloud(60, 3)
    X[3, 0] = np.nan
    write("gap.csv", X)
    write("whole.csv", np.delete(X, 3, axis=0))
    said, whole = (
        run("distances", *words.split(), "-o", out, "--time", "4")
        for words, out in (
            ("gap.csv --from 11 --missing drop", "gap.tsv"),
            ("whole.csv --from 10", "whole.tsv"),
        )
    )
    assert said.lines["changed"] == "1 of 60 rows left out, for they have gaps: 3"
    assert "changed" not in whole.lines
    found, expected = (pd.read_csv(name, sep="\t") for name in ("gap.tsv", "whole.tsv"))
    assert found["to"].tolist() == [i + (i >= 3) for i in expected["to"]]
    np.testing.assert_array_equal(found["distance"], expected["distance"])


def test_points_that_gaps_take_out_are_not_paired_by_their_rows(run):
    for name, row in (("a.csv", 3), ("b.csv", 50)):
        X = cloud(60, 3)
        X[row, 0] = np.nan
        write(name, X)
    said = run("compare", "a.csv", "b.csv", "--same-rows", "--missing", "drop", code=2)
    assert "--missing drop leaves other rows out of each file" in said.err


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_a_column_with_the_name_of_a_coordinate_takes_none_away(run, suffix):
    X = cloud(60, 3)
    write("points.csv", X, heatembedding0=[f"t{i % 3}" for i in range(60)])
    run("embed", "points.csv", "-o", f"map{suffix}", "--time", "4")
    ids = () if suffix == ".npz" else "heatembedding0_input"
    Y = io.read_table(f"map{suffix}", ids=ids).values[:, :2]
    want = hs.metrics.diffusion_distortion(Y, hs.diffusion(X), 4, filter="accumulated").log_L
    said = run("score", "points.csv", f"map{suffix}", "--time", "4")
    assert float(said.lines["log L"]) == pytest.approx(want, rel=1e-3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("compare a.csv a.csv --same-rows --methods pca", "leave out OTHER"),
        ("compare a.csv -o out --same-rows", "--same-rows compares two files"),
        ("compare a.csv a.csv --same-rows --time 2,4", "--time has 2 times"),
        ("audit a.csv a.csv -o page.html --table t.parquet", "t.parquet has no known suffix"),
    ],
)
def test_options_that_would_be_ignored_are_refused(run, words, message):
    write("a.csv", cloud(40, 3))
    assert message in run(*words.split(), code=2).err


def test_graphs_of_other_sizes_are_compared_by_ids(run):
    for name, n in (("a.csv", 30), ("b.csv", 31)):
        edges = [(f"n{i}", f"n{(i + step) % n}") for i in range(n) for step in (1, 2)]
        pd.DataFrame(edges, columns=["source", "target"]).to_csv(name, index=False)
    said = run("compare", "a.csv", "b.csv", "--graph")
    assert "0 and 1 points are in one file only" in said.lines["matched"]
