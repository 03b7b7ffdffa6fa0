"""Duplicates, outliers, features and bandwidths of very different size."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

import heatsketch as hs
from bad_inputs.cases import refused, rows_match, strictly
from bad_inputs.inputs import (
    AFFINITIES,
    X,
    embed,
    every_affinity,
    every_estimator,
    matrix_of,
    or_variable,
    self_tuning,
)
from problems.clouds import cloud

# Row 10, 33: facts about scales that change the answer are warned of.


@every_estimator
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_matrix, np.ndarray.tolist])
@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_10_integers_beyond_float64(form: Any, dtype: Any, make: Any) -> None:
    whole = np.round(X * 1e6).astype(np.int64).astype(dtype) + dtype(2**53 + 2**30)
    with pytest.warns(hs.ScaleWarning, match=r"integers up to 9.0e\+15, beyond the 2\^53"):
        make(2, random_state=0).fit(form(whole))


@every_estimator
@self_tuning
def test_33_one_feature_decides(affinity: Any, make: Any) -> None:
    data = X * [1, 1, 1e12, 1]
    with pytest.warns(hs.ScaleWarning, match="Feature 2 carries 100 % .* scale the features"):
        given = embed(make, data, **affinity)
    rows_match(given, embed(make, X[:, 2:3], **affinity), 1e-9)


@every_estimator
def test_33_the_feature_is_named_as_its_column(make: Any) -> None:
    data = pd.DataFrame(X * [1, 1, 1e12, 1], columns=["length", "width", "mass", "age"])
    with pytest.warns(hs.ScaleWarning, match="Feature 'mass' carries 100 %"):
        make(2, random_state=0).fit(data)
    with pytest.warns(hs.ScaleWarning, match="Feature 2 carries 100 %"):
        make(2, random_state=0).fit(data.to_numpy())


@pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_33_the_warning_is_for_unequal_scales_only(form: Any, scale: float) -> None:
    strictly(lambda: hs.diffusion(form(X * scale)))
    strictly(lambda: hs.diffusion(form(X * scale * [1, 1, 1e-12, 1])))
    with pytest.warns(hs.ScaleWarning, match="Feature 1 carries"):
        hs.diffusion(form(X * scale * [1e-5, 1, 1e-5, 1e-5]))


# Rows 27-29: duplicates.

SAME = np.full((20, 3), 0.1)


@every_estimator
@pytest.mark.parametrize("affinity", ["dense", "radius"])
@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
@pytest.mark.parametrize("time", [1, 8, 100])
def test_27_one_point_many_times(time: int, normalization: str, affinity: str, make: Any) -> None:
    with pytest.warns(hs.ScaleWarning, match=r"same affinities.*no information.*smaller epsilon"):
        model = make(2, time, affinity=affinity, epsilon=1.0, normalization=normalization).fit(SAME)
    assert_array_equal(model.embedding_, 0)
    assert_array_equal(model.transform(SAME[:3]), 0)


@pytest.mark.parametrize(
    ("affinity", "rule"),
    [(a, r) for a in ("knn", "dense", "radius") for r in ("ksum", "median", "nearest")]
    + [("knn", "self-tuning"), ("dense", "self-tuning")],
)
def test_27_one_point_has_no_scale(affinity: str, rule: str) -> None:
    with refused(ValueError, "distances are zero", "pass distinct points"):
        hs.diffusion(SAME, affinity=affinity, epsilon=rule)


@every_estimator
def test_28_duplicates_leave_a_neighbour_graph_as_it_is(make: Any) -> None:
    twice = strictly(lambda: embed(make, np.r_[X, X, X[:7]]))
    assert_array_equal(twice[60:120], twice[:60])
    assert_array_equal(twice[120:], twice[:7])
    rows_match(twice[:60], embed(make, X), 1e-10)


@every_estimator
@pytest.mark.parametrize("affinity", [AFFINITIES["dense"], AFFINITIES["radius"]])
def test_28_duplicates_share_a_row(affinity: Any, make: Any) -> None:
    twice = strictly(lambda: embed(make, np.r_[X, X], **affinity))
    rows_match(twice[60:], twice[:60], 1e-12)
    # A sample taken twice has the density of the sample: the same diffusion, the same functions.
    if make is hs.DiffusionMap:
        rows_match(twice[:60], embed(make, X, **affinity), 1e-10)


def test_29_rules_for_epsilon_look_at_distances_that_are_not_zero() -> None:
    heap = np.r_[np.repeat(X[:1], 100, axis=0), X]
    d2 = cdist(heap, heap, "sqeuclidean")
    chosen = hs.diffusion(heap, affinity="dense", epsilon="median").epsilon
    assert chosen == pytest.approx(np.median(d2[d2 > 0]), rel=1e-12)
    d2[d2 == 0] = np.inf
    chosen = hs.diffusion(heap, affinity="dense", epsilon="nearest").epsilon
    alone = d2[101:].min(axis=1)  # the copies have a neighbour at distance 0, which does not count
    assert chosen == pytest.approx(2 * alone.mean(), rel=1e-12)


@every_estimator
def test_29_a_heap_of_duplicates_leaves_a_neighbour_graph_as_it_is(make: Any) -> None:
    heap = np.r_[X, np.repeat(X[:1], 100, axis=0)]
    given = strictly(lambda: embed(make, heap))
    rows_match(given[:60], embed(make, X), 1e-10)
    assert_array_equal(given[60:], np.repeat(given[:1], 100, axis=0))


# Rows 37-40: points too far apart, too close together.


@every_affinity
def test_37_groups_far_apart_diffuse_on_their_own(affinity: Any) -> None:
    Z = cloud(40, 4, seed=1)
    with pytest.warns(hs.DisconnectedWarning, match=r"2 components \(sizes 60, 40\)"):
        together = hs.diffusion(np.r_[X, Z + 1e3], **affinity)
    assert together.diagnostics["components"] == 2
    assert together.diagnostics["isolated"] == 0
    A = matrix_of(together)
    assert_array_equal(A[:60, 60:], 0)
    assert_allclose(A[:60, :60], matrix_of(hs.diffusion(X, **affinity)), rtol=1e-9, atol=1e-12)
    assert_allclose(A[60:, 60:], matrix_of(hs.diffusion(Z, **affinity)), rtol=1e-9, atol=1e-12)


@or_variable
def test_37_the_map_keeps_the_component_among_its_coordinates(affinity: Any) -> None:
    with pytest.warns(hs.DisconnectedWarning):
        model = hs.DiffusionMap(1, **affinity).fit(np.r_[X, cloud(40, 4, seed=1) + 1e3])
    assert model.eigenvalues_[0] == pytest.approx(1, abs=1e-10)
    one, other = model.embedding_[:60], model.embedding_[60:]
    assert np.ptp(one) < 1e-7
    assert np.ptp(other) < 1e-7
    assert abs(one.mean() - other.mean()) > 1


@pytest.mark.parametrize(
    "chosen",
    [
        *AFFINITIES.values(),
        {"affinity": "knn", "epsilon": 4.0},
        {"affinity": "dense", "epsilon": 4.0},
    ],
    ids=["knn", "dense", "radius", "knn-number", "dense-number"],
)
@pytest.mark.parametrize("far", [1e3, 1e20], ids=["38-far", "38-1e20"])
def test_isolated_points_stand_alone(far: float, chosen: dict[str, Any]) -> None:
    with pytest.warns(hs.DisconnectedWarning, match=r"sizes 60, 1\).*points 60 stand alone"):
        d = hs.diffusion(np.r_[X, np.full((1, 4), far)], **chosen)
    assert d.diagnostics["isolated"] == 1
    A = matrix_of(d)
    assert_allclose(A[60], np.eye(61)[60], rtol=0, atol=1e-12)
    assert_allclose(A[:60, :60], matrix_of(hs.diffusion(X, **chosen)), rtol=1e-9, atol=1e-12)
    G = np.random.default_rng(2).normal(size=(61, 5))
    Y = hs.sketch(d, hs.Power(8), G=G, deflate=False)
    assert_allclose(Y[60], G[60] / np.sqrt(5), rtol=1e-12)


@self_tuning
@every_estimator
def test_38_a_point_so_far_off_that_the_others_are_one(make: Any, affinity: Any) -> None:
    with refused(ValueError, "Around point(s) 0, 1", "too small for float64", "leave out"):
        embed(make, np.r_[X, np.full((1, 4), 1e200)], **affinity)


@every_estimator
@every_affinity
def test_38_most_points_isolated(affinity: Any, make: Any) -> None:
    spread = np.r_[X[:20] * 0.1, X[20:] * 1e4]
    with refused(ValueError, "40 of 60 points", "bandwidth is too small", "larger epsilon", "ksum"):
        embed(make, spread, **(affinity | {"epsilon": 1.0}))


@every_estimator
@every_affinity
@pytest.mark.parametrize("epsilon", [1e-9, 1e-300])
def test_39_all_points_isolated(epsilon: float, affinity: Any, make: Any) -> None:
    with refused(ValueError, "60 of 60 points", "bandwidth is too small", "larger epsilon"):
        embed(make, X, **(affinity | {"epsilon": epsilon}))


@every_estimator
@pytest.mark.parametrize("affinity", ["dense", "radius"])
@pytest.mark.parametrize("epsilon", [1e18, 1e30, 1e300])
def test_40_epsilon_so_large_that_all_affinities_are_one(
    epsilon: float, affinity: str, make: Any
) -> None:
    with pytest.warns(hs.ScaleWarning, match="no information.* smaller epsilon"):
        given = embed(make, X, affinity=affinity, epsilon=epsilon)
    assert_array_equal(given, 0)


@every_estimator
@pytest.mark.parametrize("affinity", ["dense", "radius"])
def test_40_a_large_epsilon_that_still_says_something(affinity: str, make: Any) -> None:
    assert np.ptp(strictly(lambda: embed(make, X, affinity=affinity, epsilon=1e10, time=1))) > 0


@every_estimator
def test_40_a_neighbour_graph_has_a_shape_at_any_epsilon(make: Any) -> None:
    assert np.ptp(strictly(lambda: embed(make, X, epsilon=1e300))) > 0


@or_variable
def test_38_new_points_out_of_reach(affinity: Any) -> None:
    model = hs.HeatSketch(3, random_state=0, **affinity).fit(X)
    far = np.array([[1e4] * 4, [1e150] * 4, [-1.7e308] * 4, X[5]])
    with pytest.warns(hs.ScaleWarning, match=r"rows 0, 1, 2\) are too far") as caught:
        Y = model.transform(far)
    assert not any(issubclass(w.category, RuntimeWarning) for w in caught)
    assert np.isfinite(Y).all()
    assert_allclose(Y[3], model.embedding_[5], rtol=1e-9, atol=1e-12)
    with pytest.warns(hs.ScaleWarning):
        rows = model.diffusion_.extend(far[:1])
    assert np.nonzero(np.asarray(rows @ np.eye(60))[0])[0] == [cdist(far[:1], X).argmin()]


@every_affinity
@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_38_new_points_on_the_way_out(affinity: Any) -> None:
    """Where affinities fade from 1 to 1e-320 and to 0, no number overflows."""
    model = hs.HeatSketch(3, random_state=0, **affinity).fit(X)
    away = np.linspace(1, 3000, 2000)[:, None] * [[0.5, 0.5, 0.5, 0.5]]
    with pytest.warns(hs.ScaleWarning, match="too far") as caught:
        Y = model.transform(away)
    assert {w.category for w in caught} == {hs.ScaleWarning}
    assert np.abs(Y).max() < 100 * np.abs(model.embedding_).max()
