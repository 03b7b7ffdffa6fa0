"""Tensors on a device are not mixed with others: "meta", which has shapes alone, stands for one."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.operators import torch as on_torch
from problems.clouds import cloud

torch = pytest.importorskip("torch")

N = 300
X = cloud(N, 3)
FAR = X + 1e7 * (np.arange(N) % 2)[:, None]  # differences are taken


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
    """Refuse each operation with tensors of two devices, but for copies from one to the other."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class OneDevice(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            given = [*args, *(kwargs or {}).values()]
            given += [x for part in given if isinstance(part, list | tuple) for x in part]
            tensors = [x for x in given if isinstance(x, torch.Tensor) and x.ndim]
            if "copy" not in str(function):
                assert len({tensor.device for tensor in tensors}) <= 1, function
            return function(*args, **(kwargs or {}))

    monkeypatch.setattr(on_torch, "DEVICE_TILE_SIDE", 128)
    with OneDevice():
        yield


def test_two_devices_are_seen():
    with pytest.raises(AssertionError):
        torch.ones(2, 2) @ torch.ones(2, 2, device="meta")


@pytest.mark.parametrize("points", [X, X.astype(np.float32), FAR], ids=["f8", "f4", "far"])
@pytest.mark.parametrize("epsilon", [1.0, np.full(N, 1.3)], ids=["one", "local"])
def test_products_stay_on_the_device(points, epsilon):
    K = hs.TorchKernel(points, epsilon, device="meta")
    product = K @ torch.ones((N, 4))
    assert (product.device.type, product.dtype) == ("meta", getattr(torch, K.dtype.name))
    A = hs.Deflated(hs.Scaled(hs.Affine(K, 0.5, 0.5), np.ones(N)), np.ones(N) / np.sqrt(N))
    assert A.device.type == "meta"


def test_stored_matrices_stay_on_the_device():
    dense = hs.TorchDense(np.eye(N), (0.0, 1.0), device="meta")
    assert (dense @ torch.ones((N, 2))).device.type == "meta"
    graph = hs.TorchSparse(np.eye(N), (0.0, 1.0), device="meta")
    assert graph.tensor.device.type == "meta"
    assert graph.scaled(np.ones(N), (0.0, 1.0), np.ones(N)).tensor.device.type == "meta"
