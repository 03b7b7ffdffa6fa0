"""The script that compares a selection with the others, run by Node: the numbers are SciPy's."""

import json
import shutil
import subprocess
from importlib import resources

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import false_discovery_control, mannwhitneyu

node = shutil.which("node")
pytestmark = pytest.mark.skipif(node is None, reason="needs Node")


def asked(expression):
    """Return what the script says."""
    script = resources.files("heatsketch.reports").joinpath("statistics.js").read_text("utf-8")
    text = f"{script}\nconsole.log(JSON.stringify({expression}));"
    done = subprocess.run([node, "-"], input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["fractions", "counts", "mostly zero", "apart", "with gaps"])
@pytest.mark.parametrize("against", ["all others", "a second selection"])
def test_areas_medians_and_p_values_are_those_of_the_test_of_mann_and_whitney(kind, against):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    if kind in ("counts", "mostly zero"):
        x = rng.poisson(3 if kind == "counts" else 0.1, 300).astype(float)
    chosen = rng.permutation(300)[:80]
    x[chosen] += {"apart": 50, "counts": 1}.get(kind, 0.3)
    others = np.setdiff1d(np.arange(300), chosen)
    if against == "a second selection":
        others = others[::3]
    if kind == "with gaps":
        x[::7] = np.nan
    values = json.dumps([None if np.isnan(v) else v for v in x])
    second = f"new Set({others.tolist()})" if against == "a second selection" else "null"
    sides = (
        f"split(Float64Array.from({values}, (v) => v ?? NaN), new Set({chosen.tolist()}), {second})"
    )
    found = asked(f"compareSorted(...{sides})")
    a, b = (side[np.isfinite(side)] for side in (x[chosen], x[others]))
    U, p = mannwhitneyu(a, b, use_continuity=False, method="asymptotic")
    np.testing.assert_allclose(found["area"], U / len(a) / len(b), rtol=1e-12)
    np.testing.assert_allclose(found["medians"], [np.median(a), np.median(b)])
    np.testing.assert_allclose(found["p"], p, rtol=1e-9)


def test_equal_numbers_distinguish_nothing():
    assert asked("compareSorted(Float64Array.of(2, 2), Float64Array.of(2, 2, 2))") == {
        "area": 0.5,
        "medians": [2, 2],
        "p": 1,
    }


def test_tails_of_the_normal_distribution_are_known_to_their_last_digits():
    z = np.concatenate([np.linspace(-8, 8, 161), [12, 20, 37]])
    found = asked(f"{z.tolist()}.map(normalTails)")
    np.testing.assert_allclose(found, 2 * ndtr(-np.abs(z)), rtol=1e-11)


@pytest.mark.parametrize("count", [1, 2, 50])
def test_corrected_p_values_are_those_of_benjamini_and_hochberg(count):
    p = np.random.default_rng(count).random(count) ** 3
    np.testing.assert_allclose(asked(f"corrected({p.tolist()})"), false_discovery_control(p))
    gaps = asked(f"corrected([NaN, ...{p.tolist()}, NaN])")
    assert gaps[0] is gaps[-1] is None
    np.testing.assert_allclose(gaps[1:-1], false_discovery_control(p))
