"""The discrepancy of two samples of different points: its closed form, and its p-value."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import norm

from heatsketch.uncertainty import sample_discrepancy
from problems.chance import ALARM, in_band
from problems.clouds import cloud, on_circle


def markov(rows, columns, epsilon):
    """Return the transition probabilities (m, n) of the Gaussian kernel, α = 0."""
    K = np.exp(-np.sum((rows[:, None] - columns) ** 2, axis=-1) / epsilon)
    return K / K.sum(axis=1, keepdims=True)


def walks(X, at, steps):
    """Return where walks on X are, from points `at`, (m, n)."""
    return markov(at, X, 1.0) @ np.linalg.matrix_power(markov(X, X, 1.0), steps - 1)


@pytest.mark.statistical
def test_it_is_the_distance_of_the_laws_of_walks():
    """Alarm 1e-6 over all points, by the spread of 4,000 fields."""
    X, Z, scale = cloud(20, 2, seed=1), cloud(25, 2, seed=2) + 0.5, 0.8
    options = {"affinity": "dense", "epsilon": 1.0, "alpha": 0}
    found = sample_discrepancy(
        X, Z, time=3, n_components=4000, scale=scale, n_permutations=19, rng=0, **options
    )
    both = np.vstack([X, Z])
    difference = np.hstack([walks(X, both, 3), -walks(Z, both, 3)])
    C = np.exp(-np.sum((both[:, None] - both) ** 2, axis=-1) / scale**2)
    squares = np.einsum("pi,ij,pj->p", difference, C, difference)
    # g² of a cosine is at most 2, that of a mean of cosines has at most four times its mean square
    bound = norm.isf(ALARM / 2 / 45) * 2 / np.sqrt(4000)
    assert np.all(abs(np.concatenate(found.per_point) ** 2 / squares - 1) < bound)
    expected = np.sqrt((squares[:20].mean() + squares[20:].mean()) / 2)
    assert abs(found.value - expected) < norm.isf(ALARM) * found.standard_error
    low, high = found.interval(1 - ALARM)[1:]
    assert low < expected < high


def test_a_sample_and_itself_do_not_differ():
    X = cloud(60, 3, seed=3)
    found = sample_discrepancy(X, X.copy(), n_permutations=19, rng=0)
    assert found.value < 1e-12
    assert found.p_value > 0.9  # equal points are one vertex: no labelling is nearer


def test_an_offset_and_a_sparse_format_change_nothing():
    X, Z = (np.round(64 * cloud(50, 2, seed=s)) / 64 for s in (6, 7))
    plain, moved, stored = (
        sample_discrepancy(*pair, n_permutations=19, rng=0)
        for pair in ((X, Z), (X + 2.0**20, Z + 2.0**20), map(sparse.csr_matrix, (X, Z)))
    )
    assert_allclose(moved.value, plain.value, rtol=1e-6)
    assert abs(stored.value - plain.value) < 5 * np.hypot(
        stored.standard_error, plain.standard_error
    )


def sample(rng, n, height=1.0):
    return on_circle(rng.uniform(0, 2 * np.pi, n)) * [1, height]


def test_it_falls_with_the_size_of_samples_of_one_law_and_not_of_two():
    rng, common = np.random.default_rng(8), {"n_permutations": 19, "rng": 0, "n_components": 64}
    common |= {"affinity": "dense", "epsilon": 0.1}
    one, two = {}, {}
    for n in (80, 720):
        X = sample(rng, n)
        one[n] = sample_discrepancy(X, sample(rng, n), **common).value
        two[n] = sample_discrepancy(X, sample(rng, n, 0.8), **common).value
    assert one[720] < 0.6 * one[80]  # three times as small but for chance
    assert two[720] > 0.8 * two[80]
    assert two[720] > 3 * one[720]


def test_the_mismatch_goes_from_white_noise_to_a_constant():
    X, Z = cloud(60, 2, seed=9), cloud(60, 2, seed=10)
    small, large = (
        sample_discrepancy(X, Z, scale=s, n_permutations=19, rng=0).mismatch for s in (1e-3, 1e3)
    )
    assert abs(small) < 0.1  # 60 · 256 values
    assert_allclose(large, 1, atol=1e-4)


def p_values(draw, sizes, trials, seed, **options):
    rng, options = np.random.default_rng(seed), options | {"n_permutations": 19}
    pairs = ([draw(rng, n) for n in sizes] for _ in range(trials))
    found = [sample_discrepancy(*pair, rng=i, **options) for i, pair in enumerate(pairs)]
    return np.array([one.p_value for one in found])


@pytest.mark.slow
@pytest.mark.statistical
def test_the_p_value_is_right_under_the_null():
    """Alarm 1e-6: 150 pairs of samples of one law, of different sizes."""
    p = p_values(sample, (24, 30), 150, 11, n_components=4, n_neighbors=6)
    for level in (0.1, 0.5):
        assert in_band(np.sum(p <= level + 1e-9), 150, level, alarm=ALARM / 2)


TIED = {
    "one of 50 categories": lambda rng, n: np.eye(50)[rng.integers(50, size=n)],
    "counts": lambda rng, n: rng.poisson(0.3, (n, 20)).astype(float),
    "a grid": lambda rng, n: rng.integers(5, size=(n, 2)).astype(float),
    "words": lambda rng, n: np.minimum(rng.zipf(1.5, (n, 3)), 300).astype(float),
}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
@pytest.mark.parametrize("draw", TIED.values(), ids=TIED)
def test_the_p_value_is_right_under_the_null_where_points_are_equally_far(draw):
    """Alarm 1e-6, detects 0.5 in place of 0.1: with ties by row order it had been 0.97 of 0.05."""
    p = p_values(draw, (40, 40), 40, 21, n_components=8)
    assert in_band(np.sum(p <= 0.1 + 1e-9), 40, 0, 0.1, alarm=2 * ALARM)


def test_different_laws_have_the_least_p_value():
    rng = np.random.default_rng(12)
    found = sample_discrepancy(sample(rng, 200), sample(rng, 300, 0.5), rng=0)
    assert found.p_value == 1e-3
    assert "samples of 200 and 300 points; p = 0.001" in found.describe()


def test_samples_of_different_spaces_are_refused():
    with pytest.raises(ValueError, match="Z has 2 columns, but X has 3 features"):
        sample_discrepancy(cloud(9, 3), cloud(9, 2))
    with pytest.raises(ValueError, match="n_permutations=5"):
        sample_discrepancy(cloud(9, 3), cloud(9, 3), n_permutations=5)


def test_of_directions_the_lengths_do_not_count():
    X, Z = cloud(50, 4, seed=13), cloud(50, 4, seed=14)
    lengths = np.random.default_rng(0).uniform(1, 9, (50, 1))
    plain, longer = (
        sample_discrepancy(A, Z, metric="cosine", n_permutations=19, rng=0)
        for A in (X, X * lengths)
    )
    assert_allclose(longer.value, plain.value, rtol=1e-6)
