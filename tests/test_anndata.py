"""heatsketch.anndata: the same numbers as the estimators give, where scanpy looks for them."""

import anndata as ad
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

import heatsketch as hs
from heatsketch import io
from heatsketch.cli import main
from heatsketch.io.metadata import Record

pytestmark = pytest.mark.usefixtures("short_search")
N, GENES = 90, 60
RNG = np.random.default_rng(3)
CENTRES = np.repeat(RNG.normal(size=(3, GENES)) * 0.5, N // 3, axis=0)
COUNTS = RNG.poisson(np.exp(CENTRES / 2)).astype(np.float32)


def cells(genes=GENES, pca=True, form=np.asarray):
    adata = ad.AnnData(form(COUNTS[:, :genes]))
    adata.obs["kind"] = pd.Categorical(np.repeat(["a", "b", "c"], N // 3))
    adata.layers["logs"] = form(np.log1p(COUNTS[:, :genes]))
    if pca:
        adata.obsm["X_pca"] = np.linalg.svd(COUNTS - COUNTS.mean(0))[0][:, :12] * 10
    nearest = NearestNeighbors(n_neighbors=9).fit(adata.obsm.get("X_pca", COUNTS))
    adata.obsp["distances"] = nearest.kneighbors_graph(mode="distance")
    W = nearest.kneighbors_graph(mode="connectivity")
    adata.obsp["connectivities"] = W.maximum(W.T).tocsr().astype(np.float32)  # as scanpy's
    return adata


FUNCTIONS = {
    "heat": (hs.anndata.heat_embedding, hs.HeatEmbedding, 2),
    "heat_sketch": (hs.anndata.heat_sketch, hs.HeatSketch, 32),
    "diffusion_map": (hs.anndata.diffusion_map, hs.DiffusionMap, 15),
}
every_function = pytest.mark.parametrize("key", FUNCTIONS)


@every_function
def test_it_is_the_estimator_on_the_principal_components(key, tmp_path):
    function, make, k = FUNCTIONS[key]
    adata = cells()
    assert function(adata) is None
    model = make(k, random_state=0).fit(adata.obsm["X_pca"])
    assert_array_equal(adata.obsm[f"X_{key}"], model.embedding_)
    assert adata.obsm[f"X_{key}"].shape == (N, k)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    said = ad.read_h5ad(tmp_path / "cells.h5ad").uns[key]
    assert said["method"] == make.__name__
    assert said["version"] == hs.__version__
    assert said["params"]["n_neighbors"] == 15
    assert said["time"] == getattr(model, "time_", model.time)
    if key == "heat":
        assert said["distortion"]["log_L"] == model.distortion_.log_L
        assert said["distortion"]["within"]["1.5"] == model.distortion_.within[1.5]
    if key == "diffusion_map":
        assert_array_equal(said["eigenvalues"], model.eigenvalues_)


def read_by(adata, **where):
    """Return what a sketch is of: its coordinates tell inputs from each other."""
    hs.anndata.heat_sketch(adata, 4, **where)
    return adata.obsm["X_heat_sketch"]


def sketch(X):
    return hs.HeatSketch(4, random_state=0).fit_transform(X)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_the_representation_is_the_one_that_scanpy_takes(form):
    few, many = cells(50, form=form), cells(form=form)
    pca = many.obsm["X_pca"]
    with pytest.warns(UserWarning, match="X_pca but only 50 genes.* of X, as in scanpy"):
        assert_array_equal(read_by(few), sketch(few.X))
    assert_array_equal(read_by(many), sketch(pca))
    assert_array_equal(read_by(many, n_pcs=5), sketch(pca[:, :5]))
    assert_array_equal(read_by(many, n_pcs=0), sketch(many.X))
    assert_array_equal(read_by(many, use_rep="X"), sketch(many.X))
    assert_array_equal(read_by(few, use_rep="X_pca", n_pcs=3), sketch(pca[:, :3]))
    assert_array_equal(read_by(many, layer="logs"), sketch(many.layers["logs"]))
    many.obsm["frame"] = pd.DataFrame(pca, index=many.obs_names)
    assert_array_equal(read_by(many, use_rep="frame"), sketch(pca))
    with pytest.warns(UserWarning, match="no X_pca.* all 60 genes.*scanpy.pp.pca"):
        assert_array_equal(read_by(cells(pca=False, form=form)), sketch(many.X))


@every_function
def test_a_graph_of_the_cells_is_used_as_it_is_and_distances_are_the_neighbours(key):
    function, make, k = FUNCTIONS[key]
    adata = cells()
    function(adata, obsp="connectivities", filter="heat")
    options = {"affinity": "precomputed", "filter": "heat", "random_state": 0}
    by_hand = make(k, **options).fit_transform(adata.obsp["connectivities"].astype(float))
    assert_array_equal(adata.obsm[f"X_{key}"], by_hand)
    assert adata.uns[key]["params"]["obsp"] == "connectivities"
    function(adata, obsp="distances")
    known = {"neighbors": adata.obsp["distances"], "n_neighbors": 9, "random_state": 0}
    assert_array_equal(adata.obsm[f"X_{key}"], make(k, **known).fit_transform(adata.obsm["X_pca"]))
    assert adata.uns[key]["params"]["n_neighbors"] == 9


def test_neighbours_are_the_nearest_cells(tmp_path):
    adata = cells()
    assert hs.anndata.neighbors(adata, 7, key_added="near") is None
    said = adata.uns["near"]
    assert said["connectivities_key"] == "near_connectivities"
    assert said["params"]["n_neighbors"] == 7
    near = NearestNeighbors(n_neighbors=7).fit(adata.obsm["X_pca"])
    expected = near.kneighbors_graph(mode="distance")
    found = adata.obsp["near_distances"]
    assert_allclose(found.toarray(), expected.toarray(), rtol=1e-5)
    W = adata.obsp["near_connectivities"].toarray()
    assert_array_equal(W, W.T)
    assert_array_equal(np.diag(W), 0)
    assert_array_equal(W > 0, (expected.maximum(expected.T)).toarray() > 0)
    scales = np.sort(expected.data.reshape(N, 7), axis=1)[:, 7 // 2 - 1]
    i, j = np.nonzero(expected.toarray())
    gauss = np.exp(-(expected.toarray()[i, j] ** 2) / (scales[i] * scales[j]))
    assert_allclose(W[i, j], gauss, rtol=1e-4)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    hs.anndata.neighbors(adata, 7, metric="cosine")
    near = NearestNeighbors(n_neighbors=7, metric="cosine").fit(adata.obsm["X_pca"])
    expected = np.sqrt(2 * near.kneighbors_graph(mode="distance").toarray())
    assert_allclose(adata.obsp["distances"].toarray(), expected, rtol=1e-4)


def test_equal_cells_have_rows_of_their_own():
    adata = cells()
    adata.obsm["X_pca"][10:14] = adata.obsm["X_pca"][9]
    hs.anndata.neighbors(adata, 3)
    W = adata.obsp["connectivities"]
    assert W.shape == (N, N)
    assert_array_equal(W[9:14][:, 9:14].toarray(), 1 - np.eye(5))
    assert_array_equal(W[9].toarray()[0, 14:], W[12].toarray()[0, 14:])
    assert_array_equal(np.diff(adata.obsp["distances"].indptr), 3)
    assert adata.obsp["distances"].diagonal().sum() == 0


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_backed_object(form, tmp_path):
    adata = cells(form=form)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = ad.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    for where in ({}, {"use_rep": "X"}, {"obsp": "connectivities"}, {"layer": "logs"}):
        assert_array_equal(read_by(backed, **where), read_by(adata, **where))
    copied = hs.anndata.heat_sketch(backed, 4, use_rep="X", copy=True)
    assert not copied.isbacked
    assert_array_equal(copied.obsm["X_heat_sketch"], read_by(adata, use_rep="X"))
    backed.file.close()


def test_a_copy_leaves_the_original_as_it_is():
    adata = cells()
    for function in (*(f for f, _, _ in FUNCTIONS.values()), hs.anndata.neighbors):
        copied = function(adata, copy=True)
        assert set(copied.uns)
        assert not set(adata.uns)
        assert set(adata.obsm) == {"X_pca"}
        assert set(adata.obsp) == {"distances", "connectivities"}


def test_pseudotime_is_that_of_the_estimator_in_obs(tmp_path):
    adata = cells()
    late = hs.DiffusionMap(random_state=0).fit(adata.obsm["X_pca"]).pseudotime(4).value
    adata.uns["iroot"] = 4
    hs.anndata.pseudotime(adata)
    assert_allclose(adata.obs["heat_pseudotime"], late, rtol=1e-9)
    adata.obs_names = [f"cell {i}" for i in range(N)]
    for root in (4, "cell 4", ["cell 4"], np.arange(N) == 4):
        hs.anndata.pseudotime(adata, root, key_added="again")
        assert_allclose(adata.obs["again"], late, rtol=1e-9)
    hs.anndata.pseudotime(adata, ["cell 4", "cell 6"], time=1, obsp="connectivities")
    model = hs.DiffusionMap(affinity="precomputed").fit(adata.obsp["connectivities"])
    assert_allclose(adata.obs["heat_pseudotime"], model.pseudotime([4, 6], time=1).value, rtol=1e-9)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    said = ad.read_h5ad(tmp_path / "cells.h5ad").uns["heat_pseudotime"]
    assert (said["time"], said["root"].tolist()) == (1, [4, 6])
    with pytest.raises(ValueError, match=r"adata has no cell 'cell x'; .*did you mean"):
        hs.anndata.pseudotime(adata, "cell x")
    adata.obs["kind"] = ["CD34+"] * 4 + ["other"] * (N - 4)
    with pytest.raises(ValueError, match=r"value of obs\['kind'\]: .* adata.obs\['kind'\] == 'CD3"):
        hs.anndata.pseudotime(adata, "CD34+")
    del adata.uns["iroot"]
    with pytest.raises(ValueError, match=r"There is no root; .*uns\[\"iroot\"\]"):
        hs.anndata.pseudotime(adata)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"use_rep": "X_pcb"}, "adata.obsm has no entry 'X_pcb'.*did you mean 'X_pca'"),
        ({"obsp": "weights"}, "adata.obsp has no entry 'weights'; choose from .*connectivities"),
        ({"layer": "log"}, "adata.layers has no entry 'log'.*did you mean 'logs'"),
        ({"n_pcs": 20}, "n_pcs=20; X_pca has columns for n_pcs <= 12"),
        ({"use_rep": "X_pca", "obsp": "connectivities"}, "pass one of them"),
        ({"use_rep": "X_pca", "layer": "logs"}, "pass one"),
        ({"n_pcs": -1}, "n_pcs=-1"),
    ],
)
def test_what_is_refused(where, message):
    with pytest.raises(ValueError, match=message):
        hs.anndata.heat_embedding(cells(), **where)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_coloring_has_obs_genes_and_the_colours_that_scanpy_stored(form):
    adata = cells(form=form)
    adata.uns["kind_colors"] = ["#111111", "#222222", "#333333"]
    found = hs.anndata.coloring(adata, ["7", "3"])
    assert list(found["labels"]) == ["kind", "7", "3"]
    assert_array_equal(found["labels"]["3"], COUNTS[:, 3])
    assert found["colors"] == {"kind": {"a": "#111111", "b": "#222222", "c": "#333333"}}
    most = np.argsort(-COUNTS.var(axis=0))[:2]
    assert set(hs.anndata.coloring(adata, 2)["labels"]) == {"kind", *map(str, most)}
    adata.var["dispersions_norm"] = np.arange(GENES)
    assert list(hs.anndata.coloring(adata, 1)["labels"]) == ["kind", str(GENES - 1)]
    adata.raw = ad.AnnData(form(COUNTS), var=pd.DataFrame(index=[f"r{j}" for j in range(GENES)]))
    assert_array_equal(hs.anndata.coloring(adata, ["r5"])["labels"]["r5"], COUNTS[:, 5])
    with pytest.raises(ValueError, match="no gene 'CD3'"):
        hs.anndata.coloring(adata, ["CD3"])


