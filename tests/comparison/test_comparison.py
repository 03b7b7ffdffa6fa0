"""Methods compared: the figures against their definitions, shared neighbours, failures, files."""

import csv
import gc
import logging
import sys
import threading
import types
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import FunctionTransformer

import heatsketch as hs
from heatsketch import cli
from heatsketch.comparison import run
from heatsketch.comparison.run import (
    DEFAULT_METHODS,
    ESTIMATORS,
    FILES,
    OTHERS,
    expected_seconds,
    fitting,
    measured,
    memory,
    needs_labels,
    silenced,
)
from heatsketch.neighbors.search import ExactSearch

GRAPHS = ["heat-sketch", "diffusion-map", "laplacian-eigenmap", "isomap", "landmark-isomap", "lle"]


def setup_function():
    """Spare the collections that measurements begin with what has been there for long."""
    gc.freeze()


def clouds(n=90):
    X, label = hs.datasets.gaussian_clouds(n, dim=4, separation=3.0, rng=0)
    return X, np.array(["a", "b", "c"])[label]


def test_by_default_all_methods_are_measured_at_the_time_that_heat_embedding_chooses():
    X, _ = clouds()
    model = hs.HeatEmbedding(layout="linear", random_state=0, n_neighbors=7).fit(X)
    result = hs.compare(X, ["pca"], n_neighbors=7, seeds=1)
    assert result.facts["time"] == model.time_
    assert f"(time {model.time_:g}, as a linear heat-embedding chooses)" in str(result)
    same = hs.compare(X, ["pca"], n_neighbors=7, seeds=1, time=model.time_)
    assert same.rows[0].log_L_diffusion == result.rows[0].log_L_diffusion
    assert f"(time {model.time_:g})" in str(same)


def test_every_column_is_its_own_definition_on_a_sample_with_duplicates(limits):
    limits(compared_points=50)
    X, _ = hs.datasets.swiss_roll(110, rng=0)
    X = np.vstack([X, X[:10]])[np.random.default_rng(1).permutation(120)]
    label = np.digitize(X[:, 0], [-5, 5])
    estimators = [hs.HeatSketch(2, n_neighbors=7, random_state=seed) for seed in (3, 4, 5)]
    row = hs.compare(X, [estimators[0]], label, n_neighbors=7, time=3, seeds=3).rows[0]
    runs = [estimator.fit_transform(X) for estimator in estimators]
    sample = np.sort(np.random.default_rng(0).permutation(120)[:50])
    i, j = (sample[side] for side in np.triu_indices(50, 1))
    after = squareform(pdist(runs[0]))[i, j]
    walked = hs.diffusion_distance(hs.diffusion(X, n_neighbors=7), 3, pairs=(i, j))
    points, vertex = np.unique(X, axis=0, return_inverse=True)
    near = kneighbors_graph(points, 7, mode="distance")
    paths = dijkstra(near.maximum(near.T), directed=False)[vertex[i], vertex[j]]
    before = squareform(pdist(X))[i, j]
    for name, D in (("spearman", before), ("spearman_diffusion", walked)):
        assert getattr(row, name) == pytest.approx(spearmanr(after, D).statistic, abs=1e-9)
    assert row.spearman_geodesic == pytest.approx(spearmanr(after, paths).statistic, abs=1e-9)
    apart = (after > 1e-9) | (before > 1e-9)
    for name, D in (("log_L_diffusion", walked), ("log_L_geodesic", paths)):
        ratio = after[apart] / D[apart]
        assert getattr(row, name) == pytest.approx(np.log(ratio.max() / ratio.min()), rel=1e-6)
    assert row.trustworthiness == hs.metrics.trustworthiness(X, runs[0], 10).value
    assert row.continuity == hs.metrics.continuity(X, runs[0], 10).value
    assert row.knn_accuracy == hs.metrics.knn_accuracy(runs[0], label, 10)
    agreement = [spearmanr(pdist(a), pdist(b)).statistic for a, b in combinations(runs, 2)]
    assert row.stability == pytest.approx(np.mean(agreement), abs=1e-9)
    assert len({round(value, 6) for value in row[3:12]}) == 9  # all of them differ


