"""Points of several files."""

import numpy as np
import pytest


@pytest.fixture
def X():
    """Forty points in general position, of different spread along the axes."""
    return np.random.default_rng(1).normal(size=(40, 4)) * [5.0, 4.0, 3.0, 2.0]
