"""Work of n x n: refused where memory or an hour would not do, with its progress otherwise."""

import io

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.markov import affinity
from problems.clouds import cloud

N = 5000  # beyond the points whose dense affinity is stored


def test_a_dense_affinity_that_takes_more_than_an_hour_is_refused_at_once(monkeypatch):
    monkeypatch.setattr(affinity, "_MOST_SECONDS", 1e-6)
    with pytest.raises(
        ValueError, match=r"'dense' of 5,000 points takes about .* pass affinity='k"
    ):
        hs.HeatSketch(affinity="dense", epsilon=1.0).fit(cloud(N, 3))
    hs.HeatSketch(affinity="dense", epsilon=1.0).fit(cloud(300, 3))  # stored


def test_a_dense_affinity_shows_its_cost_and_progress(monkeypatch):
    for name in ("_DELAY", "_SECONDS", "_SECONDS_IN_A_FILE"):
        monkeypatch.setattr(f"heatsketch._progress.{name}", 0.0)
    shown = io.StringIO()
    with hs.progress(shown):
        hs.HeatSketch(2, time=2, affinity="dense", epsilon=1.0).fit(cloud(N, 2))
    assert "dense affinity: 5,000 points, about" in shown.getvalue()
    assert "product with the kernel: " in shown.getvalue()


def test_the_seconds_of_a_product_are_those_of_its_tiles():
    """From one tile, so within a factor of ten on a machine that does other things, too."""
    X = cloud(N, 3)
    few, many = hs.Kernel(X[: N // 5], 1.0).seconds(), hs.Kernel(X, 1.0).seconds()
    assert 0 < few < many
    assert np.isclose(np.log10(many / few), np.log10(25), atol=1)
