"""A picture with arrows: where a point would go if one of its features grew."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch._validation import check_points
from heatsketch.plot.figures import axes_for, save
from heatsketch.plot.pictures import scatter

_SIZE = (6.4, 4.8)  # inches
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
    axes = axes_for(path, ax, _SIZE)
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
