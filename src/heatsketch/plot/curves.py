"""Curves: the Ksum test, and the choice of a time."""

from pathlib import Path
from typing import Any

import numpy as np

from heatsketch.plot.figures import (
    CHOSEN_COLOUR,
    GREY_LINE,
    MAIN_COLOUR,
    picture_of,
    style_axes,
)


def ksum_curve(result: Any, *, path: str | Path | None = None) -> Any:
    """Draw the slope of the Ksum test against the bandwidth, with its maximum marked.

    The band about the curve and the grey strip are 95 % intervals of the slope and the bandwidth,
    over other samples of points. The scale on the right is the dimension, twice the slope.

    Parameters
    ----------
    result : Ksum
        The result of `heatsketch.ksum`.
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
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> hs.plot.ksum_curve(hs.ksum(X)).axes[0].get_xscale()
    'log'
    """
    return picture_of(lambda ax: draw_ksum(ax, result), path)


def draw_ksum(ax: Any, result: Any) -> None:
    """Draw the result of a Ksum test."""
    epsilons, slopes = np.asarray(result.epsilons), np.asarray(result.slopes)
    top = result.dimension / 2
    ax.set_xscale("log")
    ax.plot(epsilons, slopes, color=MAIN_COLOUR, linewidth=2)
    if np.isfinite(result.dimension_interval).all():
        error, band = 1.96 * np.asarray(result.slope_errors), {"alpha": 0.25, "lw": 0}
        ax.fill_between(epsilons, slopes - error, slopes + error, color=MAIN_COLOUR, **band)
        ax.axvspan(*result.epsilon_interval, color="#888888", **band)
    ax.axvline(result.epsilon, color="#888888", linewidth=0.8, linestyle=":")
    ax.plot([result.epsilon], [top], "o", color="#d55e00", markersize=8)
    ax.set_ylim(min(0.0, 1.1 * float(np.min(slopes))), 1.3 * top if top > 0 else 1.0)
    in_right_half = np.log(result.epsilon) > np.mean(np.log(epsilons[[0, -1]]))
    ax.annotate(
        f"ε = {result.epsilon:.4g}{_between(result.epsilon_interval)}\n"
        f"dimension {result.dimension:.3g}{_between(result.dimension_interval)}",
        (result.epsilon, top),
        xytext=(-10 if in_right_half else 10, 8),
        textcoords="offset points",
        ha="right" if in_right_half else "left",
    )
    style_axes(ax, "Ksum test", ("bandwidth ε", "slope d log S / d log ε"))
    doubled = ax.secondary_yaxis("right", functions=(lambda s: 2 * s, lambda d: d / 2))
    doubled.set_ylabel("dimension")
    doubled.tick_params(labelsize=8, color="#888888")


def _between(interval: tuple[float, float]) -> str:
    low, high = interval
    return f" ({low:.3g} to {high:.3g})" if np.isfinite(low) else ""


def time_curve(curve: Any, *, path: str | Path | None = None) -> Any:
    """Draw the share of the distances that few dimensions keep, against diffusion time.

    Parameters
    ----------
    curve : TimeCurve
        `time_curve_` of a `HeatEmbedding` with ``time="auto"``.
    path
        As in `ksum_curve`, which has the same result and errors.

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
    >>> embedding = hs.HeatEmbedding(2, random_state=0).fit(X)
    >>> hs.plot.time_curve(embedding.time_curve_).axes[0].get_xlabel()
    'diffusion time'
    """
    return picture_of(lambda ax: _draw_times(ax, curve), path)


def _draw_times(ax: Any, curve: Any) -> None:
    draw_shares(ax, curve)
    ax.set_xticks(curve.times, [f"{t:g}" for t in curve.times])
    title = f"Distances kept within a factor {curve.factor:g}; time {curve.time:g} chosen"
    style_axes(ax, title, ("diffusion time", "pairs (%)"))


def draw_shares(ax: Any, curve: Any) -> None:
    """Draw the shares of a TimeCurve, the share wanted, and the time chosen."""
    ax.set_xscale("log", base=2)
    ax.plot(curve.times, 100 * curve.shares, "o-", color=MAIN_COLOUR, linewidth=2)
    ax.axhline(100 * curve.share, **GREY_LINE)
    chosen = curve.shares[np.flatnonzero(curve.times == curve.time)[0]]
    ax.plot([curve.time], [100 * chosen], "o", color=CHOSEN_COLOUR, markersize=9)
    ax.set_ylim(0, 104)