def test_points_and_annotated_data_have_their_own_doors():
    with pytest.raises(TypeError, match="of type ndarray; pass an AnnData, or its points to an"):
        hs.anndata.heat_embedding(COUNTS)
    with pytest.raises(TypeError, match=r"heatsketch\.anndata, .*obsm\['X_pca'\]"):
        hs.HeatEmbedding().fit(cells())


# With scanpy


def test_pseudotime_of_one_step_is_that_of_scanpy(blood):
    sc, adata = blood
    adata.uns["iroot"] = 7
    sc.tl.diffmap(adata)
    sc.tl.dpt(adata)
    hs.anndata.pseudotime(adata, time=1, obsp="connectivities")
    both = adata.obs[["dpt_pseudotime", "heat_pseudotime"]]
    assert both.corr("spearman").iloc[0, 1] > 0.9


def test_tools_of_scanpy_run_on_our_neighbours(blood):
    sc, adata = blood
    hs.anndata.neighbors(adata)
    sc.tl.umap(adata)
    assert adata.obsm["X_umap"].shape == (700, 2)
    sc.tl.diffmap(adata)
    hs.anndata.heat_embedding(adata)
    sc.pl.embedding(adata, "heat", color="bulk_labels", show=False)


def test_an_audit_writes_trust_and_dubious_cells_of_a_picture():
    X, angle = hs.datasets.circle(200, rng=0)
    adata = ad.AnnData(X, obsm={"X_umap": X})
    adata.obs["side"] = np.where(angle < np.pi, "upper", "lower")
    found = hs.anndata.audit(adata, labels="side")
    expected = hs.audit(X, X, random_state=0)
    np.testing.assert_array_equal(adata.obs["umap_trust"], expected.trust)
    np.testing.assert_array_equal(adata.obs["umap_dubious"], expected.dubious)
    assert [gap.labels for gap in found.gaps] == [("lower", "upper")]


