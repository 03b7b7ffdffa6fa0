"""One file of HTML from the facts of a report."""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heatsketch.comparison.audit import Audit
from heatsketch.io.files import write_atomically
from heatsketch.io.metadata import plain
from heatsketch.io.refine import in_units_of_source
from heatsketch.io.table import Table
from heatsketch.reports.columns import (
    column,
    columns_of,
    feature_columns,
    image_facts,
    packed,
    texts,
)
from heatsketch.reports.facts import of_audit, of_estimator, shown_points, versions
from heatsketch.reports.frames import (
    beside_facts,
    distortion_facts,
    frames,
    slider_times,
    times_of,
)
from heatsketch.reports.truth import distortion_of, sketch_facts, sketch_of
from heatsketch.spectral.cache import caching

SUFFIXES = (".html", ".htm")
_SCRIPTS = ("scatter.js", "charts.js", "distances.js", "report.js")


@dataclass(frozen=True)
class Report:
    """A report: one page of HTML that needs no other file, no network and no server.

    Attributes
    ----------
    facts : dict
        What the page shows, as numbers and text.
    """

    facts: dict[str, Any]

    @property
    def html(self) -> str:
        """The page."""
        return page(self.facts)

    def save(self, path: str | Path, *, force: bool = True) -> None:
        """Write the page to a file, .html; at every moment it has all of the old or the new."""
        check_suffix(path)
        # Half a pair of surrogates, which UTF-8 does not have, is the escape that JSON has for it.
        content = self.html.encode("utf-8", "backslashreplace")
        write_atomically(path, lambda draft: draft.write_bytes(content), force=force)

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        source = html.escape(self.html)
        return f'<iframe srcdoc="{source}" width="100%" height="900" style="border:0"></iframe>'

    def __repr__(self) -> str:
        """Describe the report without its numbers."""
        return f"Report({self.facts['title']!r}, {self.facts['n_points']:,} points)"


