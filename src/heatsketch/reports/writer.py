"""The writer of a report: one file of HTML from its facts."""

import base64
import hashlib
import html
import importlib.resources
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._arrays import Array
from heatsketch._words import optional
from heatsketch.io.files import write_atomically
from heatsketch.io.metadata import plain
from heatsketch.metrics.markers import markers
from heatsketch.reports.columns import column, named_columns, numbers, unpacked

SUFFIXES = (".html", ".htm")
_MARKERS = 50  # features of a comparison that are sent to the page
_SCRIPTS = (
    *("data.js", "charts.js", "statistics.js", "names.js", "scatter.js", "distances.js", "page.js"),
    *("colours.js", "filters.js", "over.js", "time.js", "asked.js", "selection.js", "search.js"),
    *("cards.js", "pictures.js", "pointer.js", "report.js"),
)


@dataclass(frozen=True)
class Report:
    """A report: one page of HTML that needs no other file, no network and no server.

    Attributes
    ----------
    facts : dict
        The contents of the page, as numbers and text.
    again : callable or None
        Embeds some rows of the points again, and returns the report on them.
    """

    facts: dict[str, Any]
    again: Callable[[Array], "Report"] | None = field(default=None, compare=False)  # of rows

    @property
    def html(self) -> str:
        """The page.

        It has the facts as JSON in which no tag can begin or end; the script shows them as text.
        """
        style, script = _file("report.css"), "".join(map(_file, _SCRIPTS))
        facts = json.dumps(
            plain(self.facts), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        parts = {
            "title": html.escape(self.facts["title"]),
            "style": style,
            "style_hash": _hash(style),
            "facts": facts.replace("<", "\\u003c").replace("\u2028", "\\u2028"),
            "script": script,
            "script_hash": _hash(script),
        }
        return re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], _file("report.html"))

    def save(self, path: str | Path, *, force: bool = True) -> None:
        """Write the page to an .html (.htm) file, atomically; with `force` replace an existing one.

        Raises
        ------
        ValueError, FileExistsError
            Another suffix; the file exists and `force` is false.
        """
        check_suffix(path)
        # UTF-8 cannot encode a lone surrogate; it becomes the escape of JSON.
        content = self.html.encode("utf-8", "backslashreplace")
        write_atomically(path, lambda draft: draft.write_bytes(content), force=force)

    def widget(self, names: Iterable[str], values: Callable[[str], Any], X: Any = None) -> Any:
        """Return the page as a widget of a notebook, whose kernel knows more than the page.

        A name that is typed goes to the kernel, which answers with the values; only columns that
        are asked for are sent. With X a selection is compared in all features (`markers`). Points
        that are selected can be embedded again, if the report was made with its points.

        Parameters
        ----------
        names : iterable of str
            Names of columns, such as ``adata.var_names``.
        values : callable
            Returns the column of a name, of shape (n_samples,), such as ``adata.obs_vector``.
            Floats are a scale of colours; other kinds are categories where `report` says so.
        X : {array-like, sparse matrix} of shape (n_samples, n_names), default=None
            All columns, in the order of `names`, such as ``adata.X``.

        Returns
        -------
        anywidget.AnyWidget
            A widget for Jupyter, VS Code, Colab or marimo. `selected` has the rows of the points
            selected; `annotations`, an array of shape (n_samples,), the names that selections were
            given in the page, "" for points without one.

        Raises
        ------
        ImportError
            If anywidget is missing.

        Examples
        --------
        >>> import heatsketch as hs
        >>> X, angle = hs.datasets.circle(100, rng=0)
        >>> page = hs.report(hs.DiffusionMap(2, 8).fit(X), X)
        >>> shown = page.widget(["angle"], {"angle": angle}.get)  # doctest: +SKIP
        >>> shown.selected  # doctest: +SKIP
        []
        >>> adata.obs["kind"] = shown.annotations  # doctest: +SKIP
        """
        base: Any = optional("anywidget", "this widget needs anywidget", "notebook").AnyWidget
        from traitlets import List, Unicode

        class ReportWidget(base):
            _esm = _file("widget.js")
            page = Unicode().tag(sync=True)
            names: Any = List().tag(sync=True)
            selected: Any = List().tag(sync=True)
            can: Any = List().tag(sync=True)  # of "again", "back" and "compare"

        names = [str(name) for name in names]
        found = ReportWidget(names=names)
        found.annotations = np.full(self.facts["n_points"], "", dtype=object)
        kernel = _Kernel(found, self, names, values, X)
        kernel.show(self)
        found.on_msg(kernel.answer)
        return found

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame that reaches nothing of the notebook."""
        source = html.escape(self.html)
        allowed = 'sandbox="allow-scripts allow-downloads" allow="clipboard-write"'
        size = 'width="100%" height="900" style="border:0"'
        return f'<iframe srcdoc="{source}" {allowed} {size}></iframe>'

    def __repr__(self) -> str:
        """Describe the report without its numbers."""
        return f"Report({self.facts['title']!r}, {self.facts['n_points']:,} points)"


class _Kernel:
    """What a widget is answered: columns, comparisons, and the page of a selection."""

    def __init__(
        self, widget: Any, first: Report, names: list[str], values: Callable[[str], Any], X: Any
    ) -> None:
        self.widget, self.first, self.names, self.values, self.X = widget, first, names, values, X

    def show(self, page: Report) -> None:
        """Show a page: the first one, or that of a selection."""
        n, rows = self.first.facts["n_points"], page.facts["shown"]
        self.rows = np.arange(n) if rows is None else unpacked(rows)
        knows = {
            "again": self.first.again is not None,
            "back": page is not self.first,
            "compare": self.X is not None,
        }
        self.widget.can = [name for name, able in knows.items() if able]
        self.widget.page = page.html

    def answer(self, _: Any, wanted: Any, __: Any) -> None:
        """Answer a message: the name of a column, or a wish by name."""
        try:
            if isinstance(wanted, str):
                self.send_column(wanted)
            else:
                for name, value in wanted.items():
                    getattr(self, f"on_{name}")(value)
        except Exception as error:  # shown in the page, because a notebook hides it
            what = wanted if isinstance(wanted, str) else ", ".join(wanted)
            self.widget.send({"missing": f"{what}: {error}"})

    def send_column(self, name: str) -> None:
        n = self.first.facts["n_points"]
        (given,) = named_columns({name: self.values(name)}, "value", n).values()
        # Counts of a gene are few whole numbers, but no categories.
        counts = given.dtype.kind == "f"
        made = numbers(name, given[self.rows]) if counts else column(name, given, self.rows)
        self.widget.send({"column": plain(made)})

    def on_compare(self, wanted: dict[str, Any]) -> None:
        sides = [None if side is None else np.asarray(side) for side in wanted.values()]
        found = markers(self.X, *sides, names=self.names)
        kept = found.names, found.area, found.median, found.median_against, found.p_adjusted
        first = zip(*(np.asarray(values)[:_MARKERS].tolist() for values in kept), strict=True)
        lines = [
            {"name": str(name), "area": area, "medians": medians, "p": p}
            for name, area, *medians, p in first
            if area == area  # NaN where a side has no number
        ]
        self.widget.send({"markers": plain(lines), "of": len(found.names)})

    def on_annotations(self, named: dict[str, list[int]]) -> None:
        annotations = self.widget.annotations.copy()
        for name, rows in named.items():
            annotations[rows] = name
        self.widget.annotations = annotations

    def on_again(self, rows: list[int]) -> None:
        assert self.first.again is not None  # else the page has no button
        self.show(self.first.again(np.sort(np.asarray(rows, dtype=int))))

    def on_back(self, _: Any) -> None:
        self.show(self.first)


def check_suffix(path: str | Path) -> None:
    """Raise unless the suffix of a file is .html."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path} has the suffix of another format; pass a name ending in .html.")


def _hash(text: str) -> str:
    """Return the hash of a script, by which the policy of the page allows it to run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _file(name: str) -> str:
    return importlib.resources.files("heatsketch.reports").joinpath(name).read_text("utf-8")
