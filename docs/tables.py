"""Fill the tables of the pages, and of benchmarks/README.md, from docs/benchmarks/*.csv.

Run: python docs/tables.py

A table stands between a comment and `<!-- end -->`. The comment names the file without its suffix,
then what the rows must have, then the columns:
`<!-- table: growth | data=roll | points, seconds -->`.
"""

import csv
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGES = [*sorted(DOCS.glob("**/*.md")), DOCS.parent / "benchmarks" / "README.md"]
TABLE = re.compile(r"(<!-- table: (\w+) \|(.*?)\|(.*?)-->\n).*?(<!-- end -->)", re.DOTALL)


def table(name, where, columns):
    """Return rows of a CSV file as Markdown: where is "column=value", or empty for all rows."""
    with (DOCS / "benchmarks" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for condition in filter(None, where.split(";")):
        column, values = condition.strip().split("=")
        rows = [row for row in rows if row[column] in values.split("/")]
    (columns,) = csv.reader([columns], skipinitialspace=True)
    lines = [columns, ["---"] * len(columns), *([row[c] for c in columns] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def filled(text):
    """Return a page with its tables filled."""
    return TABLE.sub(lambda m: m[1] + table(m[2], m[3].strip(), m[4].strip()) + m[5], text)


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if filled(text) != text:
            page.write_text(filled(text), encoding="utf-8")
