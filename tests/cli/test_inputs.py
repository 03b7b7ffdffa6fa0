"""How the command line reads tables, and that `score` reads them in the same way."""

import csv
import io as streams
import sys
from pathlib import Path

import numpy as np
import pytest

from heatsketch import cli
from problems.clouds import cloud
from problems.tables import UNITS, write_csv, write_european


@pytest.fixture
def table(tmp_path):
    """A European table of 60 points in three units, with two bad cells and a number as a label."""
    given = {"gaps": {(7, 1), (20, 1)}, "gap": "n.d.", "ids": range(1000, 1180, 3)}
    year, X = [1990 + j % 3 for j in range(60)], cloud(60, 3, seed=1) * UNITS
    return write_european(tmp_path / "table.csv", X, **given, year=year)


EUROPEAN = ("--read", "decimal=,", "--exclude", "sample,year")


@pytest.mark.parametrize(
    ("missing", "scale", "suffix"),
    [
        ("median", ("--standardize",), ".csv"),
        ("drop", ("--standardize",), ".npz"),
        ("median", (), ".txt.gz"),
        ("drop", (), ".parquet"),
    ],
)
def test_score_reads_the_points_as_embed_did(table, run, missing, scale, suffix):
    options = (*EUROPEAN, "--missing", missing, *scale)
    made = () if suffix in (".npz", ".parquet") else ("--metadata", "made.json")
    first = run("embed", table, "-o", f"map{suffix}", "--time", 4, *options, *made)
    said = first.lines
    assert f"{58 if missing == 'drop' else 60} points, 3 features" in said["input"]
    assert "2 cells of 'mass' count as missing: 'n.d.'" in said["changed"]
    assert ("columns standardised" in said["changed"]) == bool(scale)
    assert ("Feature 'mass' carries" in first.err) == (not scale)
    found = run("score", table, f"map{suffix}", *made)
    assert found.err == first.err
    assert found.lines["distances"].startswith(said["distances"])
    given = run("score", table, f"map{suffix}", *options, *made)
    assert (given.lines["distances"], given.err) == (found.lines["distances"], first.err)
    other = ("--missing", "drop") if scale else ("--standardize",)
    if suffix == ".parquet":
        assert (
            "was made from other numbers than those in"
            in run("score", table, f"map{suffix}", *other).err
        )


def test_messages_name_options_and_not_arguments_of_python(table, run):
    Path("gaps.csv").write_text("a,b,id,kind\n1,2,r,u\n,3,s,v\n4,5,t,u\n")
    Path("points.csv").write_text("a,b\n1.5,2\n3.25,4\n")
    Path("edges.csv").write_text("a,b\nc,d\n")
    np.save("large.npy", 2**60 + np.arange(20).reshape(10, 2))
    for given, words in (
        (("gaps.csv",), "for gaps pass --missing keep, so that the nearest rows fill them, or med"),
        (("gaps.csv",), "types are passed over (kind), which --encode makes features of."),
        ((table, *EUROPEAN), "count such cells as missing with --missing drop or median"),
        ((table,), "if ',' marks decimals, pass --read decimal=,"),
        (("points.csv", "--read", "decimal=,"), "if '.' marks decimals, pass --read decimal=.;"),
        ((table, *EUROPEAN[:2]), "'mass' holds 'n.d.' in row 7 (line 9 of the file) (2 such"),
        ((table, *EUROPEAN[:2], "--exclude", "mas"), "did you mean 'mass'?"),
        (("large.npy",), "an id? pass --id x0"),
        (("large.npy", "--read", "key=X"), "is a single table; leave out --read key=X"),
        (("edges.csv", "--graph"), "(a, b) may be a header or an edge; pass --read header=yes or"),
    ):
        (line,) = run("embed", *given, "-o", "out.csv", code=1).err.splitlines()
        assert words in line
        assert "='" not in line
    assert not Path("out.csv").exists()


def test_the_summary_names_the_first_features(table, run):
    out, names = ("-o", "out.csv", "--force"), [f"gene{j}" for j in range(7)]
    path = write_csv("t.csv", cloud(50, 7, seed=1), names)
    said = run("embed", path, *out, "--time", 4).lines["input"]
    assert said.endswith("50 points, 7 features: gene0, gene1, gene2, gene3, gene4 and 2 more")
    np.save("t.npy", cloud(50, 7, seed=1))
    said = run("embed", "t.npy", *out, "--time", 4).lines["input"]
    assert said.endswith("50 points, 7 features")
    given = ("--features", "time,length", "--read", "decimal=,", "--standardize")
    said = run("embed", table, *out, *given).lines["input"]
    assert "2 features: time, length (passed through: sample, mass, year)" in said
    with Path("out.csv").open() as file:
        assert next(csv.reader(file))[:3] == ["sample", "mass", "year"]


def test_unscaled_columns_are_warned_of_once_and_by_name(run):
    path = write_csv("t.csv", cloud(50, 3, seed=1) * [1, 40, 1])
    for method in ("heat-embedding", "pca", "tsne"):
        given = ("embed", path, "-o", "out.npy", "--method", method, "--force")
        warned = run(*given).err
        assert warned.count("carries") == 1
        assert "Feature 'b' carries 99." in warned
        assert "--standardize" in warned
        assert "carries" not in run(*given, "--standardize").err


def test_from_standard_input_to_standard_output(table, tmp_path, capsysbinary, monkeypatch):
    options = (*EUROPEAN, "--missing", "median", "--standardize", "--time", "4")
    monkeypatch.setattr(sys, "stdin", streams.TextIOWrapper(streams.BytesIO(table.read_bytes())))
    assert cli.main(["embed", "-", "-o", "-", *options]) == 0
    out, err = capsysbinary.readouterr()
    assert cli.main(["embed", str(table), "-o", str(tmp_path / "out.csv"), *options]) == 0
    assert out == (tmp_path / "out.csv").read_bytes()
    assert b"60 points, 3 features" in err
