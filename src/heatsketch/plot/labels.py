"""Labels as categories or as numbers, and their colours."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch._validation import read_labels

MAX_CATEGORIES = 20  # more colours cannot be told apart

_CELLS = 4  # of a name's height: places are looked for in such steps
_HALVINGS = 3  # of a category, on the way to its home
_REACH = 2  # farthest place from the home, next to the radius of the last points there
_FEW_NAMES = 5  # fewer are all written, or none

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


def place_names(points: Array, codes: Array, sizes: Array, window: Array) -> Array:
    """Return where names of categories stand in a window (m, 2); NaN without a place.

    A name stands at its home, or as near as other names leave room. The home is where the category
    is dense: the point nearest to the median of the category, then to that of the half of its
    points nearest to this point, and so on to an eighth. A category that gathers nowhere gets no
    name: where its nearest eighth is, there are more than a sixteenth of all other points. Fewer
    than five names are all written, or none. The page does the same (names.js).

    Parameters
    ----------
    points : array (n, 2)
        Points, from 0 to the window's width and height; names with a home elsewhere are not seen.
    codes : array of int (n,)
        The category of each point, from 0 to m - 1; other points have none.
    sizes : array (m, 2)
        Width and height of each name. Those of large categories are placed first.
    window : array (2,)
        Width and height.
    """
    members = [points[codes == code] for code in range(len(sizes))]
    places = np.full(sizes.shape, np.nan)
    cell = sizes[:, 1].min() / _CELLS
    is_complete = True
    for name in sorted(range(len(sizes)), key=lambda name: -len(members[name])):
        size, own = sizes[name], members[name]
        home = _nearest_to_median(own)
        for _ in range(_HALVINGS):
            squares = np.square(own - home).sum(axis=1)
            own = own[squares <= np.median(squares)]
            home = _nearest_to_median(own)
        radius = np.square(own - home).sum(axis=1).max()
        others = np.square(points[codes != name] - home).sum(axis=1)
        gathers = np.sum(others <= radius) <= len(others) / 2 ** (_HALVINGS + 1)
        if np.any((home < 0) | (home > window)):
            continue
        home = np.clip(home, size / 2, window - size / 2)
        count = (_REACH * np.sqrt(radius) + size[1]) // cell
        steps = np.arange(-count, count + 1)
        offsets = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
        spots = home + cell * offsets
        free = np.all((spots >= size / 2) & (spots <= window - size / 2), axis=1)
        for place, other in zip(places, sizes, strict=True):  # of NaN nothing is far or near
            free &= ~np.all(np.abs(spots - place) < (size + other) / 2, axis=1)
        away = np.where(free, np.square(offsets).sum(axis=1), np.inf)
        if gathers and free.any():
            places[name] = spots[away.argmin()]
        else:
            is_complete = False
    if len(sizes) < _FEW_NAMES and not is_complete:
        places[:] = np.nan
    return places


def _nearest_to_median(points: Array) -> Array:
    apart = points - np.median(points, axis=0)
    return np.asarray(points[np.square(apart).sum(axis=1).argmin()])
