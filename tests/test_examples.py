"""The gallery scripts run from anywhere, say little, and keep what they assert."""

import ast
import runpy
from pathlib import Path

import pytest

from test_docs import slow_unless_quick

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
QUICK = {"circle"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_asserts_something(script):
    tree = ast.parse(script.read_text(encoding="utf-8"))
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))


@pytest.mark.parametrize("script", [slow_unless_quick(script, QUICK) for script in SCRIPTS])
@pytest.mark.filterwarnings("error::UserWarning")
def test_example_runs_says_a_few_lines_and_draws_one_picture(script, tmp_path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    if script.stem == "cells":
        pytest.importorskip("scanpy")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    plt.close("all")
    assert 1 <= len(capsys.readouterr().out.splitlines()) <= 3
    assert [path.name for path in tmp_path.iterdir()] == [f"{script.stem}.png"]
    assert (tmp_path / f"{script.stem}.png").read_bytes().startswith(b"\x89PNG")