def test_scale_changes_nothing():
    X, _ = hs.datasets.swiss_roll(80, rng=0)
    rows = [hs.compare(Z, ["isomap"], seeds=1).rows[0] for Z in (X, X * 2.0**150, X * 2.0**-150)]
    for row in rows[1:]:
        np.testing.assert_allclose(row[3:10], rows[0][3:10], rtol=1e-9)


def test_missing_labels_are_no_class():
    X, label = clouds()
    gaps, known, Y = label.astype(object), np.arange(90) % 3 > 0, PCA(2).fit_transform(X)
    for gaps[::3] in (None, "", np.nan):
        row = hs.compare(X, ["pca"], gaps, seeds=1).rows[0]
        assert row.knn_accuracy == hs.metrics.knn_accuracy(Y[known], label[known], 10)
    few = np.where(np.arange(90) < 5, label.astype(object), None)
    assert hs.compare(X, ["pca"], few, seeds=1).rows[0].knn_accuracy >= 0


def test_the_seed_of_an_estimator_may_be_of_numpy_and_the_next_runs_have_others():
    X, _ = clouds()
    rows = [
        hs.compare(X, [hs.HeatSketch(2, random_state=seed)]).rows[0] for seed in (1, np.int64(1))
    ]
    assert rows[0].stability == rows[1].stability < 0.999


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_neighbours_are_searched_once(monkeypatch, limits):
    # Enough points that t-SNE looks at its nearest ones only, here 3 · 5 + 1.
    searches = []
    search = ExactSearch.nearest

    def counted(self, k, x=None):
        searches.append(((self._points if x is None else x).shape, k))
        return search(self, k, x)

    monkeypatch.setattr(ExactSearch, "nearest", counted)
    # What is judged is not looked at here: few points do.
    limits(sne_points=100, compared_points=60)
    X, _ = hs.datasets.circle(220, rng=0)
    wide = np.column_stack([X, np.arange(220) / 110, np.zeros(220)])  # unlike any embedding
    methods = {name: name for name in GRAPHS}
    methods["tsne"] = hs.classical.TSNE(perplexity=5, n_iter=250)
    result = hs.compare(wide, methods, n_neighbors=5, seeds=1)
    assert all(not row.error for row in result.rows)
    assert [k for shape, k in searches if shape == wide.shape] == [17]  # and itself


def test_a_method_alone_gives_the_same(monkeypatch):
    X, _ = hs.datasets.circle(100, rng=0)
    result = hs.compare(X, ["lle", "isomap"], n_neighbors=6, seeds=1)
    for name in ("lle", "isomap"):
        alone = ESTIMATORS[name](n_components=2, n_neighbors=6).fit_transform(X)
        np.testing.assert_array_equal(result.embeddings[name], alone)


def test_estimators_and_mappings_are_taken_as_they_are():
    X, _ = clouds()
    mine = hs.DiffusionMap(3, alpha=0.5, random_state=1)
    result = hs.compare(X, {"mine": mine, "usual": "pca"}, seeds=1)
    assert list(result.embeddings) == ["mine", "usual"]
    np.testing.assert_allclose(result.embeddings["mine"], mine.fit_transform(X), atol=1e-12)
    assert mine.neighbors is None
    both = hs.compare(X, [mine, hs.DiffusionMap(1)], seeds=1)
    assert [row.method for row in both.rows] == ["DiffusionMap", "DiffusionMap-2"]
    assert [Y.shape[1] for Y in both.embeddings.values()] == [3, 1]
    assert list(hs.compare(X, mine, seeds=1).embeddings) == ["DiffusionMap"]
    assert "1 " in str(hs.compare(X, {1: "pca"}, seeds=1))


