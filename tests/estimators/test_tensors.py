"""Tensors in, tensors out: estimators of points on a device, for which the processor stands in."""

import importlib

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.operators.torch import TorchKernel, TorchSparse
from problems.clouds import cloud

torch = pytest.importorskip("torch")

X = cloud(150, 5)
MODELS = {
    "sketch": lambda: hs.HeatSketch(6, random_state=0),
    "sketch, dense": lambda: hs.HeatSketch(6, affinity="dense", epsilon=3.0, random_state=0),
    "sketch, bistochastic": lambda: hs.HeatSketch(
        6, affinity="radius", epsilon=3.0, normalization="bistochastic", random_state=0
    ),
    "sketch, heat": lambda: hs.HeatSketch(6, 30.5, filter="heat", affinity="variable"),
    "map": lambda: hs.DiffusionMap(3),
    "embedding": lambda: hs.HeatEmbedding(2, random_state=0),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@pytest.fixture
def device(monkeypatch):
    """Treat tensors on the processor as if it were a device."""
    found = importlib.import_module("heatsketch.markov.diffusion")  # also the name of a function
    monkeypatch.setattr(found, "device_of", lambda X: getattr(X, "device", None))


@every_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.usefixtures("device")
def test_a_tensor_gives_the_coordinates_of_the_array(make, dtype):
    given = torch.from_numpy(X).to(dtype)
    model, own = make().set_params(random_state=0), make().set_params(random_state=0)
    Y, expected = model.fit_transform(given), own.fit_transform(given.numpy())
    assert isinstance(Y, torch.Tensor)
    assert (Y.dtype, Y.device) == (given.dtype, given.device)
    # A map learned from them may differ by more than rounding: its descent ends where it is slow.
    rounding = 1e-3 if isinstance(model, hs.HeatEmbedding) else 1e-8
    rounding = max(rounding, 1e-5 if dtype == torch.float32 else 0.0)
    np.testing.assert_allclose(Y, expected, atol=rounding * np.abs(expected).max())
    Z = model.transform(given[:7])
    assert (Z.dtype, Z.device) == (given.dtype, given.device)
    np.testing.assert_allclose(Z, Y[:7], atol=1e-5 * np.abs(expected).max())


@every_model
def test_a_tensor_on_the_processor_is_computed_as_an_array(make):
    model, own = make().set_params(random_state=0), make().set_params(random_state=0)
    Y = model.fit_transform(torch.from_numpy(X))
    assert isinstance(Y, torch.Tensor)
    np.testing.assert_array_equal(Y, own.fit_transform(X))


@pytest.mark.usefixtures("device")
def test_a_fitted_model_is_on_the_host(tmp_path):
    model = hs.HeatSketch(4, random_state=0).fit(torch.from_numpy(X))
    assert isinstance(model.embedding_, np.ndarray)
    assert not isinstance(model.diffusion_.operator, TorchSparse)
    hs.save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(
        hs.load_model(tmp_path / "model").transform(X[:5]), model.transform(X[:5])
    )
    assert model.explained_diffusion_variance_ratio_.shape == (4,)


@pytest.mark.usefixtures("device")
def test_the_graph_of_a_tensor_is_on_its_device_and_so_are_its_sketches(monkeypatch):
    used = []
    product = TorchSparse._matmul

    def watched(A, block):
        used.append(type(block))
        return product(A, block)

    monkeypatch.setattr(TorchSparse, "_matmul", watched)
    d = hs.diffusion(torch.from_numpy(X))
    assert isinstance(d.operator, TorchSparse)
    before = len(used)
    F = hs.sketch(d, hs.Power(5), 4, rng=0)
    assert isinstance(F, torch.Tensor)
    assert set(used[before:]) == {torch.Tensor}
    np.testing.assert_allclose(F, hs.sketch(hs.diffusion(X), hs.Power(5), 4, rng=0), atol=1e-12)
    dense = hs.diffusion(torch.from_numpy(cloud(5000, 2)), affinity="dense", epsilon=0.5)
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
