"""Curves: of the Ksum test, and of how a time was chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from heatsketch.plot.figures import CALM, check_picture, dress, new_axes, save


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
    figure, ax = new_axes(width=6.4, height=4.2)
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
    dress(ax, "Ksum test", ("bandwidth ε", "slope d log S / d log ε"))
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
    figure, ax = new_axes(width=6.4, height=4.2)
    ax.set_xscale("log", base=2)
    ax.plot(curve.times, 100 * curve.shares, "o-", color=CALM, linewidth=2)
    ax.axhline(100 * curve.share, color="#888888", linewidth=0.8, linestyle=":")
    chosen = curve.shares[np.flatnonzero(curve.times == curve.time)[0]]
    ax.plot([curve.time], [100 * chosen], "o", color="#d55e00", markersize=9)
    ax.set_xticks(curve.times, [f"{t:g}" for t in curve.times])
    ax.set_ylim(0, 104)
    title = f"Distances kept within a factor {curve.factor:g}; time {curve.time:g} chosen"
    dress(ax, title, ("diffusion time", "pairs (%)"))
    if path is not None:
        save(figure, path)
    return figure