def test_coordinates_are_measured_as_those_of_the_method_that_made_them():
    X, label = clouds()
    Y = hs.DiffusionMap(2, n_neighbors=7, random_state=0).fit_transform(X)
    made = hs.compare(X, hs.DiffusionMap(2, n_neighbors=7, random_state=0), label, time=3, seeds=1)
    expected = made.rows[0]._replace(method="", seconds=0, peak_bytes=0)
    for methods in (Y, [Y], {"umap": Y}, ["pca", Y, -Y], {"frame": pd.DataFrame(Y), "turned": -Y}):
        result = hs.compare(X, methods, label, time=3)
        given = [row for row in result.rows if row.method != "pca"]
        for row in given:
            assert np.isnan([row.seconds, row.peak_bytes, row.stability]).all()
            found = row._replace(method="", seconds=0, peak_bytes=0)
            np.testing.assert_allclose(found[1:-1], expected[1:-1], rtol=1e-12)
        names = [row.method for row in result.rows]
        if isinstance(methods, list) and len(methods) == 3:
            assert names == ["pca", "coordinates", "coordinates-2"]
    np.testing.assert_array_equal(result.embeddings["frame"], Y)
    panels = result.plot().axes
    assert [panel.get_title("left") for panel in panels] == ["frame", "turned"]
    assert all(" s" not in panel.get_xlabel().partition("crowding")[2] for panel in panels)


def test_labels_are_fitted_to_and_missing_ones_are_placed():
    X, label = clouds()
    label = label.astype(object)
    label[::9] = None
    result = hs.compare(X, ["multiple-discriminant"], label, n_components=5, seeds=1)
    assert result.embeddings["multiple-discriminant"].shape == (90, 2)  # three classes
    assert result.rows[0].knn_accuracy > 0.8


def test_a_method_that_fails_leaves_the_others():
    X, _ = clouds()
    strange = FunctionTransformer(lambda X: np.full(X.shape, np.nan))
    wrong = FunctionTransformer(lambda X: 1 / 0)
    methods = {"bad": hs.DiffusionMap(500), "strange": strange, "wrong": wrong, "pca": "pca"}
    result = hs.compare(X, methods, seeds=1)
    assert list(result.embeddings) == ["pca"]
    *failed, row = result.rows
    for one, words in zip(failed, ("n_components", "NaN", "ZeroDivisionError"), strict=True):
        assert words in one.error
        assert np.isnan(one.seconds)
    assert row.trustworthiness > 0.5
    assert "n_components" in str(result)
    *empty, panel = result.plot().axes  # failures have their reason in the place of a picture
    for ax, one in zip(empty, failed, strict=True):
        assert ax.get_title("left") == one.method
        assert ax.texts[0].get_text().split() == one.error.split()
        assert len(ax.collections) == len(ax.get_xlabel()) == 0
    *_, seconds, unit = panel.get_xlabel().split()
    assert (float(seconds), unit) == (pytest.approx(row.seconds, rel=0.06), "s")
    none = hs.compare(X, {"bad": methods["bad"]}, seeds=1).plot()
    assert "n_components" in none.axes[0].texts[0].get_text()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"methods": ["umpa"]}, "no method 'umpa'.* did you mean 'umap'"),
        ({"methods": []}, "methods is empty"),
        ({"methods": np.ones((89, 2))}, r"shape \(89, 2\); .* coordinates \(90, c\)"),
        ({"methods": {"umap": np.full((90, 2), np.nan)}}, "umap contains NaN"),
        ({"methods": [3]}, r"of type int and shape \(\); pass a name, an estimator, or"),
        ({"methods": ["multiple-discriminant"]}, "need.* labels of at least two classes"),
        (
            {"methods": ["fisher-discriminant"], "labels": np.arange(90) / 7},
            "need.* labels of at least two classes",
        ),
        ({"labels": [1, 2]}, r"labels has shape \(2,\) but X has 90 rows"),
        ({"time": "gap"}, r"time='gap' .*, or 'auto'"),
        ({"time": 0}, "time=0"),
        ({"time": 1.5}, "whole"),
    ],
)
def test_what_cannot_be_run_is_said_at_once(options, text):
    with pytest.raises((TypeError, ValueError), match=text):
        hs.compare(clouds()[0], **{"methods": ["pca"]} | options)


