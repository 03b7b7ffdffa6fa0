"""The pictures: log L with error bars against k or p, and embeddings in the plane."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import squareform

import heatsketch as hs
from papers.output import COLOURS, figure_and_axes, save
from papers.sketching.crossings import crossings
from papers.sketching.figures import Figure
from papers.sketching.trials import Sample, normalization

# Colour and marker. Markers are filled for the symmetric normalisation, else open.
METHOD_STYLES = {
    "DMS": (COLOURS[0], "o"),
    "DMB": (COLOURS[4], "o"),
    "GPS": (COLOURS[5], "s"),
    "GPB": (COLOURS[1], "s"),
    "GPSBS": (COLOURS[2], "^"),
    "GPSBB": (COLOURS[3], "^"),
    "ours": ("#000000", "*"),
    "CMDS": ("#8a8a8a", "P"),
    "SMACOF": ("#8a8a8a", "X"),
}
OPEN_METHODS = ("DMB", "GPB", "GPSBB")
# Edges make pale dots visible.
POINT_LOOK = {"cmap": "twilight_shifted", "edgecolors": "#00000060", "linewidths": 0.3}
SIDES = np.array([-1.0, 1.0])
LIMIT = 1.1  # of the axes of embeddings, whose largest coordinate is 1
INSET, INSET_MARGIN = 0.42, 0.01  # side of the enlarged circle and its margin, of the axes
METHOD_SHIFT = 0.06  # steps of the axis, so that the error bars of methods do not overlap


def curves(name: str, figure: Figure, rows: Sequence[Any], path: Path) -> None:
    """Draw the mean of log L with one standard deviation up and down."""
    drawing, ax = figure_and_axes(7.2, 4.8)
    logarithmic, n_trials = figure.setting.axis == "p", max(row.trials for row in rows)
    for place, method in enumerate(figure.methods):
        own = [row for row in rows if row.method == method]
        colour, marker = METHOD_STYLES[method]
        shift = METHOD_SHIFT * (place - (len(figure.methods) - 1) / 2)
        x = np.array([row.value for row in own], dtype=float)
        ax.errorbar(
            x * 2**shift if logarithmic else x + shift,
            [row.mean for row in own],
            yerr=[row.std if np.isfinite(row.std) else 0.0 for row in own],
            label=method + (f" ({own[0].trials} trials)" if own[0].trials < n_trials else ""),
            color=colour,
            marker=marker,
            markersize=9 if marker == "*" else 5,
            markerfacecolor="white" if method in OPEN_METHODS else colour,
            linestyle="--" if method in OPEN_METHODS or method == "SMACOF" else "-",
            linewidth=1.2,
            elinewidth=0.8,
            capsize=2,
        )
    if logarithmic:
        ax.set_xscale("log", base=2)
    ax.set_xticks(figure.setting.values, [str(value) for value in figure.setting.values])
    ax.minorticks_off()
    ax.set_ylim(bottom=0)
    ax.set_xlabel(figure.setting.axis)
    ax.set_ylabel("log L")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    trials = f"{n_trials} trial{'s' * (n_trials != 1)}"
    save(drawing, textwrap.fill(f"Figure {name}: {figure.title}, {trials}", 86), path)


def scatters(name: str, figure: Figure, samples: Sequence[Sample], path: Path) -> None:
    """Draw embeddings in the plane: a row of panels for each method, one for each sample."""
    methods = figure.methods
    shape = (len(methods), len(samples)) if len(samples) > 1 else (1, len(methods))
    drawing, axes = figure_and_axes(3.6 * shape[1], 3.7 * shape[0], shape)
    panels = [(method, sample) for method in methods for sample in samples]
    for ax, (method, sample) in zip(axes.flat, panels, strict=True):
        _scatter(ax, figure, method, sample)
    title = f"Figure {name}: {figure.title}"
    save(drawing, textwrap.fill(title, int(43 * shape[1])), path)


def _scatter(ax: Any, figure: Figure, method: str, sample: Sample) -> None:
    """Draw an embedding of a circle, coordinates divided by the largest of those shown."""
    p = figure.setting.powers[0]
    Y = sample.embedding(method, p, 2)
    on_circle = np.isfinite(sample.coordinates)
    shown = on_circle | figure.outliers
    D = squareform(sample.distance(normalization(method), p))[np.ix_(shown, shown)]
    log_L = hs.distortion(Y[shown], squareform(D)).log_L
    Y = (Y - Y[shown].mean(axis=0))[shown]
    Y /= np.abs(Y).max()
    order = np.argsort(sample.coordinates[on_circle])
    curve, outliers = Y[on_circle[shown]][order], Y[~on_circle[shown]]
    angle = sample.coordinates[on_circle][order]
    ax.scatter(*curve.T, c=angle, s=12, **POINT_LOOK)
    ax.set(xlim=LIMIT * SIDES, ylim=LIMIT * SIDES, aspect="equal")
    ax.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    if len(outliers):
        ax.plot(*outliers.T, "*", color="#000000", markersize=9)
        _enlarge(ax, curve, angle, _free_corner(Y))
    found = crossings(curve)
    title = f"{method}: log L {log_L:.2f}, {found} crossing{'s' * (found != 1)}"
    ax.set_title(title, fontsize=10)
    ax.tick_params(labelsize=7, color="#888888")
    ax.spines[["top", "right"]].set_visible(False)


def _enlarge(ax: Any, curve: np.ndarray, angle: np.ndarray, corner: tuple[float, float]) -> None:
    """Draw a curve again, as large as an inset is."""
    centre = (curve.max(axis=0) + curve.min(axis=0)) / 2
    half = 1.3 * np.abs(curve - centre).max()
    inset = ax.inset_axes((*corner, INSET, INSET))
    inset.scatter(*curve.T, c=angle, s=6, **POINT_LOOK)
    inset.set(xlim=centre[0] + half * SIDES, ylim=centre[1] + half * SIDES, aspect="equal")
    inset.set(xticks=[], yticks=[])
    times = f"{INSET * LIMIT / half:.0f} times"
    inset.text(0.03, 0.97, times, fontsize=7, va="top", transform=inset.transAxes)
    ax.indicate_inset_zoom(inset, edgecolor="#888888")


def _free_corner(Y: np.ndarray) -> tuple[float, float]:
    """Return the lower left corner, in fractions of the axes, of the inset farthest from points."""
    ends = (INSET_MARGIN, 1 - INSET_MARGIN - INSET)
    places = (Y / LIMIT + 1) / 2

    def room(corner: tuple[float, float]) -> float:
        outside = np.maximum(np.abs(places - np.array(corner) - INSET / 2) - INSET / 2, 0)
        return float(np.hypot(*outside.T).min())

    return max(((x, y) for x in ends for y in ends), key=room)
