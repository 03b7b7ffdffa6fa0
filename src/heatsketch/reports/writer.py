"""The writer of a report: one file of HTML from its facts."""

import base64
import hashlib
import html
import importlib.resources
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._optional import optional
from heatsketch.io.files import write_atomically
from heatsketch.io.metadata import plain
from heatsketch.reports.columns import column, named_columns, numbers, unpacked

SUFFIXES = (".html", ".htm")
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
    """

    facts: dict[str, Any]

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

    def widget(self, names: Iterable[str], values: Callable[[str], Any]) -> Any:
        """Return the page as a widget of a notebook that shows any column by typing its name.

        A name that is typed goes to the kernel, which answers with the values; only columns that
        are asked for are sent. `selected` of the widget has the rows of the points selected.

        Parameters
        ----------
        names : iterable of str
            Names of columns, such as ``adata.var_names``.
        values : callable
            Returns the column of a name, of shape (n_samples,), such as ``adata.obs_vector``.
            Floats are a scale of colours; other kinds are categories where `report` says so.

        Returns
        -------
        anywidget.AnyWidget
            A widget for Jupyter, VS Code, Colab or marimo.

        Raises
        ------
        ImportError
            If anywidget is missing.

        Examples
        --------
        >>> import heatsketch as hs
        >>> X, angle = hs.datasets.circle(100, rng=0)
        >>> page = hs.report(hs.DiffusionMap(2, 8).fit(X))
        >>> shown = page.widget(["angle"], {"angle": angle}.get)  # doctest: +SKIP
        >>> shown.selected  # doctest: +SKIP
        []
        """
        base: Any = optional("anywidget", "this widget needs anywidget", "notebook").AnyWidget
        from traitlets import List, Unicode

        class ReportWidget(base):
            _esm = _file("widget.js")
            page = Unicode().tag(sync=True)
            names = List().tag(sync=True)
            selected = List().tag(sync=True)

        n = self.facts["n_points"]
        rows = self.facts["shown"]
        shown = np.arange(n) if rows is None else unpacked(rows)

        def answer(widget: Any, name: str, _: Any) -> None:
            try:
                (given,) = named_columns({name: values(name)}, "value", n).values()
            except Exception as error:  # shown in the page, because a notebook hides it
                widget.send({"missing": f"{name}: {error}"})
            else:
                # Counts of a gene are few whole numbers, but no categories.
                counts = given.dtype.kind == "f"
                made = numbers(name, given[shown]) if counts else column(name, given, shown)
                widget.send({"column": plain(made)})

        found = ReportWidget(page=self.html, names=[str(name) for name in names])
        found.on_msg(answer)
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


def check_suffix(path: str | Path) -> None:
    """Raise unless the suffix of a file is .html."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path} has the suffix of another format; pass a name ending in .html.")


def _hash(text: str) -> str:
    """Return the hash of a script, by which the policy of the page allows it to run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _file(name: str) -> str:
    return importlib.resources.files("heatsketch.reports").joinpath(name).read_text("utf-8")
