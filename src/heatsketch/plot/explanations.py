"""Which scale, and how many coordinates: the choice of a time, and the explained variance."""

from pathlib import Path
from typing import Any

import numpy as np

from heatsketch.plot.curves import draw_shares
from heatsketch.plot.figures import (
    CHOSEN_COLOUR,
    GREY_LINE,
    MAIN_COLOUR,
    check_picture,
    new_figure,
    picture_of,
    save,
    style_axes,
)
from heatsketch.spectral.heat_trace import HeatTrace, heat_trace


def scales(
    embedding: Any, trace: HeatTrace | None = None, *, path: str | Path | None = None
) -> Any:
    """Draw why ``time="auto"`` chose its time: what is kept, and how many directions are left.

    Above, the share of the distances that k dimensions keep, with the share wanted. Below, the
    effective rank of the heat kernel e^{-t(1-A)} with its interval: how many directions are left at
    a time. Lines mark k + 1, the coordinates and the trivial direction, and the components of the
    graph, which are left in the end. The time chosen is the first at which enough is kept.

    Parameters
    ----------
    embedding : HeatEmbedding
        Fitted with ``time="auto"``.
    trace : HeatTrace, optional
        ``heat_trace(embedding.diffusion_, times)``, any times; by default it is computed, with
        ``rng=0``.
    path
        As in `ksum_curve`, which has the same result and errors.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels with the same times.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If the suffix of `path` is unknown, or `embedding` chose no time.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> figure = hs.plot.scales(hs.HeatEmbedding(2, random_state=0).fit(X))
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['pairs (%)', 'effective rank']
    """
    check_picture(path)
    trace = trace_of(embedding) if trace is None else trace
    figure = new_figure(6.4, 6.4)
    above, below = figure.subplots(2, 1, sharex=True)
    draw_scales(above, below, embedding, trace)
    if path is not None:
        save(figure, path)
    return figure


def trace_of(embedding: Any) -> HeatTrace:
    """Return the heat trace at the times from which an embedding chose its own."""
    return heat_trace(embedding.diffusion_, check_curve(embedding).times, rng=0)


def draw_scales(above: Any, below: Any, embedding: Any, trace: HeatTrace) -> None:
    """Draw what is kept and how many directions are left on two axes."""
    curve = check_curve(embedding)
    _draw_shares(above, curve)
    _draw_ranks(below, trace, embedding)
    for ax in (above, below):
        ax.axvline(curve.time, color=CHOSEN_COLOUR, linewidth=1)
        ax.set_xscale("log", base=2)
        ax.set_xticks(curve.times, [f"{t:g}" for t in curve.times], rotation=45)
    if not above.get_shared_x_axes().joined(above, below):  # else the times stand below both
        above.set_xlabel("diffusion time")


def check_curve(embedding: Any) -> Any:
    """Return the curve by which an embedding chose its time, or raise."""
    curve = getattr(embedding, "time_curve_", None)
    if curve is None:
        raise ValueError(
            f"{type(embedding).__name__} has chosen no time (time={embedding.time!r}); pass a "
            "HeatEmbedding that was fitted with time='auto' to points that differ."
        )
    return curve


def _draw_shares(ax: Any, curve: Any) -> None:
    draw_shares(ax, curve)
    title = f"Distances kept within a factor {curve.factor:g}: {100 * curve.share:g} % wanted"
    style_axes(ax, title, ("", "pairs (%)"))


def _draw_ranks(ax: Any, trace: HeatTrace, embedding: Any) -> None:
    low, high = trace.effective_rank_interval
    ax.set_yscale("log")
    ax.fill_between(trace.times, low, high, color=MAIN_COLOUR, alpha=0.25, lw=0)
    ax.plot(trace.times, trace.effective_rank, "o-", color=MAIN_COLOUR, linewidth=2)
    k = embedding.embedding_.shape[1]
    components = embedding.diffusion_.diagnostics.get("components", 1)
    marks = {k + 1: f"{k} coordinates and the trivial direction"}
    if components > 1:
        marks[components] = f"{components} components of the graph"
    for height, words in marks.items():
        ax.axhline(height, **GREY_LINE)
        place = {"xytext": (2, 3), "textcoords": "offset points", "fontsize": 8}
        ax.annotate(words, (0, height), xycoords=("axes fraction", "data"), **place)
    chosen = f"Directions left; time {embedding.time_:g} chosen"
    style_axes(ax, chosen, ("diffusion time", "effective rank"))


def explained_variance(
    result: Any, *, path: str | Path | None = None, share: float | None = None
) -> Any:
    """Draw how much of the diffusion the first 1, 2, ... coordinates hold, with intervals.

    Parameters
    ----------
    result : ExplainedVariance
        ``model.explained_diffusion_variance()``.
    path
        As in `ksum_curve`, which has the same result and errors.
    share : float, optional
        A share to mark.

    Returns
    -------
    matplotlib.figure.Figure
        One panel.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If the suffix of `path` is unknown.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> model = hs.DiffusionMap(10, 8).fit(X)
    >>> figure = hs.plot.explained_variance(model.explained_diffusion_variance(), share=0.9)
    >>> figure.axes[0].get_xlabel()
    'coordinates'
    """
    return picture_of(lambda ax: draw_explained(ax, result, share), path)


def draw_explained(ax: Any, result: Any, share: float | None = None) -> None:
    """Draw the shares that coordinates hold, each and together."""
    count = np.arange(1, len(result.ratio) + 1)
    low, high = 100 * result.cumulative_low, 100 * result.cumulative_high
    ax.bar(count, 100 * result.ratio, color="#c9c9c9", label="each")
    ax.fill_between(count, low, high, color=MAIN_COLOUR, alpha=0.25, lw=0)
    ax.plot(count, 100 * result.cumulative, "o-", color=MAIN_COLOUR, markersize=3, label="together")
    if share is not None:
        ax.axhline(100 * share, **GREY_LINE)
    ax.set_ylim(0, 104)
    ax.legend(frameon=False, fontsize=8)
    style_axes(ax, f"{len(count)} coordinates hold {result.describe()}", ("coordinates", "%"))
    ax.xaxis.get_major_locator().set_params(integer=True)
