"""The gallery scripts run from anywhere, say little, and keep what they assert."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
WITHOUT_MATPLOTLIB = """
import runpy, sys
sys.modules["matplotlib"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(folder, *arguments):
    command = [sys.executable, "-W", "error::UserWarning", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_there_are_examples():
    assert {script.stem for script in SCRIPTS} >= {"circle", "digits", "torus"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_asserts_something(script):
    tree = ast.parse(script.read_text(encoding="utf-8"))
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))


def slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "name",
    [
        "circle",
        "molecule",
        *map(
            slow, ["anomalies", "how_many_coordinates", "how_sure", "near_isometric", "new_points"]
        ),
        *map(slow, ["roll", "torus", "what_changed", "which_cells_come_first", "which_scale"]),
    ],
)
def test_example_runs_and_says_a_few_lines(name, tmp_path):
    result = run(tmp_path, EXAMPLES / f"{name}.py")
    assert result.returncode == 0, result.stderr
    assert 1 <= len(result.stdout.splitlines()) <= 3


def test_graphs_draws_where_it_is_told(tmp_path):
    result = run(tmp_path, EXAMPLES / "graphs.py", "here.png")
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 3
    assert (tmp_path / "here.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_cells_runs_where_scanpy_is(tmp_path):
    pytest.importorskip("scanpy")
    result = subprocess.run(
        [sys.executable, EXAMPLES / "cells.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_digits_draws_where_it_is_told(tmp_path):
    pytest.importorskip("matplotlib")
    result = run(tmp_path, EXAMPLES / "digits.py", "here.png")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "here.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["here.png"]


def test_digits_goes_without_matplotlib(tmp_path):
    result = run(tmp_path, "-c", WITHOUT_MATPLOTLIB, EXAMPLES / "digits.py")
    assert result.returncode == 0, result.stderr
    assert "no picture: plotting needs matplotlib" in result.stdout
    assert list(tmp_path.iterdir()) == []
