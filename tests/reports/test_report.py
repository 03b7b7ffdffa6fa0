"""Reports: their facts are those of the estimator, and nothing in them is read as HTML."""

import base64
import html.parser
import itertools
import json
import re
import warnings
import zlib

import numpy as np
import pytest
from scipy.stats import binom, chi2

import heatsketch as hs
from heatsketch import cli
from heatsketch.metrics import diffusion_distortion
from heatsketch.reports import columns as columns_module
from heatsketch.reports import facts as facts_module
from heatsketch.reports import facts as frames_module
from heatsketch.reports.columns import column, packed_places
from heatsketch.reports.facts import parameters, reading, sketch_facts, sketch_of, slider_times

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<!--<script>",
    "-->",
    "<img src=x onerror=alert(3)>",
    "\"'&lt;\\u003c\\",
    "{{script}}",
    "line\u2028end\u2029 é 漢 \x00\x1b \U0001f600",
    "half a pair \ud800",
    "=1+1",
    "__proto__",
)


def unpacked(array):
    """Return the array that `packed` was given, or the texts."""
    content = zlib.decompress(base64.b64decode(array["data"]))
    if array["kind"] == "json":
        return json.loads(content)
    size = np.dtype(array["kind"]).itemsize
    planes = np.frombuffer(content, np.uint8).reshape(size, -1)  # the lowest bytes first
    return planes.T.copy().view(f"<{array['kind']}").reshape(array["shape"])


def positions(frame):
    """Return the places (m, d) of a frame."""
    found = np.array(frame["low"]) + np.array(frame["unit"]) * unpacked(frame["steps"])
    found[unpacked(frame["far"])] = unpacked(frame["places"])
    return found


def decoded(sketch):
    """Return the rows (n, k) that a page reads from its sketch."""
    values = unpacked(sketch["steps"]) * 0.5 ** unpacked(sketch["halvings"]).astype(float)[:, None]
    at = unpacked(sketch["before"]).astype(int)
    while (at != at[at]).any():  # twice as many steps at each turn
        values, at = values + values[at], at[at]
    return sketch["unit"] * values


def placed(facts):
    """Return the points of a page at all times (T, n, d), in units of diffusion distance."""
    frames = facts["frames"]
    P = np.stack([positions(frame) for frame in frames["positions"]])
    return P * np.array(frames["sizes"])[:, None, None]


@pytest.fixture(scope="module")
def roll():
    X, sheet = hs.datasets.swiss_roll(300, rng=0)
    return X, sheet[:, 0]


@pytest.fixture(scope="module")
def embedded(roll):
    return hs.HeatEmbedding(2, layout="linear", random_state=0).fit(roll[0])


@pytest.fixture(scope="module")
def shown(roll, embedded):
    return hs.report(embedded, roll[0], labels=roll[1])


def test_a_widget_answers_with_the_columns_that_are_asked_for(roll, limits):
    pytest.importorskip("anywidget")
    limits(report_points=50)  # a sample is shown
    page = hs.report(hs.HeatSketch(8, 8, random_state=0).fit(roll[0]))
    rows = unpacked(page.facts["shown"])
    counts = np.random.default_rng(0).poisson(2, 300).astype(float)
    known = {"GENE": counts, "kind": np.array(["a", "b", "c"] * 100), "short": counts[:9]}
    shown = page.widget(known, known.__getitem__)
    said = []
    shown.send = said.append
    for name in (*known, "unknown"):
        shown._handle_custom_msg(name, [])
    gene, kind, short, unknown = said
    np.testing.assert_array_equal(unpacked(gene["column"]["values"]), counts[rows])
    names = np.array(kind["column"]["names"])[unpacked(kind["column"]["codes"])]
    np.testing.assert_array_equal(names, known["kind"][rows])
    assert "short: values has a column 'short' of shape (9,)" in short["missing"]
    assert unknown["missing"].startswith("unknown: ")
    json.dumps(said)
    assert shown.names == list(known)
    assert shown.page == page.html


