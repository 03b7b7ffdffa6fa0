"""An embedding in the plane."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._checks import check_points
from heatsketch._typing import Array
from heatsketch.plot.figures import (
    LETTER,
    MAIN_COLOUR,
    check_picture,
    new_axes,
    save,
    size_in_inches,
    style_axes,
)
from heatsketch.plot.labels import NO_LABEL_COLOUR, categories, check_labels, largest, palette
from heatsketch.spectral.eigenpairs import fix_signs

MAX_WRITTEN_NAMES = 12  # more names on the points would overlap
MAX_WRITTEN_LETTERS = 13  # a longer name would hide a fifth of the points; the legend has it
MAX_VECTOR_POINTS = 20_000  # a vector picture of more points is slow to open
ORDER_SEED = 2_718_281_828  # not a likely seed of the data: equal seeds would show as structure

Groups = tuple[Array, tuple[str, ...]]  # codes (n,), -1 for none, and names

_MIN_DRAWN_SIZE = 1e-30  # of coordinates; axes of equal scale compute its square


def scatter(
    F: Any,
    labels: Any = None,
    *,
    title: str = "",
    names: Sequence[str] | None = None,
    path: str | Path | None = None,
    ax: Any = None,
    legend: bool = True,
) -> Any:
    """Draw an embedding in the plane.

    One coordinate is drawn as a strip, two are drawn as they are. Of three or more, the first two
    principal axes are shown: an orthogonal projection, so no distance is ever enlarged.

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
    F, labels, groups = labelled(F, labels)
    view, axis_names = view_of(F, names, None if groups is None else groups[0])
    figure, ax = new_axes() if ax is None else (ax.figure, ax)
    if labels is None:
        _points(ax, view, [MAIN_COLOUR] * len(view))
    elif groups is None:
        _draw_numbers(figure, ax, view, labels.astype(np.float64), legend)
    else:
        _draw_categories(ax, view, *groups, written=F.shape[1] > 1, legend=legend)
    style_axes(ax, title, axis_names)
    if F.shape[1] == 1:
        ax.set_yticks([])
    else:
        ax.set_aspect("equal", adjustable="datalim")
    if path is not None:
        save(figure, path)
    return figure


def labelled(F: Any, labels: Any) -> tuple[Array, Array | None, Groups | None]:
    """Return F (n, k), labels as numbers if they are, and their categories, at most 20."""
    F = np.asarray(check_points(F, "F", min_rows=1))  # (n, k)
    labels = None if labels is None else check_labels(labels, len(F))
    groups = None if labels is None else categories(labels)
    return F, labels, None if groups is None else largest(*groups)


def _rescaled(view: Array, names: tuple[str, str]) -> tuple[Array, tuple[str, str]]:
    """Divide coordinates by a power of ten where axes of equal scale would over- or underflow."""
    size = float(np.max(np.abs(view), initial=0.0))
    if size == 0 or _MIN_DRAWN_SIZE < size < 1 / _MIN_DRAWN_SIZE:
        return view, names
    power = int(np.floor(np.log10(size)))
    return view / 10.0**power, (f"{names[0]} / 1e{power}", f"{names[1]} / 1e{power}")


def view_of(
    F: Array, names: Sequence[str] | None, codes: Array | None
) -> tuple[Array, tuple[str, str]]:
    """Return the points of the picture (n, 2) and the names of its axes."""
    return _rescaled(*_view(F, names, codes))


def _view(
    F: Array, names: Sequence[str] | None, codes: Array | None
) -> tuple[Array, tuple[str, str]]:
    k = F.shape[1]
    if names is not None and len(names) != k:
        raise ValueError(f"names has {len(names)} entries but F has {k} columns; pass {k} names.")
    names = names if names is not None else [f"coordinate {j + 1}" for j in range(k)]
    if k == 1:
        return _strip(F[:, 0], codes), (names[0], "")
    if k == 2:
        return F, (names[0], names[1])
    return _principal(F)


def _strip(x: Array, codes: Array | None) -> Array:
    """Spread the points of a line sideways at random, one lane for each category."""
    height = np.random.default_rng(ORDER_SEED).uniform(-0.35, 0.35, len(x))
    return np.column_stack([x, height if codes is None else height - codes])


