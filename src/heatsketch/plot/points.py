"""An embedding as points on axes: the window, the colours, names and a legend."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch._validation import check_points, read_labels
from heatsketch.plot.figures import finish, letter_width, size_in_inches, text_size
from heatsketch.plot.labels import (
    MAIN_COLOUR,
    NO_LABEL_COLOUR,
    categories,
    legend_of,
    palette,
    place_names,
)
from heatsketch.spectral.eigenpairs import fix_signs

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
