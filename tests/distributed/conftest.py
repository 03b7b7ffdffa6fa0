"""Points in a file, and what one process writes."""

import numpy as np
import pytest

from heatsketch.distributed import embed
from problems.clusters import OPTIONS, SKETCH, points


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
