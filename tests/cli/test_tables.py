"""How the command line reads tables, and that `score` reads them in the same way."""

import csv
import io as streams
import sys

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli, io
from problems.clouds import cloud

# Ours become lines, which tests read.
pytestmark = pytest.mark.filterwarnings("default::UserWarning")

pytest.importorskip("pyarrow")

UNITS = np.array([1.0, 30.0, 1e-3])


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


def printed(capsys, *arguments):
    """Return the lines that a command prints, by name, and its warnings."""
    capsys.readouterr()
    assert run(*arguments) == 0
    out, err = capsys.readouterr()
    warned = "".join(line for line in err.splitlines() if not line.startswith("["))  # no progress
    return {line[:12].strip(): line[13:] for line in out.splitlines()}, warned


@pytest.fixture
def table(tmp_path):
    """A European table of 60 points in three units, with two bad cells and a number as a label."""
    path = tmp_path / "table.csv"
    X = cloud(60, 3, seed=1) * UNITS
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["sample", "length", "mass", "time", "year"])
        for j, row in enumerate(X):
            cells = [f"{x:.6f}".replace(".", ",") for x in row]
            if j in (7, 20):
                cells[1] = "n.d."
            writer.writerow([1000 + 3 * j, *cells, 1990 + j % 3])
    return path


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
def test_score_reads_the_points_as_embed_did(table, tmp_path, capsys, missing, scale, suffix):
    out = tmp_path / f"map{suffix}"
    options = (*EUROPEAN, "--missing", missing, *scale)
    made = () if suffix in (".npz", ".parquet") else ("--metadata", tmp_path / "made.json")
    said, warned = printed(capsys, "embed", table, "-o", out, "--time", 4, *options, *made)
    assert f"{58 if missing == 'drop' else 60} points, 3 features" in said["input"]
    assert "2 cells of 'mass' count as missing: 'n.d.'" in said["changed"]
    assert ("columns standardised" in said["changed"]) == bool(scale)
    assert ("Feature 'mass' carries" in warned) == (not scale)
    found, again = printed(capsys, "score", table, out, *made)
    assert again == warned
    assert said["distances"].startswith(found["distances"])
    given, again = printed(capsys, "score", table, out, *options, *made)
    assert (given["distances"], again) == (found["distances"], warned)


def test_score_reads_other_sheets_of_the_data_if_told(table, tmp_path, capsys):
    out = tmp_path / "map.npz"
    printed(capsys, "embed", table, "-o", out, "--time", 4, *EUROPEAN, "--missing", "median")
    _, warned = printed(capsys, "score", table, out, "--standardize")
    assert "was not made from the numbers in" in warned


@pytest.mark.parametrize(
    "reading",
    [5, [], {"features": 5}, {"sep": []}, {"missing": [1]}, {"key": 3}, {"header": "x"}, {"a": 1}],
)
def test_recorded_readings_are_not_believed(tmp_path, capsys, reading):
    np.savetxt(tmp_path / "t.csv", cloud(30, 2, seed=1), delimiter=",", header="a,b", comments="")
    points = io.read_table(tmp_path / "t.csv")
    made = {"reading": reading, "columns": reading}
    io.write_table(tmp_path / "map.npz", points.values, "uv", points, metadata=made)
    assert run("score", tmp_path / "t.csv", tmp_path / "map.npz") in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


def test_a_column_that_is_lost_stops_the_run(table, tmp_path, capsys):
    for given, words in (
        ((), "'length' holds"),
        (
            ("--read", "decimal=,"),
            "'mass' holds 'n.d.' in row 7 (line 9 of the file) (2 such cells)",
        ),
        ((*EUROPEAN[:2], "--exclude", "mas"), "did you mean 'mass'?"),
    ):
        assert run("embed", table, "-o", tmp_path / "out.csv", *given) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line
    assert not (tmp_path / "out.csv").exists()


