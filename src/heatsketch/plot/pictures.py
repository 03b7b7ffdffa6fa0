"""Pictures of embeddings with matplotlib: points, labels, figures."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from heatsketch._arrays import Array
from heatsketch._checks import check_points, read_labels
from heatsketch._words import optional
from heatsketch.io import write_atomically
from heatsketch.spectral.eigen import fix_signs

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


MAX_VECTOR_POINTS = 20_000  # a vector picture of more points is slow to open
ORDER_SEED = 2_718_281_828  # not a likely seed of the data: equal seeds would show as structure
CENTRAL = 0.98  # share of the points that the window is made for
_FULL_DOTS = 4.6  # inches, the side of axes from which on dots have their full size
_WIDEST_LEGEND = 0.36  # of the figure, beside the axes; a wider one stands below
_LETTERS_BESIDE = 8  # of a name in a legend: as wide as its dot and the gaps
_SPARE = 1.3  # ratio of the radius of the window to that of the central points
_LEAST_GAIN = 1.4  # in scale; for less no point is moved to the edge


def central_window(points: Array) -> Array | None:
    """Return the corners (2, d) of a window around the central ones of points (n, d).

    None if all points fit well: if the window would not be 1.4 times smaller, or the central points
    coincide.
    """
    distance = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    radius = np.quantile(distance, CENTRAL, method="higher")  # at most 2 % are beyond
    near = points[distance <= _SPARE * radius]
    window = np.stack([near.min(axis=0), near.max(axis=0)])
    size, whole = np.ptp(window, axis=0).max(), np.ptp(points, axis=0).max()
    return window if 1e-9 * whole < size < whole / _LEAST_GAIN else None


class Picture:
    """An embedding F (n, k) as points on axes.

    Attributes
    ----------
    points : array (n, 2) or (n, 3)
        Places; points outside of the window are moved to its edge.
    outside : array (n,) of bool
        Whether a point was moved.
    names : list of str
        Names of the axes; of coordinates without names they are empty.
    title : str
    legend : tuple of str or None
        At most 20 categories, () without labels; None for numbers.
    values : masked array (n,)
        Numbers, or places in the legend; masked where a label is missing.
    scale : ScalarMappable
        The colours of values.
    rgb : array (n, 3)
    """

    legend: tuple[str, ...] | None
    values: Any

    def __init__(
        self,
        ax: Any,
        F: Any,
        labels: Any,
        names: Sequence[str] | None,
        title: str,
        *,
        whole: bool,
        shape: Array | None = None,
        how: str = "ringed",
    ) -> None:
        """Project F to the dimension of the axes; `shape` is the width and height of the window."""
        F = np.asarray(check_points(F, "F", min_rows=1), dtype=np.float64)
        n, k = F.shape
        for what, given, count in (("labels", labels, n), ("names", names, k)):
            if given is not None and np.shape(given) != (count,):
                shapes = f"{what} has shape {np.shape(given)} but F has shape {F.shape}"
                raise ValueError(f"{shapes}; pass shape ({count},).")
        self.ax, self.title = ax, title
        self._colour(labels, n)
        self.names = list(names or [""] * k)
        dimensions = 3 if ax.name == "3d" else 2
        if k > dimensions:
            axes, self.names = principal_axes(F, dimensions)
            F = (F - F.mean(axis=0)) @ axes
        self.outside = np.zeros(n, dtype=bool)
        window = None if whole else central_window(F)
        if window is not None:
            centre, half = window.mean(axis=0), np.ptp(window, axis=0) / 2
            if shape is not None and k > 1:
                half = shape * np.max(half / shape)
            half = np.maximum(half, 1e-3 * half.max())
            beyond = np.max(np.abs(F - centre) / half, axis=1)
            self.outside = beyond > 1 + 1e-9
            # Points outside move towards the centre of the window, to its edge.
            F = centre + (F - centre) / np.maximum(1.0, beyond)[:, None]
        if count := self.outside.sum():
            self.title += f"\n{count:,} of {n:,} points lie farther out, {how} at the edge"
        if k == 1:  # spread sideways at random, one lane for each category
            lane = 0 if self.legend is None else self.values.filled(-1)
            height = np.random.default_rng(ORDER_SEED).uniform(-0.35, 0.35, n)
            F, self.names = np.column_stack([F, height - lane]), [*self.names, ""]
        self.points = F

    def _colour(self, labels: Any, n: int) -> None:
        """Set the colours of categories or numbers; missing ones are grey."""
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import ListedColormap, NoNorm

        if labels is None:
            self.values, self.legend = np.ma.zeros(n, int), ()
        elif (groups := categories(labels)) is None:
            self.values, self.legend = np.ma.masked_invalid(read_labels(labels).astype(float)), None
        else:
            entries, names = legend_of(*groups)
            self.values = np.ma.masked_less(np.append(entries, -1)[groups[0]], 0)
            self.legend = tuple(map(short, names))
        norm, colours = None, colormaps["viridis"]
        if self.legend is not None:
            norm, colours = NoNorm(), ListedColormap(palette(len(self.legend)) or [MAIN_COLOUR])
        self.scale = ScalarMappable(norm, colours.with_extremes(bad=NO_LABEL_COLOUR))
        self.scale.set_array(self.values)
        self.scale.autoscale()
        self.rgb = self.scale.to_rgba(self.values)[:, :3]

    @property
    def dot_size(self) -> float:
        """Return the diameter of a point, in points of 1/72 inch."""
        share = min(1.0, size_in_inches(self.ax).min() / _FULL_DOTS)
        return share * math.sqrt(np.clip(560 / math.sqrt(len(self.points)), 0.8, 36))

    def draw(self) -> None:
        """Draw the points in random order, so that no category is drawn over the others."""
        n = len(self.points)
        order = np.random.default_rng(ORDER_SEED).permutation(n)
        size = self.dot_size**2
        self.ax.scatter(
            *self.points[order].T,
            c=self.rgb[order],
            s=size,
            alpha=np.clip(1.5 - 0.22 * np.log10(n), 0.3, 0.9),
            linewidths=0,
            rasterized=n > MAX_VECTOR_POINTS,
        )
        if self.outside.any():  # a ring around points that are not at their places
            ring = {"facecolors": "none", "edgecolors": "#333333", "linewidths": 0.7}
            self.ax.scatter(*self.points[self.outside].T, s=2.5 * size, **ring)

    def write_names(self) -> None:
        """Write names of categories that gather over their points, with a white edge.

        Places are found anew at each drawing, because only then the size of the picture is known.
        """
        from matplotlib.artist import Artist
        from matplotlib.patheffects import Stroke

        ax, names, points = self.ax, self.legend or (), self.points
        if not names:
            return
        codes = self.values.filled(-1)
        bold: dict[str, Any] = {"ha": "center", "va": "center", "fontweight": "bold"}
        bold |= {"in_layout": False, "fontsize": text_size()}
        texts = [ax.text(*points[0], name, parse_math=False, **bold) for name in names]
        edge = [Stroke(linewidth=text_size(0.35), foreground="white")]

        class Places(Artist):
            """Moves the names before they are drawn, and draws their edges.

            In files effects are outlines of letters; the names above them are drawn without, as
            text.
            """

            def draw(self, renderer: Any) -> None:
                corner, window = ax.bbox.min, ax.bbox.size
                there = ax.transData.transform(points) - corner
                for text in texts:
                    text.set_visible(True)  # hidden ones have no size
                sizes = np.array([text.get_window_extent(renderer).size for text in texts])
                places = place_names(there, codes, sizes, window)
                back = ax.transData.inverted().transform
                for text, place in zip(texts, places, strict=True):
                    text.set_visible(bool(np.isfinite(place[0])))
                    text.set_position(back(np.nan_to_num(place) + corner))
                    text.set_path_effects(edge)
                    text.draw(renderer)
                    text.set_path_effects([])

        places = Places()
        places.set_in_layout(False)
        places.set_zorder(2.7)
        ax.add_artist(places)

    def finished(self, legend: bool, path: str | Path | None) -> Any:
        """Name the axes, draw the legend if wanted, write the figure to a path, and return it."""
        if legend:
            self.explain()
        return finish(self.ax, self.title, self.names, path)

    def explain(self, axes: Any = None) -> None:
        """Draw a legend of the categories or a bar of the numbers beside the axes, or these."""
        from matplotlib.lines import Line2D

        missing = np.ma.getmaskarray(self.values)
        if self.legend is None:
            if not missing.all():
                beside = self.ax if axes is None else axes
                bar = self.ax.figure.colorbar(self.scale, ax=beside, shrink=0.8, pad=0.02)
                bar.outline.set_visible(False)
            return
        entries = [*zip(self.legend, palette(len(self.legend)), strict=True)]
        if missing.any():
            entries.append(("no label", NO_LABEL_COLOUR))
        if not entries:
            return
        dot: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": text_size(0.6)}
        figure = self.ax.figure
        width = letter_width() * (max(len(name) for name, _ in entries) + _LETTERS_BESIDE)
        share = width / figure.get_figwidth()
        where: Any = self.ax
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
        if share > _WIDEST_LEGEND and figure.get_layout_engine() is not None:
            where = figure
            place = {"loc": "outside lower left", "ncols": max(1, int(1 / share))}
        legend = where.legend(
            [Line2D([], [], color=colour, **dot) for _, colour in entries],
            ["."] * len(entries),  # names follow: matplotlib would drop one that starts with "_"
            borderaxespad=0.0,
            columnspacing=1.0,
            fontsize=text_size(),
            frameon=False,
            handletextpad=0.2,
            **place,
        )
        for text, (name, _) in zip(legend.get_texts(), entries, strict=True):
            text.set_parse_math(False)
            text.set_text(name)


def short(name: str, limit: int = 32) -> str:
    """Return a name on one line, cut at a number of letters."""
    name = " ".join(name.split())
    return name if len(name) <= limit else name[: limit - 1] + "…"


def principal_axes(F: Array, count: int) -> tuple[Array, list[str]]:
    """Return the directions (k, count) of largest variance, and names with their fractions."""
    centred = F - F.mean(axis=0)
    variances, axes = np.linalg.eigh(centred.T @ centred)
    variances = np.maximum(variances[::-1], 0.0)  # one may be negative by rounding
    shares = variances[:count] / max(variances.sum(), np.finfo(np.float64).tiny)
    names = [f"principal axis {j + 1} ({100 * share:.0f} %)" for j, share in enumerate(shares)]
    return fix_signs(axes[:, ::-1][:, :count]), names


MAX_CATEGORIES = 20  # more colours cannot be told apart

_CELLS = 4  # of a name's height: places are looked for in such steps
_HALVINGS = 3  # of a category, on the way to its home
_REACH = 2  # farthest place from the home, next to the radius of the last points there
_FEW_NAMES = 5  # fewer are all written, or none

MAIN_COLOUR = "#3b6ea8"  # of points without labels
NO_LABEL_COLOUR = "#c9c9c9"
# Colours that remain distinct for colour-blind readers:
# Okabe and Ito (2008), without yellow and black; Petroff (2021).
OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
PETROFF = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)

TABLEAU = (  # strong, then pale
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd"),
    *("#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"),
    *("#aec7e8", "#ffbb78", "#98df8a", "#ff9896", "#c5b0d5"),
    *("#c49c94", "#f7b6d2", "#c7c7c7", "#dbdb8d", "#9edae5"),
)


def categories(labels: Any) -> tuple[Array, tuple[str, ...]] | None:
    """Split labels into categories, or return None if they are numbers on a scale.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Text, booleans, dates or numbers; None, NaN, infinity, the NA of pandas, masked entries and
        empty text mean missing.

    Returns
    -------
    tuple of (codes, names), or None
        `codes`, an ndarray of shape (n_samples,), index the sorted `names`, -1 for a missing label.
        None for fractions and for more than 20 distinct whole numbers.

    See Also
    --------
    plot.scatter : Draw an embedding in the plane.

    Examples
    --------
    >>> from heatsketch.plot import categories
    >>> codes, names = categories(["cat", "dog", None, "cat"])
    >>> codes.tolist(), names
    ([0, 1, -1, 0], ('cat', 'dog'))
    >>> categories([0.5, 1.5]) is None
    True
    """
    labels = read_labels(labels)
    words = str, bytes, bool, np.bool_
    if labels.dtype.kind == "O" and not any(isinstance(value, words) for value in labels.flat):
        with suppress(TypeError, ValueError):  # numbers and None
            labels = labels.astype(np.float64)
    if labels.dtype.kind in "iuf":
        present = np.isfinite(labels)
        distinct = np.unique(labels[present])
        if len(distinct) > MAX_CATEGORIES or np.any(distinct != np.round(distinct)):
            return None
        names = tuple(str(int(value)) for value in distinct)
    else:
        present = np.array([value is not None for value in labels.flat], dtype=bool)
        labels = np.array([str(value) for value in labels.flat], dtype=object)
        distinct = np.unique(labels[present])
        names = tuple(distinct.tolist())
    codes = np.full(labels.shape, -1, dtype=np.intp)
    codes[present] = np.searchsorted(distinct, labels[present])
    return codes, names


def legend_of(codes: Array, names: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    """Return the entries of a legend of categories, at most 20, and the entry of each category.

    With more than 20 categories, all but the 19 largest share an entry.
    """
    if len(names) <= MAX_CATEGORIES:
        return np.arange(len(names)), names
    sizes = np.bincount(codes[codes >= 0], minlength=len(names))
    largest = np.sort(np.argsort(-sizes, kind="stable")[: MAX_CATEGORIES - 1])
    entries = np.full(len(names), len(largest))
    entries[largest] = np.arange(len(largest))
    return entries, (*(names[code] for code in largest), f"{len(names) - len(largest)} others")


def palette(count: int) -> Sequence[str]:
    """Return `count` colours that can be told apart, at most `MAX_CATEGORIES`."""
    return next(one[:count] for one in (OKABE_ITO, PETROFF, TABLEAU) if count <= len(one))


def place_names(points: Array, codes: Array, sizes: Array, window: Array) -> Array:
    """Return where names of categories stand in a window (m, 2); NaN without a place.

    A name stands at its home, or as near as other names leave room. The home is where the category
    is dense: the point nearest to the median of the category, then to that of the half of its
    points nearest to this point, and so on to an eighth. A category that gathers nowhere gets no
    name: where its nearest eighth is, there are more than a sixteenth of all other points. Fewer
    than five names are all written, or none. The page does the same (names.js).

    Parameters
    ----------
    points : array (n, 2)
        Points, from 0 to the window's width and height; names with a home elsewhere are not seen.
    codes : array of int (n,)
        The category of each point, from 0 to m - 1; other points have none.
    sizes : array (m, 2)
        Width and height of each name. Those of large categories are placed first.
    window : array (2,)
        Width and height.
    """
    members = [points[codes == code] for code in range(len(sizes))]
    places = np.full(sizes.shape, np.nan)
    cell = sizes[:, 1].min() / _CELLS
    is_complete = True
    for name in sorted(range(len(sizes)), key=lambda name: -len(members[name])):
        size, own = sizes[name], members[name]
        home = _nearest_to_median(own)
        for _ in range(_HALVINGS):
            squares = np.square(own - home).sum(axis=1)
            own = own[squares <= np.median(squares)]
            home = _nearest_to_median(own)
        radius = np.square(own - home).sum(axis=1).max()
        others = np.square(points[codes != name] - home).sum(axis=1)
        gathers = np.sum(others <= radius) <= len(others) / 2 ** (_HALVINGS + 1)
        if np.any((home < 0) | (home > window)):
            continue
        home = np.clip(home, size / 2, window - size / 2)
        count = (_REACH * np.sqrt(radius) + size[1]) // cell
        steps = np.arange(-count, count + 1)
        offsets = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
        spots = home + cell * offsets
        free = np.all((spots >= size / 2) & (spots <= window - size / 2), axis=1)
        for place, other in zip(places, sizes, strict=True):  # of NaN nothing is far or near
            free &= ~np.all(np.abs(spots - place) < (size + other) / 2, axis=1)
        away = np.where(free, np.square(offsets).sum(axis=1), np.inf)
        if gathers and free.any():
            places[name] = spots[away.argmin()]
        else:
            is_complete = False
    if len(sizes) < _FEW_NAMES and not is_complete:
        places[:] = np.nan
    return places


def _nearest_to_median(points: Array) -> Array:
    apart = points - np.median(points, axis=0)
    return np.asarray(points[np.square(apart).sum(axis=1).argmin()])


_SIZE = (7.6, 6.0)  # inches
_PANEL_INCHES, _MAX_COLUMNS = 3.4, 4
_SMALL, _GREY = 7.5, "#555555"  # points, colour of notes
_LETTERS = 54  # of notes, in the width of a panel
_MOST_CELLS, _LEAST_CELLS = 420, 40  # of a density, along the longer side
_CELLS_PER_ROOT = 2.4  # of the number of points: one point fills a cell that can be seen
_FAINTEST = 0.25  # alpha of a cell with one point


def scatter(
    F: Any,
    labels: Any = None,
    *,
    title: str = "",
    names: Sequence[str] | None = None,
    path: str | Path | None = None,
    ax: Any = None,
    legend: bool = True,
    whole: bool = False,
) -> Any:
    """Draw an embedding in the plane.

    One coordinate is drawn as a strip, two are drawn as they are. Three or more are projected on
    the first two principal axes, which enlarges no distance.

    If a few far points would make all others small, the window shows the central 98 % of the points
    (by their distance from the median, and 30 % more). Points outside are drawn at the edge with a
    ring, and the title has their number. Otherwise all points are inside.

    Parameters
    ----------
    F : array-like of shape (n_samples, n_components)
        The embedding.
    labels : array-like of shape (n_samples,), default=None
        Labels for the colours. Text, booleans and at most 20 distinct whole numbers are categories,
        with a legend; with more than 20 categories the 19 largest have colours of their own. Other
        numbers get a colour bar. Missing labels (None, NaN, infinity, empty text) are grey.
    title : str, default=""
        Text above the axes.
    names : sequence of str, default=None
        Names of the coordinates, shown at the axes if there are one or two. Those of a free layout
        mean nothing.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.
    legend : bool, default=True
        Draw a legend or colour bar; panels side by side need only one.
    whole : bool, default=False
        Show all points at their places, however far some are.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn on.

    Raises
    ------
    ValueError
        If F is not a finite array of two dimensions, if labels or names do not fit it, or if the
        suffix of `path` is unknown.
    ImportError
        If matplotlib is missing.

    See Also
    --------
    plot.panels : Draw embeddings side by side.
    plot.density : Draw the number of points in each cell of the plane.
    plot.space : Draw an embedding in space.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.plot import scatter
    >>> figure = scatter(np.eye(3), labels=["a", "b", "b"], title="three points")
    >>> figure.axes[0].get_title("left")
    'three points'
    """
    ax = axes_for(path, ax, _SIZE)
    picture = Picture(ax, F, labels, names, title, whole=whole, shape=size_in_inches(ax))
    picture.draw()
    if np.shape(F)[1] == 1:
        ax.set_yticks([])
    else:
        picture.write_names()
        ax.set_aspect("equal", adjustable="box" if picture.outside.any() else "datalim")
    return picture.finished(legend, path)


def density(
    F: Any,
    labels: Any = None,
    *,
    title: str = "",
    names: Sequence[str] | None = None,
    path: str | Path | None = None,
    ax: Any = None,
    legend: bool = True,
    whole: bool = False,
) -> Any:
    """Draw how many points lie in each cell of the plane; millions take a second.

    The window is that of `scatter`; points outside of it are added to the cells at its edge. The
    strength of a colour grows with the logarithm of the number of points. The colour is the mean of
    the colours of the labels in the cell, or the colour of the mean of the numbers.

    Parameters
    ----------
    F : array-like of shape (n_samples, n_components)
        The embedding.
    labels : array-like of shape (n_samples,), default=None
        Labels for the colours. Text, booleans and at most 20 distinct whole numbers are categories,
        with a legend. Other numbers get a colour bar. Missing labels are grey.
    title : str, default=""
        Text above the axes.
    names : sequence of str, default=None
        Names of the coordinates.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    legend : bool, default=True
        Draw a legend or colour bar.
    whole : bool, default=False
        Show all points at their places, however far some are.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn on.

    Raises
    ------
    ValueError
        F is not a finite array, labels or names do not fit it, or the suffix of `path` is unknown.
    ImportError
        matplotlib is missing.

    See Also
    --------
    plot.scatter : Draw an embedding in the plane.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import plot
    >>> F = np.random.default_rng(0).normal(size=(10_000, 2))
    >>> len(plot.density(F).axes[0].images)
    1
    """
    ax = axes_for(path, ax, _SIZE)
    picture = Picture(ax, F, labels, names, title, whole=whole, how="counted")
    points, values = picture.points, picture.values
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.maximum(high - low, 1e-3 * (float((high - low).max()) or 1.0))
    side = np.clip(_CELLS_PER_ROOT * np.sqrt(len(points)), _LEAST_CELLS, _MOST_CELLS)
    shape = np.maximum(1, np.round(side * span / span.max())).astype(int)
    of_numbers = picture.legend is None
    summed = [~np.ma.getmaskarray(values), values.filled(0)] if of_numbers else picture.rgb.T
    place = np.clip(((points - low) / span * shape).astype(int), 0, shape - 1)
    cell = np.ravel_multi_index(place[:, ::-1].T, shape[::-1])  # rows are heights
    counts, *sums = (
        np.bincount(cell, weights, np.prod(shape)).reshape(shape[::-1])
        for weights in (None, *summed)
    )
    if not of_numbers:
        colours = np.clip(np.dstack(sums) / np.maximum(counts, 1)[..., None], 0, 1)
    else:
        number, total = sums
        mean = np.ma.masked_array(total / np.maximum(number, 1), number == 0)
        colours = picture.scale.to_rgba(mean)[..., :3]
    full = np.log1p(counts) / np.log1p(max(2.0, float(np.quantile(counts[counts > 0], 0.99))))
    strength = np.where(counts > 0, np.clip(full, _FAINTEST, 1.0), 0.0)
    ax.imshow(
        np.dstack([colours, strength]),
        origin="lower",
        extent=np.column_stack([low, low + span]).ravel(),
        aspect="equal",
        interpolation="nearest",
    )
    return picture.finished(legend, path)


def space(
    F: Any,
    labels: Any = None,
    *,
    title: str = "",
    names: Sequence[str] | None = None,
    path: str | Path | None = None,
    ax: Any = None,
    legend: bool = True,
    whole: bool = False,
) -> Any:
    """Draw an embedding in space, all axes on one scale; beyond three, on its principal axes.

    Parameters
    ----------
    F : array-like of shape (n_samples, n_components)
        The embedding, with at least three coordinates.
    labels : array-like of shape (n_samples,), default=None
        Labels for the colours. Text, booleans and at most 20 distinct whole numbers are categories,
        with a legend. Other numbers get a colour bar. Missing labels are grey.
    title : str, default=""
        Text above the axes.
    names : sequence of str, default=None
        Names of the coordinates.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    legend : bool, default=True
        Draw a legend or colour bar.
    whole : bool, default=False
        Show all points at their places, however far some are.
    ax : matplotlib Axes, default=None
        Where to draw, with ``projection="3d"``; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn on.

    Raises
    ------
    ValueError
        Fewer than three coordinates; labels or names that do not fit F; an unknown suffix of
        `path`.
    ImportError
        matplotlib is missing.

    See Also
    --------
    plot.scatter : Draw an embedding in the plane.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import plot
    >>> plot.space(np.eye(4)[:, :3], names=["x", "y", "z"]).axes[0].get_zlabel()
    'z'
    """
    if np.ndim(F) == 2 and np.shape(F)[1] < 3:
        raise ValueError(
            f"F has {np.shape(F)[1]} columns; pass three or more, or draw it in the plane."
        )
    ax = axes_for(path, ax, _SIZE, projection="3d")
    picture = Picture(ax, F, labels, names, title, whole=whole)
    picture.draw()
    size = np.ptp(picture.points, axis=0)
    ax.set_box_aspect(np.maximum(size, 0.05 * size.max()) + 1e-300)
    return picture.finished(legend, path)


def panels(
    embeddings: Mapping[str, Array | None],
    labels: Any = None,
    notes: Mapping[str, str] | None = None,
    *,
    caption: str = "",
    path: str | Path | None = None,
    whole: bool = False,
) -> Any:
    """Draw embeddings side by side, with one legend.

    Parameters
    ----------
    embeddings : mapping of str to array-like of shape (n_samples, n_components), or to None
        Embeddings, each drawn by `scatter`. For None the note stands in the place of a picture.
    labels : array-like of shape (n_samples,), default=None
        Labels for the colours, see `scatter`.
    notes : mapping of str to str, default=None
        Texts below the pictures.
    caption : str, default=""
        Text below all of them.
    path : path, default=None
        File to write, .png, .pdf or .svg; an existing one is replaced.
    whole : bool, default=False
        Show all points at their places, however far some are.

    Returns
    -------
    matplotlib.figure.Figure
        The figure drawn on.

    Raises
    ------
    ImportError
        matplotlib is missing.
    ValueError
        No embeddings; an embedding that is not a finite array; labels that do not fit; an unknown
        suffix of `path`.

    See Also
    --------
    plot.scatter : Draw an embedding in the plane.
    compare : Embed data by several methods and measure each.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.plot import panels
    >>> len(panels({"a": np.eye(3), "b": np.eye(3)[:, :2]}).axes)
    2
    """
    if not embeddings:
        raise ValueError("There are no embeddings to draw; pass at least one.")
    rows = math.ceil(len(embeddings) / _MAX_COLUMNS)
    columns = math.ceil(len(embeddings) / rows)
    figure = new_figure(_PANEL_INCHES * columns + 1.2, _PANEL_INCHES * rows)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    grey: dict[str, Any] = {"fontsize": _SMALL, "color": _GREY, "parse_math": False}
    drawn = None
    for place, (name, F) in enumerate(embeddings.items()):
        ax = figure.add_subplot(rows, columns, place + 1)
        note = (notes or {}).get(name, "")
        if F is None:
            finish(ax, name, ("", ""))
            middle = {"ha": "center", "va": "center", "transform": ax.transAxes}
            ax.text(0.5, 0.5, fill(note, _LETTERS), **middle, **grey)
        else:
            scatter(F, labels, title=name, ax=ax, legend=False, whole=whole)
            ax.set_xlabel(note, x=0, ha="left", fontsize=_SMALL, parse_math=False)
            drawn = F
        ax.set(ylabel="", xticks=[], yticks=[])
        ax.spines[:].set(visible=True, color="#dddddd")
    if drawn is not None:
        last = figure.axes[columns - 1]
        Picture(last, drawn, labels, None, "", whole=True).explain(figure.axes)
        if last.get_legend() is not None:  # which would make the pictures narrower
            extent = last.get_legend().get_window_extent()
            figure.set_figwidth(_PANEL_INCHES * columns + extent.width / figure.dpi)
    if caption:
        figure.supxlabel(fill(caption, columns * _LETTERS), x=0.006, ha="left", **grey)
    if path is not None:
        save(figure, path)
    return figure
