"""papers/coverage.md: every number of the texts has a row, and what the rows name exists."""

import ast
import functools
import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "papers" / "coverage.md").read_text(encoding="utf-8")


VERDICTS = ("complete", "differs", "partial", "missing", "nothing to compute")
KINDS = {"D": "Definition", "T": "Theorem", "P": "Proposition", "L": "Lemma", "C": "Corollary"}
KINDS |= {"A": "Algorithm", "F": "Figure"}
ITEMS = {
    "Sketching the heat kernel": """
        (1)–(32) T2.1 T2.2 T2.3 P2.4 T2.5 P2.6 L2.7 L2.8 T2.9 C2.10 T2.11 T3.1 P3.2 T3.3 P3.4 P4.1
        A1 A2 A3 A4 A5 F1a F1b F2a F2b F3a F3b F3c F4 F5a F5b F6a F6b""",
    "Linear and nonlinear dimensionality reduction": """
        (1)–(59) D1 D2 P1 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10""",
    "Diffusion representation": """
        (2.1)–(2.6) (3.1)–(3.6) (4.1)–(4.11) (5.1)–(5.20) (6.1)–(6.3) (A.1)–(A.8) (B.1)–(B.3)
        T3.1 L4.1 L5.1 L5.2 F6.1 F6.2 F6.3""",
}


def rows_of(title):
    """Return the rows of a section: (item, what, where, tests, verdict, what differs)."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


ROWS = [(title, row) for title in ITEMS for row in rows_of(title)]


def expanded(item):
    """Return the numbers that a row is for: "(5.3)–(5.4)" is two, and so is "(1), (8)"."""
    if ", " in item:
        return [number for part in item.split(", ") for number in expanded(part)]
    ends = item.split("–")
    if len(ends) == 1:
        return ends
    chapter, first = re.fullmatch(r"\((\w\.)?(\d+)\)", ends[0]).groups()
    same, last = re.fullmatch(r"\((\w\.)?(\d+)\)", ends[1]).groups()
    assert chapter == same
    return [f"({chapter or ''}{n})" for n in range(int(first), int(last) + 1)]


def items_of(title):
    """Return what is numbered in a text: "T2.1" is Theorem 2.1."""
    words = [re.sub(r"^[A-Z]", lambda k: f"{KINDS[k[0]]} ", w) for w in ITEMS[title].split()]
    return [item for word in words for item in expanded(word)]


@functools.cache
def functions_of(path):
    """Return the functions of a file of tests by name, with the marks that they have."""
    folder = ROOT if path.startswith("papers/") else ROOT / "tests"
    tree = ast.parse((folder / path).read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: " ".join(map(ast.unparse, node.decorator_list)) for node in found}


@pytest.mark.parametrize("title", ITEMS)
def test_every_number_has_one_row(title):
    found = [item for row in rows_of(title) for item in expanded(row[0])]
    numbered = [item for item in found if not item.startswith(("§", "abstract"))]
    assert sorted(numbered) == sorted(items_of(title))


@pytest.mark.parametrize(("title", "row"), ROWS, ids=[f"{t[:6]} {row[0]}" for t, row in ROWS])
def test_what_a_row_names_exists(title, row):
    _, what, where, tests, verdict, reason = row
    assert what
    assert (verdict == "nothing to compute") == where.startswith(verdict)
    assert reason or verdict in ("complete", "nothing to compute")
    names = re.findall(r"`([^`]+)`", where)
    for name in names:
        if name.startswith(("hs.", "heatsketch.", "papers.")):
            assert pkgutil.resolve_name(re.sub(r"^hs\.", "heatsketch.", name)) is not None
        elif name.startswith("papers/"):
            assert (ROOT / name).exists()
    if verdict != "nothing to compute":
        assert names or where.startswith(("as ", "no function, ")), f"{row[0]} has no place"
        assert tests, f"{row[0]} has no test"
    for test in re.findall(r"`([^`]+)`", tests):
        path, _, function = test.partition("::")
        assert function in functions_of(path), test
        assert not re.search(r"mark\.(skip|xfail|gpu)", functions_of(path)[function]), test


def test_places_that_refer_to_another_row_find_it():
    number = r"\([\w.]+\)|(?:Figure|Lemma) [\d.]*\d[abc]?"
    for title, row in ROWS:
        reference = re.match(rf"(?:(?:no function|nothing to compute), )?as ({number})", row[2])
        if reference:
            assert reference[1] in items_of(title)


def test_the_counts_at_the_top_are_those_of_the_verdicts():
    of_rows = [row[4] for _, row in ROWS]
    assert set(of_rows) <= set(VERDICTS)
    counts = [f"{verdict}: {of_rows.count(verdict)}" for verdict in VERDICTS]
    first = PAGE.split("\n\n")[1]
    assert first == f"**{len(ROWS)} rows; {', '.join(counts)}.**"


def test_the_tests_of_the_papers_that_rows_name_are_run():
    weekly = (ROOT / ".github" / "workflows" / "weekly.yml").read_text(encoding="utf-8")
    assert re.search(r"pytest .*\bpapers\b", weekly)
