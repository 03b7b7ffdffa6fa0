"""heatsketch compare: sheets of methods; two files by id, by row, or as samples."""

from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest

import heatsketch as hs
from problems.clouds import cloud
from problems.tables import write_csv

X = cloud(40, 3, seed=1)
Z = np.vstack([X[:5] + 0.5, X[5:]])
IDS = np.array([f"p{i}" for i in range(40)])
OPTIONS = ("--n-neighbors", "6", "--n-components", "16", "--time", "4")
SKETCH = {"time": 4, "n_components": 16, "rng": 0}


@pytest.fixture(autouse=True)
def files(run):
    """Forty points with ids, and the same after a change of some, in another order."""
    order = np.random.default_rng(0).permutation(40)
    write_csv("a.csv", X, id=IDS)
    write_csv("b.csv", Z[order], id=IDS[order])


def test_points_with_common_ids_are_matched_and_others_left_out(run):
    a, b = (hs.HeatSketch(1, n_neighbors=6).fit(P, ids=IDS) for P in (X, Z))
    found = hs.diffusion_discrepancy(a, b, **SKETCH)
    lines = run("compare", "a.csv", "b.csv", "-o", "out.csv", *OPTIONS).lines
    assert lines["discrepancy"] == found.describe().removeprefix("discrepancy ")
    assert lines["matched"] == "by their ids; 0 and 0 points are in one file only"
    assert lines["written"] == "out.csv"
    rows = pd.read_csv("out.csv")
    assert list(rows) == ["id", "discrepancy", "low", "high"]
    assert rows["id"].tolist() == IDS.tolist()
    np.testing.assert_allclose(rows.iloc[:, 1:].T, found.point_interval(), rtol=1e-5)
    write_csv("fewer.csv", Z[10:], id=IDS[10:])
    lines = run("compare", "a.csv", "fewer.csv", "-o", "out.tsv", *OPTIONS).lines
    assert lines["matched"] == "by their ids; 10 and 0 points are in one file only"
    assert Path("out.tsv").read_text().startswith("id\tdiscrepancy\tlow\thigh\np10\t")


def test_the_same_rows_need_no_ids(run):
    np.save("a.npy", X)
    np.save("b.npy", Z)
    given = ("--same-rows", "--filter", "heat", "--level", "0.8")
    lines = run("compare", "a.npy", "b.npy", *given, *OPTIONS).lines
    a, b = (hs.diffusion(P, n_neighbors=6) for P in (X, Z))
    found = hs.diffusion_discrepancy(a, b, filter="heat", **SKETCH)
    ends = found.interval(0.8)
    assert f"(80 %: {ends.low:.3g} to {ends.high:.3g})" in lines["discrepancy"]
    assert lines["matched"] == "by their rows"


def test_other_points_are_samples(run):
    other = cloud(30, 3, seed=9)
    write_csv("c.csv", other, id=range(30))
    lines = run("compare", "a.csv", "c.csv", "-o", "out.csv", "--level", "0.8", *OPTIONS).lines
    found = hs.uncertainty.sample_discrepancy(X, other, n_neighbors=6, **SKETCH)
    assert lines["discrepancy"] == found.describe(0.8).removeprefix("discrepancy ")
    assert "(80 %: " in lines["discrepancy"]
    rows = pd.read_csv("out.csv")
    assert list(rows) == ["file", "id", "discrepancy"]
    assert rows["id"].tolist() == [*IDS, *map(str, range(30))]
    np.testing.assert_allclose(rows["discrepancy"], np.concatenate(found.per_point), rtol=1e-5)


def test_other_is_read_in_the_units_of_input(run):
    """Standardised by itself, a data set that is moved and stretched would be the same one."""
    write_csv("moved.csv", 5 + 3 * X, id=[f"q{i}" for i in range(40)])
    both = ((P - X.mean(axis=0)) / X.std(axis=0) for P in (X, 5 + 3 * X))
    found = hs.uncertainty.sample_discrepancy(*both, n_neighbors=6, **SKETCH)
    lines = run("compare", "a.csv", "moved.csv", "--standardize", *OPTIONS).lines
    assert lines["discrepancy"] == found.describe().removeprefix("discrepancy ")
    assert found.p_value < 0.05