def test_the_layout_of_cells_is_that_of_the_estimator():
    X, _ = hs.datasets.circle(150, rng=0)
    for layout in ("free", "linear"):
        adata = ad.AnnData(X)
        hs.anndata.heat_embedding(adata, layout=layout)
        expected = hs.HeatEmbedding(layout=layout).fit_transform(X)
        np.testing.assert_array_equal(adata.obsm["X_heat"], expected)
        assert adata.uns["heat"]["params"]["layout"] == layout


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_markers_are_those_of_the_layer_by_labels_of_obs(form):
    adata = cells(form=form)
    inside = np.asarray(adata.obs["kind"] == "b")
    found, want = hs.anndata.markers(adata, "kind", "b"), hs.markers(COUNTS, inside)
    assert found.names.tolist() == [str(j) for j in want.index]
    assert_array_equal(found.area, want.area)
    pair = hs.anndata.markers(adata, "kind", ["a", "b"], "c", layer="logs")
    assert (pair.n_selected, pair.n_against) == (2 * N // 3, N // 3)
    assert_array_equal(pair.area, hs.markers(COUNTS, np.arange(N) < 2 * N // 3).area)
    with pytest.raises(ValueError, match="no label 'd'"):
        hs.anndata.markers(adata, "kind", "d")


def test_a_picture_of_cells_keeps_to_an_entry_of_obsm():
    X = np.random.default_rng(0).normal(size=(80, 4))
    adata = ad.AnnData(X)
    places = np.full((80, 2), np.nan)
    places[:60] = hs.HeatEmbedding(random_state=0).fit_transform(X[:60])
    adata.obsm["X_heat_old"] = places
    hs.anndata.heat_embedding(adata, places="X_heat_old")
    model = hs.HeatEmbedding(random_state=0).fit(X, places=places)
    np.testing.assert_array_equal(adata.obsm["X_heat"], model.embedding_)
    np.testing.assert_array_equal(adata.obs["heat_moved"], model.moved_)
    assert adata.uns["heat"]["params"]["places"] == "X_heat_old"
    with pytest.raises(ValueError, match="X_other"):
        hs.anndata.heat_embedding(adata, places="X_other")
    with pytest.raises(TypeError, match="places"):
        hs.anndata.diffusion_map(adata, places="X_heat_old")


@pytest.mark.parametrize("rep", [None, "X_logs"])
def test_a_file_has_the_record_that_the_command_writes(rep, tmp_path):
    adata, made = cells(), tmp_path / "python.h5ad"
    adata.obsm["X_logs"] = adata.layers["logs"]
    adata.write_h5ad(tmp_path / "cells.h5ad")
    hs.anndata.heat_sketch(adata, 4, use_rep=rep, n_neighbors=20, key_added="heat")
    adata.write_h5ad(made)
    own = tmp_path / "command.h5ad"
    how = ["-m", "heat-sketch", "--n-components", "4", "--n-neighbors", "20", "--read"]
    how += ["key=X_pca" if rep is None else f"key={rep}", "--output-key", "X_heat", "-q"]
    assert main(["embed", str(tmp_path / "cells.h5ad"), "-o", str(own), *how]) == 0
    read = [io.formats.read_embedding(path) for path in (made, own)]
    first, second = (Record(table.metadata) for table in read)
    assert first.parameters == second.parameters
    assert first.parameters["n_neighbors"] == 20
    assert first.columns == second.columns
    assert first.metadata["data"] == second.metadata["data"]
    assert_array_equal(read[0].values, read[1].values)
    for table in read:
        key = Record(table.metadata).reading.get("key", "X_pca")
        points = io.read_table(tmp_path / "cells.h5ad", key=key)
        assert first.may_be_of(io.data_hash(points.values))


def test_a_record_that_is_no_longer_true_goes(tmp_path):
    adata = cells()
    hs.anndata.heat_embedding(adata)
    assert [*adata.uns["heatsketch"]] == ["X_heat"]
    hs.anndata.heat_sketch(adata, 4)
    hs.anndata.heat_embedding(adata, obsp="connectivities", layout="linear")
    assert [*adata.uns["heatsketch"]] == ["X_heat_sketch"]
