"""Every case raises what it says; the tables of tests/bad-inputs.md have its first words."""

import re
from pathlib import Path

import pytest

from bad_inputs.cases import refused
from bad_inputs.test_affinities import MATRICES
from bad_inputs.test_points import OTHER_FORMS, UNUSABLE
from bad_inputs.test_scales import OTHERS, SCALES

PAGE = Path(__file__).parents[1] / "bad-inputs.md"
WRITTEN = dict(re.findall(r"(?s)<!-- cases: (.+?) -->\n(.*?)<!-- end -->", PAGE.read_text("utf-8")))
TABLES = {"points": UNUSABLE, "scales": SCALES, "affinities": MATRICES}


CASES = UNUSABLE + OTHER_FORMS + SCALES + OTHERS + MATRICES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_cases(case):
    with refused(case.kind, *case.words):
        case.call()


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_the_rows_of_the_cases(name):
    assert set(WRITTEN) == set(TABLES)
    for line, case in zip(WRITTEN[name].splitlines()[2:], TABLES[name], strict=True):
        assert line.startswith(f"| {case.title} | `{case.kind.__name__}` | ")
        assert case.words[0] in line
