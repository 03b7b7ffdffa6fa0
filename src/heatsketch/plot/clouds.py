"""Embeddings in space, and embeddings of so many points that only their density can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.plot.figures import MAIN_COLOUR, new_axes, new_figure, style_axes
from heatsketch.plot.labels import NO_LABEL_COLOUR, palette
from heatsketch.plot.scatter import (
    ORDER_SEED,
    Groups,
    draw_legend,
    draw_scale,
    labelled,
    principal_axes,
    principal_name,
    view_of,
)

_MOST_CELLS, _LEAST_CELLS = 420, 40  # along the longer side
_CELLS_PER_ROOT = 2.4  # of the number of points: one point fills a cell that can be seen
_FAINTEST = 0.25  # alpha of a cell with one point


def density(
    F: Any,
    labels: Any = None,
    *,
    title: str = "",
    names: Sequence[str] | None = None,
    ax: Any = None,
    legend: bool = True,
) -> Any:
    """Draw how many points lie in each cell of the plane; millions take a second.

    The view is that of `scatter`. The more points, on a logarithmic
    scale, the stronger the colour; it is the mean of the colours of the labels in the cell, or the
    colour of the mean of the numbers.

    Parameters
    ----------
    F : array (n, k)
        The embedding.
    labels, title, names, legend
        As of `scatter`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError, ImportError
        As of `scatter`.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import plot
    >>> F = np.random.default_rng(0).normal(size=(10_000, 2))
    >>> len(plot.density(F).axes[0].images)
    1
    """
    F, labels, groups = labelled(F, labels)
    view, axis_names = view_of(F, names, None if groups is None else groups[0])
    figure, ax = new_axes() if ax is None else (ax.figure, ax)
    cells = _Cells(view)
    if groups is not None:
        colours = cells.mixed(groups)
    elif labels is not None:
        colours = cells.averaged(labels.astype(np.float64))
    else:
        colours = np.broadcast_to(_rgb(MAIN_COLOUR), (*cells.counts.shape, 3))
    image = np.dstack([colours, cells.strengths])
    ax.imshow(
        np.swapaxes(image, 0, 1),
        origin="lower",
        extent=cells.extent,
        aspect="equal",
        interpolation="nearest",
    )
    style_axes(ax, title, axis_names)
    if legend:
        _explain(figure, ax, labels, groups)
    return figure


def space(
    F: Any,
    labels: Any = None,
    *,
    title: str = "",
    names: Sequence[str] | None = None,
    ax: Any = None,
    legend: bool = True,
) -> Any:
    """Draw an embedding in three dimensions, all on one scale; of more, on its principal axes.

    Parameters
    ----------
    F : array (n, k)
        The embedding, k >= 3.
    labels, title, names, legend
        As of `scatter`.
    ax : matplotlib Axes, optional
        Where to draw, with ``projection="3d"``; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        Fewer than three coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import plot
    >>> plot.space(np.eye(4)[:, :3]).axes[0].get_zlabel()
    'coordinate 3'
    """
    F, labels, groups = labelled(F, labels)
    if F.shape[1] < 3:
        raise ValueError(
            f"F has {F.shape[1]} columns; pass three or more, or draw it in the plane."
        )
    view, axis_names = _spatial(F, names)
    if ax is None:
        ax = new_figure(7.6, 6.0).add_subplot(projection="3d")
    order = np.random.default_rng(ORDER_SEED).permutation(len(F))
    options: dict[str, Any] = {"s": np.clip(560 / np.sqrt(len(F)), 0.8, 30), "linewidths": 0}
    if groups is not None:
        colours = [*palette(len(groups[1])), NO_LABEL_COLOUR]  # the code -1 picks the last
        options["c"] = [colours[code] for code in groups[0][order]]
    elif labels is not None:
        options |= {"c": _viridis(labels.astype(np.float64))[order]}
    else:
        options["c"] = MAIN_COLOUR
    ax.scatter(*view[order].T, **options)
    ax.set_title(title, fontsize=10, loc="left", parse_math=False)
    for axis, name in zip((ax.xaxis, ax.yaxis, ax.zaxis), axis_names, strict=True):
        axis.set_label_text(name, parse_math=False)
        axis.set_tick_params(labelsize=7)
    ax.set_box_aspect(np.maximum(np.ptp(view, axis=0), 0.05 * np.ptp(view, axis=0).max()) + 1e-300)
    if legend:
        _explain(ax.figure, ax, labels, groups)
    return ax.figure


class _Cells:
    """How many points lie in each cell of a grid over the plane, and where the grid lies."""

    def __init__(self, view: Array) -> None:
        low, high = view.min(axis=0), view.max(axis=0)
        span = np.maximum(high - low, 1e-3 * (float((high - low).max()) or 1.0))
        cells = np.clip(_CELLS_PER_ROOT * np.sqrt(len(view)), _LEAST_CELLS, _MOST_CELLS)
        self.shape = np.maximum(1, np.round(cells * span / span.max())).astype(int)
        place = np.floor((view - low) / span * self.shape).astype(np.int64)
        place = np.clip(place, 0, self.shape - 1)
        self._cell = place[:, 0] * self.shape[1] + place[:, 1]
        self.counts = self._sum(None)
        self.extent = (low[0], low[0] + span[0], low[1], low[1] + span[1])

    def _sum(self, weights: Array | None) -> Array:
        total = np.bincount(self._cell, weights, minlength=int(np.prod(self.shape)))
        return total.reshape(self.shape)

    @property
    def strengths(self) -> Array:
        """How strong the colour of a cell is: 0 where there is no point, 1 for the most."""
        full = np.log1p(self.counts) / np.log1p(max(2.0, float(np.quantile(self._held, 0.99))))
        return np.where(self.counts > 0, np.clip(full, _FAINTEST, 1.0), 0.0)

    @property
    def _held(self) -> Array:
        return self.counts[self.counts > 0]

    def mixed(self, groups: Groups) -> Array:
        """Return the mean colour of the points in each cell."""
        codes, names = groups
        total = np.zeros((*self.shape, 3))
        for code, colour in enumerate([*palette(len(names)), NO_LABEL_COLOUR]):
            inside = (codes == code) if code < len(names) else (codes < 0)
            total += self._sum(inside.astype(float))[..., None] * _rgb(colour)
        return total / np.maximum(self.counts, 1)[..., None]

    def averaged(self, values: Array) -> Array:
        """Return the colour of the mean of the numbers that are known in each cell."""
        known = np.isfinite(values)
        count = self._sum(known.astype(float))
        mean = self._sum(np.where(known, values, 0.0)) / np.maximum(count, 1)
        within = np.clip(mean, *_range(values))
        found = _viridis(within, _range(values))[..., :3]
        return np.where(count[..., None] > 0, found, _rgb(NO_LABEL_COLOUR))


def _spatial(F: Array, names: Sequence[str] | None) -> tuple[Array, list[str]]:
    """Return the points in space (n, 3) and the names of the axes."""
    if F.shape[1] == 3:
        return F, list(names or [f"coordinate {j + 1}" for j in range(3)])
    axes, shares = principal_axes(F, 3)
    centred = F - F.mean(axis=0, dtype=np.float64)
    return centred @ axes, [principal_name(j, share) for j, share in enumerate(shares)]


def _explain(figure: Any, ax: Any, labels: Array | None, groups: Groups | None) -> None:
    if groups is not None:
        names = (*groups[1], "no label") if np.any(groups[0] < 0) else groups[1]
        draw_legend(ax, [*palette(len(groups[1])), NO_LABEL_COLOUR], names)
    elif labels is not None and np.isfinite(labels.astype(float)).any():
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        scale = Normalize(*_range(labels.astype(float)))
        draw_scale(figure, ax, ScalarMappable(scale, "viridis"))


def _range(values: Array) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)


def _viridis(values: Array, ends: tuple[float, float] | None = None) -> Array:
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba

    low, high = _range(values) if ends is None else ends
    colours = np.asarray(colormaps["viridis"]((values - low) / ((high - low) or 1.0)))
    return np.where(np.isfinite(values)[..., None], colours, to_rgba(NO_LABEL_COLOUR))


def _rgb(colour: str) -> Array:
    from matplotlib.colors import to_rgb

    return np.array(to_rgb(colour))
