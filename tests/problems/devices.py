"""Devices of torch in tests: which there are, and what is copied from them.

A stand-in takes the place of a card. It computes with torch's processor device, which the tests of
operators and spectra use as it is.
"""

from importlib.util import find_spec

import pytest

if find_spec("torch"):  # else the tests that import this module are skipped
    import torch

HAS_GPU = bool(find_spec("torch")) and torch.cuda.is_available()

DEVICES = [
    "stand-in",  # `problems.card`, by the fixture `device`
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not HAS_GPU, reason="there is no GPU"),
        ],
    ),
]
every_device = pytest.mark.parametrize("device", DEVICES, indirect=True)


class Traffic:
    """The number of entries of each array that is copied from a tensor, and the other way."""

    def __init__(self, monkeypatch):
        self.to_host, self.to_device = [], []
        inside = []  # the stand-in for a card calls a function of torch once more

        def leaving(tensor, *args, copy=torch.Tensor.numpy, **kwargs):
            if not inside:
                self.to_host.append(tensor.numel())
            inside.append(1)
            try:
                return copy(tensor, *args, **kwargs)
            finally:
                inside.pop()

        def arriving(array, copy=torch.from_numpy):
            self.to_device.append(array.size)
            return copy(array)

        monkeypatch.setattr(torch.Tensor, "numpy", leaving)
        monkeypatch.setattr(torch, "from_numpy", arriving)

    def large(self, n):
        """Return how many copies have at least n entries, in either direction."""
        return [sum(size >= n for size in sizes) for sizes in (self.to_host, self.to_device)]


def refuse_arrays(monkeypatch):
    """Let NumPy refuse all tensors, as it refuses those of a GPU."""

    def refuse(tensor, *args, **kwargs):
        raise TypeError("can't convert a tensor of a device to numpy")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
