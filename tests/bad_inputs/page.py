"""Write the tables of docs/bad-inputs.md from the cases: `python tests/bad_inputs/page.py`.

A table stands between `<!-- cases: name -->` and `<!-- end -->`; the rest of the page is by hand.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import heatsketch as hs
from bad_inputs import facts, files, inputs, messages
from bad_inputs.cases import Case, Seen, called

PAGE = Path(__file__).parents[2] / "docs" / "bad-inputs.md"
TABLE = re.compile(r"(<!-- cases: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

# Name of a table -> the door that its cases go to, and the cases.
TABLES: dict[str, tuple[Callable[[Any], Any], dict[str, Case]]] = {
    "unusable points": (inputs.DOORS["HeatSketch"], inputs.UNUSABLE),
    "unusable data frames": (inputs.DOORS["HeatSketch"], inputs.UNUSABLE_FRAMES),
    "new points": (called, facts.NEW_POINTS),
    "harmless forms": (inputs.DOORS["HeatSketch"], inputs.HARMLESS),
    "scales": (called, facts.SCALES),
    "parameters": (inputs.fitted_with, inputs.BAD_PARAMETERS),
    "affinities": (hs.Diffusion.from_affinity, inputs.BAD_AFFINITIES),
    "given affinities": (called, facts.GIVEN),
    "neighbours": (called, messages.NEIGHBORS),
    "mixtures": (called, messages.MIXTURES),
    "tables": (called, files.TABLES),
    "models": (called, files.MODELS),
    "outputs": (called, files.OUTPUTS),
}


def rows(name: str) -> Iterator[tuple[str, Seen]]:
    """Yield the title and the outcome of each case of a table."""
    door, cases = TABLES[name]
    for case in cases.values():
        yield case.title, case.seen(door)


def table(name: str) -> str:
    """Return a table in Markdown, without the column of messages if there are none."""
    found = list(rows(name))
    messages = any(seen.message for _, seen in found)
    head = ["input", "what happens", *["message"] * messages]
    lines = [head, ["---"] * len(head)]
    lines += [[title, seen.what, *[code(seen.message)] * messages] for title, seen in found]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def code(message: str) -> str:
    """Return a message as code within a table."""
    message = message.replace("|", "\\|")
    marks = "``" if "`" in message else "`"
    return f"{marks}{message}{marks}" if message else ""


def filled(page: str) -> str:
    """Return the page with its tables made anew."""
    return TABLE.sub(lambda found: found[1] + table(found[2]) + found[4], page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
