"""Measures of a picture whose diffusion is on a device: those of the host."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch.device.blocks import DeviceBlocks
from heatsketch.metrics.picture import sampled_geodesics
from problems.clouds import cloud
from problems.devices import every_device, refuse_arrays

pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _no_arrays(monkeypatch):
    refuse_arrays(monkeypatch)


@every_device
@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_geodesics_of_a_verdict_are_found_where_the_diffusion_is(metric, device, monkeypatch):
    used, search = [], DeviceBlocks.shortest_paths
    monkeypatch.setattr(
        DeviceBlocks, "shortest_paths", lambda *given: used.append(1) or search(*given)
    )
    X = cloud(400, 5)
    X = np.concatenate([X, X[:7]])
    given = metric == "precomputed"
    X = cdist(X, X) if given else X
    own, other = (
        sampled_geodesics(hs.diffusion(X, metric=metric, device=where)) for where in (None, device)
    )
    assert_array_equal(other[0], own[0])
    assert_allclose(other[1], own[1], rtol=1e-13)
    model = hs.HeatEmbedding(metric=metric, random_state=0, device=device).fit(X)
    assert len(used) == (0 if given else 2)  # given distances are on the host
    assert model.diffusion_.operator.device is None


@every_device
def test_the_worst_pairs_are_looked_for_among_the_same_pairs(device):
    X = cloud(2_100, 3)
    Y = X[:, :2] + 0.1 * np.random.default_rng(0).normal(size=(2_100, 2))
    diffusions = hs.diffusion(X), hs.diffusion(X, device=device)
    own, other = (hs.metrics.diffusion_distortion(Y, d) for d in diffusions)
    assert other.looked_at == own.looked_at
    own_pairs, pairs = (np.sort(q.worst_pairs["contraction"]) for q in (own, other))
    assert_array_equal(pairs, own_pairs)
    assert other.log_L == pytest.approx(own.log_L, rel=1e-3)
