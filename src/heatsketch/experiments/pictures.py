"""The pictures: log L with error bars against k or p, and embeddings in the plane."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.experiments.figures import Figure
from heatsketch.experiments.summary import Row
from heatsketch.experiments.trials import Sample, one_thread
from heatsketch.plot import OKABE_ITO, new_figure, save

# Colour and marker. Markers are filled for the symmetric normalisation, else open.
METHOD_STYLES = {
    "DMS": (OKABE_ITO[0], "o"),
    "DMB": (OKABE_ITO[4], "o"),
    "GPS": (OKABE_ITO[5], "s"),
    "GPB": (OKABE_ITO[1], "s"),
    "GPSBS": (OKABE_ITO[2], "^"),
    "GPSBB": (OKABE_ITO[3], "^"),
    "ours": ("#000000", "*"),
    "CMDS": ("#8a8a8a", "P"),
    "SMACOF": ("#8a8a8a", "X"),
}
OPEN_METHODS = ("DMB", "GPB", "GPSBB")
_DOT_STYLE = {"s": 12, "edgecolors": "#00000060", "linewidths": 0.3}  # edges make pale dots visible
_METHOD_SHIFT = 0.06  # steps of the axis, so that the error bars of methods do not overlap


def curves(name: str, figure: Figure, rows: Sequence[Row], path: Path) -> None:
    """Draw the mean of log L with one standard deviation up and down."""
    drawing, ax = figure_and_axes(7.2, 4.8)
    shown = [method for method in figure.methods if any(row.method == method for row in rows)]
    logarithmic, n_trials = figure.setting.axis == "p", _most_trials(rows)
    for place, method in enumerate(shown):
        shift = _METHOD_SHIFT * (place - (len(shown) - 1) / 2)
        own = [row for row in rows if row.method == method]
        fewer = f" ({own[0].trials} trials)" if own[0].trials < n_trials else ""
        _curve(ax, method, own, method + fewer, shift, logarithmic)
    if logarithmic:
        ax.set_xscale("log", base=2)
    ax.set_xticks(figure.setting.values, [str(value) for value in figure.setting.values])
    ax.minorticks_off()
    ax.set_ylim(bottom=0)
    ax.set_xlabel(figure.setting.axis)
    ax.set_ylabel("log L")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _title(drawing, name, figure, rows)
    save(drawing, path)


def scatters(name: str, figure: Figure, rows: Sequence[Row], seed: int, path: Path) -> None:
    """Draw embeddings in the plane: a row of panels for each method, one for each trial."""
    trials = {row.method: row.trials for row in rows}
    widest = _most_trials(rows)
    shape = (len(trials), widest) if widest > 1 else (1, len(trials))
    drawing, axes = figure_and_axes(3.6 * shape[1], 3.5 * shape[0], shape)
    panels = [(method, trial) for method in trials for trial in range(widest)]
    for ax, (method, trial) in zip(axes.flat, panels, strict=True):
        if trial < trials[method]:
            _embedding(ax, figure, seed, trial, method)
        else:
            ax.set_visible(False)
    _title(drawing, name, figure, rows)
    save(drawing, path)


def _curve(
    ax: Any, method: str, rows: Sequence[Row], label: str, shift: float, logarithmic: bool
) -> None:
    colour, marker = METHOD_STYLES[method]
    x = np.array([row.value for row in rows], dtype=float)
    ax.errorbar(
        x * 2**shift if logarithmic else x + shift,
        [row.mean for row in rows],
        yerr=[row.std if np.isfinite(row.std) else 0.0 for row in rows],
        label=label,
        color=colour,
        marker=marker,
        markersize=9 if marker == "*" else 5,
        markerfacecolor="white" if method in OPEN_METHODS else colour,
        linestyle="--" if method in OPEN_METHODS or method == "SMACOF" else "-",
        linewidth=1.2,
        elinewidth=0.8,
        capsize=2,
    )


def _embedding(ax: Any, figure: Figure, seed: int, trial: int, method: str) -> None:
    """Draw one embedding, points coloured by their angle on the circle, outliers as stars."""
    with one_thread():
        sample = Sample(figure.setting, seed, trial)
        Y = sample.embedding(method, figure.setting.powers[0], 2)
    on_circle = np.isfinite(sample.coordinates)
    Y = _unit(Y if figure.outliers else Y[on_circle])
    if figure.outliers and not on_circle.all():
        ax.plot(*Y[~on_circle].T, "*", color="#000000", markersize=9)
        Y = Y[on_circle]
    ax.scatter(*Y.T, c=sample.coordinates[on_circle], cmap="twilight_shifted", **_DOT_STYLE)
    ax.set_title(method, fontsize=10)
    ax.set_aspect("equal", adjustable="datalim")
    ax.tick_params(labelsize=7, color="#888888")
    ax.spines[["top", "right"]].set_visible(False)


def _unit(Y: Array) -> Array:
    """Centre the points and scale them to a largest coordinate of 1."""
    Y = Y - Y.mean(axis=0)
    return Y / np.abs(Y).max()


def _title(drawing: Any, name: str, figure: Figure, rows: Sequence[Row]) -> None:
    n_trials = _most_trials(rows)
    what = "" if figure.scatter else f", {n_trials} trial{'s' * (n_trials != 1)}"
    title = textwrap.fill(f"Figure {name}: {figure.title}{what}", int(12 * drawing.get_figwidth()))
    drawing.suptitle(title, fontsize=10, x=0.01, ha="left")


def _most_trials(rows: Sequence[Row]) -> int:
    return max((row.trials for row in rows), default=0)


def figure_and_axes(width: float, height: float, shape: tuple[int, int] | None = None) -> Any:
    """Return a figure and its axes, one or an array of them."""
    drawing = new_figure(width, height, dpi=150)
    if shape is None:
        return drawing, drawing.add_subplot()
    return drawing, drawing.subplots(*shape, squeeze=False)