def test_messages_name_options_and_not_arguments_of_python(table, tmp_path, capsys):
    gaps = tmp_path / "gaps.csv"
    gaps.write_text("a,b\n1,2\n,3\n4,5\n")
    large = tmp_path / "large.npy"
    np.save(large, 2**60 + np.arange(20).reshape(10, 2))
    for given, words in (
        ((gaps,), "for gaps pass --missing drop or median, or exclude it (--exclude)"),
        ((table, *EUROPEAN), "count such cells as missing with --missing drop or median"),
        ((table,), "pass --read decimal=,; if they"),
        ((large,), "an id? pass --id x0; else leave it out with --exclude x0"),
        ((large, "--read", "key=X"), "holds a single table; leave out --read key=X"),
    ):
        assert run("embed", *given, "-o", tmp_path / "out.csv") == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line
        assert "='" not in line


def test_the_summary_names_the_first_features(tmp_path, capsys):
    path, out = tmp_path / "t.csv", tmp_path / "out.npy"
    names = [f"gene{j}" for j in range(7)]
    np.savetxt(path, cloud(50, 7, seed=1), delimiter=",", header=",".join(names), comments="")
    said, _ = printed(capsys, "embed", path, "-o", out, "--time", 4)
    assert said["input"].endswith(
        "50 points, 7 features: gene0, gene1, gene2, gene3, gene4 and 2 more"
    )
    np.save(tmp_path / "t.npy", cloud(50, 7, seed=1))
    said, _ = printed(capsys, "embed", tmp_path / "t.npy", "-o", out, "--time", 4, "--force")
    assert said["input"].endswith("50 points, 7 features")


def test_features_are_named_with_commas(table, tmp_path, capsys):
    out = tmp_path / "out.csv"
    given = ("--features", "time,length", "--read", "decimal=,", "--standardize")
    said, _ = printed(capsys, "embed", table, "-o", out, *given)
    assert (
        "60 points, 2 features: time, length (passed through: sample, mass, year)" in said["input"]
    )
    with out.open() as file:
        header = next(csv.reader(file))
    assert header[:3] == ["sample", "mass", "year"]


def test_unscaled_columns_are_warned_of_once_and_by_name(tmp_path, capsys):
    path = tmp_path / "t.csv"
    X = cloud(50, 3, seed=1) * [1, 40, 1]
    np.savetxt(path, X, delimiter=",", header="a,b,c", comments="")
    for method in ("heat-embedding", "pca", "tsne"):
        out = tmp_path / f"{method}.npy"
        _, warned = printed(capsys, "embed", path, "-o", out, "--method", method)
        assert warned.count("carries") == 1
        assert "Feature 'b' carries 99." in warned
        assert "--standardize" in warned
        _, warned = printed(capsys, "embed", path, "-o", out, "--standardize", "--force")
        assert "carries" not in warned


def test_from_standard_input_to_standard_output(table, tmp_path, capsysbinary, monkeypatch):
    options = (*EUROPEAN, "--missing", "median", "--standardize", "--time", "4")
    monkeypatch.setattr(sys, "stdin", streams.TextIOWrapper(streams.BytesIO(table.read_bytes())))
    assert run("embed", "-", "-o", "-", *options) == 0
    out, err = capsysbinary.readouterr()
    assert run("embed", table, "-o", tmp_path / "out.csv", *options) == 0
    assert out == (tmp_path / "out.csv").read_bytes()
    assert b"60 points, 3 features" in err


@pytest.fixture
def cells(tmp_path):
    anndata = pytest.importorskip("anndata")
    path = tmp_path / "cells.h5ad"
    data = anndata.AnnData(cloud(60, 3, seed=1))
    data.obsm["X_pca"] = data.X[:, :2].copy()
    data.write_h5ad(path)
    return path


