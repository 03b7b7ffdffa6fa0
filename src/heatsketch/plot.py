"""Pictures of an embedding and of the Ksum test, without any global matplotlib state."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._checks import check_points
from heatsketch._typing import Array
from heatsketch.io import write_atomically

SUFFIXES = (".png", ".pdf", ".svg")
MAX_CATEGORIES = 20  # beyond it colours stop being told apart
MAX_WRITTEN = 12  # beyond it names written on the points collide
RASTER_ABOVE = 20_000  # a vector picture of more points is slow to open
SEED = (
    2_718_281_828  # unlike the seeds that data are drawn with: equal ones would show as structure
)

_SMALLEST = 1e-30  # size of coordinates that is drawn as it is; axes of equal scale need its square
CALM = "#3b6ea8"
NO_LABEL = "#c9c9c9"
# Both lists were chosen by their authors to stay apart under colour-blind vision:
# Okabe and Ito (2008), without yellow and black; Petroff (2021).
OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
PETROFF = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)


def _in_reach(view: Array, names: tuple[str, str]) -> tuple[Array, tuple[str, str]]:
    """Take a power of ten off coordinates of a size at which axes of equal scale break down."""
    size = float(np.max(np.abs(view), initial=0.0))
    if size == 0 or _SMALLEST < size < 1 / _SMALLEST:
        return view, names
    power = int(np.floor(np.log10(size)))
    return view / 10.0**power, (f"{names[0]} / 1e{power}", f"{names[1]} / 1e{power}")


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
        Say what the colours mean; panels side by side need it once.

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
    F = np.asarray(check_points(F, "F", min_rows=1))  # (n, k)
    labels = None if labels is None else _check_labels(labels, len(F))
    groups = None if labels is None else categories(labels)
    if groups is not None:
        groups = _largest(*groups)
    view, axis_names = _view(F, names, None if groups is None else groups[0])
    view, axis_names = _in_reach(view, axis_names)
    figure, ax = _new_axes() if ax is None else (ax.figure, ax)
    if labels is None:
        _points(ax, view, [CALM] * len(view))
    elif groups is None:
        _draw_numbers(figure, ax, view, labels.astype(np.float64), legend)
    else:
        _draw_categories(ax, view, *groups, written=F.shape[1] > 1, legend=legend)
    _dress(ax, title, axis_names)
    if F.shape[1] == 1:
        ax.set_yticks([])
    else:
        ax.set_aspect("equal", adjustable="datalim")
    if path is not None:
        save(figure, path)
    return figure


def ksum_curve(result: Any, *, path: str | Path | None = None) -> Any:
    """Draw the slope of the Ksum test against the bandwidth, with its maximum marked.

    The band about the curve holds 95 % of what other draws of the points would give, the grey
    strip the same for the bandwidth; the scale on the right is the dimension, twice the slope.

    Parameters
    ----------
    result : Ksum
        What `heatsketch.ksum` returned.
    path : path, optional
        File to write, .png, .pdf or .svg; an existing one is replaced.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn.

    Raises
    ------
    ValueError
        If the suffix of `path` is unknown.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.plot import ksum_curve
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> ksum_curve(hs.ksum(X)).axes[0].get_xscale()
    'log'
    """
    check_picture(path)
    epsilons, slopes = np.asarray(result.epsilons), np.asarray(result.slopes)
    top = result.dimension / 2
    figure, ax = _new_axes(width=6.4, height=4.2)
    ax.set_xscale("log")
    ax.plot(epsilons, slopes, color=CALM, linewidth=2)
    if np.isfinite(result.dimension_interval).all():
        reach = 1.96 * np.asarray(result.slope_errors)
        ax.fill_between(epsilons, slopes - reach, slopes + reach, color=CALM, alpha=0.25, lw=0)
        ax.axvspan(*result.epsilon_interval, color="#888888", alpha=0.25, lw=0)
    ax.axvline(result.epsilon, color="#888888", linewidth=0.8, linestyle=":")
    ax.plot([result.epsilon], [top], "o", color="#d55e00", markersize=8)
    ax.set_ylim(min(0.0, 1.1 * float(np.min(slopes))), 1.3 * top if top > 0 else 1.0)
    right = np.log(result.epsilon) > np.mean(np.log(epsilons[[0, -1]]))
    ax.annotate(
        f"ε = {result.epsilon:.4g}{_between(result.epsilon_interval)}\n"
        f"dimension {result.dimension:.3g}{_between(result.dimension_interval)}",
        (result.epsilon, top),
        xytext=(-10 if right else 10, 8),
        textcoords="offset points",
        ha="right" if right else "left",
    )
    _dress(ax, "Ksum test", ("bandwidth ε", "slope d log S / d log ε"))
    doubled = ax.secondary_yaxis("right", functions=(lambda s: 2 * s, lambda d: d / 2))
    doubled.set_ylabel("dimension")
    doubled.tick_params(labelsize=8, color="#888888")
    if path is not None:
        save(figure, path)
    return figure


def _between(interval: tuple[float, float]) -> str:
    low, high = interval
    return f" ({low:.3g} to {high:.3g})" if np.isfinite(low) else ""


def time_curve(curve: Any, *, path: str | Path | None = None) -> Any:
    """Draw how large a share of the distances few dimensions keep, against diffusion time.

    Parameters
    ----------
    curve : TimeCurve
        `time_curve_` of a `HeatEmbedding` with ``time="auto"``.
    path : path, optional
        File to write, .png, .pdf or .svg; an existing one is replaced.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn.

    Raises
    ------
    ValueError
        If the suffix of `path` is unknown.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.plot import time_curve
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> embedding = hs.HeatEmbedding(2, random_state=0).fit(X)
    >>> time_curve(embedding.time_curve_).axes[0].get_xlabel()
    'diffusion time'
    """
    check_picture(path)
    figure, ax = _new_axes(width=6.4, height=4.2)
    ax.set_xscale("log", base=2)
    ax.plot(curve.times, 100 * curve.shares, "o-", color=CALM, linewidth=2)
    ax.axhline(100 * curve.share, color="#888888", linewidth=0.8, linestyle=":")
    chosen = curve.shares[np.flatnonzero(curve.times == curve.time)[0]]
    ax.plot([curve.time], [100 * chosen], "o", color="#d55e00", markersize=9)
    ax.set_xticks(curve.times, [f"{t:g}" for t in curve.times])
    ax.set_ylim(0, 104)
    title = f"Distances kept within a factor {curve.factor:g}; time {curve.time:g} chosen"
    _dress(ax, title, ("diffusion time", "pairs (%)"))
    if path is not None:
        save(figure, path)
    return figure


def check_picture(path: str | Path | None) -> None:
    """Raise if a picture could not be drawn: no matplotlib, or an unknown suffix.

    Parameters
    ----------
    path : path or None
        File to be written, None for no file.

    Raises
    ------
    ValueError
        If the suffix is not .png, .pdf or .svg.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> from heatsketch.plot import check_picture
    >>> check_picture("digits.png")
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError('plotting needs matplotlib; pip install "heatsketch[plot]"') from error
    if path is not None and Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path} has no known picture suffix; pass {', '.join(SUFFIXES)}.")


