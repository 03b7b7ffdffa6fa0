"""The recipes of the page on pictures, for libraries that the tests do not ask for."""

import re
from pathlib import Path

import numpy as np
import pytest

from problems.pages import NOT_RUN, blocks_of

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "pictures.md"
RECIPES = {
    re.match(r"import (\w+)", block)[1]: block
    for language, mark, block in blocks_of(PAGE)
    if mark == NOT_RUN and language == "python"
}


@pytest.mark.parametrize("library", ["plotly", "datamapplot"])
def test_a_recipe_makes_a_page_of_all_labels(library, tmp_path, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels = np.repeat([711, 722, 733], 40)
    Y = rng.normal(size=(120, 2)) + np.repeat(np.eye(3, 2) * 9, 40, axis=0)
    exec(RECIPES[library], {"Y": Y, "labels": labels})
    page = (tmp_path / f"{library}.html").read_text("utf-8")
    assert page.lstrip().lower().startswith(("<!doctype html>", "<html"))
    if library != "datamapplot":  # which compresses them
        assert all(str(label) in page for label in (711, 722, 733))
