"""What streams refuse."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.distributed import embed

SKETCH = hs.HeatSketch(2, random_state=0)


def test_a_source_without_rows(tmp_path):
    np.save(tmp_path / "x.npy", np.empty((0, 3)))
    with pytest.raises(ValueError, match=r"x\.npy has no rows; pass at least 2 points"):
        embed(tmp_path / "x.npy", tmp_path / "o.npy", SKETCH)
