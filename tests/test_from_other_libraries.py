"""The tables "from there to here": both columns run, and do what the page says."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import sklearn.manifold
import sklearn.random_projection
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import heatsketch as hs
from heatsketch.neighbors import NeighborIndex

DOCS = Path(__file__).parents[1] / "docs"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # what peers warn of on few points
]
SIDES = {"there": 0, "here": 1}


def table_of(page, title=None):
    """Return the code in the left and in the right column of each row of a table."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if title:
        text = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?!---)(.*?) \| (.*?) \|", text, re.MULTILINE)[1:]
    return [tuple(re.findall(r"`([^`]*)`", cell) for cell in row) for row in rows]


def run(cell, make, names):
    """Make the calls of a cell; its parameters are known, and those with a value are fitted."""
    for words in cell:
        if re.fullmatch(r"[a-z_]+=?", words):
            assert words.rstrip("=") in inspect.signature(make).parameters
        elif re.match(r"\w+=.", words):
            make(**eval(f"dict({words})", names)).fit(names["X"])
        else:
            value = eval(words, names)
            assert not isinstance(value, np.ndarray) or np.isfinite(value).all()


@pytest.fixture(scope="module")
def digits():
    X = hs.datasets.digits()[0][:400]
    return {"X": X, "X_new": X[:5] + 0.5, "e": 100.0}


def umap(digits):
    umap, X = pytest.importorskip("umap"), digits["X"]
    near = umap.umap_.nearest_neighbors(X, 15, "euclidean", None, False, 0)
    assert near[0][0, 0] == 0  # the point itself is counted
    assert inspect.signature(umap.UMAP).parameters["n_neighbors"].default == 15
    reducer = umap.UMAP(random_state=0).fit(X)
    return umap.UMAP, {"umap": umap, "reducer": reducer, "knn": near}


def phate(digits):
    phate = pytest.importorskip("phate")
    op = phate.PHATE(random_state=0, verbose=0)
    op.fit_transform(digits["X"])
    return phate.PHATE, {"phate": phate, "phate_op": op}


def pydiffmap(digits):
    dm = pytest.importorskip("pydiffmap.diffusion_map")
    mydmap = dm.DiffusionMap.from_sklearn(n_evecs=2, k=64, epsilon="bgh", alpha=1.0)
    mydmap.fit_transform(digits["X"])
    return dm.DiffusionMap.from_sklearn, {"dm": dm, "mydmap": mydmap}


OPTIONS = {"affinity": "radius", "epsilon": "ksum", "alpha": 1}
PEERS = {  # by title: theirs, and what the page puts in its place
    "umap-learn": (umap, hs.HeatEmbedding(random_state=0)),
    "PHATE": (phate, hs.HeatEmbedding(random_state=0)),
    "pydiffmap": (pydiffmap, hs.DiffusionMap(2, **OPTIONS)),
}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("title", PEERS)
def test_both_columns_run(title, side, digits):
    theirs, model = PEERS[title]
    if side == "there":
        make, names = theirs(digits)
    else:
        make = type(model)
        names = {"hs": hs, "model": model.fit(digits["X"]), "NeighborIndex": NeighborIndex}
    for row in table_of("howto/from-other-libraries.md", title):
        run(row[SIDES[side]], make, names | digits)


def test_the_page_names_the_defaults_of_phate(digits):
    known = inspect.signature(phate(digits)[0]).parameters
    rows = table_of("howto/from-other-libraries.md", "PHATE")
    cells = [words for left, _ in rows for words in left if re.match(r"\w+=.", words)]
    named = eval(f"dict({', '.join(cells)})")
    assert len(named) == 5
    assert {name: known[name].default for name in named} == named


def test_the_generator_of_pydiffmap_is_ours():
    """The same kernel, the same walk: ε is four times as large, and what follows from it."""
    dm = pytest.importorskip("pydiffmap.diffusion_map")
    circle, _ = hs.datasets.circle(300, rng=0)
    mydmap = dm.DiffusionMap.from_sklearn(n_evecs=2, k=300, epsilon=0.01, alpha=1.0)
    Z = mydmap.fit_transform(circle)
    model = hs.DiffusionMap(2, time=0, affinity="radius", epsilon=4 * 0.01, alpha=1).fit(circle)
    np.testing.assert_allclose((model.eigenvalues_ - 1) / 0.01, mydmap.evals, rtol=1e-3)
    np.testing.assert_allclose(Z * np.sqrt(-mydmap.evals), mydmap.evecs, rtol=1e-6)
    for ours, theirs in zip(model.embedding_.T, mydmap.evecs.T, strict=True):
        cosine = ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)
        assert abs(cosine) > 1 - 1e-3


def test_scikit_learn(digits):
    modules = vars(sklearn.manifold) | vars(sklearn.random_projection)
    names = {"make_pipeline": make_pipeline, "StandardScaler": StandardScaler, "hs": hs, **digits}
    for left, right in table_of("howto/from-other-libraries.md", "scikit-learn"):
        for words in left:
            assert eval(words, modules | names) is not None
        for words in (w for w in right if "=" not in w):
            assert eval(words, names) is not None
    for name in ("Isomap", "LocallyLinearEmbedding", "TSNE"):
        assert hasattr(hs.classical, name)


@pytest.mark.parametrize("side", SIDES)
def test_scanpy(blood, side):
    sc, adata = blood
    sc.tl.diffmap(adata)
    adata.uns["iroot"] = 0
    for row in table_of("anndata.md", "Functions"):
        eval(row[SIDES[side]][0], {"sc": sc, "hs": hs, "adata": adata})
    if side == "here":
        sc.tl.diffmap(adata)  # of the neighbours that the first row has put there
        assert {"X_heat", "X_diffusion_map", "X_heat_sketch"} <= set(adata.obsm)
        theirs, ours = adata.obsm["X_diffmap"][:, 1:], adata.obsm["X_diffusion_map"]
        for a, b in zip(theirs.T, ours.T, strict=False):
            assert abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b) > 1 - 1e-5
        assert "heat_pseudotime" in adata.obs
