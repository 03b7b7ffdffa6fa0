"""docs/coverage.md: every number of the texts has a row, and what the rows name exists."""

import ast
import functools
import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")


def _numbers(first, last, chapter=""):
    return [f"({chapter}{n})" for n in range(first, last + 1)]


ITEMS = {
    "Sketching the heat kernel": [
        *_numbers(1, 32),
        *(f"Theorem {n}" for n in ("2.1", "2.2", "2.3", "2.5", "2.9", "2.11", "3.1", "3.3")),
        *(f"Proposition {n}" for n in ("2.4", "2.6", "3.2", "3.4", "4.1")),
        *("Lemma 2.7", "Lemma 2.8", "Corollary 2.10"),
        *(f"Algorithm {n}" for n in range(1, 6)),
        *(f"Figure {n}" for n in range(1, 7)),
    ],
    "Linear and nonlinear dimensionality reduction": [
        *_numbers(1, 59),
        *("Definition 1", "Definition 2", "Proposition 1"),
        *(f"Figure {n}" for n in range(1, 11)),
    ],
    "Diffusion representation": [
        *_numbers(1, 6, "2."),
        *_numbers(1, 6, "3."),
        *_numbers(1, 11, "4."),
        *_numbers(1, 20, "5."),
        *_numbers(1, 3, "6."),
        *_numbers(1, 8, "A."),
        *_numbers(1, 3, "B."),
        *("Theorem 3.1", "Lemma 4.1", "Lemma 5.1", "Lemma 5.2"),
        *("Figure 6.1", "Figure 6.2", "Figure 6.3"),
    ],
}


def rows_of(title):
    """Return the rows of a section: (item, what, where, tests)."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


ROWS = [(title, row) for title in ITEMS for row in rows_of(title)]


def expanded(item):
    """Return the numbers that a row is for: "(5.3)–(5.4)" is two."""
    ends = item.split("–")
    if len(ends) == 1:
        return ends
    chapter, first = re.fullmatch(r"\((\w\.)?(\d+)\)", ends[0]).groups()
    same, last = re.fullmatch(r"\((\w\.)?(\d+)\)", ends[1]).groups()
    assert chapter == same
    return _numbers(int(first), int(last), chapter or "")


@functools.cache
def functions_of(path):
    folder = ROOT if path.startswith("papers/") else ROOT / "tests"
    tree = ast.parse((folder / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("title", ITEMS)
def test_every_number_has_one_row(title):
    found = [item for row in rows_of(title) for item in expanded(row[0])]
    numbered = [item for item in found if not item.startswith("§")]
    assert sorted(numbered) == sorted(ITEMS[title])


@pytest.mark.parametrize(("title", "row"), ROWS, ids=[f"{t[:6]} {row[0]}" for t, row in ROWS])
def test_what_a_row_names_exists(title, row):
    _, what, where, tests = row
    assert what
    names = re.findall(r"`([^`]+)`", where)
    for name in names:
        if name.startswith(("hs.", "heatsketch.", "papers.")):
            assert pkgutil.resolve_name(re.sub(r"^hs\.", "heatsketch.", name)) is not None
        elif name.startswith("papers/"):
            assert (ROOT / name).exists()
    if not re.fullmatch(r"not needed, (because|as) .+", where):
        assert names or where.startswith("as "), f"{row[0]} has no place"
        assert tests, f"{row[0]} has no test"
    for test in re.findall(r"`([^`]+)`", tests):
        path, _, function = test.partition("::")
        assert function in functions_of(path), test


def test_places_that_refer_to_another_row_find_it():
    number = r"\([\w.]+\)|(?:Figure|Lemma) [\d.]*\d"
    for title, row in ROWS:
        reference = re.match(rf"(?:not needed, )?as ({number})", row[2])
        if reference:
            assert reference[1] in ITEMS[title]
