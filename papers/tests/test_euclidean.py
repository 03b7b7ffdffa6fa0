"""Log L by two distances."""

from dataclasses import replace

import numpy as np
import pytest

from papers.sketching import trials
from papers.sketching.euclidean import METHODS, between, by_both, run_euclidean
from papers.sketching.figures import FIGURES

SMALL = replace(FIGURES["3a"].setting, n=40, sizes=(2, 3))


def test_both_are_those_of_the_trials_of_the_figures():
    found, _ = by_both(SMALL, 3, 1)
    for place, setting in enumerate((SMALL, replace(SMALL, distance="euclidean"))):
        expected = trials.run(setting, 3, 1, list(METHODS))
        for row, method in zip(found[..., place], METHODS, strict=True):
            assert list(row) == expected[method]


@pytest.mark.parametrize("name", ["1a", "2a", "2b", "3a"])
def test_the_two_differ_by_at_most_log_L_of_one_distance_by_the_other(name):
    """log L of a composition is at most the sum of the two."""
    log_L, (every, near) = by_both(replace(FIGURES[name].setting, n=60), 0, 0)
    assert 0.1 < near <= every
    assert np.abs(log_L[..., 0] - log_L[..., 1]).max() <= every * (1 + 1e-9)


def test_log_L_of_one_distance_by_the_other():
    D, E = np.array([1.0, 4.0, 9.0]), np.array([1.0, 2.0, 3.0])
    assert between(D, E, 2.5) == pytest.approx((np.log(3), np.log(2)))


def test_the_table_and_the_picture_are_written(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    for name in ("1a", "3a"):
        small = replace(FIGURES[name].setting, n=30)
        monkeypatch.setitem(FIGURES, name, replace(FIGURES[name], setting=small))
    rows = run_euclidean(tmp_path, 0, trials=2, figures=("1a", "3a"), jobs=1)
    assert {path.name for path in tmp_path.iterdir()} == {"euclidean.csv", "euclidean.png"}
    assert [row.k for row in rows] == [*range(2, 9)] * 2 + [*range(2, 6)] * 2
    measured = [by_both(FIGURES["1a"].setting, 0, trial)[0] for trial in range(2)]
    first = np.array(measured)[:, 0, 0]  # DMS, k = 2
    mean, std = first.mean(axis=0), first.std(axis=0)
    assert rows[0][3:7] == pytest.approx((mean[0], std[0], mean[1], std[1]))
