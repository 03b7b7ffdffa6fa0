"""An embedding in the plane or in space, its density, or several embeddings side by side."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.plot.figures import axes_for, finish, new_figure, save, size_in_inches
from heatsketch.plot.points import Picture

_SIZE = (7.6, 6.0)  # inches
_PANEL_INCHES, _MAX_COLUMNS = 3.4, 4
_SMALL, _GREY = 7.5, "#555555"  # points, colour of notes
_LETTERS = 54  # of notes, in the width of a panel
_MOST_CELLS, _LEAST_CELLS = 420, 40  # of a density, along the longer side
_CELLS_PER_ROOT = 2.4  # of the number of points: one point fills a cell that can be seen
_FAINTEST = 0.25  # alpha of a cell with one point


def scatter(
    F: Any,
    labels: Any = None,
    *,
    title: str = "",
    names: Sequence[str] | None = None,
    path: str | Path | None = None,
    ax: Any = None,
    legend: bool = True,
    whole: bool = False,
) -> Any:
    """Draw an embedding in the plane.

    One coordinate is drawn as a strip, two are drawn as they are. Three or more are projected on
    the first two principal axes, which enlarges no distance.

    If a few far points would make all others small, the window shows the central 98 % of the points
    (by their distance from the median, and 30 % more). Points outside are drawn at the edge with a
    ring, and the title has their number. Otherwise all points are inside.

    Parameters
    ----------
    F : array-like of shape (n_samples, n_components)
        The embedding.
    labels : array-like of shape (n_samples,), default=None
        Labels for the colours. Text, booleans and at most 20 distinct whole numbers are categories,
        with a legend; with more than 20 categories the 19 largest have colours of their own. Other
        numbers get a colour bar. Missing labels (None, NaN, infinity, empty text) are grey.
    title : str, default=""
        Text above the axes.
    names : sequence of str, default=None
        Names of the coordinates, shown at the axes if there are one or two. Those of a free layout
        mean nothing.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.
    legend : bool, default=True
        Draw a legend or colour bar; panels side by side need only one.
    whole : bool, default=False
        Show all points at their places, however far some are.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn on.

    Raises
    ------
    ValueError
        If F is not a finite array of two dimensions, if labels or names do not fit it, or if the
        suffix of `path` is unknown.
    ImportError
        If matplotlib is missing.

    See Also
    --------
    plot.panels : Draw embeddings side by side.
    plot.density : Draw the number of points in each cell of the plane.
    plot.space : Draw an embedding in space.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.plot import scatter
    >>> figure = scatter(np.eye(3), labels=["a", "b", "b"], title="three points")
    >>> figure.axes[0].get_title("left")
    'three points'
    """
    ax = axes_for(path, ax, _SIZE)
    picture = Picture(ax, F, labels, names, title, whole=whole, shape=size_in_inches(ax))
    picture.draw()
    if np.shape(F)[1] == 1:
        ax.set_yticks([])
    else:
        picture.write_names()
        ax.set_aspect("equal", adjustable="box" if picture.outside.any() else "datalim")
    return picture.finished(legend, path)


def density(
    F: Any,
    labels: Any = None,
    *,
    title: str = "",
    names: Sequence[str] | None = None,
    path: str | Path | None = None,
    ax: Any = None,
    legend: bool = True,
    whole: bool = False,
) -> Any:
    """Draw how many points lie in each cell of the plane; millions take a second.

    The window is that of `scatter`; points outside of it are added to the cells at its edge. The
    strength of a colour grows with the logarithm of the number of points. The colour is the mean of
    the colours of the labels in the cell, or the colour of the mean of the numbers.

    Parameters
    ----------
    F : array-like of shape (n_samples, n_components)
        The embedding.
    labels : array-like of shape (n_samples,), default=None
        Labels for the colours. Text, booleans and at most 20 distinct whole numbers are categories,
        with a legend. Other numbers get a colour bar. Missing labels are grey.
    title : str, default=""
        Text above the axes.
    names : sequence of str, default=None
        Names of the coordinates.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    legend : bool, default=True
        Draw a legend or colour bar.
    whole : bool, default=False
        Show all points at their places, however far some are.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn on.

    Raises
    ------
    ValueError
        F is not a finite array, labels or names do not fit it, or the suffix of `path` is unknown.
    ImportError
        matplotlib is missing.

    See Also
    --------
    plot.scatter : Draw an embedding in the plane.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import plot
    >>> F = np.random.default_rng(0).normal(size=(10_000, 2))
    >>> len(plot.density(F).axes[0].images)
    1
    """
    ax = axes_for(path, ax, _SIZE)
    picture = Picture(ax, F, labels, names, title, whole=whole, how="counted")
    points, values = picture.points, picture.values
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.maximum(high - low, 1e-3 * (float((high - low).max()) or 1.0))
    side = np.clip(_CELLS_PER_ROOT * np.sqrt(len(points)), _LEAST_CELLS, _MOST_CELLS)
    shape = np.maximum(1, np.round(side * span / span.max())).astype(int)
    of_numbers = picture.legend is None
    summed = [~np.ma.getmaskarray(values), values.filled(0)] if of_numbers else picture.rgb.T
    place = np.clip(((points - low) / span * shape).astype(int), 0, shape - 1)
    cell = np.ravel_multi_index(place[:, ::-1].T, shape[::-1])  # rows are heights
    counts, *sums = (
        np.bincount(cell, weights, np.prod(shape)).reshape(shape[::-1])
        for weights in (None, *summed)
    )
    if not of_numbers:
        colours = np.clip(np.dstack(sums) / np.maximum(counts, 1)[..., None], 0, 1)
    else:
        number, total = sums
        mean = np.ma.masked_array(total / np.maximum(number, 1), number == 0)
        colours = picture.scale.to_rgba(mean)[..., :3]
    full = np.log1p(counts) / np.log1p(max(2.0, float(np.quantile(counts[counts > 0], 0.99))))
    strength = np.where(counts > 0, np.clip(full, _FAINTEST, 1.0), 0.0)
    ax.imshow(
        np.dstack([colours, strength]),
        origin="lower",
        extent=np.column_stack([low, low + span]).ravel(),
        aspect="equal",
        interpolation="nearest",
    )
    return picture.finished(legend, path)


def space(
    F: Any,
    labels: Any = None,
    *,
    title: str = "",
    names: Sequence[str] | None = None,
    path: str | Path | None = None,
    ax: Any = None,
    legend: bool = True,
    whole: bool = False,
) -> Any:
    """Draw an embedding in space, all axes on one scale; beyond three, on its principal axes.

    Parameters
    ----------
    F : array-like of shape (n_samples, n_components)
        The embedding, with at least three coordinates.
    labels : array-like of shape (n_samples,), default=None
        Labels for the colours. Text, booleans and at most 20 distinct whole numbers are categories,
        with a legend. Other numbers get a colour bar. Missing labels are grey.
    title : str, default=""
        Text above the axes.
    names : sequence of str, default=None
        Names of the coordinates.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    legend : bool, default=True
        Draw a legend or colour bar.
    whole : bool, default=False
        Show all points at their places, however far some are.
    ax : matplotlib Axes, default=None
        Where to draw, with ``projection="3d"``; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn on.

    Raises
    ------
    ValueError
        Fewer than three coordinates; labels or names that do not fit F; an unknown suffix of
        `path`.
    ImportError
        matplotlib is missing.

    See Also
    --------
    plot.scatter : Draw an embedding in the plane.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import plot
    >>> plot.space(np.eye(4)[:, :3], names=["x", "y", "z"]).axes[0].get_zlabel()
    'z'
    """
    if np.ndim(F) == 2 and np.shape(F)[1] < 3:
        raise ValueError(
            f"F has {np.shape(F)[1]} columns; pass three or more, or draw it in the plane."
        )
    ax = axes_for(path, ax, _SIZE, projection="3d")
    picture = Picture(ax, F, labels, names, title, whole=whole)
    picture.draw()
    size = np.ptp(picture.points, axis=0)
    ax.set_box_aspect(np.maximum(size, 0.05 * size.max()) + 1e-300)
    return picture.finished(legend, path)


def panels(
    embeddings: Mapping[str, Array | None],
    labels: Any = None,
    notes: Mapping[str, str] | None = None,
    *,
    caption: str = "",
    path: str | Path | None = None,
    whole: bool = False,
) -> Any:
    """Draw embeddings side by side, with one legend.

    Parameters
    ----------
    embeddings : mapping of str to array-like of shape (n_samples, n_components), or to None
        Embeddings, each drawn by `scatter`. For None the note stands in the place of a picture.
    labels : array-like of shape (n_samples,), default=None
        Labels for the colours, see `scatter`.
    notes : mapping of str to str, default=None
        Texts below the pictures.
    caption : str, default=""
        Text below all of them.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    whole : bool, default=False
        Show all points at their places, however far some are.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn on.

    Raises
    ------
    ImportError
        matplotlib is missing.
    ValueError
        No embeddings; an embedding that is not a finite array; labels that do not fit; an unknown
        suffix of `path`.

    See Also
    --------
    plot.scatter : Draw an embedding in the plane.
    compare : Embed data by several methods and measure each.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.plot import panels
    >>> len(panels({"a": np.eye(3), "b": np.eye(3)[:, :2]}).axes)
    2
    """
    if not embeddings:
        raise ValueError("There are no embeddings to draw; pass at least one.")
    rows = math.ceil(len(embeddings) / _MAX_COLUMNS)
    columns = math.ceil(len(embeddings) / rows)
    figure = new_figure(_PANEL_INCHES * columns + 1.2, _PANEL_INCHES * rows)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    grey: dict[str, Any] = {"fontsize": _SMALL, "color": _GREY, "parse_math": False}
    drawn = None
    for place, (name, F) in enumerate(embeddings.items()):
        ax = figure.add_subplot(rows, columns, place + 1)
        note = (notes or {}).get(name, "")
        if F is None:
            finish(ax, name, ("", ""))
            middle = {"ha": "center", "va": "center", "transform": ax.transAxes}
            ax.text(0.5, 0.5, fill(note, _LETTERS), **middle, **grey)
        else:
            scatter(F, labels, title=name, ax=ax, legend=False, whole=whole)
            ax.set_xlabel(note, x=0, ha="left", fontsize=_SMALL, parse_math=False)
            drawn = F
        ax.set(ylabel="", xticks=[], yticks=[])
        ax.spines[:].set(visible=True, color="#dddddd")
    if drawn is not None:
        last = figure.axes[columns - 1]
        Picture(last, drawn, labels, None, "", whole=True).explain(figure.axes)
        if last.get_legend() is not None:  # which would make the pictures narrower
            extent = last.get_legend().get_window_extent()
            figure.set_figwidth(_PANEL_INCHES * columns + extent.width / figure.dpi)
    if caption:
        figure.supxlabel(fill(caption, columns * _LETTERS), x=0.006, ha="left", **grey)
    if path is not None:
        save(figure, path)
    return figure
