"""Where the descent starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch._checks import check_choice, check_finite
from heatsketch._typing import Array
from heatsketch.classical.sne.near import Near

_SPREAD = 1e-4  # standard deviation of the first places: so near that clusters pass through others
_FLAT = 1e-6  # share of the largest spread below which a coordinate tells nothing


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


def first_places(near: Near, n: int, k: int, init: Any, seed: list[int]) -> Array:
    """Return places (n, k): principal components scaled to a spread of 1e-4, random, or given.

    Coordinates in which the points do not differ are random: the gradient would leave them flat.
    """
    if not isinstance(init, str):
        return init
    random = np.random.default_rng(seed).normal(scale=_SPREAD, size=(n, k))
    if init == "random":
        return random
    places = near.principal(k, seed[0])
    spread = places.std(axis=0)
    kept = np.flatnonzero(spread > _FLAT * spread.max(initial=0.0))
    if len(kept):
        random[:, kept] = places[:, kept] * (_SPREAD / spread.max())
    return random
