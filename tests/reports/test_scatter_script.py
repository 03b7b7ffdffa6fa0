"""The scripts that draw points and names, run by Node without drawing: where they stand."""

import json
import shutil
import subprocess
from importlib import resources

import numpy as np
import pytest

from heatsketch.io.metadata import plain
from heatsketch.plot.pictures import central_window, place_names

node = shutil.which("node")
pytestmark = pytest.mark.skipif(node is None, reason="needs Node")

STUBS = """
globalThis.window = { devicePixelRatio: 1 };
globalThis.ResizeObserver = class { observe() {} };
globalThis.requestAnimationFrame = () => {};
const getContext = (kind) => kind === "2d" ? {} : null;
const canvas = { clientWidth: 600, clientHeight: 400, getContext };
"""


def asked(F, expression):
    """Return what the script says of points F (n, 2) at one time."""
    script = resources.files("heatsketch.reports").joinpath("scatter.js").read_text("utf-8")
    flat = np.column_stack([F, np.zeros(len(F))]).ravel().tolist()
    text = f"""{script}
    {STUBS}
    const scatter = new Scatter(canvas, [Float32Array.from({json.dumps(flat)})], 2);
    console.log(JSON.stringify({expression}));"""
    done = subprocess.run([node, "-"], input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def cloud(n=1_000, far=11, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.uniform(-1, 1, size=(n, 2)).astype(np.float32)
    angle = np.linspace(0.3, 6, far)
    F[:far] = 50 * np.column_stack([np.cos(angle), np.sin(angle)])
    return F


def test_the_window_is_that_of_pictures():
    F = cloud()
    np.testing.assert_allclose(asked(F, "windowOf(scatter.turned())"), central_window(F), rtol=1e-6)
    np.testing.assert_allclose(
        asked(F[11:], "windowOf(scatter.turned())"), [F[11:].min(axis=0), F[11:].max(axis=0)]
    )


def test_far_points_stand_at_the_edge_and_all_are_one_call_away():
    F = cloud()
    first = "scatter.outside(), [...scatter.onScreen()], [...scatter.shown()], scatter.zoom"
    nearest, whole = "scatter.nearest(...scatter.outside()[4].slice(1), 5)", "scatter.fit(true)"
    moved = "(scatter.fit(), scatter.zoomAt(10, 10, 3), scatter.outside())"  # by hand
    outside, inside, shown, zoom, found, _, left, smaller, after = asked(
        F, f"[{first}, {nearest}, {whole}, scatter.outside(), scatter.zoom, {moved}]"
    )
    assert [k for k, *_ in outside] == list(range(11))
    places = np.array(shown).reshape(-1, 2)
    np.testing.assert_allclose(places[:11], np.array(outside)[:, 1:], atol=1e-3)
    at_edge = np.isclose(places[:11], 7, atol=0.01) | np.isclose(places[:11], [593, 393], atol=0.01)
    assert at_edge.any(axis=1).all()
    near = np.array(inside).reshape(-1, 2)[11:]
    assert np.ptp(near[:, 1]) > 0.9 * 400 * 0.97  # the others fill the height
    directions = [
        P / np.linalg.norm(P, axis=1)[:, None] for P in (places[:11] - [300, 200], F[:11])
    ]
    np.testing.assert_allclose(directions[0], directions[1] * [1, -1], atol=0.1)
    assert found == 4
    assert left == after == asked(F[11:], "scatter.outside()") == []
    assert smaller < zoom / 20


@pytest.mark.parametrize("zoom", [0.2, 1, 30])
def test_the_nearest_point_is_that_of_all_distances(zoom):
    """Far points and those outside of the window of the grid included; of equal ones the first."""
    F = cloud()
    F[100:200] = F[200:300]
    places = np.random.default_rng(1).uniform([0, 0], [600, 400], (50, 2)).tolist()
    moved = f"scatter.zoomAt(300, 200, {zoom})"
    nearest = f"{places}.map(([x, y]) => scatter.nearest(x, y, 14))"
    found, screen = asked(F, f"({moved}, [{nearest}, [...scatter.onScreen()]])")
    P = np.array(screen).reshape(-1, 2)
    for place, k in zip(places, found, strict=True):
        away = np.linalg.norm(P - place, axis=1)
        if k < 0:
            assert away.min() > 14 - 1e-3
        else:
            assert away[k] <= away.min() + 1e-3
            assert k == np.flatnonzero((P[k] == P).all(axis=1))[0]


@pytest.mark.parametrize("seed", range(4))
def test_names_stand_where_they_stand_in_pictures(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 7, 400)
    points = rng.uniform(20, 280, (8, 2))[codes] + rng.normal(size=(400, 2)) * 9
    codes[rng.random(400) < 0.3] = 7  # which gathers nowhere
    sizes, window = np.column_stack([rng.uniform(8, 90, 8), np.full(8, 12.0)]), [400.0, 300.0]
    script = resources.files("heatsketch.reports").joinpath("names.js").read_text("utf-8")
    given = points.ravel(), codes, sizes, window
    text = f"console.log(JSON.stringify(placeNames(...{json.dumps(plain(list(given)))})));"
    done = subprocess.run(
        [node, "-"], input=script + text, capture_output=True, check=True, text=True
    )
    found = json.loads(done.stdout)
    places = place_names(points, codes, sizes, np.array(window))
    assert np.isfinite(places[:7]).any()
    assert np.isnan(places[7]).all()
    np.testing.assert_allclose([place or [np.nan, np.nan] for place in found], places)
