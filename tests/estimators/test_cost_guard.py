"""Work of n x n: refused where it takes hours, with its progress otherwise."""

import io

import pytest

import heatsketch as hs
from heatsketch.markov import affinity
from problems.clouds import cloud

N = 5000  # beyond the points whose dense affinity is stored


def test_a_dense_affinity_that_takes_hours_is_refused(monkeypatch):
    monkeypatch.setattr(affinity, "MOST_POINTS", N - 1)
    with pytest.raises(ValueError, match=r"'dense' of 5,000 points takes hours; pass affinity='k"):
        hs.HeatSketch(affinity="dense", epsilon=1.0).fit(cloud(N, 3))


def test_a_dense_affinity_shows_its_progress(monkeypatch):
    for name in ("_DELAY", "_SECONDS", "_SECONDS_IN_A_FILE"):
        monkeypatch.setattr(f"heatsketch._progress.{name}", 0.0)
    shown = io.StringIO()
    with hs.progress(shown):
        hs.HeatSketch(2, time=2, affinity="dense", epsilon=1.0).fit(cloud(N, 2))
    assert "product with the kernel: " in shown.getvalue()
