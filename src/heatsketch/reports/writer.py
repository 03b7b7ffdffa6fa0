"""The writer of a report: one file of HTML from its facts."""

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
from heatsketch.spectral.eigenpairs import caching

SUFFIXES = (".html", ".htm")
_SCRIPTS = ("scatter.js", "charts.js", "distances.js", "report.js")


@dataclass(frozen=True)
class Report:
    """A report: one page of HTML that needs no other file, no network and no server.

    Attributes
    ----------
    facts : dict
        The contents of the page, as numbers and text.
    """

    facts: dict[str, Any]

    @property
    def html(self) -> str:
        """The page."""
        return page(self.facts)

    def save(self, path: str | Path, *, force: bool = True) -> None:
        """Write the page to an .html file, atomically."""
        check_suffix(path)
        # UTF-8 cannot encode a lone surrogate; it becomes the escape of JSON.
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
    """Show an embedding in one page of HTML for any browser, offline.

    The points can be zoomed, rotated (with three or more coordinates), coloured by any column,
    pointed at to see their ids, and circled to list them and save the list. A slider moves them
    through diffusion times. Sketches and diffusion maps use the same random numbers, eigenvectors
    and axes at all times; the picture of a `HeatEmbedding` at each time is rotated to the one
    before. Each time has a scale of its own, and between times points move on straight lines. A
    click on a point colours all others by their diffusion distance to it, with its interval under
    the pointer; a second click shows the path between two points. Beside the picture the page has
    the distortion of distances with the worst pairs, the Ksum test, the scales of the data, the
    diffusion variance explained, the components of the graph, parameters and versions.

    Parameters
    ----------
    est : fitted estimator or Audit
        An estimator with one time. Methods without a diffusion have no slider. For an `Audit`, the
        page shows the picture, coloured by trust, torn and merged groups, and gaps.
    X : array, DataFrame, sparse matrix or `heatsketch.io.Table` (n, d), optional
        The points, for the Ksum test. A dense X of up to 50 columns also gives colours, for a table
        in the units of its file.
    labels : array (n,), or mapping or DataFrame of columns (n,), optional
        Columns for the colours; the first one is shown at the start. `plot.categories` tells
        categories from numbers.
    colors : {column: {category: "#rrggbb"}}, optional
        Colours of categories of `labels`; by default a palette.
    ids : array (n,), or mapping of columns, optional
        Names of the points; by default their numbers from 0.
    path : path, optional
        File to write, .html; an existing one is replaced.
    times : sequence of numbers, optional
        Diffusion times of the slider, beside that of the embedding; by default some smaller and
        larger by powers of two.
    title : str, optional
    beside : array (n, c), fitted estimator, or {title: one of them}, optional
        Another picture of the same points, beside the first. Points that are pointed at or selected
        in one are marked in both.
    images : tuple (height, width), optional
        Size of images whose pixels are the features of X; they are shown under the pointer.

    Returns
    -------
    Report
        `.html`, `.facts` and `.save(path)`.

    Raises
    ------
    ValueError
        An estimator with several times; columns of another length than its points; times that its
        filter does not allow, or times without a diffusion; a suffix that is not .html.

    Notes
    -----
    Beyond 20,000 points a random sample is shown, with the ends of the worst pairs; all numbers are
    still those of all points. Cost: mostly the frames of the slider, each a few products or a quick
    map, and the error of distances as in `diffusion_distortion`. A page has about 16 bytes for each
    point and time.

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
    """Raise unless the suffix of a file is .html."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path} has the suffix of another format; pass a name ending in .html.")


def page(facts: dict[str, Any]) -> str:
    """Return the page, HTML that shows the facts.

    The page has the facts as JSON in which no tag can begin or end; the script shows them as text.
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
    """Return the hash of a script, by which the policy of the page allows it to run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _file(name: str) -> str:
    return importlib.resources.files("heatsketch.reports").joinpath(name).read_text("utf-8")
