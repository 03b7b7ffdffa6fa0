"""The time at which embeddings of the same data are compared."""

import warnings
from typing import Any

from heatsketch._checks import ConvergenceWarning
from heatsketch.estimators import HeatEmbedding
from heatsketch.markov.diffusion import Diffusion
from heatsketch.spectral.filters import FILTERS


def checked_time(time: Any, filter: str = "power") -> Any:
    """Return "auto", or a time in the range of the filter, or raise."""
    if isinstance(time, str):
        if time != "auto":
            raise ValueError(f"time={time!r} is not a time; pass a number, or 'auto'.")
        return time
    return FILTERS[filter].check_time(time, whole=True)


def chosen_time(
    diffusion: Diffusion, time: Any = "auto", *, n_components: int = 2, filter: str = "power"
) -> Any:
    """Return the time given, or for "auto" the one that `HeatEmbedding` chooses (seed 0).

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.comparison.times import chosen_time
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> d = hs.diffusion(X)
    >>> model = hs.HeatEmbedding(random_state=0).fit(X)
    >>> chosen_time(d) == model.time_, chosen_time(d, 8)
    (True, 8)
    """
    if time != "auto":
        return time
    model = HeatEmbedding(
        min(n_components, max(1, diffusion.n - 1)),
        filter=filter,
        affinity="precomputed",
        normalization=diffusion.normalization,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of its own coordinates
        return model.fit(diffusion).time_
