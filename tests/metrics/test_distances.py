import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import heatsketch as hs
from heatsketch import Diffusion, diffusion_distance
from heatsketch.metrics import distances
from heatsketch.metrics.distances import compared_rows, pair_blocks
from problems.clouds import cloud


def with_block_of(monkeypatch, n, columns):
    """Let a block hold that many columns of n points."""
    monkeypatch.setattr(distances, "_BLOCK_BYTES", 8 * n * columns)


KINDS = {
    "symmetric": {"normalization": "symmetric"},
    "markov": {"normalization": "markov"},
    "heat": {"filter": "heat", "time": 3.5},
}


@pytest.mark.parametrize("size", [2, 5, 16])
@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_distances_do_not_depend_on_the_size_of_a_block(monkeypatch, size, options):
    X = np.vstack([cloud(20, 2), cloud(20, 2)[:3]])  # three points twice
    form = options.get("normalization", "markov")
    A = Diffusion.from_points(X, n_neighbors=8, normalization=form)
    to_distance = {name: options[name] for name in ("time", "filter") if name in options}
    rng = np.random.default_rng(1)
    pairs = tuple(rng.integers(0, 23, (2, 300)))  # some more than once, some points with themselves
    whole = diffusion_distance(A, pairs=pairs, **to_distance)
    with_block_of(monkeypatch, A.n, size)
    assert compared_rows(A, 8, "power").block_columns == size
    np.testing.assert_allclose(diffusion_distance(A, pairs=pairs, **to_distance), whole, rtol=1e-11)
    np.testing.assert_allclose(
        diffusion_distance(A, **to_distance)[0],
        diffusion_distance(A, pairs=([0], [1]), **to_distance)[0],
        rtol=1e-11,
    )
    assert diffusion_distance(A, pairs=([0], [20]), **to_distance) == 0


def test_blocks_of_very_different_size_keep_a_common_scale(monkeypatch):
    # Four groups with the eigenvalues 0.9, 0.9, 0.3, 0.3: distances of 1e-9 next to 1e-105.
    fast, slow = (np.kron(np.eye(2), np.full((3, 3), a)) for a in (0.3, 0.1))
    A = np.zeros((12, 12))
    A[:6, :6], A[6:, 6:] = fast, slow
    rows = np.linalg.matrix_power(A, 200)
    with_block_of(monkeypatch, 12, 2)
    D = diffusion_distance(A, 200, pairs=([0, 6, 0], [3, 9, 6]))
    want = [np.sqrt(6) * 0.9**200 / 3, np.sqrt(6) * 0.3**200 / 3, np.linalg.norm(rows[0] - rows[6])]
    np.testing.assert_allclose(D, want, rtol=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 60), st.integers(1, 120))
def test_blocks_hold_every_pair_once_and_no_more_points_than_fit(seed, size, n, m):
    i, j = np.random.default_rng(seed).integers(0, n, (2, m))
    blocks = list(pair_blocks(i, j, size))
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(m))
    columns = [len(np.union1d(i[block], j[block])) for block in blocks]
    assert max(columns) <= size
    assert sum(columns) <= 2 * m


def test_groups_that_fit_are_computed_once():
    order = np.random.default_rng(0).permutation(1000)
    a, b = np.triu_indices(10, 1)
    groups = order[:100].reshape(10, 10)
    i, j = groups[:, a].ravel(), groups[:, b].ravel()
    columns = sum(len(np.union1d(i[block], j[block])) for block in pair_blocks(i, j, 10))
    assert columns == 100


def test_all_pairs_of_more_points_than_fit_take_few_columns():
    # Tiles of size / 2: 25 of them, (25² / 2) pairs of tiles of 20 points at most.
    i, j = np.triu_indices(250, 1)
    columns = sum(len(np.union1d(i[block], j[block])) for block in pair_blocks(i, j, 20))
    assert columns <= 25 * 26 / 2 * 20


def test_no_pairs_have_no_distances():
    none = np.empty(0, dtype=int)
    assert diffusion_distance(np.diag([1.0, 0.5]), 1, pairs=(none, none)).shape == (0,)
    assert hs.diffusion_distance(np.array([[1.0]]), 1).shape == (0,)
