"""A cluster of two workers, and what one process writes."""

import numpy as np
import pytest

from heatsketch.distributed import embed, mapping
from problems.clusters import OPTIONS, SKETCH, points


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("dask.distributed")
    from heatsketch.distributed.cluster import connect

    with connect("local:2") as client:
        yield client


@pytest.fixture
def source(tmp_path):
    np.save(tmp_path / "x.npy", points())
    return tmp_path / "x.npy"


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The bytes that one process writes."""
    folder = tmp_path_factory.mktemp("one")
    np.save(folder / "x.npy", points())
    return embed(folder / "x.npy", folder / "out.npy", SKETCH, **OPTIONS).output.read_bytes()


@pytest.fixture
def mapped(monkeypatch):
    """The numbers of the blocks that this process has mapped."""
    numbers, keep = [], mapping.Mapping.keep_block

    def keep_block(own, number, raw):
        numbers.append(number)
        return keep(own, number, raw)

    monkeypatch.setattr(mapping.Mapping, "keep_block", keep_block)
    return numbers
