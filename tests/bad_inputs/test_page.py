"""The tables of docs/bad-inputs.md are what the cases say, and each case is as it says."""

import re

import pytest

from bad_inputs.cases import called
from bad_inputs.page import PAGE, TABLE, TABLES, code, rows

CALLS = [
    pytest.param(case, id=f"{name}: {key}")
    for name, (door, cases) in TABLES.items()
    if door is called
    for key, case in cases.items()
]
WRITTEN = {found[2]: found[3] for found in TABLE.finditer(PAGE.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("case", CALLS)
def test_what_comes_of_it(case):
    case.check()


def without_numbers(text):
    """Return a text whose digits, which rounding may change, do not count."""
    return re.sub(r"\d+", "0", text)


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_the_rows_of_the_cases(name):
    """To the digits of numbers, and to messages of other libraries, whose versions differ."""
    lines = WRITTEN[name].splitlines()[2:]
    expected = list(rows(name))
    assert len(lines) == len(expected)
    for line, (title, seen) in zip(lines, expected, strict=True):
        start = f"| {title} | {seen.what} |"
        assert line.startswith(start)
        assert "?." not in seen.message
        if seen.own:
            assert without_numbers(code(seen.message)) in without_numbers(line)


def test_every_table_of_the_page_has_cases():
    assert set(WRITTEN) == set(TABLES)
