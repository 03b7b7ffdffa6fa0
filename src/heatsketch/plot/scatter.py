"""An embedding in the plane, or several side by side."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch._checks import check_points
from heatsketch._typing import Array
from heatsketch.plot.figures import (
    LETTER,
    check_picture,
    finished,
    new_figure,
    size_in_inches,
    style_axes,
)
from heatsketch.plot.labels import Colouring, short
from heatsketch.spectral.eigenpairs import fix_signs

MAX_WRITTEN_NAMES = 12  # more names on the points would overlap
MAX_WRITTEN_LETTERS = 13  # a longer name would hide a fifth of the points; the legend has it
MAX_VECTOR_POINTS = 20_000  # a vector picture of more points is slow to open
ORDER_SEED = 2_718_281_828  # not a likely seed of the data: equal seeds would show as structure
CENTRAL = 0.98  # share of the points that the window is made for
_SPARE = 1.3  # radius of the window next to that of the central points
_LEAST_GAIN = 1.4  # in scale: for less, no point is moved to the edge
_PANEL_INCHES, _MAX_COLUMNS = 3.4, 4


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

    One coordinate is drawn as a strip, two are drawn as they are. Of three or more, the first two
    principal axes are shown: an orthogonal projection, so no distance is ever enlarged.

    If a few far points would make all others small, the window is that of the central 98 % of the
    points (by their distance from the median, and 30 % more). Points outside stand at the edge with
    a ring, and the title says how many they are. Otherwise all points are inside.

    Parameters
    ----------
    F : array of shape (n, k)
        The embedding.
    labels : array of shape (n,), optional
        Colours. Text, booleans and at most 20 distinct whole numbers are categories, with a legend;
        of more than 20 categories the 19 largest keep a colour. Other numbers get a colour bar.
        Missing labels (None, NaN) are grey.
    title : str, default ""
        Written above the axes.
    names : sequence of k strings, optional
        Names of the coordinates, for the axes of one or two coordinates.
    path : path, optional
        File to write, .png, .pdf or .svg; an existing one is replaced.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    legend : bool, default True
        Explain the colours; panels side by side need one legend.
    whole : bool, default False
        Show all points at their places, however far some are.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn on.

    Raises
    ------
    ValueError
        If F is not a finite (n, k) array, if labels or names do not fit it, or if the suffix of
        `path` is unknown.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.plot import scatter
    >>> figure = scatter(np.eye(3), labels=["a", "b", "b"], title="three points")
    >>> figure.axes[0].get_title("left")
    'three points'
    """
    check_picture(path)
    ax = new_figure(7.6, 6.0).add_subplot() if ax is None else ax
    view = view_of(F, labels, names, title, whole=whole, shape=size_in_inches(ax))
    draw_points(ax, view)
    is_strip = np.shape(F)[1] == 1
    if not is_strip and view.colouring.codes is not None:
        _write_names(ax, view.points, view.colouring)
    if legend:
        view.colouring.explain(ax)
    style_axes(ax, view.title, view.names)
    if is_strip:
        ax.set_yticks([])
    else:
        ax.set_aspect("equal", adjustable="datalim" if view.window is None else "box")
    return finished(ax.figure, path)


def panels(
    embeddings: Mapping[str, Array],
    labels: Any = None,
    notes: Mapping[str, str] | None = None,
    *,
    path: str | Path | None = None,
    whole: bool = False,
) -> Any:
    """Draw embeddings side by side, with one legend.

    Parameters
    ----------
    embeddings : mapping of name -> array (n, k)
        Embeddings, each drawn by `scatter`.
    labels : array (n,), optional
        Labels for the colours, as for `scatter`.
    notes : mapping of name -> str, optional
        Texts below the names.
    path : path, optional
        File to write, .png, .pdf or .svg; an existing one is replaced.
    whole : bool, default False
        Show all points at their places, however far some are.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        As of `scatter`.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.plot import panels
    >>> len(panels({"a": np.eye(3), "b": np.eye(3)[:, :2]}).axes)
    2
    """
    columns = min(_MAX_COLUMNS, len(embeddings))
    rows = math.ceil(len(embeddings) / columns)
    figure = new_figure(_PANEL_INCHES * columns + 1.2, _PANEL_INCHES * rows)
    for place, (name, F) in enumerate(embeddings.items()):
        ax = figure.add_subplot(rows, columns, place + 1)
        title = name if not notes else f"{name}\n{notes[name]}"
        scatter(F, labels, title=title, ax=ax, legend=place == columns - 1, whole=whole)
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
    return finished(figure, path)


def central_window(points: Array) -> Array | None:
    """Return the corners (2, d) of the window that shows the central points (n, d) large.

    None where all points fit well: where the window would not be 1.4 times smaller, or where the
    central points are one point.
    """
    distance = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    radius = np.quantile(distance, CENTRAL, method="higher")  # at most 2 % are beyond
    near = points[distance <= _SPARE * radius]
    window = np.stack([near.min(axis=0), near.max(axis=0)])
    size, whole = np.ptp(window, axis=0).max(), np.ptp(points, axis=0).max()
    return window if 1e-9 * whole < size < whole / _LEAST_GAIN else None


class View(NamedTuple):
    """What a picture of points shows.

    Attributes
    ----------
    points : array (n, d)
        At the edge of the window where they lie farther out.
    names : sequence of d str
        Of the axes.
    title : str
    colouring : Colouring
    window : array (2, d) or None
        Its corners; None shows all points.
    outside : array (n,) of bool
    """

    points: Array
    names: Sequence[str]
    title: str
    colouring: Colouring
    window: Array | None
    outside: Array


