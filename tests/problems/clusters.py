"""Points that are mapped by blocks, in one process or by workers of Dask."""

import numpy as np

import heatsketch as hs

N, D, SAMPLE, ROWS = 1500, 4, 300, 100
SKETCH = hs.HeatSketch(3, random_state=0)
OPTIONS = {"fit_points": SAMPLE, "block_rows": ROWS}


def points():
    """A curve and a cluster, in no order."""
    rng = np.random.default_rng(5)
    t = rng.uniform(0, 6, N)
    X = np.stack([np.cos(t), np.sin(2 * t), t, 0 * t], axis=1) + 0.1 * rng.standard_normal((N, D))
    X[rng.random(N) < 0.3] += [5, 0, 0, 3]
    return X.astype(np.float32)