def test_a_widget_keeps_names_and_embeds_rows_again(roll):
    pytest.importorskip("anywidget")
    X, sheet = roll
    page = hs.report(hs.DiffusionMap(2, 8).fit(X), X, labels={"sheet": sheet})
    shown = page.widget(["x"], {"x": X[:, 0]}.get)
    assert shown.can == ["again"]
    assert shown.annotations.tolist() == [""] * 300
    shown._handle_custom_msg({"annotations": {"a": [1, 2], "b": [299]}}, [])
    assert np.flatnonzero(shown.annotations == "a").tolist() == [1, 2]
    assert shown.annotations[299] == "b"
    rows = np.arange(299, 0, -2)
    shown._handle_custom_msg({"again": rows.tolist()}, [])
    again = page.again(np.sort(rows))
    assert shown.page == again.html
    assert shown.can == ["again", "back"]
    np.testing.assert_array_equal(unpacked(again.facts["shown"]), np.sort(rows))
    np.testing.assert_allclose(
        unpacked(again.facts["columns"][0]["values"]), sheet[np.sort(rows)], rtol=1e-6
    )
    expected = hs.report(hs.DiffusionMap(2, 8).fit(X[np.sort(rows)]), X[np.sort(rows)])
    assert again.facts["frames"] == expected.facts["frames"]
    shown._handle_custom_msg({"back": True}, [])
    assert shown.page == page.html
    said = []
    shown.send = said.append
    shown._handle_custom_msg({"again": [1]}, [])  # one point has no graph
    assert said[0]["missing"].startswith("again: ")
    assert shown.page == page.html


def test_reports_without_points_embed_nothing_again(roll, embedded):
    assert hs.report(embedded).again is None
    assert hs.report(embedded, roll[0]).again is not None


def test_the_page_has_the_verdict_of_the_embedding(roll):
    model = hs.HeatEmbedding(2, 8, random_state=0).fit(roll[0])
    facts = hs.report(model).facts
    assert facts["verdict"] == facts["lines"]["picture"] == model.quality_.describe()
    assert facts["distortion"]["line"] == facts["lines"]["distances"]
    assert "worst" not in facts["distortion"]["line"]  # pairs of a free layout, which are chance


def test_what_differs_from_the_defaults_is_told(roll):
    assert parameters(hs.HeatEmbedding()) == "all parameters as by default"
    assert parameters(hs.HeatEmbedding(3, random_state=0)) == "n_components=3, random_state=0"
    one = hs.report(hs.HeatSketch(8, random_state=0).fit(roll[0])).facts
    assert one["lines"]["method"] == "HeatSketch, n_components=8, random_state=0"
    assert one["parameters"]["n_neighbors"] == "15"


@pytest.mark.parametrize("layout", ["free", "linear"])
def test_the_page_says_whether_gaps_between_components_mean_something(roll, layout):
    X = np.concatenate([roll[0][:60], roll[0][:60] + 1e3])
    with pytest.warns(hs.DisconnectedWarning):
        model = hs.HeatEmbedding(layout=layout).fit(X)
    assert ("straight distances" in reading(model, 2)) == (layout == "free")
    assert ("gaps between components" in reading(model, 2)) == (layout == "linear")
    assert not {"gaps", "straight"} & set(reading(model, 1).split())


def test_of_many_points_the_features_with_the_most_variance_are_columns(limits):
    X = np.random.default_rng(0).normal(size=(200, 6)) * [1, 5, 2, 4, 1, 3]
    shown = np.arange(0, 200, 2)
    every = [column["name"] for column in columns_module.feature_columns(X, None, shown)]
    assert every == [f"x{j}" for j in range(6)]
    limits(report_features=99, report_values=350)
    found = columns_module.feature_columns(X, list("abcdef"), shown)
    assert [column["name"] for column in found] == ["b", "d", "f"]
    np.testing.assert_allclose(unpacked(found[1]["values"]), X[shown, 3], rtol=1e-6)


def test_a_page_without_all_features_says_so(limits, roll):
    model = hs.DiffusionMap(2, 8).fit(roll[0])
    assert "features" not in hs.report(model, roll[0]).facts["lines"]
    limits(report_features=299, report_values=600)
    facts = hs.report(model, roll[0]).facts
    largest = sorted(np.argsort(-roll[0].var(axis=0))[:2])
    assert [column["name"] for column in facts["columns"]] == [f"x{j}" for j in largest]
    assert facts["lines"]["features"].startswith(
        "2 of 3 are colours, those of the largest variance"
    )
    assert "features" not in hs.report(model).facts["lines"]