@caching()
def report(
    est: Any,
    X: Any = None,
    *,
    labels: Any = None,
    colors: Mapping[str, Mapping[str, str]] | None = None,
    ids: Any = None,
    path: str | Path | None = None,
    times: Sequence[float] | None = None,
    title: str = "",
    beside: Any = None,
    images: tuple[int, int] | None = None,
) -> Report:
    """Show an embedding in one page of HTML, to be looked at in any browser, offline.

    The points can be zoomed, turned (of three and more coordinates), coloured by any column, asked
    for their ids, and circled to list them and save the list. A slider moves them through diffusion
    times: sketches and diffusion maps use the same random numbers, eigenvectors and axes at all
    times; the map of a `HeatEmbedding` is followed from time to time, turned to the one before.
    Each time has a scale of its own, and between times points move on straight lines.
    A click on a point gives all others the colour of their diffusion distance to it, with its
    interval under the pointer; a second click shows the way between two points. Beside it:
    how distances are kept, with the worst pairs, the Ksum test, what scales there are, the
    diffusion variance explained, the components of the graph, parameters and versions.

    Parameters
    ----------
    est : fitted estimator or Audit
        With the coordinates of one time. Methods without a diffusion have no slider. Of an
        `Audit`, the page shows the picture, coloured by trust, torn and merged groups, and gaps.
    X : array, DataFrame, sparse matrix or `heatsketch.io.Table` (n, d), optional
        The points: for the Ksum test and, up to 50 columns of a dense X, as colours, in the units
        of the file of a table.
    labels : array (n,), or mapping or DataFrame of columns (n,), optional
        Colours, the first one at the start; categories and numbers are told apart as by
        `plot.categories`.
    colors : {column: {category: "#rrggbb"}}, optional
        Colours of categories of `labels`; by default a palette.
    ids : array (n,), or mapping of columns, optional
        What the points are called; by default their numbers from 0.
    path : path, optional
        File to write, .html; an existing one is replaced.
    times : sequence of numbers, optional
        Diffusion times of the slider, beside that of the embedding; by default some smaller and
        larger by powers of two.
    title : str, optional
    beside : array (n, c), fitted estimator, or {title: one of them}, optional
        Another picture of the same points, which stands beside the first: what is pointed at or
        selected in one is so in the other.
    images : tuple (height, width), optional
        The features of X are the pixels of images of this size, shown under the pointer.

    Returns
    -------
    Report
        `.html`, `.facts` and `.save(path)`.

    Raises
    ------
    ValueError
        An estimator of several times; columns that do not fit its points; times that its filter
        does not have, or times without a diffusion; a suffix that is not .html.

    Notes
    -----
    Of more than 20,000 points a random sample is shown, with the ends of the worst pairs; all
    figures are still those of all points. Cost: mostly the frames of the slider, each some
    products or a quick map, and the error of distances as `diffusion_distortion`. A page has
    about 16 bytes for each point and time.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> found = hs.report(hs.DiffusionMap(2, 8).fit(X), labels=angle)
    >>> found.facts["frames"]["times"]
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
    >>> found.html.startswith("<!doctype html>")
    True
    """
    if path is not None:
        check_suffix(path)
    if hasattr(est, "fit"):
        check_is_fitted(est)
    if len(times_of(est)) > 1:
        raise ValueError(
            f"est has the coordinates of {len(times_of(est))} times side by side; fit it with "
            "one time, the report moves through others."
        )
    features = getattr(X, "columns", getattr(est, "feature_names_in_", None))
    X, in_units = (X.values, in_units_of_source(X)) if isinstance(X, Table) else (X, X)
    is_audit = isinstance(est, Audit)
    model, Y = (est.model, est.picture) if is_audit else (est, est.embedding_)
    distortion = est.distortion if is_audit else distortion_of(est)
    n = len(Y)
    if X is not None and np.shape(X)[0] != n:
        raise ValueError(
            f"X has {np.shape(X)[0]} rows but est was fitted to {n}; pass the same points."
        )
    shown = shown_points(n, distortion)
    facts = of_audit(est, shown) if is_audit else of_estimator(est, X, shown)
    columns = [
        column(name, values, shown, (colors or {}).get(name))
        for name, values in columns_of(labels, "label", n).items()
    ]
    own = facts.pop("own columns")
    columns = own + columns if is_audit else columns + own
    facts |= {
        "title": title or facts["title"],
        "n_points": n,
        "n_coordinates": Y.shape[1],
        "shown": None if len(shown) == n else packed(shown, "i4"),
        "frames": frames(est, Y, slider_times(est, times), shown),
        "ids": {name: texts(values, shown) for name, values in columns_of(ids, "id", n).items()},
        "columns": columns + feature_columns(in_units, features, shown),
        "distortion": None if distortion is None else distortion_facts(distortion, shown),
        "parameters": {name: repr(value) for name, value in model.get_params(deep=False).items()},
        "versions": versions(),
        "sketch": sketch_facts(sketch_of(model), shown),
        "beside": beside_facts(beside, shown, n),
        "images": image_facts(X, images, shown),
    }
    found = Report(facts)
    if path is not None:
        found.save(path)
    return found


def check_suffix(path: str | Path) -> None:
    """Raise unless a file is to be HTML."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path} has the suffix of another format; pass a name ending in .html.")


def page(facts: dict[str, Any]) -> str:
    """Return the page (text of HTML) that shows facts.

    The facts stand in it as JSON in which no tag can begin or end; the script writes them as text.
    """
    style, script = _file("report.css"), "".join(map(_file, _SCRIPTS))
    text = json.dumps(plain(facts), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    parts = {
        "title": html.escape(facts["title"]),
        "style": style,
        "style_hash": _hash(style),
        "facts": text.replace("<", "\\u003c").replace("\u2028", "\\u2028"),
        "script": script,
        "script_hash": _hash(script),
    }
    return re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], _file("report.html"))


def _hash(text: str) -> str:
    """Return the name by which the page allows this text, and no other, to run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _file(name: str) -> str:
    return importlib.resources.files("heatsketch.reports").joinpath(name).read_text("utf-8")
