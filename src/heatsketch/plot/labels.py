"""Labels as categories or numbers, and their colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from heatsketch._checks import is_missing
from heatsketch._typing import Array

MAX_CATEGORIES = 20  # more colours cannot be told apart

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
    """Return `count` colours that can be told apart, at most `MAX_CATEGORIES`."""
    colours = next(one for one in (OKABE_ITO, PETROFF, TABLEAU) if count <= len(one))
    return colours[:count]


class Colouring(NamedTuple):
    """Labels as categories (codes and at most 20 names), as numbers, or none: how points look.

    Attributes
    ----------
    n : int
    codes : array (n,) or None
        Indices of `names`, -1 for a missing label.
    names : tuple of str
    numbers : array (n,) or None
        NaN for a missing label.
    """

    n: int
    codes: Array | None = None
    names: tuple[str, ...] = ()
    numbers: Array | None = None

    @classmethod
    def of(cls, labels: Any, n: int) -> Colouring:
        """Tell categories and numbers apart, or raise if there is not one label for each point."""
        if labels is None:
            return cls(n)
        labels = check_labels(labels, n)
        groups = categories(labels)
        if groups is None:
            return cls(n, numbers=labels.astype(np.float64))
        return cls(n, *largest(*groups))

    @property
    def scale(self) -> Any:
        """The colours of numbers, from the smallest to the largest; grey where none is known."""
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable

        viridis = colormaps["viridis"].with_extremes(bad=NO_LABEL_COLOUR)
        scale = ScalarMappable(cmap=viridis)
        scale.set_array(np.ma.masked_invalid(np.asarray(self.numbers)))
        scale.autoscale()
        return scale

    def rgb(self) -> Array:
        """Return the colour of each point (n, 3)."""
        from matplotlib.colors import to_rgba_array

        if self.numbers is not None:
            scale = self.scale
            return np.asarray(scale.to_rgba(scale.get_array())[:, :3])
        codes = np.full(self.n, 0) if self.codes is None else self.codes
        known = [MAIN_COLOUR] if self.codes is None else palette(len(self.names))
        return np.asarray(to_rgba_array([*known, NO_LABEL_COLOUR])[codes, :3])  # -1: the last

    def explain(self, ax: Any) -> None:
        """Draw a legend of the categories or a bar of the numbers beside the axes."""
        from matplotlib.lines import Line2D

        if self.numbers is not None and np.isfinite(self.numbers).any():
            bar = ax.figure.colorbar(self.scale, ax=ax, shrink=0.8, pad=0.02)
            bar.outline.set_visible(False)
        if self.codes is None:
            return
        names, colours = [short(name) for name in self.names], [*palette(len(self.names))]
        if np.any(self.codes < 0):
            names, colours = [*names, "no label"], [*colours, NO_LABEL_COLOUR]
        dot: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 6}
        legend = ax.legend(
            [Line2D([], [], color=colour, **dot) for colour in colours],
            ["."]
            * len(colours),  # the names follow: matplotlib would drop one that starts with "_"
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
            frameon=False,
            handletextpad=0.2,
        )
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_parse_math(False)
            text.set_text(name)


def short(name: str, limit: int = 32) -> str:
    """Return a name on one line, cut at a number of letters."""
    name = " ".join(name.split())
    return name if len(name) <= limit else name[: limit - 1] + "…"
