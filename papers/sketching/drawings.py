"""The pictures: log L with error bars against k or p, and embeddings in the plane."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from papers.output import COLOURS, figure_and_axes, save
from papers.sketching.figures import Figure
from papers.sketching.trials import Sample

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
    drawing, axes = figure_and_axes(3.6 * shape[1], 3.5 * shape[0], shape)
    panels = [(method, sample) for method in methods for sample in samples]
    for ax, (method, sample) in zip(axes.flat, panels, strict=True):
        Y = sample.embedding(method, figure.setting.powers[0], 2)
        on_circle = np.isfinite(sample.coordinates)
        Y = Y if figure.outliers else Y[on_circle]
        Y = Y - Y.mean(axis=0)
        Y /= np.abs(Y).max()
        if figure.outliers and not on_circle.all():
            ax.plot(*Y[~on_circle].T, "*", color="#000000", markersize=9)
            Y = Y[on_circle]
        # Edges make pale dots visible.
        look = {"cmap": "twilight_shifted", "s": 12, "edgecolors": "#00000060", "linewidths": 0.3}
        ax.scatter(*Y.T, c=sample.coordinates[on_circle], **look)
        ax.set_title(method, fontsize=10)
        ax.set_aspect("equal", adjustable="datalim")
        ax.tick_params(labelsize=7, color="#888888")
        ax.spines[["top", "right"]].set_visible(False)
    title = f"Figure {name}: {figure.title}"
    save(drawing, textwrap.fill(title, int(43 * shape[1])), path)
