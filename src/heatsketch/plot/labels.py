"""Labels as categories or as numbers, and their colours."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.ndimage import maximum_filter

from heatsketch._typing import Array
from heatsketch._validation import read_labels

MAX_CATEGORIES = 20  # more colours cannot be told apart

_CELLS = 4  # of a name's height: places are looked for in such steps
_REACH = 2  # longest line to a name, next to the median distance of the category from its median
_MOST_OTHERS = 0.25  # of the other points, as near to the median of a category as half of its own
_OFF_CENTRE = 0.1  # of the distance between middles, next to that between a name and its home

MAIN_COLOUR = "#3b6ea8"  # of points without labels
NO_LABEL_COLOUR = "#c9c9c9"
# Colours that remain distinct for colour-blind readers:
# Okabe and Ito (2008), without yellow and black; Petroff (2021).
OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
PETROFF = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)

TABLEAU = (  # strong, then pale
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd"),
    *("#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"),
    *("#aec7e8", "#ffbb78", "#98df8a", "#ff9896", "#c5b0d5"),
    *("#c49c94", "#f7b6d2", "#c7c7c7", "#dbdb8d", "#9edae5"),
)


def categories(labels: Any) -> tuple[Array, tuple[str, ...]] | None:
    """Split labels into categories, or return None if they are numbers on a scale.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Text, booleans, dates or numbers; None, NaN, infinity, the NA of pandas, masked entries and
        empty text mean missing.

    Returns
    -------
    tuple of (codes, names), or None
        `codes`, an ndarray of shape (n_samples,), index the sorted `names`, -1 for a missing label.
        None for fractions and for more than 20 distinct whole numbers.

    See Also
    --------
    plot.scatter : Draw an embedding in the plane.

    Examples
    --------
    >>> from heatsketch.plot import categories
    >>> codes, names = categories(["cat", "dog", None, "cat"])
    >>> codes.tolist(), names
    ([0, 1, -1, 0], ('cat', 'dog'))
    >>> categories([0.5, 1.5]) is None
    True
    """
    labels = read_labels(labels)
    words = str, bytes, bool, np.bool_
    if labels.dtype.kind == "O" and not any(isinstance(value, words) for value in labels.flat):
        with suppress(TypeError, ValueError):  # numbers and None
            labels = labels.astype(np.float64)
    if labels.dtype.kind in "iuf":
        present = np.isfinite(labels)
        distinct = np.unique(labels[present])
        if len(distinct) > MAX_CATEGORIES or np.any(distinct != np.round(distinct)):
            return None
        names = tuple(str(int(value)) for value in distinct)
    else:
        present = np.array([value is not None for value in labels.flat], dtype=bool)
        labels = np.array([str(value) for value in labels.flat], dtype=object)
        distinct = np.unique(labels[present])
        names = tuple(distinct.tolist())
    codes = np.full(labels.shape, -1, dtype=np.intp)
    codes[present] = np.searchsorted(distinct, labels[present])
    return codes, names


def legend_of(codes: Array, names: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    """Return the entries of a legend of categories, at most 20, and the entry of each category.

    With more than 20 categories, all but the 19 largest share an entry.
    """
    if len(names) <= MAX_CATEGORIES:
        return np.arange(len(names)), names
    sizes = np.bincount(codes[codes >= 0], minlength=len(names))
    largest = np.sort(np.argsort(-sizes, kind="stable")[: MAX_CATEGORIES - 1])
    entries = np.full(len(names), len(largest))
    entries[largest] = np.arange(len(largest))
    return entries, (*(names[code] for code in largest), f"{len(names) - len(largest)} others")


def palette(count: int) -> Sequence[str]:
    """Return `count` colours that can be told apart, at most `MAX_CATEGORIES`."""
    return next(one[:count] for one in (OKABE_ITO, PETROFF, TABLEAU) if count <= len(one))


def place_names(
    points: Array, codes: Array, sizes: Array, window: Array, radius: float
) -> tuple[Array, Array]:
    """Return where names of categories stand in a window: each in the free place next to its home.

    The home is the median of the category. A category that gathers nowhere gets no name: within the
    median distance of its points from their home are more than a quarter of all other points. Names
    cover no point, no other name, and no line from a name before them to its home; lines are short
    next to the extent of the category. The page does the same (names.js).

    Parameters
    ----------
    points : array (n, 2)
        Points, from 0 to the window's width and height; others are not seen.
    codes : array of int (n,)
        The category of each point, from 0 to m - 1; other points have none.
    sizes : array (m, 2)
        Width and height of each name. Those of large categories are placed first.
    window : array (2,)
        Width and height.
    radius : float
        Of a point.

    Returns
    -------
    places, homes : arrays (m, 2)
        The middle of each name, NaN where it has none; the medians.
    """
    members = [points[codes == code] for code in range(len(sizes))]
    homes = np.array([np.median(own, axis=0) for own in members])
    places = np.full_like(homes, np.nan)
    cell = sizes[:, 1].min() / _CELLS
    shape = np.maximum(window // cell, 1).astype(int)
    grid = np.meshgrid(*(cell * (np.arange(count) + 0.5) for count in shape), indexing="ij")
    middles = np.stack(grid, axis=-1)  # of the cells: where names may stand
    taken = np.zeros(shape, dtype=bool)

    def take(spots: Array) -> None:
        seen = np.all((spots >= 0) & (spots < shape * cell), axis=1)
        taken[tuple((spots[seen] // cell).astype(int).T)] = True

    take(points)
    for name in sorted(range(len(sizes)), key=lambda name: -len(members[name])):
        home, size, others = homes[name], sizes[name], codes != name
        away = np.hypot(*(points - home).T)
        extent = np.median(away[~others])
        if np.sum(away[others] <= extent) > _MOST_OTHERS * np.sum(others):
            continue
        limit = _REACH * (extent + size[1])
        reach = np.ceil((size / 2 + radius) / cell).astype(int)
        offsets = np.abs(middles - home)
        away = np.linalg.norm(np.maximum(offsets - size / 2, 0), axis=-1)
        cost = away + _OFF_CENTRE * np.linalg.norm(offsets, axis=-1)
        cost[maximum_filter(taken, 2 * reach + 1, mode="constant") | (away > limit)] = np.inf
        cost[np.any((middles < size / 2) | (middles > window - size / 2), axis=-1)] = np.inf
        best = np.unravel_index(cost.argmin(), cost.shape)
        if not np.isfinite(cost[best]):
            continue
        place = places[name] = middles[best]
        (x0, y0), (x1, y1) = np.maximum(best - reach, 0), best + reach + 1
        taken[x0:x1, y0:y1] = True
        take(np.linspace(place, home, int(2 * np.hypot(*(home - place)) / cell) + 2))
    return places, homes
