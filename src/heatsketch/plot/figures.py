"""Shared by pictures: figures outside pyplot's global state, axes, files."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._optional import optional
from heatsketch._typing import Array
from heatsketch.io import write_atomically

SUFFIXES = (".png", ".pdf", ".svg")
_LETTER = 0.0066  # inches, the mean width at 1 point
_TEXT_STAYS_TEXT: Any = {"svg.fonttype": "none", "pdf.fonttype": 42}


def check_picture(path: str | Path | None) -> None:
    """Raise if a picture cannot be written to a path or, for None, cannot be drawn.

    Parameters
    ----------
    path : path or None
        The file to write.

    Raises
    ------
    ValueError
        If the suffix is not .png, .pdf or .svg.
    ImportError
        If matplotlib is missing.

    See Also
    --------
    plot.save : Write a figure to a file.

    Examples
    --------
    >>> from heatsketch.plot import check_picture
    >>> check_picture("digits.png")
    """
    optional("matplotlib", "plotting needs matplotlib", "plot")
    if path is not None and Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path} has no known picture suffix; choose from {', '.join(SUFFIXES)}.")


def new_figure(width: float, height: float, dpi: int = 160) -> Any:
    """Return an empty figure, of a size in inches, that is not in pyplot's global list.

    Parameters
    ----------
    width, height : float
        Size in inches.
    dpi : int, default=160
        Pixels per inch.

    Returns
    -------
    matplotlib.figure.Figure
        Empty.

    Raises
    ------
    ImportError
        If matplotlib is missing.

    See Also
    --------
    plot.save : Write a figure to a file.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def axes_for(path: str | Path | None, ax: Any, size: tuple[float, float], **kind: Any) -> Any:
    """Return the given axes or those of a new figure; raise if it cannot be written to `path`."""
    check_picture(path)
    return new_figure(*size).add_subplot(**kind) if ax is None else ax


def size_in_inches(ax: Any) -> Array:
    """Return width and height of axes in inches."""
    return np.asarray(ax.get_window_extent().size / ax.figure.dpi)


def text_size(share: float = 1.0) -> float:
    """Return the size of text in points, next to that of matplotlib's settings."""
    from matplotlib import rcParams

    return float(share * rcParams["font.size"])


def letter_width() -> float:
    """Return the mean width of a letter in inches."""
    return _LETTER * text_size()


def finish(ax: Any, title: str, axis_names: Sequence[str], path: str | Path | None = None) -> Any:
    """Give axes a title, names and thin grey decoration; write the figure if there is a `path`.

    Returns the figure. Long lines are broken at the width of the axes.
    """
    letters = max(20, int(size_in_inches(ax)[0] / letter_width()))
    lines = [textwrap.fill(line, letters, break_on_hyphens=False) for line in title.splitlines()]
    ax.set_title("\n".join(lines), fontsize=text_size(), loc="left", parse_math=False)
    ax.set_xlabel(textwrap.fill(axis_names[0], letters), parse_math=False)
    ax.set_ylabel(axis_names[1], parse_math=False)
    if len(axis_names) == 3:
        ax.set_zlabel(axis_names[2], parse_math=False)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=text_size(0.8), color="#888888")
    ax.margins(0.04)
    if path is not None:
        save(ax.figure, path)
    return ax.figure


def save(figure: Any, path: str | Path) -> None:
    """Write a figure to a file in the format of its suffix; no partial file is ever visible.

    Text in .pdf and .svg files stays text.

    Parameters
    ----------
    figure : matplotlib Figure
        The figure to write.
    path : path
        .png, .pdf or .svg; an existing file is replaced.

    Raises
    ------
    ValueError
        If the suffix is another one.
    OSError
        If the file cannot be written.

    See Also
    --------
    plot.check_picture : Check that a picture can be written.
    plot.new_figure : Make an empty figure.
    """
    check_picture(path)
    from matplotlib import rc_context

    suffix = Path(path).suffix.lower()[1:]
    with rc_context(_TEXT_STAYS_TEXT):
        write_atomically(path, lambda draft: figure.savefig(draft, format=suffix), force=True)
