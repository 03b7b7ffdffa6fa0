"""What the README prints must run."""

from pathlib import Path

import numpy as np
import pytest

from problems.pages import run_page

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_the_code_runs_and_does_what_its_comments_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page(README)
    assert names["Y"].shape == (1797, 2)
    assert np.array_equal(names["Y_new"], names["Y"][:10])


def test_the_two_commands_that_continuous_integration_takes_from_it_are_there_once():
    lines = [line for line in README.read_text(encoding="utf-8").splitlines() if "-m venv" in line]
    assert [line.split(".venv/bin/")[-1] for line in lines] == [
        "heatsketch embed digits -o digits.csv --plot digits.png",
        "python -m pytest -n auto",
    ]


def test_it_is_read_in_two_minutes():
    assert len(README.read_text(encoding="utf-8").split()) <= 450
