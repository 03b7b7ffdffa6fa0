"""Estimators on a device: the numbers of the host, tensors for tensors, a model without it."""

import copy
from functools import partial

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.device.blocks import DeviceBlocks
from heatsketch.device.operators import TorchKernel, TorchSparse
from problems.clouds import cloud
from problems.devices import Traffic, every_device, refuse_arrays

torch = pytest.importorskip("torch")

X = cloud(150, 5) * np.array([4, 2, 0.3, 0.2, 0.1])  # nearly a plane: maps are well determined
MODELS = {
    "sketch": lambda: hs.HeatSketch(6, random_state=0),
    "sketch, two times": lambda: hs.HeatSketch(
        6, [2, 9], metric="cosine", normalization="symmetric"
    ),
    "sketch, dense": lambda: hs.HeatSketch(6, affinity="dense", epsilon=3.0, random_state=0),
    "sketch, bistochastic": lambda: hs.HeatSketch(
        6, affinity="radius", epsilon=3.0, normalization="bistochastic", random_state=0
    ),
    "sketch, heat": lambda: hs.HeatSketch(6, 30.5, filter="heat", affinity="variable"),
    "map": lambda: hs.DiffusionMap(3),
    "embedding": lambda: hs.HeatEmbedding(2, random_state=0),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@every_device
@every_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_device_gives_the_coordinates_of_the_host(make, dtype, device, monkeypatch):
    refuse_arrays(monkeypatch)
    given = torch.from_numpy(X).to(dtype)
    model, own = make(), make().set_params(random_state=0)
    model.set_params(random_state=0, device=device)
    there = given.to(device)
    Y, expected = model.fit_transform(there), own.fit_transform(given.numpy())
    assert isinstance(Y, torch.Tensor)
    assert (Y.dtype, Y.device) == (there.dtype, there.device)
    rounding, size = 1e-5 if dtype == torch.float32 else 1e-8, np.abs(expected).max()
    if isinstance(model, hs.HeatEmbedding):
        # Of points that move by themselves single ones end elsewhere: a descent increases rounding.
        rounding = 2e-2
        moved = np.abs(Y.cpu().numpy() - expected).max(axis=1)
        assert np.quantile(moved, 0.95) < rounding * size
    else:
        np.testing.assert_allclose(Y.cpu().numpy(), expected, atol=rounding * size)
    Z = model.transform(there[:7])
    assert (Z.dtype, Z.device) == (there.dtype, there.device)
    np.testing.assert_allclose(
        Z.cpu().numpy(), Y[:7].cpu().numpy(), atol=1e-5 * np.abs(expected).max()
    )
    new = X[:9] + 0.2
    np.testing.assert_allclose(
        model.transform(new), own.transform(new), atol=10 * rounding * np.abs(expected).max()
    )


@every_model
def test_a_tensor_on_the_processor_is_computed_as_an_array(make):
    model, own = make().set_params(random_state=0), make().set_params(random_state=0)
    Y = model.fit_transform(torch.from_numpy(X))
    assert isinstance(Y, torch.Tensor)
    np.testing.assert_array_equal(Y, own.fit_transform(X))


@every_device
def test_ids_choose_the_rows_of_G(device):
    ids = np.random.default_rng(0).permutation(len(X))
    models = [hs.HeatSketch(4, random_state=0, device=place) for place in (None, device)]
    own, other = (model.fit(X, ids=ids).embedding_ for model in models)
    np.testing.assert_allclose(other, own, atol=1e-12)


@every_device
def test_a_fitted_model_is_on_the_host(tmp_path, device):
    model = hs.HeatSketch(4, random_state=0, device=device).fit(torch.from_numpy(X).to(device))
    assert isinstance(model.embedding_, np.ndarray)
    assert not isinstance(model.diffusion_.operator, TorchSparse)
    hs.save_model(model, tmp_path / "model")
    again = hs.load_model(tmp_path / "model")
    np.testing.assert_allclose(again.transform(X[:5]), model.transform(X[:5]), atol=1e-14)
    assert model.explained_diffusion_variance_ratio_.shape == (4,)
    assert model.novelty(X[:5]).shape == (5,)
    np.testing.assert_allclose(again.pseudotime(0).value, model.pseudotime(0).value)


@every_device
def test_points_larger_than_the_memory_of_a_device_give_the_same(device, limits, monkeypatch):
    limits(exact_points=300, device_cell_points=40)
    points, new = cloud(1500, 20), cloud(1700, 20)[1500:]
    make = partial(hs.HeatSketch, 4, random_state=0, device=device)
    model = make().fit(points)
    expected = model.transform(new)
    monkeypatch.setattr(DeviceBlocks, "room", points.nbytes / 2)
    other = make().fit(points)
    np.testing.assert_allclose(other.embedding_, model.embedding_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.transform(new), expected, rtol=1e-9, atol=1e-12)


def test_where_its_device_is_missing_a_model_computes_on_the_host():
    model = hs.HeatSketch(4, random_state=0).fit(X)
    elsewhere = copy.deepcopy(model).set_params(device="cuda:77")
    np.testing.assert_array_equal(elsewhere.transform(X[:5]), model.transform(X[:5]))
    with pytest.raises(ValueError, match="device='cuda:77' is not a device"):
        elsewhere.fit(X)


@every_device
def test_a_fit_copies_to_the_host_what_the_model_holds_and_no_more(device, monkeypatch):
    """The points, if they are a tensor; those of the search, H, coordinates, matrices, vectors."""
    n, k = 1500, 8
    points = torch.from_numpy(cloud(n, 5)).to(device)
    traffic = Traffic(monkeypatch)
    refuse_arrays(monkeypatch)
    model = hs.HeatSketch(k, random_state=0, device=device).fit(points)
    d = model.diffusion_
    held = 2 * points.numel() + n * (k + 1) + n * k
    held += sum(2 * M.nnz + n + 1 for M in (d.operator.matrix, d.directed_step))
    assert sum(size for size in traffic.to_host if size >= n) <= held + 9 * n


@every_device
def test_the_graph_of_a_tensor_is_on_its_device_and_so_are_its_sketches(device, monkeypatch):
    used = []
    product = TorchSparse._matmul

    def watched(A, block):
        used.append(isinstance(block, torch.Tensor))
        return product(A, block)

    monkeypatch.setattr(TorchSparse, "_matmul", watched)
    d = hs.diffusion(torch.from_numpy(X), device=device)
    assert isinstance(d.operator, TorchSparse)
    before = len(used)
    F = hs.sketch(d, hs.Power(5), 4, rng=0)
    assert isinstance(F, torch.Tensor)
    assert used[before:]
    assert all(used[before:])
    expected = hs.sketch(hs.diffusion(X), hs.Power(5), 4, rng=0)
    np.testing.assert_allclose(F.cpu().numpy(), expected, atol=1e-12)
    dense = hs.diffusion(cloud(5000, 2), affinity="dense", epsilon=0.5, device=device)
    assert isinstance(dense.operator.A, TorchKernel)


@pytest.mark.parametrize("dtype", [torch.int32, torch.bfloat16, torch.float16])
def test_other_types_of_numbers(dtype):
    given = (10 * torch.from_numpy(X)).to(dtype)
    Y = hs.HeatSketch(3, random_state=0).fit_transform(given)
    assert Y.dtype == (torch.float64 if dtype == torch.int32 else dtype)


def test_gradients_are_left_behind_and_other_methods_take_tensors():
    given = torch.from_numpy(X).requires_grad_()
    for model in (hs.classical.PCA(2), hs.HeatSketch(3, random_state=0)):
        Y = model.fit_transform(given)
        assert isinstance(Y, torch.Tensor)
        assert not Y.requires_grad
    assert hs.ksum(given).epsilon == hs.ksum(X).epsilon
    K = hs.gaussian_affinity(given.float(), 3.0)
    assert (K.dtype, K.requires_grad) == (torch.float32, False)
    np.testing.assert_allclose(K, hs.gaussian_affinity(X, 3.0), atol=1e-6)