def test_in_place_adds_to_the_file_and_asks_before_it_replaces(cells, tmp_path, capsys):
    said, _ = printed(capsys, "embed", cells, "--in-place", "--time", 4)
    assert said["written"] == str(cells)
    first = io.read_table(cells, key="X_heat").values
    assert io.read_table(cells, key="X_pca").values.shape == (60, 2)
    found, _ = printed(capsys, "score", cells, cells)
    assert said["distances"].startswith(found["distances"])
    assert run("embed", cells, "--in-place", "--time", 8) == 1
    assert "entry 'X_heat' in obsm already" in capsys.readouterr().err
    assert run("embed", cells, "--in-place", "--time", 8, "--output-key", "X_pca") == 1
    np.testing.assert_array_equal(io.read_table(cells, key="X_heat").values, first)
    assert run("embed", cells, "--in-place", "--time", 8, "--force") == 0
    assert np.abs(io.read_table(cells, key="X_heat").values - first).max() > 0
    assert [path.name for path in tmp_path.iterdir()] == ["cells.h5ad"]


def test_in_place_is_for_h5ad_files(table, capsys):
    before = table.read_bytes()
    assert run("embed", table, "--in-place", "--force", *EUROPEAN, "--missing", "drop") == 1
    assert "only that can be changed in place" in capsys.readouterr().err
    assert table.read_bytes() == before


def test_a_copy_of_h5ad_keeps_all_rows(cells, tmp_path, capsys):
    h5py = pytest.importorskip("h5py")
    with h5py.File(cells, "r+") as file:
        file["X"][3, 1] = np.nan
    out = tmp_path / "out.h5ad"
    assert run("embed", cells, "-o", out) == 1
    assert "row 3, column '1'" in capsys.readouterr().err
    assert run("embed", cells, "-o", out, "--missing", "drop") == 1
    assert "60 points but the embedding 59 rows" in capsys.readouterr().err
    assert run("embed", cells, "-o", out, "--missing", "median") == 0


def test_misspelt_files_and_sets_are_suggested(table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, meant in (("tabel.csv", "table.csv"), ("digit", "digits")):
        assert run("embed", name, "-o", "out.npy") == 1
        assert f"did you mean {meant!r}?" in capsys.readouterr().err


def test_commands_are_suggested(capsys):
    assert run("embedd", "digits") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "did you mean 'embed'?" in line


@pytest.mark.parametrize("stream", [[], ["--fit-points", "120"]])
def test_the_command_and_python_agree_on_anndata(tmp_path, capsys, stream):
    anndata = pytest.importorskip("anndata")
    data = anndata.AnnData(np.random.default_rng(0).normal(size=(180, 60)))
    data.obsm["X_pca"] = data.X[:, :5] * np.arange(5, 0, -1)
    data.write_h5ad(tmp_path / "cells.h5ad")
    source, out = str(tmp_path / "cells.h5ad"), str(tmp_path / "out.h5ad")
    for name, key in (("heat_embedding", "X_heat"), ("heat_sketch", "X_heat_sketch")):
        method = ["--method", name.replace("_", "-"), "--n-components", "2", "--time", "4"]
        assert cli.main(["embed", source, "-o", out, "--force", *method, *stream]) == 0
        found = anndata.read_h5ad(out)
        assert set(found.obsm) == {"X_pca", key}
        if not stream:
            getattr(hs.anndata, name)(data, 2, time=4)
            np.testing.assert_allclose(found.obsm[key], data.obsm[key], rtol=1e-6, atol=1e-12)
    assert "60 genes" not in capsys.readouterr().err


def test_pseudotime_is_a_column_of_the_file(tmp_path):
    anndata = pytest.importorskip("anndata")
    data = anndata.AnnData(np.random.default_rng(0).normal(size=(90, 60)))
    data.obsm["X_pca"] = data.X[:, :5] * np.arange(5, 0, -1)
    data.write_h5ad(tmp_path / "cells.h5ad")
    source = str(tmp_path / "cells.h5ad")
    method = ["--method", "diffusion-map", "--pseudotime", "7"]
    for options in ([], ["--force"]):
        assert cli.main(["embed", source, "--in-place", *method, *options]) == 0
        assert cli.main(["embed", source, "--in-place", *method]) == 1
        hs.anndata.pseudotime(data, 7)
        obs = anndata.read_h5ad(source).obs
        np.testing.assert_allclose(obs["heat_pseudotime"], data.obs["heat_pseudotime"], rtol=1e-6)
        assert {"heat_pseudotime_low", "heat_pseudotime_high"} < set(obs)