class Page(html.parser.HTMLParser):
    """The elements and texts of a page as a browser reads them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts = [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags:
            name = self.tags[-1][1].get("id", self.tags[-1][0])
            self.texts[name] = self.texts.get(name, "") + data


def test_facts_are_those_of_the_estimator(roll, embedded, shown):
    assert shown.facts["lines"]["time"] == str(embedded.time_)
    line = embedded.distortion_.describe().removeprefix("distances ")
    assert shown.facts["distortion"]["line"].startswith(line)
    trace = hs.heat_trace(embedded.diffusion_, embedded.time_curve_.times)
    np.testing.assert_array_equal(shown.facts["scales"]["effective_rank"], trace.effective_rank)
    explained = embedded.explained_diffusion_variance()
    np.testing.assert_array_equal(shown.facts["explained"]["cumulative"], explained.cumulative)
    assert shown.facts["ksum"]["epsilon"] == hs.ksum(roll[0]).epsilon
    assert shown.facts["parameters"]["n_neighbors"] == "15"
    assert shown.facts["versions"]["heatsketch"] == hs.__version__
    assert sum(shown.facts["distortion"]["histogram"][1]) == embedded.distortion_.n_pairs


def test_frames_have_one_scale_and_are_turned_to_their_neighbours(shown):
    P = [positions(frame) for frame in shown.facts["frames"]["positions"]]
    np.testing.assert_allclose([np.mean(np.sum(frame**2, axis=1)) for frame in P], 1, rtol=1e-5)
    for before, after in itertools.pairwise(P):
        # Procrustes: the best orthogonal map between neighbours is the identity.
        product = before.T @ after
        assert np.trace(product) == pytest.approx(np.linalg.norm(product, "nuc"), rel=1e-5)


def test_at_other_times_the_map_keeps_the_distances_of_these_times(embedded, shown):
    moved = shown.facts["frames"]
    at = moved["chosen"]
    for t in (at - 1, at + 1):
        diffusion, time, filter = embedded.diffusion_, moved["times"][t], embedded.filter
        q = diffusion_distortion(placed(shown.facts)[t], diffusion, time, filter=filter)
        assert q.within[1.5] == pytest.approx(moved["distances"][t]["within"][1.5], abs=0.03)
        assert q.median == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("make", [hs.DiffusionMap, hs.HeatSketch])
def test_the_same_random_numbers_and_axes_at_all_times(make, k, roll):
    X = roll[0]
    model = make(k, 8, random_state=3).fit(X)
    facts = hs.report(model, times=[2, 32]).facts
    assert facts["frames"]["times"] == [2, 8, 32]
    P = placed(facts)
    Y = model.embedding_ - model.embedding_.mean(axis=0)
    axes = np.linalg.lstsq(Y, P[1], rcond=None)[0]  # (k, d)
    np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-4)
    for t, time in enumerate((2, 8, 32)):
        other = make(k, time, random_state=3).fit(X).embedding_
        other = (other - other.mean(axis=0)) @ axes
        np.testing.assert_allclose(P[t], other, atol=1e-4 * np.abs(other).max())


def test_components_keep_their_places():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 3)), 100 + rng.normal(size=(40, 3)), [[500.0, 0, 0]]])
    with pytest.warns(hs.DisconnectedWarning):
        model = hs.HeatEmbedding(2, 4, affinity="radius", epsilon=4.0).fit(X)
    facts = hs.report(model).facts
    P = [positions(frame) for frame in facts["frames"]["positions"]]
    centres = np.array([[frame[:60].mean(0), frame[60:100].mean(0), frame[100]] for frame in P])
    np.testing.assert_allclose(centres, np.broadcast_to(centres[0], centres.shape), atol=1e-4)
    (components,) = [c for c in facts["columns"] if c["name"] == "component"]
    assert components["names"] == ["1 (60 points)", "2 (40 points)", "isolated"]
    assert unpacked(components["codes"]).tolist() == [0] * 60 + [1] * 40 + [2]


def test_times_of_the_slider(embedded, roll):
    assert embedded.time_ in slider_times(embedded)
    assert set(slider_times(embedded)) <= set(embedded.time_curve_.times)
    model = hs.DiffusionMap(2, 8).fit(roll[0])
    assert slider_times(model) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert slider_times(model, shown=20_001) == [4, 8, 16]
    assert slider_times(model, shown=200_001) == [8]
    assert slider_times(model, [2, 4], shown=200_001) == [2, 4, 8]
    heat = hs.DiffusionMap(2, 0.5, filter="heat").fit(roll[0])
    assert slider_times(heat) == [0.5, 1, 2, 4, 8]
    assert slider_times(hs.classical.PCA(2).fit(roll[0])) == [None]


def test_pages_without_diffusion_distances(roll):
    """Of another method, of points that do not differ, and of times at which nobody has walked."""
    pca = hs.report(hs.classical.PCA(3).fit(roll[0]), roll[0]).facts
    assert pca["frames"]["times"] == [None]
    assert [column["name"] for column in pca["columns"]] == ["x0", "x1", "x2"]
    with pytest.warns(hs.ScaleWarning):
        model = hs.HeatEmbedding(2, affinity="precomputed").fit(np.ones((12, 12)))
    equal = hs.report(model).facts
    assert not positions(equal["frames"]["positions"][0]).any()
    real = [hs.report(hs.DiffusionMap(2, t).fit(roll[0])).facts for t in (0, 8.5)]
    assert all(len(facts["frames"]["times"]) > 4 and facts["explained"] for facts in real)
    for facts in (pca, equal, *real):
        assert facts["distortion"] is facts["sketch"] is None
        assert facts in real or facts["scales"] is facts["explained"] is None


def test_a_list_of_one_time_is_a_time(roll):
    pages = [hs.report(hs.HeatSketch(8, t, random_state=0).fit(roll[0])).facts for t in (8, [8])]
    assert pages[0]["frames"] == pages[1]["frames"]
    assert pages[0]["sketch"] == pages[1]["sketch"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_data_frames(library, roll):
    frames = pytest.importorskip(library)
    X = frames.DataFrame({name: roll[0][:, j] for j, name in enumerate("abc")})
    labels = frames.DataFrame({"sheet": roll[1], "half": [bool(x > 60) for x in roll[1]]})
    model = hs.DiffusionMap(2, 8).fit(X)
    facts = hs.report(model, X, labels=labels, ids=labels["sheet"]).facts
    assert [column["name"] for column in facts["columns"]] == ["sheet", "half", "a", "b", "c"]
    assert list(facts["ids"]) == ["sheet"]
    np.testing.assert_allclose(unpacked(facts["columns"][2]["values"]), roll[0][:, 0], rtol=1e-6)


def test_a_page_opens_with_the_first_column_that_repeats_and_finds_names(roll, embedded):
    pd = pytest.importorskip("pandas")
    names = np.array([f"flight {row}" for row in range(300)], object)
    notes = np.where(np.arange(300) % 9, None, names)  # text of which most is missing
    given = {"flight": names, "note": notes, "kind": list("abc") * 100, "sheet": roll[1]}
    facts = hs.report(embedded, roll[0], labels=pd.DataFrame(given), ids=list("xyz") * 100).facts
    shown = [column["name"] for column in facts["columns"]]
    assert shown == ["kind", "sheet", "x0", "x1", "x2"]
    assert list(facts["ids"]) == ["id", "flight", "note"]
    assert unpacked(facts["ids"]["flight"]) == names.tolist()
    assert unpacked(facts["ids"]["note"]) == ["" if x is None else x for x in notes]
    facts = hs.report(embedded, labels={"name": names}, ids={"name": roll[1]}).facts
    assert facts["columns"][0]["name"] == "name"  # beside ids of the same name
    assert unpacked(facts["ids"]["name"]) == [str(entry) for entry in roll[1]]
    few = hs.DiffusionMap(n_neighbors=3).fit(roll[0][:20])  # as many names as there are colours
    assert hs.report(few, labels=names[:20]).facts["columns"][0]["name"] == "label"


def test_certainty_of_neighbours_is_a_column(roll):
    model = hs.HeatSketch(16, random_state=0).fit(roll[0])
    (confidence,) = hs.report(model).facts["columns"]
    assert confidence["name"] == "neighbor_confidence"
    found = unpacked(confidence["values"])
    np.testing.assert_allclose(found, model.neighbor_confidence_, rtol=1e-6)


def test_many_points_are_a_sample_with_the_worst_pairs(limits, roll, embedded):
    limits(report_points=50)
    facts = hs.report(embedded, labels=roll[1]).facts
    shown = unpacked(facts["shown"])
    assert len(shown) == len(set(shown.tolist())) == 50
    assert facts["n_points"] == 300
    np.testing.assert_allclose(unpacked(facts["columns"][0]["values"]), roll[1][shown], rtol=1e-6)
    for end, pairs in embedded.distortion_.worst_pairs.items():
        assert shown[np.array(facts["distortion"]["worst_pairs"][end])].tolist() == pairs.tolist()
    Y = embedded.embedding_ - embedded.embedding_.mean(axis=0)
    at = facts["frames"]["chosen"]
    P, size = placed(facts)[at], facts["frames"]["sizes"][at]
    half = 0.501 * max(facts["frames"]["positions"][at]["unit"]) * size  # of a step
    np.testing.assert_allclose(P, Y[shown] - Y[shown].mean(axis=0), rtol=0, atol=half)


def test_a_slider_of_many_points_is_that_of_all_eigenpairs(limits):
    X, _ = hs.datasets.gaussian_clouds(400, rng=0)
    est, shown = (
        hs.HeatEmbedding(2, layout="linear", time=256, random_state=0).fit(X),
        np.arange(400),
    )
    exact = frames_module.frames(est, est.embedding_, [64, 128, 256], shown)
    limits(few_vertices=0)  # as if these were many points
    found = frames_module.frames(est, est.embedding_, [64, 128, 256], shown)
    places = [[positions(frame) for frame in one["positions"]] for one in (found, exact)]
    np.testing.assert_allclose(*places, atol=0.02)
    np.testing.assert_allclose(found["sizes"], exact["sizes"], rtol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("make", [hs.DiffusionMap, hs.HeatSketch])
@pytest.mark.parametrize("small", [False, True], ids=["one component", "a small one"])
def test_intervals_shown_at_a_click_hold_the_true_distance_as_often_as_they_say(make, small):
    """Of 600 sketches, each asked for one pair: 95 % ± the binomial quantiles at 1e-6.

    Intervals that hold 90 % of the time would be found with probability .6, 88 % with .99. The
    distances in the small component are 1e-5 of those between the others.
    """
    rng = np.random.default_rng(1)
    X, time = hs.datasets.swiss_roll(60, rng=0)[0], 8
    if small:
        X, time = np.concatenate([400 + rng.normal(size=(20, 3)), X]), 64
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.DisconnectedWarning)
        model = make(2, time, n_neighbors=8, random_state=0).fit(X)
    count = 20 if small else 60
    trials, held = 600, 0
    i, j = (rng.permutation(count)[:30] for _ in range(2))
    i, j = i[i != j], j[i != j]
    D = hs.diffusion_distance(model.diffusion_, time, pairs=(i, j))
    for seed in range(trials):
        sketch = sketch_of(model, seed=seed)
        if make is hs.HeatSketch:
            options = {"affinity": "precomputed", "random_state": seed}
            sketch = sketch_of(hs.HeatSketch(64, time, **options).fit(model.diffusion_))
        labels = model.diffusion_.expand(model.diffusion_.operator.components())
        facts = sketch_facts(sketch, labels, np.arange(len(X)))
        F = decoded(facts)
        pair = seed % len(i)
        length = np.linalg.norm(F[i[pair]] - F[j[pair]])
        held += facts["low"] * length <= D[pair] <= facts["high"] * length
    assert binom.ppf(1e-6, trials, 0.95) <= held <= binom.ppf(1 - 1e-6, trials, 0.95)


def test_numbers_beyond_single_precision_are_kept_in_double():
    stamp = 1_700_000_000 + np.append(np.arange(30) / 4, np.nan)
    values = unpacked(column("time", stamp, np.arange(31))["values"])
    np.testing.assert_array_equal(values, stamp)


def test_hostile_names_stay_text(tmp_path, roll):
    X = roll[0]
    names = np.resize(np.array(HOSTILE, dtype=object), len(X))
    labels = dict.fromkeys(HOSTILE, names)
    model = hs.DiffusionMap(2, 4).fit(X)
    path = tmp_path / "report.html"
    found = hs.report(model, labels=labels, ids={HOSTILE[1]: names}, title=HOSTILE[1], path=path)
    page = Page(path.read_text("utf-8"))
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "facts"}, {}]
    assert not any(tag == "img" or "onerror" in attributes for tag, attributes in page.tags)
    facts = json.loads(page.texts["facts"])
    assert facts == json.loads(json.dumps(facts))
    assert facts["title"] == page.texts["title"].strip() == HOSTILE[1]
    assert [column["name"] for column in facts["columns"]] == list(HOSTILE)
    assert unpacked(facts["ids"][HOSTILE[1]]) == names.tolist()
    assert facts["columns"][0]["names"] == sorted(HOSTILE)
    assert found.facts["title"] == HOSTILE[1]


def test_the_page_reaches_for_nothing_and_runs_its_own_script_only(shown):
    text = shown.html
    assert not re.search(r"\b(src|href)\s*=\s*[\"']?(https?:)?//", text)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert name not in text


def test_the_same_model_has_the_same_page(roll, shown):
    again = hs.HeatEmbedding(2, layout="linear", random_state=0).fit(roll[0])
    assert hs.report(again, roll[0], labels=roll[1]).html == shown.html


def test_a_report_refuses_what_it_cannot_show(tmp_path, roll, embedded):
    X, pca = roll[0], hs.classical.PCA(2).fit(roll[0])
    for est, arguments, message in (
        (embedded, {"path": tmp_path / "report.pdf"}, r"ending in \.html"),
        (embedded, {"labels": [1, 2, 3]}, r"shape \(3,\)"),
        (embedded, {"X": X[:10]}, "fitted to 300"),
        (embedded, {"X": X[::-1]}, "another order of the rows or columns, than .* HeatEmb"),
        (embedded, {"X": X + 1}, "other values, .* pass the X of the fit"),
        (pca, {"X": X[:, :2]}, r"X \(300, 2\) has other values"),
        (hs.audit(X, X[:, :2], random_state=0), {"X": X + 1}, "HeatSketch was fitted to"),
        (embedded, {"images": (3, 1)}, "X is not given; pass the points"),
        *(
            (embedded, {"X": X, "images": size}, "X has 3 features; pass the height and width")
            for size in ((3, 3), 3, (3,), (-3, -1), (3.0, 1.0), "31")
        ),
        (pca, {"times": [1, 2]}, "leave it out"),
        *((embedded, {"times": times}, "time") for times in ([0.5], [0], [-1])),
        (hs.HeatSketch(4, [2, 4], random_state=0).fit(X), {}, "fit it with one time"),
        (hs.HeatEmbedding(2), {}, "not fitted"),
    ):
        with pytest.raises(ValueError, match=message):
            hs.report(est, **arguments)
    for other in (X, None, hs.HeatEmbedding):
        with pytest.raises(TypeError, match=r"est is of type .*; pass .* report\(est, X\)"):
            hs.report(other, embedded)


def points_with_gaps():
    X = np.random.default_rng(0).normal(size=(300, 3))
    X[::7, 0], X[3::5, 2] = np.nan, np.nan
    return X


@pytest.mark.parametrize(
    ("of_fit", "same"),
    [
        ("float32", np.asarray),
        ("float64", lambda X: X.tolist()),
        ("float64", np.asfortranarray),
        ("float32", lambda X: X.astype("float64")),
        ("float64", lambda X: pytest.importorskip("pandas").DataFrame(X)),
    ],
)
@pytest.mark.parametrize("gaps", [False, True])
def test_the_points_of_the_fit_are_known_in_every_form(of_fit, same, gaps, roll):
    X = (points_with_gaps() if gaps else roll[0]).astype(of_fit)
    model = hs.HeatSketch(2, random_state=0).fit(X)
    assert hs.report(model, same(X)).facts["columns"][-1]["name"] in ("x2", "2")


def test_points_beside_given_affinities_are_colours(roll):
    K = hs.gaussian_affinity(roll[0], epsilon=4.0)
    model = hs.DiffusionMap(affinity="precomputed").fit(K)
    assert hs.report(model, roll[0]).facts["columns"][-1]["name"] == "x2"


def test_after_points_were_added_the_points_are_those_of_the_refreshed_sketch(roll):
    X, more = roll[0], roll[0][:5] + 0.1
    model = hs.HeatSketch(2, random_state=0).fit(X, ids=np.arange(300))
    model.update(more, ids=np.arange(300, 305)).refresh()
    assert hs.report(model, np.concatenate([X, more])).facts["n_points"] == 305


def test_a_title_is_text(embedded):
    assert "<title>3</title>" in hs.report(embedded, title=3).html


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("far", [0, 15])
def test_places_are_known_to_half_a_step_of_the_window_and_far_ones_fully(d, far):
    rng = np.random.default_rng(0)
    P = rng.normal(size=(1000, d))
    P[:far] *= 1e4
    found = positions(packed_places(P))
    width = np.ptp(P[far:], axis=0)
    assert (np.abs(found - P)[far:] <= 0.501 * width / (2**16 - 1)).all()
    np.testing.assert_allclose(found[:far], P[:far], rtol=1e-6)


@pytest.mark.parametrize("kind", ["f4", "f8", "i1", "i2", "i4", "u1", "u2"])
@pytest.mark.parametrize("shape", [(0,), (7,), (3, 0), (5, 4)])
def test_packed_arrays_come_back(kind, shape):
    values = (np.random.default_rng(0).random(shape) * 100).astype(kind)
    again = columns_module.unpacked(columns_module.packed(values, kind))
    np.testing.assert_array_equal(again, values)
    np.testing.assert_array_equal(unpacked(columns_module.packed(values, kind)), values)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "most"), [(100_000, 6e6), (1_000_000, 40e6)])
def test_many_points_with_distances_fit_into_a_file_that_can_be_sent(n, most, monkeypatch):
    """With a label, a measure, and neighbours that no order makes smaller."""
    rng = np.random.default_rng(0)
    near = rng.integers(0, n, (n, 5))
    before = np.minimum(np.arange(n), rng.integers(0, n, n))
    page = hs.report(hs.DiffusionMap(2, 8).fit(rng.normal(size=(60, 3))))
    found = lambda F, labels, count: (near[:, :count], before)  # noqa: E731
    monkeypatch.setattr(facts_module, "_neighbors_and_tree", found)
    shown, P = np.arange(n), rng.normal(size=(n, 2))
    page.facts["frames"]["positions"] = [packed_places(P)]
    page.facts["columns"] = [
        column("label", rng.integers(0, 20, n), shown),
        column("measure", rng.normal(size=n), shown),
    ]
    sketch = rng.normal(size=(n, facts_module.room_for(n).columns)), "power", 8.0
    page.facts["sketch"] = sketch_facts(sketch, np.zeros(n, int), shown)
    assert len(page.html) <= most


def test_steps_of_8_bits_keep_distances_to_their_part(monkeypatch):
    """Of 1,000 distances one may be wrong by more than two parts, which the interval has."""
    rng, n = np.random.default_rng(0), 4_000
    F = rng.normal(size=(6, 16))[np.arange(n) % 6] + 0.2 * rng.normal(size=(n, 16))
    monkeypatch.setattr(facts_module, "room_for", lambda points: facts_module.Room(16, "i1", 5))
    facts = sketch_facts((F, "power", 8.0), np.zeros(n, int), np.arange(n))
    G = decoded(facts)
    i, j = rng.integers(0, n, (2, 50_000))
    pairs = np.concatenate(
        [np.stack([np.arange(n), unpacked(facts["near"])[:, 0]]), [i, j]], axis=1
    )
    true, found = (np.linalg.norm(one[pairs[0]] - one[pairs[1]], axis=1) for one in (F, G))
    wrong = np.abs(found - true) > 2 * true / 127
    assert wrong[:n].mean() <= 1e-3
    assert wrong[n:].mean() <= 1e-3
    factor = 1 / np.sqrt(chi2.ppf([0.975, 0.025], 16) / 16)
    np.testing.assert_allclose([facts["low"], facts["high"]], factor * [125 / 127, 129 / 127])


def test_a_page_has_at_most_150_bytes_for_each_point_with_its_sketch(limits):
    """As of 20,000 points, which have half of the columns: 3 MB."""
    limits(report_few_points=300)
    X = np.random.default_rng(0).random((600, 3)).astype(np.float32)
    model = hs.HeatSketch(32, 8, random_state=0).fit(X)
    found = hs.audit(model, X[:, :2], labels=X[:, 2] > 0.5, random_state=0)
    size = len(hs.report(found, labels=X[:, 2] > 0.5).html)
    assert size - len(hs.report(hs.classical.PCA(1).fit(X[:3])).html) <= 150 * 600


@pytest.fixture
def page_of(tmp_path, capsys):
    """Run `heatsketch report` on a table and return the facts of the page, and what was printed."""

    def run(header, rows, *given):
        lines = [header, *(",".join(map(str, row)) for row in rows)]
        (tmp_path / "t.csv").write_text("\n".join(lines), encoding="utf-8")
        words = ["report", str(tmp_path / "t.csv"), "-o", str(tmp_path / "t.html"), *given]
        assert cli.main(words) == 0
        text = (tmp_path / "t.html").read_text(encoding="utf-8")
        return json.loads(re.search('id="facts">(.*?)</script>', text)[1]), capsys.readouterr()

    return run


def test_report_prints_what_embed_prints(page_of, tmp_path, roll, capsys):
    facts, said = page_of("x,y,z,class", np.column_stack([roll[0], roll[1] > 60])[::3], "-q")
    source, page = str(tmp_path / "t.csv"), str(tmp_path / "t.html")
    assert cli.main(["embed", source, "-o", str(tmp_path / "out.csv"), "-q"]) == 0
    printed = capsys.readouterr().out
    assert said.out.split("\nseconds")[0] == printed.split("\nseconds")[0]
    for name, text in facts["lines"].items():
        assert f"{name:<12} {text}\n" in printed
    words = ["report", source, "-o", page, "-q"]
    assert facts["command"] == "heatsketch " + " ".join(words)
    assert [column["name"] for column in facts["columns"]] == ["class", "x", "y", "z"]
    assert cli.main(words) == 1  # it exists
    assert "--force" in capsys.readouterr().err
    assert cli.main([*words, "--force", "--method", "pca"]) == 0
    assert cli.main(["report", source, "-o", str(tmp_path / "report.txt")]) == 2


def test_points_are_shown_in_the_units_of_their_file(page_of):
    X = np.random.default_rng(0).normal([10.0, 5e4], [0.1, 1e4], (60, 2)).round(3)
    facts, _ = page_of("mass,salary", X, "--standardize")
    shown = [unpacked(facts["columns"][j]["values"]) for j in range(2)]
    np.testing.assert_allclose(np.stack(shown, axis=1), X, rtol=1e-6)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    assert facts["ksum"]["epsilon"] == pytest.approx(hs.ksum(scaled).epsilon)


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_a_page_says_what_was_warned_of(page_of, quiet):
    X = np.random.default_rng(0).normal(0, [1, 1e4], (60, 2))
    facts, said = page_of("mass,salary", X, *quiet)
    assert "Feature 'salary' carries" in facts["lines"]["warned of"]
    assert ("Feature 'salary' carries" in said.err) == (not quiet)


def test_a_graph_has_a_report(page_of, tmp_path):
    edges = [(f"n{i}", f"n{(i + step) % 40}") for i in range(40) for step in (1, 2)]
    facts, _ = page_of("source,target", edges, "--graph", "--method", "diffusion-map")
    assert facts["lines"]["input"].startswith(f"{tmp_path / 't.csv'}: 40 nodes, 80 edges")
    assert facts["ksum"] is None
    (names,) = facts["ids"].values()
    assert sorted(unpacked(names)) == sorted(f"n{i}" for i in range(40))