def test_what_cannot_be_compared_is_an_error(run):
    np.save("wide.npy", cloud(40, 5))
    write_csv("c.csv", cloud(30, 3), id=range(30))
    said = run("compare", "a.csv", "wide.npy", *OPTIONS, code=1)
    assert "different features" in said.err
    assert "out.png" in run("compare", "a.csv", "b.csv", "-o", "out.png", code=2).err
    said = run("compare", "a.csv", "c.csv", "--filter", "heat", code=2)
    assert "need the same points" in said.err


# Sheets


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("PDF", b"%PDF"), ("svg", b"<?x")]
)
def test_a_sheet_is_one_picture_of_methods_and_of_coordinates_in_files(run, suffix, start):
    order = np.random.default_rng(1).permutation(40)
    write_csv("mine.csv", X[order, :2], "xy", id=IDS[order])
    np.save("pca.npy", X[:, 1:])
    words = ("--methods", "pca", "mine.csv,lle", "pca.npy", "--n-neighbors", "6")
    said = run("compare", "a.csv", *words, "-o", f"sheet.{suffix}")
    assert Path(f"sheet.{suffix}").read_bytes().startswith(start)
    assert said.out.splitlines()[-1].split() == ["written", f"sheet.{suffix}"]
    rows = {line.split()[0]: line.split()[1:] for line in said.out.splitlines()[1:5]}
    assert list(rows) == ["pca", "mine", "lle", "pca.npy"]
    expected = hs.compare(X, {"mine": X[:, :2]}, n_neighbors=6, seeds=1)
    assert rows["mine"] == str(expected).splitlines()[1].split()[1:]
    assert rows["lle"][10] == "-"  # a sheet shows no stability, which would need a second run
    assert sorted(path.name for path in Path().iterdir() if path.suffix != ".csv") == sorted(
        ["pca.npy", f"sheet.{suffix}"]
    )
    assert "exists" in run("compare", "a.csv", *words, "-o", f"sheet.{suffix}", code=1).err


@pytest.mark.parametrize("name", ["sheet.jpg", "sheet.TIFF", "sheet.gif"])
def test_a_picture_of_another_format_is_no_folder(run, name):
    wrong = run("compare", "a.csv", "--methods", "pca", "-o", name, code=2)
    assert f"{name} has no known suffix; choose from .png, .pdf, .svg" in wrong.err
    assert not Path(name).exists()


def test_a_name_of_a_folder_may_have_a_dot(run):
    run("compare", "a.csv", "--methods", "pca", "--n-neighbors", "6", "-o", "runs.v2")
    assert Path("runs.v2/comparison.png").is_file()


def test_pictures_in_a_file_of_cells_stand_beside_the_methods(run):
    cells = anndata.AnnData(np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32))
    cells.obsm["X_pca"] = cells.X
    cells.obsm["X_umap"] = cells.X[:, :2]
    cells.write_h5ad("cells.h5ad")
    said = run("compare", "cells.h5ad", "--methods", "pca", "X_umap", "-o", "sheet.png")
    expected = hs.compare(cells.X, {"X_umap": cells.X[:, :2]}, seeds=1)
    assert said.out.splitlines()[2].split() == str(expected).splitlines()[1].split()
    wrong = run("compare", "cells.h5ad", "--methods", "X_tsne", "-o", "other.png", code=1)
    assert "X_tsne" in wrong.err


def test_what_is_no_method_is_said_at_once(run):
    words = ("compare", "a.csv", "-o", "sheet.png", "--methods")
    assert "did you mean 'umap'" in run(*words, "umpa", code=2).err
    assert "mine.csv does not exist" in run(*words, "mine.csv", code=1).err
    np.save("few.npy", X[:5, :2])
    assert "few.npy has 5 rows" in run(*words, "few.npy", code=1).err
    assert "cannot be imported" in run(*words, "missing.PCA", code=1).err