def view_of(
    F: Any,
    labels: Any,
    names: Sequence[str] | None,
    title: str,
    *,
    whole: bool,
    dimensions: int = 2,
    shape: Array | None = None,
    how: str = "ringed",
) -> View:
    """Return the view of an embedding F (n, k), whose window has a ratio of width and height."""
    F = np.asarray(check_points(F, "F", min_rows=1))
    colouring = Colouring.of(labels, len(F))
    points, axis_names = _coordinates(F, names, dimensions, colouring.codes)
    drawn = points[:, : F.shape[1]]  # of a strip only the coordinate; the height says nothing
    window = None if whole else central_window(drawn)
    outside = np.zeros(len(F), dtype=bool)
    if window is not None:
        centre, half = window.mean(axis=0), np.ptp(window, axis=0) / 2
        if shape is not None and F.shape[1] > 1:
            half = shape * np.max(half / shape)
            window = centre + np.stack([-half, half])
        outside = np.any((drawn < window[0]) | (drawn > window[1]), axis=1)
        # Towards the centre of the window, to its edge.
        offset = drawn - centre
        beyond = np.max(np.abs(offset) / np.maximum(half, 1e-3 * half.max()), axis=1, keepdims=True)
        points[:, : F.shape[1]] = centre + offset / np.maximum(1.0, beyond)
        title += f"\n{outside.sum():,} of {len(F):,} points lie farther out, {how} at the edge"
    return View(points, axis_names, title, colouring, window, outside)


def _coordinates(
    F: Array, names: Sequence[str] | None, dimensions: int, codes: Array | None
) -> tuple[Array, list[str]]:
    """Return the points of the picture (n, dimensions) and the names of its axes."""
    k = F.shape[1]
    if names is not None and len(names) != k:
        raise ValueError(f"names has {len(names)} entries but F has {k} columns; pass {k} names.")
    shown = list(names or [f"coordinate {j + 1}" for j in range(k)])
    if k > dimensions:
        axes, shares = principal_axes(F, dimensions)
        points = (F - F.mean(axis=0, dtype=np.float64)) @ axes
        shown = [principal_name(j, share) for j, share in enumerate(shares)]
    elif k == 1:  # spread sideways at random, one lane for each category
        height = np.random.default_rng(ORDER_SEED).uniform(-0.35, 0.35, len(F))
        points = np.column_stack([F[:, 0], height if codes is None else height - codes])
        shown.append("")
    else:
        points = F.astype(np.float64)
    return points, shown


def principal_axes(F: Array, count: int) -> tuple[Array, Array]:
    """Return the directions (k, count) of largest variance, and the share of each."""
    centred = F.astype(np.float64) - F.mean(axis=0, dtype=np.float64)
    variances, axes = np.linalg.eigh(centred.T @ centred)
    leading = np.arange(-1, -1 - count, -1)
    variances = np.maximum(variances, 0.0)  # one may be negative by rounding
    shares = variances[leading] / max(variances.sum(), np.finfo(np.float64).tiny)
    return fix_signs(axes[:, leading]), shares


def principal_name(j: int, share: float) -> str:
    """Return the name of a principal axis, from 0."""
    return f"principal axis {j + 1} ({100 * share:.0f} %)"


def draw_points(ax: Any, view: View) -> None:
    """Draw the points in random order, so that no category is drawn over the others."""
    n = len(view.points)
    order = np.random.default_rng(ORDER_SEED).permutation(n)
    size = float(np.clip(560 / np.sqrt(n), 0.8, 36))
    ax.scatter(
        *view.points[order].T,
        c=view.colouring.rgb()[order],
        s=size,
        alpha=np.clip(1.5 - 0.22 * np.log10(n), 0.3, 0.9),
        linewidths=0,
        rasterized=n > MAX_VECTOR_POINTS,
    )
    if view.outside.any():  # a ring around points that are not at their places
        ring = {"facecolors": "none", "edgecolors": "#333333", "linewidths": 0.7}
        ax.scatter(*view.points[view.outside].T, s=2.5 * size, **ring)


def _write_names(ax: Any, points: Array, colouring: Colouring) -> None:
    """Write names at the medians, largest categories first, none long or overlapping."""
    from matplotlib import patheffects

    codes, names = colouring.codes, [short(name) for name in colouring.names]
    if codes is None or len(names) > MAX_WRITTEN_NAMES:
        return
    halo = patheffects.withStroke(linewidth=3, foreground="white")
    per_inch = float(np.max(np.ptp(points, axis=0) / size_in_inches(ax)))
    letter = 1.4 * LETTER * per_inch  # bold, in units of the data
    taken: list[tuple[Array, Array]] = []  # places and half sizes
    for code in np.argsort(-np.bincount(codes[codes >= 0], minlength=len(names)), kind="stable"):
        place = np.median(points[codes == code], axis=0)
        half = letter * np.array([len(names[code]) / 2, 1.0])  # a letter is twice as high
        overlaps = any(np.all(np.abs(place - p) < half + h) for p, h in taken)
        if overlaps or len(names[code]) > MAX_WRITTEN_LETTERS:
            continue
        taken.append((place, half))
        ax.text(
            *(*place, names[code]),
            ha="center",
            va="center",
            fontweight="bold",
            path_effects=[halo],
            parse_math=False,
        )