def categories(labels: Any) -> tuple[Array, tuple[str, ...]] | None:
    """Split labels into categories, or return None if they are numbers on a scale.

    Parameters
    ----------
    labels : array of shape (n,)
        Text, booleans or numbers; None and NaN mean missing.

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
        present = np.array([value is not None and bool(value == value) for value in labels.flat])
        labels = np.array([str(value) for value in labels.flat], dtype=object)
        distinct = np.unique(labels[present])
        names = tuple(distinct.tolist())
    codes = np.full(labels.shape, -1, dtype=np.intp)
    codes[present] = np.searchsorted(distinct, labels[present])
    return codes, names


def _numbers_if_possible(labels: Array) -> Array:
    """Turn an object array of numbers and None into floats; leave everything else."""
    if labels.dtype.kind != "O":
        return labels
    if any(isinstance(value, (str, bytes, bool, np.bool_)) for value in labels.flat):
        return labels
    try:
        return labels.astype(np.float64)
    except (TypeError, ValueError):
        return labels


def _check_labels(labels: Any, n: int) -> Array:
    labels = _numbers_if_possible(np.asarray(labels))
    if labels.shape != (n,):
        raise ValueError(f"labels has shape {labels.shape} but F has {n} rows; pass shape ({n},).")
    return labels


def _largest(codes: Array, names: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
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


def _view(
    F: Array, names: Sequence[str] | None, codes: Array | None
) -> tuple[Array, tuple[str, str]]:
    """Return the points of the picture (n, 2) and the names of its axes."""
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
    height = np.random.default_rng(SEED).uniform(-0.35, 0.35, len(x))
    return np.column_stack([x, height if codes is None else height - codes])


def _principal(F: Array) -> tuple[Array, tuple[str, str]]:
    """Project on the two orthogonal directions of largest variance."""
    centred = F.astype(np.float64) - F.mean(axis=0, dtype=np.float64)
    variances, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, [-1, -2]]  # (k, 2)
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.where(axes[largest, [0, 1]] < 0, -1.0, 1.0)  # the sign eigh leaves open
    variances = np.maximum(variances, 0.0)  # rounding may leave one a little below
    shares = variances[[-1, -2]] / max(variances.sum(), np.finfo(np.float64).tiny)
    names = [f"principal axis {j + 1} ({100 * share:.0f} %)" for j, share in enumerate(shares)]
    return centred @ axes, (names[0], names[1])


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure of this size in inches, which no global state knows of."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _new_axes(width: float = 7.6, height: float = 6.0) -> tuple[Any, Any]:
    figure = new_figure(width, height)
    return figure, figure.add_subplot()


def _points(ax: Any, view: Array, colours: Any, **kwargs: Any) -> Any:
    """Draw the points in random order, so that no category covers the others by coming last."""
    n = len(view)
    order = np.random.default_rng(SEED).permutation(n)
    return ax.scatter(
        *view[order].T,
        c=np.asarray(colours)[order],
        s=np.clip(560 / np.sqrt(n), 0.8, 36),
        alpha=np.clip(1.5 - 0.22 * np.log10(n), 0.3, 0.9),
        linewidths=0,
        rasterized=n > RASTER_ABOVE,
        **kwargs,
    )


def _draw_numbers(figure: Any, ax: Any, view: Array, values: Array, legend: bool) -> None:
    present = np.isfinite(values)
    if not present.all():
        _points(ax, view[~present], [NO_LABEL] * int((~present).sum()))
    if not present.any():
        return
    drawn = _points(ax, view[present], values[present], cmap="viridis")
    if not legend:
        return
    bar = figure.colorbar(drawn, ax=ax, shrink=0.8, pad=0.02)
    bar.solids.set_alpha(1.0)
    bar.outline.set_visible(False)


def _draw_categories(
    ax: Any, view: Array, codes: Array, names: tuple[str, ...], *, written: bool, legend: bool
) -> None:
    palette = [*_palette(len(names)), NO_LABEL]  # the code -1 picks the last
    _points(ax, view, [palette[code] for code in codes])
    names = tuple(_short(name) for name in names)
    if written and len(names) <= MAX_WRITTEN:
        _write_names(ax, view, codes, names)
    if legend:
        _legend(ax, palette, (*names, "no label") if np.any(codes < 0) else names)


def _palette(count: int) -> Sequence[str]:
    if count <= len(OKABE_ITO):
        return OKABE_ITO[:count]
    if count <= len(PETROFF):
        return PETROFF[:count]
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    strong_then_pale = (*range(0, 20, 2), *range(1, 20, 2))
    return [to_hex(colormaps["tab20"](j)) for j in strong_then_pale][:count]


def _legend(ax: Any, palette: Sequence[str], names: tuple[str, ...]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="", markersize=6, color=palette[j])
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
    """Write the names at the class medians, largest first, leaving out those that would collide."""
    from matplotlib import patheffects

    halo = patheffects.withStroke(linewidth=3, foreground="white")
    span = np.ptp(view, axis=0).max()
    taken: list[tuple[Array, int]] = []
    for code in np.argsort(-np.bincount(codes[codes >= 0], minlength=len(names)), kind="stable"):
        place, length = np.median(view[codes == code], axis=0), len(names[code])
        if any(_collide(place - other, length + more, span) for other, more in taken):
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


def _collide(offset: Array, letters: int, span: float) -> bool:
    """Say whether two centred names overlap, with a letter taken as 1.5 % of the picture wide."""
    wide, high = 0.015 * span * letters / 2, 0.03 * span
    return bool(abs(offset[0]) < wide and abs(offset[1]) < high)


def _short(name: str, limit: int = 32) -> str:
    name = " ".join(name.split())
    return name if len(name) <= limit else name[: limit - 1] + "…"


def _dress(ax: Any, title: str, axis_names: tuple[str, str]) -> None:
    lines = [textwrap.fill(line, 90) for line in title.splitlines()]
    ax.set_title("\n".join(lines), fontsize=10, loc="left", parse_math=False)
    ax.set_xlabel(axis_names[0], parse_math=False)
    ax.set_ylabel(axis_names[1], parse_math=False)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8, color="#888888")
    ax.margins(0.04)


def save(figure: Any, path: str | Path) -> None:
    """Write a figure to a file, whose suffix says the format, in one step."""
    suffix = Path(path).suffix.lower()[1:]
    write_atomically(path, lambda draft: figure.savefig(draft, format=suffix), force=True)
