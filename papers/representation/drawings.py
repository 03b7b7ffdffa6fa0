"""The pictures of the two examples of *Diffusion representation*."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from papers.output import COLOURS, figure_and_axes, save
from papers.representation.printed import PrintedRow
from papers.representation.stationary import StationaryPanels, StationaryRow
from papers.representation.truncation import (
    LOG10_EDGES,
    SHOWN_EPSILON,
    SHOWN_ORDER,
    Histograms,
    TruncationRow,
)

_DARKEST_SHARE = 0.4  # of the pairs, in a bin
_MAX_CURVES = 5  # values of ε that are drawn

Value = Callable[[TruncationRow], float]


def stationary(row: StationaryRow, panels: StationaryPanels, path: Path) -> None:
    """Draw ν, analytic and in closed form, and the error in percent of the largest ν."""
    drawing, axes = figure_and_axes(10.5, 3.3, (1, 3))
    top = panels.analytic.max()
    error = 100 * (panels.closed_form - panels.analytic) / top
    density = {"vmin": 0, "vmax": top, "cmap": "viridis"}
    signed = {"vmin": -np.abs(error).max(), "vmax": np.abs(error).max(), "cmap": "RdBu_r"}
    images = (
        (panels.analytic, "analytic", "ν (per unit of area)", density),
        (panels.closed_form, "closed form of the mixture", "ν (per unit of area)", density),
        (error, "closed form - analytic", "% of the largest ν", signed),
    )
    for ax, (values, title, unit, look) in zip(axes[0], images, strict=True):
        ends = panels.ticks[[0, -1, 0, -1]]
        image = ax.imshow(values.T, origin="lower", extent=ends, interpolation="nearest", **look)
        drawing.colorbar(image, ax=ax, shrink=0.8, label=unit)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("x₁")
        ax.set_ylabel("x₂")
    points = f"{row.points:,} points, {row.components} components"
    errors = f"error at most {row.largest:.1%}, rms {row.rms:.1%} of the largest ν"
    save(drawing, f"Example I: {points}; {errors}", path)


def histograms(rows: Sequence[TruncationRow], counted: Histograms, path: Path) -> None:
    """Draw histograms of log10 δ, a column for each ε and for each l, with worst and bound."""
    drawing, axes = figure_and_axes(9.6, 4.4, (1, 2))
    left, right = axes[0]
    by_epsilon = [row for row in rows if row.order == SHOWN_ORDER]
    by_order = [row for row in rows if row.epsilon == SHOWN_EPSILON]
    columns = [counted.by_epsilon[row.epsilon] for row in by_epsilon]
    _heat_map(left, [round(np.log2(row.epsilon)) for row in by_epsilon], by_epsilon, columns)
    left.set_xlabel("log₂ ε")
    left.set_title(f"order l = {SHOWN_ORDER}", fontsize=10)
    columns = [counted.by_order[row.order] for row in by_order]
    image = _heat_map(right, [row.order for row in by_order], by_order, columns)
    right.set_xlabel("order l")
    right.set_title(f"ε = {SHOWN_EPSILON:g}", fontsize=10)
    left.legend(fontsize=8, loc="lower left", frameon=False)
    drawing.colorbar(image, ax=axes, label="share of the pairs in a bin")
    save(drawing, "Example II: δ = |d - d$_l$| of all pairs of points", path)


def bounds(rows: Sequence[TruncationRow], path: Path) -> None:
    """Draw the worst δ and its bounds against the order l, for some ε."""
    drawing, ax = figure_and_axes(6.6, 4.3)
    kinds = {
        "worst δ of the pairs": (lambda row: row.worst, "-o"),
        "our bound": (lambda row: row.bound, "--"),
        "2√η, (5.18) without ν$_{min}$": (lambda row: row.paper_bound, ":"),
    }
    _curves(ax, rows, kinds)
    ax.set_ylabel("difference of distances (√density)")
    _name_colours(drawing, rows)
    save(drawing, "Example II: the worst error of a distance, and what bounds it", path)


def printed_histograms(counted: Histograms, path: Path) -> None:
    """Draw Figure 6.2: normalised histograms of δ as printed, a curve for each ε and each l."""
    drawing, axes = figure_and_axes(9.6, 4.2, (1, 2))
    cases = (
        (
            counted.by_epsilon,
            f"l = {SHOWN_ORDER}",
            lambda epsilon: f"ε = 2$^{{{np.log2(epsilon):.0f}}}$",
        ),
        (counted.by_order, f"ε = {SHOWN_EPSILON:g}", lambda terms: f"l = {terms}"),
    )
    for ax, (columns, title, name) in zip(axes[0], cases, strict=True):
        chosen = np.linspace(0, len(columns) - 1, min(6, len(columns))).round().astype(int)
        for colour, key in zip(COLOURS, np.array(list(columns))[chosen].tolist(), strict=False):
            ax.stairs(columns[key], LOG10_EDGES, color=colour, label=name(key))
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("log₁₀ δ")
        ax.set_ylabel("share of the pairs")
        ax.legend(fontsize=8, frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
    save(drawing, "Figure 6.2 as printed: δ = |d² - d$_l$|², the first l terms, not centred", path)


def printed_surfaces(rows: Sequence[PrintedRow], path: Path) -> None:
    """Draw Figure 6.3: the worst δ, η, η - δ (red where η is below δ), and both."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(9.6, 8.0), dpi=150, layout="constrained")
    epsilons, terms = (sorted({row[i] for row in rows}) for i in range(2))
    at = {(row.epsilon, row.terms): row for row in rows}
    grid = [[at[epsilon, count] for count in terms] for epsilon in epsilons]
    worst, eta = (np.array([[row[i] for row in line] for line in grid]) for i in (3, 4))
    x, y = np.meshgrid(terms, np.log2(epsilons))
    below = np.where(eta >= worst, COLOURS[0], COLOURS[-1])
    blue, orange = (np.full(worst.shape, colour) for colour in COLOURS[:2])
    panels = (
        ("(a) worst δ", ((worst, blue),)),
        ("(b) η", ((eta, orange),)),
        ("(c) |η - δ|, red where η < δ", ((np.abs(eta - worst), below),)),
        (
            "(d) η (orange) and worst δ (blue)",
            ((worst, blue), (eta, orange)),
        ),
    )
    for place, (title, surfaces) in enumerate(panels, start=1):
        ax = drawing.add_subplot(2, 2, place, projection="3d")
        for values, colours in surfaces:
            z = np.log10(np.maximum(values, 1e-30))
            ax.plot_surface(x, y, z, facecolors=colours, alpha=0.85, linewidth=0, shade=False)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("l")
        ax.set_ylabel("log₂ ε")
        ax.set_zlabel("log₁₀")
        ax.view_init(elev=22, azim=40)
    save(drawing, "Figure 6.3 as printed: δ of (6.3), η of (5.18) with ν$_{min}$ = 10⁻³", path)


