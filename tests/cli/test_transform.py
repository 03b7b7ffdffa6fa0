"""Models on the command line: `embed --save-model`, `transform`, `info`."""

from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import heatsketch as hs
from heatsketch import io
from problems.clouds import cloud
from problems.tables import MEASURES, UNITS, write_european

SHIFT = np.array([5.0, -100.0, 0.2])


def points(n, seed):
    return cloud(n, 3, seed=seed) * UNITS + SHIFT


X = points(60, seed=1)
READ = ("--read", "decimal=,", "--id", "sample", "--missing", "median", "--standardize")


@pytest.fixture
def trained(run):
    """Embed a table in three units, with gaps, to map.npz; keep the model in map.model."""
    years = [1990 + i % 3 for i in range(60)]
    write_european("train.csv", X, gaps={(7, 0), (20, 2)}, year=years)
    options = (*READ, "--exclude", "year", "--n-neighbors", 9)
    run("embed", "train.csv", "-o", "map.npz", *options, "--save-model", "map.model")


@pytest.mark.usefixtures("trained")
def test_new_rows_are_read_as_those_of_the_fit_and_nothing_is_estimated_again(run):
    new = 0.5 * points(9, seed=2) + 0.5 * SHIFT + 0.2 * UNITS  # of other means and variances
    write_european("new.csv", new, order=(2, 0, 1), gaps={(3, 1), (4, 0)}, site=["x"] * 9)
    said = run("transform", "map.model", "new.csv", "-o", "new.npz").lines
    assert "gaps filled with medians in 2 of 9 rows" in said["changed"]
    filled, wanted = X.copy(), new.copy()
    filled[[7, 20], [0, 2]] = np.nan
    medians = np.nanmedian(filled, axis=0)
    filled = np.where(np.isnan(filled), medians, filled)
    wanted[3, 1], wanted[4, 0] = medians[1], medians[0]
    wanted = (wanted - filled.mean(axis=0)) / filled.std(axis=0)
    found = io.read_table("new.npz")
    model = hs.load_model("map.model")
    assert_allclose(found.values, model.transform(wanted), rtol=1e-9, atol=1e-12)
    assert found.extra["sample"].tolist() == [f"s{i}" for i in range(9)]
    assert found.extra["site"].tolist() == ["x"] * 9


@pytest.mark.usefixtures("trained")
def test_what_does_not_fit_is_named(run):
    write_european("short.csv", points(5, seed=2), order=(0, 2))
    given = ("transform", "map.model", "short.csv", "-o", "out.csv")
    assert "has no column 'mass'" in run(*given, code=1).err
    assert "unrecognized" in run(*given, "--standardize", code=2).err
    Path("empty.csv").write_text("sample;length;time;mass\n")
    empty = run("transform", "map.model", "empty.csv", *given[3:], code=1).err
    assert "empty.csv has no rows below its header" in empty
    assert "cannot be read" in run("transform", "short.csv", *given[2:], code=1).err


@pytest.mark.parametrize("origin", ["array", "frame", "table"])
def test_a_model_finds_columns_by_name_and_has_no_medians_of_whole_columns(run, origin):
    """Medians of the new rows would place a row by the company it comes in."""
    frame = pd.DataFrame(points(40, seed=1), columns=MEASURES)
    pca = hs.classical.PCA().fit(frame.to_numpy() if origin == "array" else frame)
    if origin == "table":
        frame.to_csv("fit.csv", index=False)
        run("embed", "fit.csv", "-o", "fit.npz", "--method", "pca", "--save-model", "a.model")
    else:
        hs.save_model(pca, "a.model")
    new = pd.DataFrame(points(5, seed=2), columns=MEASURES)
    moved = new if origin == "array" else new[[*MEASURES[::-1]]].assign(other=1.0)
    moved.to_csv("whole.csv", index=False)
    run("transform", "a.model", "whole.csv", "-o", "out.csv", "--missing", "median")
    found = io.read_table("out.csv")
    assert_allclose(found.values[:, -2:], pca.transform(new.to_numpy()), rtol=1e-12)
    moved.assign(mass=[*new["mass"][:2], None, *new["mass"][3:]]).to_csv("gap.csv", index=False)
    gap = ("transform", "a.model", "gap.csv", "-o", "gap-out.csv")
    assert "--missing" in run(*gap, code=1).err
    said = run(*gap, "--missing", "median", code=1).err
    assert "no medians to fill them; pass --missing drop, or" in said
    assert not Path("gap-out.csv").exists()
    assert "1 of 5 rows left out" in run(*gap, "--missing", "drop").lines["changed"]
    wanted = found.values[[0, 1, 3, 4]]
    assert_array_equal(io.read_table("gap-out.csv").values, wanted)


@pytest.mark.usefixtures("trained")
def test_info_says_what_a_model_is(run):
    facts = run("transform", "map.model", "--info").lines
    recorded = io.read_table("map.npz").metadata
    assert facts["model"] == f"map.model, {Path('map.model').stat().st_size:,} bytes"
    assert facts["kind"] == "HeatEmbedding"
    assert "n_neighbors=9" in facts["parameters"]
    assert (facts["n"], facts["n_features"]) == ("60", "3")
    assert facts["data"] == recorded["data"]
    assert facts["time"] == str(recorded["time"])
    assert "within a factor" in facts["distances"]
    assert "standardize=True" in facts["reading"]
    assert (facts["heatsketch"], facts["numpy"]) == (hs.__version__, np.__version__)


@pytest.mark.usefixtures("trained")
def test_points_that_a_model_mapped_are_scored_as_those_of_its_fit(run):
    made = ("--metadata", "made.json")
    run("transform", "map.model", "train.csv", "-o", "again.csv", "-q", *made)
    assert_array_equal(io.read_table("again.csv").values[:, -2:], io.read_table("map.npz").values)
    again, direct = (
        run("score", "train.csv", *given) for given in (("again.csv", *made), ("map.npz",))
    )
    same = {
        "time": "",
        "embedding": "again.csv: heatembedding0, heatembedding1; joined by 'sample'",
    }
    assert again.lines | same == direct.lines | same
    assert again.lines["embedding"] == same["embedding"]
    assert "warning" not in again.err


def test_entries_of_obsm_are_named_by_the_method_of_the_model(run):
    X = points(60, seed=1)
    anndata.AnnData(X).write_h5ad("x.h5ad")
    for made, key in (
        (hs.HeatEmbedding(2, random_state=0), "X_heat"),
        (hs.classical.PCA(2), "X_pca"),
        (hs.NearIsometricProjection(2, random_state=0), "X_nearisometricprojection"),
    ):
        hs.save_model(made.fit(X), "a.model", force=True)
        run("transform", "a.model", "x.h5ad", "-o", "o.h5ad", "--force")
        assert_allclose(anndata.read_h5ad("o.h5ad").obsm[key], made.transform(X), atol=1e-12)
