"""Embeddings side by side."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heatsketch._typing import Array
from heatsketch.plot.figures import new_figure, save
from heatsketch.plot.scatter import scatter

_MAX_COLUMNS = 4
_PANEL_INCHES = 3.4


def panels(
    embeddings: Mapping[str, Array],
    labels: Any = None,
    notes: Mapping[str, str] | None = None,
    *,
    path: str | Path | None = None,
) -> Any:
    """Draw embeddings side by side, with one legend.

    Parameters
    ----------
    embeddings : mapping of name -> array (n, k)
        Embeddings, each drawn by `scatter`.
    labels : array (n,), optional
        Labels for the colours, as for `scatter`.
    notes : mapping of name -> str, optional
        Texts below the names.
    path : path, optional
        File to write, .png, .pdf or .svg; an existing one is replaced.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        As of `scatter`.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.plot import panels
    >>> len(panels({"a": np.eye(3), "b": np.eye(3)[:, :2]}).axes)
    2
    """
    columns = min(_MAX_COLUMNS, len(embeddings))
    rows = math.ceil(len(embeddings) / columns)
    figure = new_figure(_PANEL_INCHES * columns + 1.2, _PANEL_INCHES * rows)
    for place, (name, F) in enumerate(embeddings.items()):
        ax = figure.add_subplot(rows, columns, place + 1)
        title = name if not notes else f"{name}\n{notes[name]}"
        scatter(F, labels, title=title, ax=ax, legend=place == columns - 1)
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
    if path is not None:
        save(figure, path)
    return figure
