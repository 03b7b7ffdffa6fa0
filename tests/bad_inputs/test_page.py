"""The tables of docs/bad-inputs.md list the cases, and the first words of each message."""

import pytest

from bad_inputs.page import PAGE, TABLE, TABLES

WRITTEN = {found[2]: found[3] for found in TABLE.finditer(PAGE.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_the_rows_of_the_cases(name):
    assert set(WRITTEN) == set(TABLES)
    lines = WRITTEN[name].splitlines()[2:]
    assert len(lines) == len(TABLES[name])
    for line, case in zip(lines, TABLES[name], strict=True):
        assert line.startswith(f"| {case.title} | `{case.kind.__name__}` | ")
        assert case.words[0] in line