def _principal(F: Array) -> tuple[Array, tuple[str, str]]:
    """Project on the two orthogonal directions of largest variance."""
    axes, shares = principal_axes(F, 2)
    names = [principal_name(j, share) for j, share in enumerate(shares)]
    return (F - F.mean(axis=0, dtype=np.float64)) @ axes, (names[0], names[1])


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


def _points(ax: Any, view: Array, colours: Any, **kwargs: Any) -> Any:
    """Draw the points in random order, so that no category is drawn over the others."""
    n = len(view)
    order = np.random.default_rng(ORDER_SEED).permutation(n)
    return ax.scatter(
        *view[order].T,
        c=np.asarray(colours)[order],
        s=np.clip(560 / np.sqrt(n), 0.8, 36),
        alpha=np.clip(1.5 - 0.22 * np.log10(n), 0.3, 0.9),
        linewidths=0,
        rasterized=n > MAX_VECTOR_POINTS,
        **kwargs,
    )


def _draw_numbers(figure: Any, ax: Any, view: Array, values: Array, legend: bool) -> None:
    present = np.isfinite(values)
    if not present.all():
        _points(ax, view[~present], [NO_LABEL_COLOUR] * int((~present).sum()))
    if not present.any():
        return
    drawn = _points(ax, view[present], values[present], cmap="viridis")
    if not legend:
        return
    draw_scale(figure, ax, drawn)


def draw_scale(figure: Any, ax: Any, drawn: Any) -> None:
    """Explain the colours of numbers by a bar."""
    bar = figure.colorbar(drawn, ax=ax, shrink=0.8, pad=0.02)
    bar.solids.set_alpha(1.0)
    bar.outline.set_visible(False)


def _draw_categories(
    ax: Any, view: Array, codes: Array, names: tuple[str, ...], *, written: bool, legend: bool
) -> None:
    colours = [*palette(len(names)), NO_LABEL_COLOUR]  # the code -1 picks the last
    _points(ax, view, [colours[code] for code in codes])
    names = tuple(_short(name) for name in names)
    if written and len(names) <= MAX_WRITTEN_NAMES:
        _write_names(ax, view, codes, names)
    if legend:
        draw_legend(ax, colours, (*names, "no label") if np.any(codes < 0) else names)


def draw_legend(ax: Any, colours: Sequence[str], names: tuple[str, ...]) -> None:
    """Explain the colours of categories beside the axes; any text is a name."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="", markersize=6, color=colours[j])
        for j in range(len(names))
    ]
    legend = ax.legend(
        handles,
        ["."] * len(names),  # the names follow: matplotlib would drop one that starts with "_"
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        frameon=False,
        handletextpad=0.2,
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)


def _write_names(ax: Any, view: Array, codes: Array, names: tuple[str, ...]) -> None:
    """Write names at the medians, largest categories first, none long or overlapping."""
    from matplotlib import patheffects

    halo = patheffects.withStroke(linewidth=3, foreground="white")
    per_inch = float(np.max(np.ptp(view, axis=0) / size_in_inches(ax)))
    letter = 1.4 * LETTER * per_inch  # bold, in units of the data
    taken: list[tuple[Array, int]] = []
    for code in np.argsort(-np.bincount(codes[codes >= 0], minlength=len(names)), kind="stable"):
        place, length = np.median(view[codes == code], axis=0), len(names[code])
        if length > MAX_WRITTEN_LETTERS or any(
            _overlap(place - other, length + more, letter) for other, more in taken
        ):
            continue
        taken.append((place, length))
        ax.text(
            *(*place, names[code]),
            ha="center",
            va="center",
            fontweight="bold",
            path_effects=[halo],
            parse_math=False,
        )


def _overlap(offset: Array, letters: int, letter: float) -> bool:
    """Say whether two centred names of so many letters together overlap, a letter twice as high."""
    wide, high = letter * letters / 2, 2 * letter
    return bool(abs(offset[0]) < wide and abs(offset[1]) < high)


def _short(name: str, limit: int = 32) -> str:
    name = " ".join(name.split())
    return name if len(name) <= limit else name[: limit - 1] + "…"
