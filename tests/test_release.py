"""What a release consists of: one version, a changelog, a citation, workflows that trust nobody."""

import re
import tomllib
from pathlib import Path

import pytest

import heatsketch as hs

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_stands_in_one_place_and_in_the_citation():
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    place = PROJECT["tool"]["hatch"]["version"]["path"]
    if (ROOT / place).exists():  # the sources are not where an installed package is tested
        assert f'__version__ = "{hs.__version__}"' in text_of(place)
    (version,) = re.findall(r"^version: (\S+)", text_of("CITATION.cff"), re.MULTILINE)
    assert version == hs.__version__


def test_the_changelog_has_the_version():
    """In the form of keepachangelog.com: what is not released first, then versions with dates."""
    headings = re.findall(r"^## (.*)", text_of("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    form = r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d|not yet published)"
    found = [re.fullmatch(form, heading) for heading in headings[1:]]
    assert all(found)
    assert found[0][1] == hs.__version__
    kinds = set(re.findall(r"^### (.*)", text_of("CHANGELOG.md"), re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_few_rights_and_run_known_code(path):
    """Actions of others by commit; rights are given by name, and only a release writes."""
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert [u for u, _ in used if not re.search(r"^\./|@[0-9a-f]{40}$", u)] == []
    assert [u for u, note in used if "@" in u and not re.search(r" # v\d+\.\d+\.\d+$", note)] == []
    assert re.search(r"^permissions:( \{\}|\n  contents: read)$", text, re.MULTILINE)
    writing = re.findall(r": write$", text, re.MULTILINE)
    assert len(writing) == (path.name == "release.yml")
    assert text.count("runs-on:") == text.count("timeout-minutes:")


def test_every_python_that_is_promised_is_tested():
    promised = [c for c in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d", c)]
    versions = [c.rpartition(" ")[2] for c in promised]
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
    if WORKFLOWS:
        assert f"python: {versions}".replace("'", '"') in text_of(".github/workflows/ci.yml")
