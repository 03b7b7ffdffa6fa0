"""Points in a file, what one process writes, and runs that stop."""

import numpy as np
import pytest

from heatsketch import distributed
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


@pytest.fixture
def stop(monkeypatch):
    """Return a function that lets the run stop once, before a block; it counts the blocks."""
    keeper, calls = distributed._keeper, []

    def stop_before(number):
        def interrupted(*args):
            keep = keeper(*args)

            def counted(*block):
                calls.append(block)
                if len(calls) == number + 1:
                    raise InterruptedError
                return keep(*block)

            return counted

        monkeypatch.setattr(distributed, "_keeper", interrupted)
        return calls

    return stop_before
