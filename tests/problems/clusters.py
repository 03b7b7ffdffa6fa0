"""Points that are mapped by blocks, in one process or by workers of Dask."""

import numpy as np

import heatsketch as hs

N, D, SAMPLE, ROWS = 1500, 4, 300, 100
SKETCH = hs.HeatSketch(3, random_state=0)
OPTIONS = {"fit_points": SAMPLE, "block_rows": ROWS}


def written(path):
    """The bytes of an output, of a folder those of all parts."""
    return [one.read_bytes() for one in sorted(path.iterdir() if path.is_dir() else [path])]


def warned_of(caught, far):
    """Check that rows far from the sample were warned of once, the first five by number."""
    (said,) = (str(one.message) for one in caught if one.category is hs.ScaleWarning)
    first = ", ".join(map(str, far[:5]))
    assert said.startswith(f"{len(far)} new point(s) (rows {first} and {len(far) - 5} more) ")


def points():
    """A curve and a cluster, in no order."""
    rng = np.random.default_rng(5)
    t = rng.uniform(0, 6, N)
    X = np.stack([np.cos(t), np.sin(2 * t), t, 0 * t], axis=1) + 0.1 * rng.standard_normal((N, D))
    X[rng.random(N) < 0.3] += [5, 0, 0, 3]
    return X.astype(np.float32)
