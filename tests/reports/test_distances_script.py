"""The script that computes distances and ways in a page, run by Node."""

import json
import shutil
import subprocess
from importlib import resources
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

import heatsketch as hs
from heatsketch.io.metadata import plain
from heatsketch.reports.facts import sketch_facts

node = shutil.which("node")
pytestmark = pytest.mark.skipif(node is None, reason="needs Node")


LINKS = "Array.from({ length: sketch.n }, (_, i) => [...sketch.links(i)])"


def asked(facts, expression):
    """Return what the script says of a sketch."""
    folder = resources.files("heatsketch.reports")
    script = "".join(
        folder.joinpath(f"{name}.js").read_text("utf-8") for name in ("data", "distances")
    )
    text = f"""{script}
    unpacked({json.dumps(plain(facts))}).then((facts) => {{
      const sketch = new Sketch(facts);
      console.log(JSON.stringify({expression}));
    }});"""
    done = subprocess.run([node, "-"], input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def nested(n=300, k=64):
    """Return rows of three components whose distances span ten orders, and the components."""
    rng = np.random.default_rng(0)
    F = rng.normal(size=(n, k)) * 10.0 ** rng.integers(-5, 1, n)[:, None]
    F[100:] = 1e-5 * F[100:] + F[7]
    labels = rng.integers(0, 2, n)
    labels[0] = 2  # alone
    return F, labels


@pytest.mark.parametrize("labels", ["one", "three"])
def test_no_distance_within_a_component_is_lost_however_small_it_is(labels):
    """A step is known to 2^-16 of its length, and a distance to that part of the steps between."""
    F, components = nested()
    components = components if labels == "three" else np.zeros(len(F), int)
    facts = sketch_facts((F, "power", 8.0), components, np.arange(len(F)))
    every = "Array.from({ length: sketch.n }, (_, i) => Array.from(sketch.from(i)))"
    found = np.array(asked(facts, every), dtype=float)  # null becomes NaN
    same = components[:, None] == components
    expected = np.where(same, squareform(pdist(F)) / facts["mean"], np.nan)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("kind", ["clusters", "equal points", "components", "a sample"])
def test_there_is_a_way_between_two_points_if_and_only_if_they_are_in_one_component(kind):
    rng = np.random.default_rng(0)
    F, components = nested()
    if kind != "components":
        components = np.zeros(300, int)
    if kind == "clusters":  # that no list of neighbours joins
        F = 1e3 * rng.normal(size=(6, 8))[np.arange(300) % 6] + rng.normal(size=(300, 8))
    if kind == "equal points":
        F = np.repeat(F[:10], 30, axis=0)
    shown = np.sort(rng.permutation(300)[:120]) if kind == "a sample" else np.arange(300)
    facts = sketch_facts((F, "power", 8.0), components, shown)
    ends = rng.integers(0, len(shown), (60, 2))
    ways = asked(facts, f"{json.dumps(ends.tolist())}.map(([i, j]) => sketch.path(i, j))")
    links = [set(near) for near in asked(facts, LINKS)]
    component = components[shown]
    for (i, j), way in zip(ends.tolist(), ways, strict=True):
        if component[i] != component[j]:
            assert way == []
        elif i != j:
            assert (way[0], way[-1]) == (i, j)
            assert all(b in links[a] for a, b in pairwise(way))


def test_the_nearest_points_are_those_of_the_component_in_the_order_of_their_distances():
    F, components = nested()
    facts = sketch_facts((F, "power", 8.0), components, np.arange(len(F)))
    D = np.where(components[:, None] == components, squareform(pdist(F)), np.inf)
    np.fill_diagonal(D, np.inf)
    for i in (0, 3, 150, 299):  # the first one is alone
        near = asked(facts, f"sketch.nearest({i}, 12)")
        assert len(near) == min(12, np.isfinite(D[i]).sum())
        assert np.isfinite(D[i, near]).all()
        np.testing.assert_allclose(D[i, near], np.sort(D[i])[: len(near)], rtol=1e-3)


def test_every_point_of_a_connected_graph_has_a_way_to_every_other():
    """The neighbours in the page were a few of those of the graph: most ways were missing."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 6))[np.arange(600) % 12] * 1.2 + 0.6 * rng.normal(size=(600, 6))
    model = hs.HeatEmbedding(2, n_neighbors=15, random_state=0).fit(X)
    assert model.diagnostics_["components"] == 1
    facts = hs.report(model).facts["sketch"]
    assert all(asked(facts, "Array.from({ length: 600 }, (_, i) => sketch.path(0, i).length)")[1:])