def _heat_map(ax: Any, x: Sequence[int], rows: Sequence[TruncationRow], columns: Any) -> Any:
    """Draw a histogram in each column, of width 1, and lines for the worst δ and the bound."""
    sides = np.append(np.array(x) - 0.5, x[-1] + 0.5)
    look = {"cmap": "viridis_r", "vmin": 0, "vmax": _DARKEST_SHARE}
    found = np.ma.masked_equal(np.array(columns).T, 0)
    image = ax.pcolormesh(sides, LOG10_EDGES, found, **look)
    with np.errstate(divide="ignore"):
        lines = {"our bound": ([row.bound for row in rows], "--")}
        lines["worst pair"] = ([row.worst for row in rows], "-o")
        for label, (values, style) in lines.items():
            ax.plot(x, np.log10(values), style, color="#d55e00", markersize=3, label=label)
    ax.set_ylim(LOG10_EDGES[0], np.log10(max(row.bound for row in rows)) + 0.5)
    ax.set_ylabel("log₁₀ δ")
    ax.set_xticks(x)
    return image


def _curves(ax: Any, rows: Sequence[TruncationRow], kinds: dict[str, tuple[Value, str]]) -> None:
    """Draw values against l: a colour for each ε that is shown, a kind of line for each value."""
    for colour, epsilon in _colours(rows):
        own = [row for row in rows if row.epsilon == epsilon]
        for value, style in kinds.values():
            look = {"color": colour, "markersize": 3.5, "linewidth": 1.2}
            ax.semilogy([row.order for row in own], [value(row) for row in own], style, **look)
    ax.set_ylim(bottom=10 ** LOG10_EDGES[0])
    ax.set_xlabel("order l")
    ax.set_xticks(sorted({row.order for row in rows}))
    ax.spines[["top", "right"]].set_visible(False)
    grey = {"color": "#555555", "markersize": 3.5}
    handles = [ax.plot([], [], style, **grey)[0] for _, style in kinds.values()]
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15), "ncols": len(kinds)}
    ax.legend(handles, list(kinds), frameon=False, fontsize=8, **place)


def _name_colours(drawing: Any, rows: Sequence[TruncationRow]) -> None:
    """Explain the colours, at the right of the axes."""
    ax, colours = drawing.axes[-1], _colours(rows)
    handles = [ax.plot([], [], color=colour)[0] for colour, _ in colours]
    names = [_name_of(epsilon) for _, epsilon in colours]
    drawing.legend(handles, names, frameon=False, fontsize=8, loc="outside right upper")


def _name_of(epsilon: float) -> str:
    return f"ε = 2$^{{{round(np.log2(epsilon))}}}$"


def _colours(rows: Sequence[TruncationRow]) -> list[tuple[str, float]]:
    """Pair colours with evenly spaced values of ε."""
    epsilons = sorted({row.epsilon for row in rows})
    places = np.linspace(0, len(epsilons) - 1, min(_MAX_CURVES, len(epsilons))).round().astype(int)
    return list(zip(COLOURS, (epsilons[place] for place in places), strict=False))
