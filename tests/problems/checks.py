"""scikit-learn's checks of estimators, signs of columns, and threads."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits


def estimator_checks(*estimators, **options):
    """Parametrise by (estimator, check); slow for all but the first estimator of a class."""
    daily = list({type(estimator): estimator for estimator in reversed(estimators)}.values())
    others = [one for one in estimators if not any(one is first for first in daily)]
    every_run, names = _cases(daily, options)
    slow, _ = _cases(others, options)
    return pytest.mark.parametrize(
        ("estimator", "check"), every_run + [_as_slow(case) for case in slow], ids=names
    )


def _cases(estimators, options):
    mark = parametrize_with_checks(estimators, **options)
    return list(mark.args[1]), mark.kwargs["ids"]


def _as_slow(case):
    values, marks = getattr(case, "values", case), getattr(case, "marks", ())
    return pytest.param(*values, marks=[*marks, pytest.mark.slow])


def assert_distortion(said, expected):
    """Check what an estimator says of the distances that it keeps, in units of their median."""
    assert expected.median == pytest.approx(1, rel=1e-9)
    assert said.median == pytest.approx(1, rel=1e-9)
    for name in ("log_L", "expansion", "contraction", "worst_factor", "quantiles"):
        assert getattr(said, name) == pytest.approx(getattr(expected, name), rel=1e-8)
    assert said.within == expected.within
    assert (said.n_pairs, said.looked_at) == (expected.n_pairs, "all pairs")
    for name, pairs in expected.worst_pairs.items():
        np.testing.assert_array_equal(said.worst_pairs[name][0], pairs[0])


def up_to_signs(A, B):
    """Return A with the signs of its columns turned to those of B."""
    return A * np.sign(np.sum(A * B, axis=0))


def same_for_any_threads(work):
    """Check that a call gives the same bits with one thread and with two."""
    with threadpool_limits(1):
        alone = work()
    with threadpool_limits(2):
        np.testing.assert_array_equal(work(), alone)
