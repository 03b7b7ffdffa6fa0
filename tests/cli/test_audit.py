"""heatsketch audit: pictures joined by id or by row, and what is written."""

import json
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest

import heatsketch as hs
from problems.tables import write_csv


@pytest.fixture
def files(run):
    """Write points with ids and labels, and a picture in another order of the rows."""
    X, angle = hs.datasets.circle(200, rng=0)
    names = np.array([f"p{row}" for row in range(200)])
    order = np.random.default_rng(0).permutation(200)
    write_csv("points.csv", X, "ab", id=names, kind=np.where(angle < np.pi, "u", "d"))
    write_csv("picture.csv", X[order], "xy", id=names[order])
    np.save("picture.npy", X)
    return X


@pytest.mark.parametrize("picture", ["picture.csv", "picture.npy"])
def test_pictures_are_joined_by_id_where_there_are_ids(files, picture, run):
    given = ("--label", "kind", "--table", "audit.csv", "--beside", "picture.npy")
    said = run("audit", "points.csv", picture, *given, "-o", "page.html").out
    found = hs.audit(files, files, random_state=0)
    rows = pd.read_csv("audit.csv")
    assert rows["id"].tolist() == [f"p{row}" for row in range(200)]
    np.testing.assert_allclose(rows["trust"], found.trust, atol=1e-9)
    assert rows["dubious"].tolist() == found.dubious.tolist()
    assert rows["undecided"].tolist() == found.undecided.tolist()
    assert "1 gaps between labels by size: 0 wrong, 1 right" in said
    assert "neighbors kept" in Path("page.html").read_text("utf-8")


def test_an_audit_names_the_entry_of_obsm_and_ends_with_the_verdict_of_embed(run):
    X, _ = hs.datasets.swiss_roll(300, rng=0)
    model = hs.HeatEmbedding(random_state=0).fit(X)
    adata = anndata.AnnData(X, obsm={"X_own": model.embedding_})
    adata.write_h5ad("cells.h5ad")
    said = run("audit", "cells.h5ad", "X_own", "-o", "page.html", "--time", 8)
    assert said.lines["picture"] == "cells.h5ad: X_own; joined by 'index'"
    assert "log L" not in said.out
    # The neighbours of points do not depend on the distances that a picture was made for; paths
    # are those from other points than in the fit.
    found, own = hs.audit(X, model.embedding_, random_state=0).quality, model.quality_
    for name in ("neighbors", "true_neighbors", "outside", "crowding"):
        assert getattr(found, name) == pytest.approx(getattr(own, name))
    assert found.distances == pytest.approx(own.distances, abs=0.02)
    verdict = said.lines["verdict"]
    assert verdict.startswith(f"{own.verdict}: on average {own.true_neighbors:.1f} of a point's")
    more = run("audit", "cells.h5ad", "X_own", "-o", "page.html", "--force", "--verbose").lines
    log_L = hs.audit(X, model.embedding_, random_state=0).distortion.log_L
    assert float(more["log L"]) == pytest.approx(log_L, rel=1e-3)


@pytest.mark.parametrize("verb", ["report", "audit"])
def test_pages_of_cells_have_genes_and_the_colours_of_the_file(verb, run):
    adata = anndata.AnnData(np.random.default_rng(0).normal(size=(90, 60)).astype(np.float32))
    adata.obs["kind"] = pd.Categorical(["a", "b", "c"] * 30)
    adata.obsm["X_pca"] = adata.X[:, :12]
    adata.uns["kind_colors"] = ["#111111", "#222222", "#333333"]
    adata.obsm["X_umap"] = adata.obsm["X_pca"][:, :2]
    adata.write_h5ad("cells.h5ad")
    picture = ["X_umap"] if verb == "audit" else []
    run(verb, "cells.h5ad", *picture, "-o", "page.html", "--genes", "7,3")
    text = Path("page.html").read_text("utf-8")
    facts = json.loads(text.partition('id="facts">')[2].partition("</script>")[0])
    columns = {column["name"]: column for column in facts["columns"]}
    assert columns["kind"]["colours"] == ["#111111", "#222222", "#333333"]
    assert {"7", "3"} <= set(columns)
    assert "6" not in columns


@pytest.mark.parametrize("count", [1, 61])
def test_text_that_cannot_be_labels_is_left_out_unless_asked_for(run, count):
    X, _ = hs.datasets.circle(200, rng=0)
    np.save("picture.npy", X)
    write_csv("points.csv", X, "ab", site=[f"s{row % count}" for row in range(200)])
    given = ("--label", "site")
    said = run("audit", "points.csv", "picture.npy", "-o", "page.html").out
    assert "dubious" in said
    if count == 1:  # with many values a column of text is no label
        assert "the 1 value(s) of 'site' are not compared as labels" in said
    wrong = run("audit", "points.csv", "picture.npy", *given, "-o", "other.html", code=1).err
    assert f"labels have {count} different values" in wrong
