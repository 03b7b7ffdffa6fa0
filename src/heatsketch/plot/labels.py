"""Labels as categories, and their colours."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from heatsketch._checks import is_missing
from heatsketch._typing import Array

MAX_CATEGORIES = 20  # more colours cannot be told apart

NO_LABEL_COLOUR = "#c9c9c9"
# Colours that remain distinct for colour-blind readers:
# Okabe and Ito (2008), without yellow and black; Petroff (2021).
OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
PETROFF = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)


def categories(labels: Any) -> tuple[Array, tuple[str, ...]] | None:
    """Split labels into categories, or return None if they are numbers on a scale.

    Parameters
    ----------
    labels : array of shape (n,)
        Text, booleans or numbers; None, NaN and empty text mean missing.

    Returns
    -------
    (codes, names) or None
        `codes` (n,) index the sorted `names`, -1 for a missing label. None for fractions and for
        more than 20 distinct whole numbers.

    Examples
    --------
    >>> from heatsketch.plot import categories
    >>> codes, names = categories(["cat", "dog", None, "cat"])
    >>> codes.tolist(), names
    ([0, 1, -1, 0], ('cat', 'dog'))
    >>> categories([0.5, 1.5]) is None
    True
    """
    labels = _numbers_if_possible(np.asarray(labels))
    if labels.dtype.kind in "iuf":
        present = np.isfinite(labels)
        distinct = np.unique(labels[present])
        if len(distinct) > MAX_CATEGORIES or np.any(distinct != np.round(distinct)):
            return None
        names = tuple(str(int(value)) for value in distinct)
    else:
        present = np.array([not is_missing(value) for value in labels.flat], dtype=bool)
        labels = np.array([str(value) for value in labels.flat], dtype=object)
        distinct = np.unique(labels[present])
        names = tuple(distinct.tolist())
    codes = np.full(labels.shape, -1, dtype=np.intp)
    codes[present] = np.searchsorted(distinct, labels[present])
    return codes, names


def _numbers_if_possible(labels: Array) -> Array:
    """Turn an object array of numbers and None into floats; return other arrays as they are."""
    if labels.dtype.kind != "O":
        return labels
    if any(isinstance(value, (str, bytes, bool, np.bool_)) for value in labels.flat):
        return labels
    try:
        return labels.astype(np.float64)
    except (TypeError, ValueError):
        return labels


def check_labels(labels: Any, n: int) -> Array:
    """Return labels (n,), as numbers if they are, or raise."""
    labels = _numbers_if_possible(np.asarray(labels))
    if labels.shape != (n,):
        raise ValueError(f"labels has shape {labels.shape} but F has {n} rows; pass shape ({n},).")
    return labels


def largest(codes: Array, names: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    """Merge all but the largest categories into one when there are too many to colour."""
    if len(names) <= MAX_CATEGORIES:
        return codes, names
    sizes = np.bincount(codes[codes >= 0], minlength=len(names))
    kept = np.sort(np.argsort(-sizes, kind="stable")[: MAX_CATEGORIES - 1])
    rest = len(kept)
    new = np.full(len(names) + 1, rest)
    new[kept] = np.arange(rest)
    new[-1] = -1  # codes of -1 land here
    merged = (*(names[old] for old in kept), f"{len(names) - rest} others")
    return new[codes], merged


def palette(count: int) -> Sequence[str]:
    """Return `count` colours that can be told apart."""
    if count <= len(OKABE_ITO):
        return OKABE_ITO[:count]
    if count <= len(PETROFF):
        return PETROFF[:count]
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    strong_then_pale = (*range(0, 20, 2), *range(1, 20, 2))
    return [to_hex(colormaps["tab20"](j)) for j in strong_then_pale][:count]
