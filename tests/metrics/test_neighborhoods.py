"""Measures of an embedding against their definitions, invariances and what chance gives."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from heatsketch.metrics import continuity, knn_accuracy, trustworthiness
from problems.clouds import cloud, rotation


def neighbours_in_order(X):
    """All other points of each, by exact squared distance of the given floats, then by index."""
    rows = [[Fraction(float(value)) for value in row] for row in X]
    order = []
    for i, x in enumerate(rows):
        squares = [sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for y in rows]
        order.append(sorted((j for j in range(len(rows)) if j != i), key=lambda j: (squares[j], j)))
    return order


def by_definition(in_X, in_Y, k):
    n, total = len(in_X), 0
    for i in range(n):
        for j in set(in_Y[i][:k]) - set(in_X[i][:k]):
            total += in_X[i].index(j) + 1 - k
    return 1 - 2 * total / (n * k * (2 * n - 3 * k - 1))


def both(X, Y, k):
    return trustworthiness(X, Y, k).value, continuity(X, Y, k).value


def check_both(X, Y, *sizes):
    in_X, in_Y = neighbours_in_order(X), neighbours_in_order(Y)
    for k in sizes:
        want = by_definition(in_X, in_Y, k), by_definition(in_Y, in_X, k)
        assert both(X, Y, k) == pytest.approx(want, abs=1e-14)


# Trustworthiness and continuity


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("rows", [7, 29])
def test_both_are_their_definitions_in_tiles_of_any_number_of_rows(d, rows, limits):
    limits(picture_tile=rows * 29)
    check_both(cloud(29, d), cloud(29, 2, seed=1), 1, 5, 14)


@given(
    st.integers(3, 12).flatmap(
        lambda n: st.tuples(
            st.lists(st.integers(0, 2), min_size=2 * n, max_size=2 * n),
            st.lists(st.integers(0, 3), min_size=n, max_size=n),
        )
    ),
    st.sampled_from([1, 20]),
    st.data(),
)
def test_ties_and_duplicates_go_to_the_lower_index(points, copies, data):
    X, Y = (np.array(values, dtype=float) for values in points)
    X, Y = np.tile(X.reshape(-1, 2), copies), Y[:, None]  # 2 features, and 40
    check_both(X, Y, data.draw(st.integers(1, (len(X) - 1) // 2)))


def test_rounding_of_the_gram_form_changes_no_rank():
    # Two groups 1.5e8 apart, in each integers from 0 to 8: |x|² + |y|² - 2xy is off by more than
    # the distances within, and every third point is there twice.
    rng = np.random.default_rng(3)
    X = rng.integers(0, 9, size=(48, 20)).astype(float)
    X[::3] = X[1::3]
    X[24:, 0] += 1.5 * 2**27
    Y = np.column_stack([rng.normal(size=48), np.repeat([0.0, 1e3], 24)])
    check_both(X, Y, 4)
    assert trustworthiness(X, X, 4).value == 1


@pytest.mark.parametrize("measure", [trustworthiness, continuity])
@pytest.mark.parametrize("d", [2, 30])
def test_a_similarity_keeps_all_neighbours(measure, d):
    X = cloud(80, d)
    assert measure(X, -7 * X @ rotation(d) + 5, 6) == (1, 0)
    assert measure(np.repeat(X, 2, axis=0), np.repeat(X, 2, axis=0), 6) == (1, 0)


@pytest.mark.parametrize("d", [2, 30])
def test_order_rotation_and_scale_do_not_count(d):
    X, Y = cloud(70, d), cloud(70, 2, seed=5)
    order = np.random.default_rng(2).permutation(70)
    for X2, Y2 in (
        (X[order], Y[order]),
        (X @ rotation(d), 3 * Y @ rotation(2)),
        (X * 1e50, Y * 1e-50),
        (X + 1e8, Y),
        (sparse.csr_matrix(X), Y.tolist()),
        (pd.DataFrame(X), pd.DataFrame(Y)),
    ):
        assert both(X2, Y2, 5) == pytest.approx(both(X, Y, 5), abs=1e-13)


def chance(n, k):
    """The mean where the k neighbours are a random set: ranks are uniform on 1, …, n - 1."""
    return 1 - (n - k - 1) * (n - k) / ((n - 1) * (2 * n - 3 * k - 1))


@pytest.mark.statistical
@pytest.mark.parametrize("measure", [trustworthiness, continuity])
def test_an_embedding_that_knows_nothing_has_the_value_of_chance(measure):
    """The mean of 200 independent values against five of its standard deviations: alarm 1e-6.

    They are some 0.0017: sees ranks off by one, which change the mean by 2 / (2n - 3k - 1) = 0.02.
    """
    X, n, k = cloud(50, 3), 50, 5
    found = np.array([measure(X, cloud(n, 2, seed=seed), k).value for seed in range(1, 201)])
    assert abs(found.mean() - chance(n, k)) < 5 * found.std(ddof=1) / np.sqrt(200)


# A sample of rows


@pytest.mark.statistical
def test_a_sample_of_rows_is_within_its_error(limits):
    """Alarm 1e-6: 300 standardised errors, mean within 5/√300 and mean square within 1 ± 0.5.

    Five deviations of each (√(2/300) = 0.08 for the square, more with uneven rows). Sees a missing
    correction for 60 rows out of 80 (mean square ¼) and a bias of 0.3 errors.
    """
    X, Y = cloud(80, 3), cloud(80, 3)[:, :2]
    exact = trustworthiness(X, Y, 5)
    assert exact == trustworthiness(X, Y, 5, rng=4)
    assert exact.error == 0
    limits(picture_points=79, picture_rows=60)
    sampled = [trustworthiness(X, Y, 5, rng=seed) for seed in range(300)]
    z = np.array([(value - exact.value) / error for value, error in sampled])
    assert abs(z.mean()) < 5 / np.sqrt(300)
    assert abs((z**2).mean() - 1) < 0.5


# Labels of neighbours


def votes_by_definition(Y, labels, k):
    right = 0
    for i, order in enumerate(neighbours_in_order(Y)):
        votes = [labels[j] for j in order[:k]]
        most = max(votes.count(label) for label in votes)
        right += next(label for label in votes if votes.count(label) == most) == labels[i]
    return right / len(labels)


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc")), min_size=6, max_size=20))
def test_accuracy_is_its_definition(points):
    Y = np.array([[float(y)] for y, _ in points])
    labels = [label for _, label in points]
    for k in (1, 2, 5):
        assert knn_accuracy(Y, labels, k) == votes_by_definition(Y, labels, k)


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, "", pd.NA, pd.NaT])
def test_points_without_a_label_neither_vote_nor_count(missing):
    Y, labels = cloud(60, 2), np.random.default_rng(1).integers(0, 3, 60)
    with_gaps = [missing if i % 4 == 0 else int(label) for i, label in enumerate(labels)]
    kept = np.arange(60) % 4 > 0
    want = knn_accuracy(Y[kept], labels[kept], 5)
    assert knn_accuracy(Y, with_gaps, 5) == want
    assert knn_accuracy(Y, pd.Series(with_gaps, dtype=object), 5) == want


def test_the_names_of_categories_do_not_count():
    Y, codes = cloud(60, 2), np.random.default_rng(1).integers(0, 3, 60)
    want = knn_accuracy(Y, codes, 4)
    assert 0 < want < 1
    for names in (["c", "a", "b"], [0.5, 2.5, 7.0], ["x", 1, True + 1]):
        assert knn_accuracy(Y, [names[code] for code in codes], 4) == want
    assert knn_accuracy(sparse.csr_matrix(Y * 1e-50), codes, 4) == want
    assert knn_accuracy(pd.DataFrame(Y @ rotation(2) * 1e50), pd.Categorical(codes), 4) == want


def test_missing_labels_beside_text_are_left_out():
    Y = [[0.0], [1.0], [9.0], [8.0], [5.0]]
    for missing in (None, float("nan")):
        assert knn_accuracy(Y, ["a", "a", "b", "b", missing], 1) == 1.0
    assert knn_accuracy(Y, pd.array([1, 1, 2, 2, None], dtype="Int64"), 1) == 1.0


# Bad input


@pytest.mark.parametrize("measure", [trustworthiness, continuity])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Y": cloud(9, 2)}, "X has 10 rows and Y has 9"),
        ({"n_neighbors": 5}, r"n_neighbors=5 but X has 10 points.*pass n_neighbors <= 4"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"Y": np.full((10, 2), np.nan)}, "Input Y contains NaN"),
        ({"X": cloud(2, 3), "Y": cloud(2, 3), "n_neighbors": 1}, "minimum of 3"),
    ],
)
def test_neighbourhoods_of_bad_input(measure, change, message):
    options = {"X": cloud(10, 3), "Y": cloud(10, 2), "n_neighbors": 3} | change
    with pytest.raises(ValueError, match=message):
        measure(**options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0] * 9}, r"labels has shape \(9,\) but Y has 10 points"),
        ({"labels": [None] * 7 + [1] * 3}, "3 labelled points; pass n_neighbors <= 2"),
        ({"labels": [None] * 10}, "0 labelled points; pass at least two"),
    ],
)
def test_labels_of_bad_input(change, message):
    options = {"Y": cloud(10, 2), "labels": [0, 1] * 5, "n_neighbors": 3} | change
    with pytest.raises(ValueError, match=message):
        knn_accuracy(**options)