def test_all_is_what_fits():
    assert set(DEFAULT_METHODS) <= set(fitting(1600)) <= set(ESTIMATORS)
    supervised = {name for name, make in ESTIMATORS.items() if needs_labels(make())}
    assert supervised == {"fisher-discriminant", "multiple-discriminant"}
    assert not supervised & set(fitting(1600))
    assert set(fitting(1600, 2)) == set(ESTIMATORS)
    assert {"isomap", "sne", "mixture-diffusion"} <= set(fitting(10_000))
    assert set(fitting(10_000)) - set(fitting(10**6)) == {"isomap", "sne", "tsne"}


says_memory = pytest.mark.skipif(np.isnan(memory()), reason="the system does not say")


@says_memory
def test_memory_is_that_of_the_work():
    held, seconds, peak = measured(lambda: np.ones(25_000_000))
    assert 0.9 * held.nbytes < peak < 2 * held.nbytes
    assert seconds > 0


@says_memory
def test_the_largest_memory_of_the_process_stays_that_of_the_caller(monkeypatch):
    large = np.ones(40_000_000)
    del large
    before, seen = memory("VmHWM"), threading.Event()

    def look(*which):
        found = memory(*which)
        if threading.current_thread() is not threading.main_thread():
            seen.set()
        return found

    def work():
        held = np.ones(25_000_000)
        for _ in range(2):  # the first look may have begun before
            seen.clear()
            assert seen.wait(60)
        return held.nbytes

    monkeypatch.setattr(run, "memory", look)
    size, _, peak = measured(work)
    assert memory("VmHWM") == before
    assert 0.9 * size < peak < 2 * size


def test_a_method_that_uses_no_neighbours_gets_none():
    X = clouds()[0]
    own = {"dense": hs.HeatSketch(2, affinity="dense"), "knn": hs.HeatSketch(2)}
    found = hs.compare(X, own, seeds=1)
    assert [row.error for row in found.rows] == ["", ""]
    assert found.facts["sharing"] == ["knn"]


