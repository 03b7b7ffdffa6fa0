"""Points that several files embed."""

import numpy as np
import pytest


@pytest.fixture
def X():
    """Sixty points in one piece, in general position."""
    return np.random.default_rng(1).normal(size=(60, 3))


@pytest.fixture
def X_new():
    return np.random.default_rng(2).normal(size=(7, 3))
