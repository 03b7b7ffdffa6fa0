"""The initial places of the descent."""

from typing import Any

import numpy as np

from heatsketch._checks import check_choice, check_finite
from heatsketch._typing import Array
from heatsketch.classical.sne.near import Near

_INITIAL_DEVIATION = 1e-4  # so small that clusters can pass through each other
_MIN_DEVIATION_RATIO = 1e-6  # to the largest one; principal components below it are rounding


def check_init(init: Any, n: int, k: int) -> Any:
    """Return `init`, a name or places (n, k) as float64, or raise."""
    if isinstance(init, str):
        return check_choice(init, "init", ("pca", "random"))
    places = np.asarray(init, dtype=np.float64)
    if places.shape != (n, k):
        raise ValueError(
            f"init has shape {places.shape}, but X has {n} points and n_components={k}; pass "
            f"({n}, {k})."
        )
    check_finite(places, "init")
    return places


def initial_places(near: Near, n: int, k: int, init: Any, seed: list[int]) -> Array:
    """Return places (n, k): principal components of deviation 1e-4, random places, or given ones.

    Coordinates in which the points do not differ are random, because no gradient would move them.
    """
    if not isinstance(init, str):
        return init
    random = np.random.default_rng(seed).normal(scale=_INITIAL_DEVIATION, size=(n, k))
    if init == "random":
        return random
    places = near.principal(k, seed[0])
    deviation = places.std(axis=0)
    kept = np.flatnonzero(deviation > _MIN_DEVIATION_RATIO * deviation.max(initial=0.0))
    if len(kept):
        random[:, kept] = places[:, kept] * (_INITIAL_DEVIATION / deviation.max())
    return random