def test_command_line(tmp_path, capsys):
    out = tmp_path / "found"
    command = f"compare circle --methods pca,diffusion-map --seeds 1 -o {out}".split()
    assert cli.main(command) == 0
    assert "diffusion-map" in capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    with (out / "comparison.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["method"] for row in rows] == ["pca", "diffusion-map"]
    assert float(rows[0]["trustworthiness"]) > 0.999  # a circle in the plane
    with np.load(out / "embeddings.npz") as kept:
        assert kept["pca"].shape == (300, 2)
    assert cli.main(command) == 1
    assert "--force" in capsys.readouterr().err
    assert cli.main([*command, "--force"]) == 0
    np.save(tmp_path / "few.npy", np.eye(5))
    alone = f"compare {tmp_path / 'few.npy'} --methods tsne --n-neighbors 3 -o {out} --force"
    assert cli.main(alone.split()) == 1
    assert "no method computed an embedding" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == [FILES[0]]
    assert cli.main(["compare", "circle", "--methods", "umpa", "-o", str(out)]) == 2


def test_all_methods_are_named_with_their_seconds_before_the_first_runs(
    tmp_path, capsys, monkeypatch
):
    given = ["compare", "circle", "--methods", "all", "-o", str(tmp_path / "all"), "--seeds", "1"]

    def searched(*_):
        err = capsys.readouterr().err
        assert "for 300 points (heat-embedding 1 s, " in err
        assert all(f"{name} " in err for name in fitting(300))
        raise ValueError("seen")

    monkeypatch.setattr(run, "_shared_index", searched)
    assert cli.main(given) == 1
    assert "seen" in capsys.readouterr().err


class Slow(PCA):
    """A method of another package, of unknown cost."""


def test_the_time_is_that_of_all_runs_and_says_what_is_unknown(caplog):
    caplog.set_level(logging.INFO, "heatsketch")
    X, label = clouds()
    methods = {
        "tsne": hs.classical.TSNE(n_iter=250),
        "slow": Slow(2),
        "mine": X[:, :2],
        "nan": "multiple-discriminant",
    }
    for seeds in (1, 3):
        hs.compare(X, methods, label, seeds=seeds)
    once, thrice = (record for record in caplog.records if record.getMessage().startswith("about "))
    one = expected_seconds(hs.classical.TSNE(), 90)
    assert f" for 90 points (tsne {one:.0f} s, slow unknown, nan 1 s), " in once.getMessage()
    assert f" for 90 points (tsne {3 * one:.0f} s, slow unknown, nan 1 s), " in thrice.getMessage()
    assert "mine" not in once.getMessage()
    assert all(record.at_once for record in (once, thrice))  # shown in the first two seconds, too
    for make in ESTIMATORS.values():
        assert expected_seconds(make(), 10**5) > 1.5 * expected_seconds(make(), 10**4) > 0


def test_no_time_is_foretold_where_nothing_runs(caplog):
    caplog.set_level(logging.INFO, "heatsketch")
    X, _ = clouds()
    hs.compare(X, {"mine": X[:, :2]})
    assert "method 1 of 1: mine" in caplog.messages
    assert "about" not in caplog.text


def test_names_with_signs_of_formulas_are_drawn_as_they_are(tmp_path):
    X, _ = clouds()
    methods = {name: hs.DiffusionMap(2, time=1) for name in ("$x_{$", "$y$")}
    figure = hs.compare(X, methods, seeds=1).plot(tmp_path / "sheet.svg")
    assert "$x_{$, $y$: plus" in figure.get_supxlabel().replace("\n", " ")


def test_a_method_may_have_any_name(tmp_path):
    result = hs.compare(np.random.default_rng(0).normal(size=(60, 3)), {"file": "pca"}, seeds=1)
    result.write(tmp_path)
    with np.load(tmp_path / "embeddings.npz") as stored:
        np.testing.assert_array_equal(stored["file"], result.embeddings["file"])


# The judgement of pictures


def test_a_row_has_the_numbers_by_which_the_embedding_is_judged():
    X, label = hs.datasets.digits()
    X, label = X[:400], label[:400]
    model = hs.HeatEmbedding(random_state=0).fit(X)
    result = hs.compare(X, {"given": model.embedding_, "made": "heat-embedding"}, label, seeds=1)
    judged = model.quality_
    for row in result.rows:
        assert (row.neighbors, row.distances) == (judged.neighbors, judged.distances)
        assert row.crowding == judged.crowding
    numbers = f"neighbours {judged.neighbors:.2f} · large distances {judged.distances:.2f}"
    numbers, crowding = (
        text.replace(" 0.", " .") for text in (numbers, f"crowding {judged.crowding:.2f}")
    )
    given, made = result.plot().axes
    assert given.get_xlabel() == f"{numbers} · {crowding}"
    assert made.get_xlabel().startswith(f"{numbers} · {crowding} · ")
    for method in ("near", "far", "crowd"):
        assert f" {method}" in str(result)


def test_numbers_and_legend_of_a_sheet_have_room(monkeypatch):
    X, label = clouds()
    names = np.array(["a label that is as long as labels are", "b", "c"])[
        np.unique(label, return_inverse=True)[1]
    ]
    figure = hs.compare(X, dict.fromkeys("abcdefg", X[:, :2]), names, seeds=1).plot()
    figure.canvas.draw()
    figure.canvas.draw()
    axes = figure.axes
    assert len({round(ax.get_position().x0, 2) for ax in axes}) == 4
    assert [ax.get_legend() is not None for ax in axes] == [False, False, False, True] + 3 * [False]
    legend = axes[3].get_legend().get_window_extent()
    assert legend.x1 <= figure.bbox.x1
    for ax in axes:
        assert ax.xaxis.label.get_window_extent().width < ax.get_window_extent().width + 2
        assert not ax.get_window_extent().overlaps(legend)
    numbers = hs.compare(X, {"one": X[:, :2], "two": X[:, 1:3]}, X[:, 0] / 7, seeds=1).plot()
    assert len(numbers.axes) == 3  # one bar of the numbers


# Methods of other packages


class Their(BaseEstimator):
    """What packages have in common: parameters of their own, and much to say."""

    def __init__(self, n_components=2, n_neighbors=4, random_state=None):
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def fit_transform(self, X):
        print("fitting")
        print("fitting", file=sys.stderr)
        logging.getLogger("umap").error("fitting")
        warnings.warn("fitting", RuntimeWarning, stacklevel=1)
        if self.random_state is None or self.n_neighbors != 4:
            raise ValueError("other parameters")
        rng = np.random.default_rng(self.random_state)
        return X[:, : self.n_components] + rng.normal(size=(len(X), self.n_components))


class Bare(BaseEstimator):
    """A method whose fit returns the coordinates."""

    def fit(self, X):
        return X[:, :2]


def package(monkeypatch, name, **classes):
    """Make a package of one module importable."""
    module = types.ModuleType(name)
    for class_name, base in classes.items():
        kind = type(class_name, (base,), {"__init__": base.__init__, "__module__": f"{name}.core"})
        setattr(module, class_name, kind)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def test_methods_of_other_packages_have_their_own_defaults_and_are_not_heard(
    monkeypatch, capsys, caplog
):
    module = package(monkeypatch, "umap", UMAP=Their)
    package(monkeypatch, "phate", PHATE=Bare)
    X, label = clouds()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = hs.compare(
            X, {"umap": "umap", "phate": "phate", "given": module.UMAP(random_state=7)}, label
        )
    assert [row.error for row in result.rows] == ["", "", ""]
    made = X[:, :2] + np.random.default_rng(0).normal(size=(90, 2))
    np.testing.assert_array_equal(result.embeddings["umap"], made)
    np.testing.assert_array_equal(result.embeddings["phate"], X[:, :2])
    made = X[:, :2] + np.random.default_rng(7).normal(size=(90, 2))
    np.testing.assert_array_equal(result.embeddings["given"], made)
    assert 0 < result.rows[0].stability < 1  # of two seeds
    assert "fitting" not in "".join(capsys.readouterr())
    assert "fitting" not in caplog.text
    assert list(hs.compare(X, Bare(), seeds=1).embeddings) == ["Bare"]


def test_only_other_packages_are_silenced_and_only_meanwhile(capsys, caplog):
    def talk_and_fail():
        print("theirs")
        logging.getLogger("theirs").error("theirs")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), silenced(PCA):
        talk_and_fail()
    with silenced(hs.HeatEmbedding):
        print("ours")
        logging.getLogger("ours").error("ours")
    with silenced(Their):
        print("a reader's own")
    assert capsys.readouterr().out == "ours\na reader's own\n"
    assert caplog.messages == ["ours"]


@pytest.mark.parametrize("name", OTHERS)
def test_a_package_that_is_missing_is_named(name, monkeypatch):
    place, to_install = OTHERS[name]
    monkeypatch.setitem(sys.modules, place.rpartition(".")[0], None)
    with pytest.raises(ImportError, match=rf"method {name} .*; pip install {to_install}\.$"):
        hs.compare(clouds()[0], ["pca", name])


def test_any_class_that_can_be_imported_is_a_method():
    X, _ = clouds()
    result = hs.compare(X, ["sklearn.decomposition.TruncatedSVD"], seeds=1)
    assert result.rows[0].error == ""
    assert result.embeddings["sklearn.decomposition.TruncatedSVD"].shape == (90, 2)
    for wrong in ("sklearn.decomposition.CPA", "missing.PCA"):
        with pytest.raises(ImportError, match=f"method {wrong} .*; check the name, or install"):
            hs.compare(X, [wrong])
    for wrong in ("sklearn.decomposition", "numpy.array"):
        with pytest.raises(ValueError, match=f"method {wrong} is no class of an estimator"):
            hs.compare(X, [wrong])
