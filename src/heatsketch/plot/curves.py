"""Curves and biplots with matplotlib."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_points
from heatsketch.plot.pictures import (
    MAIN_COLOUR,
    axes_for,
    check_picture,
    finish,
    new_figure,
    save,
    scatter,
    text_size,
)
from heatsketch.spectral.traces import HeatTrace, heat_trace

_SIZE = (6.4, 4.2)  # inches
_CHOSEN_COLOUR = "#d55e00"
_GREY_LINE = {"color": "#888888", "linewidth": 0.8, "linestyle": ":"}
_BAND = {"alpha": 0.25, "lw": 0}


def ksum_curve(
    result: Any, curve: str = "slopes", *, path: str | Path | None = None, ax: Any = None
) -> Any:
    """Draw the slope of the Ksum test against the bandwidth, with its maximum marked.

    The scale on the right is the dimension, twice the slope. Or draw log S itself, with the line of
    the largest slope: S grows as ε^(d/2) where they agree [1]_.

    Parameters
    ----------
    result : Ksum
        The result of `heatsketch.ksum`.
    curve : {"slopes", "sums"}, default="slopes"
        d log S / d log ε, or log S.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn on.

    Raises
    ------
    ValueError
        If the curve or the suffix of `path` is unknown.
    ImportError
        If matplotlib is missing.

    See Also
    --------
    ksum : Choose a bandwidth and estimate the dimension.
    plot.scales : Draw how a diffusion time was chosen.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §9.7,
       equations (58) and (59).

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> hs.plot.ksum_curve(hs.ksum(X)).axes[0].get_xscale()
    'log'
    """
    check_choice(curve, "curve", ("slopes", "sums"))
    ax = axes_for(path, ax, _SIZE)
    ax.set_xscale("log")
    if curve == "slopes":
        height, name = _draw_slopes(ax, result), "slope d log S / d log ε"
    else:
        height, name = _draw_sums(ax, result), "log S, S the mean affinity"
    ax.axvline(result.epsilon, **_GREY_LINE)
    ax.plot([result.epsilon], [height], "o", color=_CHOSEN_COLOUR, markersize=8)
    in_right_half = np.log(result.epsilon) > np.mean(np.log(np.asarray(result.epsilons)[[0, -1]]))
    ax.annotate(
        f"ε = {result.epsilon:.4g}\ndimension {result.dimension:.3g}",
        (result.epsilon, height),
        xytext=(-10 if in_right_half else 10, 8),
        textcoords="offset points",
        ha="right" if in_right_half else "left",
    )
    return finish(ax, "Ksum test", ("bandwidth ε", name), path)


def _draw_slopes(ax: Any, result: Any) -> float:
    """Draw the slopes, with twice the slope on the right, and return the largest one."""
    slopes, top = np.asarray(result.slopes), float(result.dimension / 2)
    ax.plot(np.asarray(result.epsilons), slopes, color=MAIN_COLOUR, linewidth=2)
    ax.set_ylim(min(0.0, 1.1 * float(np.min(slopes))), 1.3 * top if top > 0 else 1.0)
    doubled = ax.secondary_yaxis("right", functions=(lambda s: 2 * s, lambda d: d / 2))
    doubled.set_ylabel("dimension")
    doubled.tick_params(labelsize=text_size(0.8), color="#888888")
    return top


def _draw_sums(ax: Any, result: Any) -> float:
    """Draw log S with the line of the largest slope, and return log S at the chosen ε."""
    log_epsilons, log_sums = np.log(np.asarray(result.epsilons)), np.asarray(result.log_sums)
    height = float(np.interp(np.log(result.epsilon), log_epsilons, log_sums))
    line = height + result.dimension / 2 * (log_epsilons - np.log(result.epsilon))
    ax.plot(np.asarray(result.epsilons), log_sums, color=MAIN_COLOUR, linewidth=2)
    inside = (line >= log_sums.min()) & (line <= 0)
    ax.plot(np.exp(log_epsilons[inside]), line[inside], color=_CHOSEN_COLOUR, linewidth=1)
    return height


def time_curve(curve: Any, *, path: str | Path | None = None, ax: Any = None) -> Any:
    """Draw the effective number of directions against diffusion time, and the time chosen.

    Parameters
    ----------
    curve : TimeCurve
        `time_curve_` of a `HeatEmbedding` with ``layout="linear"`` and ``time="auto"``.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

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

    See Also
    --------
    plot.scales : Draw how a diffusion time was chosen.
    HeatEmbedding : Embed data in few dimensions that keep diffusion distances.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> embedding = hs.HeatEmbedding(2, layout="linear", random_state=0).fit(X)
    >>> hs.plot.time_curve(embedding.time_curve_).axes[0].get_xlabel()
    'diffusion time'
    """
    ax = axes_for(path, ax, _SIZE)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.plot(curve.times, curve.directions, "o-", color=MAIN_COLOUR, linewidth=2)
    ax.axhline(curve.wanted, **_GREY_LINE)
    chosen = curve.directions[np.flatnonzero(curve.times == curve.time)[0]]
    ax.plot([curve.time], [chosen], "o", color=_CHOSEN_COLOUR, markersize=9)
    ax.set_xticks(curve.times, [f"{t:g}" for t in curve.times])
    title = f"At most {curve.wanted:g} directions wanted; time {curve.time:g} chosen"
    return finish(ax, title, ("diffusion time", "directions"), path)


def scales(
    embedding: Any,
    trace: HeatTrace | None = None,
    *,
    path: str | Path | None = None,
    ax: Any = None,
) -> Any:
    """Draw the numbers of directions by which ``time="auto"`` chose its time.

    The upper panel shows the number of directions of the distances at one time, with the number
    wanted. The lower panel shows the effective rank of the heat kernel e^{-t(1-A)} with its
    interval, the number of directions that are left at a time. Lines mark k + 1, for the
    coordinates and the trivial direction, and the number of components of the graph, the limit at
    large times. The time chosen is the first with few enough directions.

    Parameters
    ----------
    embedding : HeatEmbedding
        Fitted with ``layout="linear"`` and ``time="auto"``.
    trace : HeatTrace, default=None
        ``heat_trace(embedding.diffusion_, times)`` at any times; by default it is computed, with
        ``rng=0``.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    ax : pair of matplotlib Axes, default=None
        Where to draw directions and ranks; one above the other by default.

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

    See Also
    --------
    plot.time_curve : Draw the number of directions against time.
    heat_trace : Estimate the heat trace, and the number of directions at a time.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> figure = hs.plot.scales(hs.HeatEmbedding(2, layout="linear", random_state=0).fit(X))
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['directions', 'effective rank']
    """
    check_picture(path)
    curve = check_curve(embedding)
    trace = heat_trace(embedding.diffusion_, curve.times, rng=0) if trace is None else trace
    if ax is None:
        ax = new_figure(6.4, 6.4).subplots(2, 1, sharex=True)
    above, below = ax
    time_curve(curve, ax=above)
    low, high = trace.effective_rank_interval
    below.set_yscale("log")
    below.fill_between(trace.times, low, high, color=MAIN_COLOUR, **_BAND)
    below.plot(trace.times, trace.effective_rank, "o-", color=MAIN_COLOUR, linewidth=2)
    k = embedding.embedding_.shape[1]
    components = embedding.diffusion_.diagnostics.get("components", 1)
    marks = {k + 1: f"{k} coordinates and the trivial direction"}
    if components > 1:
        marks[components] = f"{components} components of the graph"
    for height, words in marks.items():
        below.axhline(height, **_GREY_LINE)
        place = {"xytext": (2, 3), "textcoords": "offset points", "fontsize": text_size(0.8)}
        below.annotate(words, (0, height), xycoords=("axes fraction", "data"), **place)
    for panel in (above, below):
        panel.axvline(curve.time, color=_CHOSEN_COLOUR, linewidth=1)
        panel.set_xscale("log", base=2)
        panel.set_xticks(curve.times, [f"{t:g}" for t in curve.times], rotation=45)
    title = f"Directions left; time {embedding.time_:g} chosen"
    return finish(below, title, ("diffusion time", "effective rank"), path)


def check_curve(embedding: Any) -> Any:
    """Return the curve by which an embedding chose its time, or raise."""
    curve = embedding._result("time_curve_")
    if curve is None:
        raise ValueError(
            f"{type(embedding).__name__} has chosen no time (time={embedding.time!r}); pass a "
            "HeatEmbedding with layout='linear' and time='auto', fitted to points that differ."
        )
    return curve


def explained_variance(
    result: Any,
    *,
    path: str | Path | None = None,
    share: float | None = None,
    ax: Any = None,
) -> Any:
    """Draw the fraction of the diffusion that the first 1, 2, ... coordinates explain.

    Parameters
    ----------
    result : ExplainedVariance
        The result of ``model.explained_diffusion_variance()``.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.
    share : float, default=None
        A fraction to mark.

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

    See Also
    --------
    plot.time_curve : Draw the number of directions against time.
    DiffusionMap : Embed data by the leading eigenvectors of the diffusion.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> model = hs.DiffusionMap(10, 8).fit(X)
    >>> figure = hs.plot.explained_variance(model.explained_diffusion_variance(), share=0.9)
    >>> figure.axes[0].get_xlabel()
    'coordinates'
    """
    ax = axes_for(path, ax, _SIZE)
    count = np.arange(1, len(result.ratio) + 1)
    low, high = 100 * result.cumulative_low, 100 * result.cumulative_high
    ax.bar(count, 100 * result.ratio, color="#c9c9c9", label="each")
    ax.fill_between(count, low, high, color=MAIN_COLOUR, **_BAND)
    ax.plot(count, 100 * result.cumulative, "o-", color=MAIN_COLOUR, markersize=3, label="together")
    if share is not None:
        ax.axhline(100 * share, **_GREY_LINE)
    ax.set_ylim(0, 104)
    ax.legend(frameon=False, fontsize=text_size(0.8))
    ax.xaxis.get_major_locator().set_params(integer=True)
    title = f"{len(count)} coordinates hold {result.describe()}"
    return finish(ax, title, ("coordinates", "%"), path)


def distortion_histogram(result: Any, *, path: str | Path | None = None, ax: Any = None) -> Any:
    """Draw a histogram of the ratios of distances of pairs to the median ratio.

    Parameters
    ----------
    result : Distortion
        The result of `heatsketch.distortion`, or `distortion_` of an estimator.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

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

    See Also
    --------
    distortion : Measure how an embedding changes given distances.
    plot.scatter : Draw an embedding in the plane.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> embedding = hs.HeatEmbedding(2, random_state=0).fit(X)
    >>> hs.plot.distortion_histogram(embedding.distortion_).axes[0].get_ylabel()
    'pairs (%)'
    """
    ax = axes_for(path, ax, _SIZE)
    edges, counts = result.histogram
    shares = 100 * counts / max(counts.sum(), 1)
    ax.set_xscale("log", base=2)
    ax.stairs(shares, edges, fill=True, color=MAIN_COLOUR, alpha=0.75)
    ax.axvline(1, **_GREY_LINE)
    ax.set_xticks([2.0**j for j in range(-3, 4)], ["⅛", "¼", "½", "1", "2", "4", "8"])
    names = ("distance in the embedding / distance to keep, median 1", "pairs (%)")
    return finish(ax, result.describe(), names, path)


_BIPLOT_SIZE = (6.4, 4.8)  # inches
_CELLS = 16  # of the frame in each direction: one point of a cell has arrows
_SHOWN = 3  # features, by default
_COLOURS = ("black", "0.55", "deeppink", "saddlebrown", "darkviolet")  # which no category has
_QUANTILE = 0.9  # of the lengths of arrows: the one that is as long as a cell
_LEAST = 1e-12  # next to the longest: shorter arrows are not drawn


def biplot(
    model: Any,
    X: Any,
    labels: Any = None,
    *,
    features: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    title: str = "",
    path: str | Path | None = None,
    ax: Any = None,
    legend: bool = True,
) -> Any:
    """Draw a picture with arrows of some features: a biplot that bends.

    An arrow shows where its point would go if the feature grew, by `model.sensitivity`. In a biplot
    of principal components the arrow of a feature is the same everywhere; here it depends on the
    place. Lengths are those of a growth by one standard deviation of the feature, times one factor
    for all arrows, so that most are at most as long as a cell of the frame; longer ones are cut to
    twice that.

    Parameters
    ----------
    model : HeatEmbedding, HeatSketch, DiffusionMap or MixtureDiffusion
        Fitted to points, with two coordinates.
    X : array-like of shape (n_samples, n_features)
        The points to draw, old or new.
    labels : array-like of shape (n_samples,), default=None
        Labels for the colours of points, as in `scatter`.
    features : sequence of str or int, default=None
        Names of features, or numbers of columns of X. By default the three
        that move points most.
    names : sequence of str, default=None
        Names of the features; by default those that the model has seen, or their numbers.
    title : str, default=""
        Text above the axes.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.
    legend : bool, default=True
        Draw the legend of the features.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn on.

    Raises
    ------
    ValueError, TypeError
        The model has another number of coordinates, or no derivatives (see `sensitivity`); a
        feature that is unknown; points that are not those of the model's features.
    ImportError
        matplotlib is missing.

    See Also
    --------
    plot.scatter : Draw an embedding in the plane.
    markers : Find the features that distinguish a group of points.

    Notes
    -----
    Points whose derivative is 0 have no arrow. The cost is that of `sensitivity` of up to 256
    points.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, _ = hs.datasets.swiss_roll(400, rng=0)
    >>> model = hs.HeatEmbedding(random_state=0).fit(X)
    >>> figure = hs.plot.biplot(model, X, features=[1])
    >>> figure.axes[0].get_legend().get_texts()[0].get_text()
    '1'
    """
    Y = np.asarray(model.transform(X), float)
    if Y.shape[1] != 2:
        raise ValueError(f"The model has {Y.shape[1]} coordinates; pass one with 2.")
    named = model._result("feature_names_in_")
    given = (range(model.n_features_in_) if named is None else named) if names is None else names
    names = [str(name) for name in given]
    if len(names) != model.n_features_in_:
        raise ValueError(f"names has {len(names)} names but X has {model.n_features_in_} features.")
    values = np.asarray(check_points(X, min_rows=1, allow_nan=True), float)
    at = _spread_over(Y)
    rows = X.iloc[at] if named is not None and hasattr(X, "iloc") else values[at]
    moves = model.sensitivity(rows) * np.nanstd(values, axis=0)  # (m, 2, d)
    lengths = np.linalg.norm(moves, axis=1)  # (m, d)
    chosen = np.argsort(-lengths.mean(axis=0), kind="stable")[:_SHOWN]
    if features is not None:
        chosen = np.array([_number_of(feature, names) for feature in features])
    cell = float(np.ptp(Y, axis=0).max()) / _CELLS
    drawn = lengths[:, chosen]
    typical = float(np.quantile(drawn[drawn > 0], _QUANTILE)) if drawn.any() else 1.0
    axes = axes_for(path, ax, _BIPLOT_SIZE)
    figure = scatter(Y, labels, title=title, ax=axes, legend=labels is not None)
    for column, color in zip(chosen, cycle(_COLOURS), strict=False):
        arrows = moves[:, :, column] * (cell / typical)
        sizes = np.linalg.norm(arrows, axis=1)
        seen = sizes > _LEAST * cell
        arrows = arrows[seen] * np.minimum(1.0, 2 * cell / sizes[seen])[:, None]
        axes.quiver(
            *Y[at][seen].T,
            *arrows.T,
            color=color,
            angles="xy",
            scale_units="xy",
            scale=1,
            width=0.003,
            label=names[column],
        )
    if legend:
        old = axes.get_legend()
        axes.legend(fontsize="x-small", loc="best")
        if old is not None:
            axes.add_artist(old)
    if path is not None:
        save(figure, path)
    return figure


def _spread_over(Y: Array) -> Array:
    """Return one point of each cell of the frame (m,), the nearest to its middle."""
    low, side = Y.min(axis=0), float(np.ptp(Y, axis=0).max()) / _CELLS or 1.0
    cells = np.floor((Y - low) / side)
    off = np.linalg.norm(Y - low - (cells + 0.5) * side, axis=1)
    order = np.lexsort((np.arange(len(Y)), off))
    first = np.unique(cells[order], axis=0, return_index=True)[1]
    return np.sort(order[first])


def _number_of(feature: Any, names: list[str]) -> int:
    """Return the number of a feature that is given by its name or number."""
    if str(feature) in names:
        return names.index(str(feature))
    if isinstance(feature, int | np.integer) and 0 <= feature < len(names):
        return int(feature)
    shown = ", ".join(names[:5])
    raise ValueError(f"feature {feature!r} is none of the {len(names)} features ({shown}, ...).")
