"""Embeddings in space, and embeddings of so many points that only their density can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.plot.figures import new_figure, style_axes
from heatsketch.plot.scatter import draw_points, view_of

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
    whole: bool = False,
) -> Any:
    """Draw how many points lie in each cell of the plane; millions take a second.

    The view is that of `scatter`; points outside of the window count in the cells at its edge. The
    more points, on a logarithmic scale, the stronger the colour; it is the mean of the colours of
    the labels in the cell, or the colour of the mean of the numbers.

    Parameters
    ----------
    F : array (n, k)
        The embedding.
    labels, title, names, legend, whole
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
    view = view_of(F, labels, names, title, whole=whole, how="counted")
    points, colouring, window = view.points, view.colouring, view.window
    low, high = (points.min(axis=0), points.max(axis=0)) if window is None else window
    span = np.maximum(high - low, 1e-3 * (float((high - low).max()) or 1.0))
    side = np.clip(_CELLS_PER_ROOT * np.sqrt(len(points)), _LEAST_CELLS, _MOST_CELLS)
    shape = np.maximum(1, np.round(side * span / span.max())).astype(int)
    place = np.clip(np.floor((points - low) / span * shape).astype(np.int64), 0, shape - 1)
    cell = place[:, 0] * shape[1] + place[:, 1]

    def total(weights: Array | None = None) -> Array:
        """Return the sums of the points in each cell."""
        return np.bincount(cell, weights, minlength=int(np.prod(shape))).reshape(shape)

    counts = total()
    if colouring.numbers is None:
        rgb = colouring.rgb()
        sums = np.dstack([total(rgb[:, j]) for j in range(3)])
        colours = np.clip(sums / np.maximum(counts, 1)[..., None], 0, 1)
    else:
        known = np.isfinite(colouring.numbers)
        number = total(known.astype(float))
        sums = total(np.where(known, colouring.numbers, 0.0))
        mean = np.ma.masked_array(sums / np.maximum(number, 1), number == 0)
        colours = colouring.scale.to_rgba(mean)[..., :3]
    full = np.log1p(counts) / np.log1p(max(2.0, float(np.quantile(counts[counts > 0], 0.99))))
    strength = np.where(counts > 0, np.clip(full, _FAINTEST, 1.0), 0.0)
    ax = new_figure(7.6, 6.0).add_subplot() if ax is None else ax
    ax.imshow(
        np.swapaxes(np.dstack([colours, strength]), 0, 1),
        origin="lower",
        extent=(low[0], low[0] + span[0], low[1], low[1] + span[1]),
        aspect="equal",
        interpolation="nearest",
    )
    style_axes(ax, view.title, view.names)
    if legend:
        colouring.explain(ax)
    return ax.figure


def space(
    F: Any,
    labels: Any = None,
    *,
    title: str = "",
    names: Sequence[str] | None = None,
    ax: Any = None,
    legend: bool = True,
    whole: bool = False,
) -> Any:
    """Draw an embedding in three dimensions, all on one scale; of more, on its principal axes.

    Parameters
    ----------
    F : array (n, k)
        The embedding, k >= 3.
    labels, title, names, legend, whole
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
    if np.ndim(F) == 2 and np.shape(F)[1] < 3:
        raise ValueError(
            f"F has {np.shape(F)[1]} columns; pass three or more, or draw it in the plane."
        )
    view = view_of(F, labels, names, title, whole=whole, dimensions=3)
    ax = new_figure(7.6, 6.0).add_subplot(projection="3d") if ax is None else ax
    draw_points(ax, view)
    ax.set_title(view.title, fontsize=10, loc="left", parse_math=False)
    for axis, name in zip((ax.xaxis, ax.yaxis, ax.zaxis), view.names, strict=True):
        axis.set_label_text(name, parse_math=False)
        axis.set_tick_params(labelsize=7)
    size = np.ptp(view.points, axis=0)
    ax.set_box_aspect(np.maximum(size, 0.05 * size.max()) + 1e-300)
    if legend:
        view.colouring.explain(ax)
    return ax.figure
