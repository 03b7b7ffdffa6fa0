"""The versions that a report of a fault needs, and estimators as notebooks show them."""

import re
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import _environment
from heatsketch.cli import main
from heatsketch.comparison.methods import ESTIMATORS

ESTIMATOR_CLASSES = [*ESTIMATORS.values(), hs.NearIsometricProjection]


def test_versions_say_what_results_depend_on():
    lines = _environment.versions()
    assert list(lines)[:7] == ["heatsketch", "python", "platform", *_environment._ALWAYS]
    assert lines["heatsketch"] == hs.__version__
    assert lines["numpy"] == np.__version__
    assert sys.executable in lines["python"]
    assert re.search(r"\d", lines["BLAS"])
    assert re.match(r"\d+ of compiled loops", lines["threads"])


def test_optional_libraries_are_listed_or_missing(monkeypatch):
    required = [
        "numpy>=1.26",
        "pyarrow>=14.0.1; extra == 'all'",
        'no-such.library[a]>=2; extra == "all"',
        "pytest>=8; extra == 'test'",
    ]
    monkeypatch.setattr(_environment.importlib.metadata, "requires", lambda name: required)
    lines = _environment.versions()
    assert lines["pyarrow"] == metadata.version("pyarrow")
    assert lines["missing"] == "no-such.library"
    assert "pytest" not in lines


def test_a_folder_of_sources_has_no_list_of_optional_libraries(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(_environment.importlib.metadata, "requires", absent)
    assert _environment.versions()["missing"] == "no optional library"


def test_the_command_line_prints_the_same(capsys):
    hs.show_versions()
    expected = capsys.readouterr().out
    assert main(["--version", "--verbose"]) == 0
    assert capsys.readouterr().out == expected
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"heatsketch {hs.__version__}\n"


def test_the_versions_are_found_where_nothing_else_is_imported():
    command = [sys.executable, "-m", "heatsketch", "--version", "--verbose"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(r"^BLAS .*\d", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("make", ESTIMATOR_CLASSES, ids=lambda make: make.__name__)
def test_notebooks_show_estimators_as_those_of_scikit_learn(make):
    """Also no link, which would lead to the pages of scikit-learn."""
    html = make()._repr_html_()
    assert make.__name__ in html
    assert "Not fitted" in html
    assert "href=" not in html


def test_notebooks_show_that_an_estimator_is_fitted():
    X = np.random.default_rng(0).standard_normal((50, 3))
    html = hs.DiffusionMap(time=3).fit(X)._repr_html_()
    assert "Not fitted" not in html
    assert "Fitted" in html
