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
    for name in ("CITATION.cff", "recipe/recipe.yaml"):
        said = re.findall(r"^ *version: (\d\S+)", text_of(name), re.MULTILINE)
        assert set(said) == {hs.__version__}, name


def test_the_conda_package_asks_for_what_the_wheel_asks_for():
    """But for numpy: one conda package serves all systems, so it takes what Windows needs."""
    section = re.search(r"^  run:\n(.*?)^  \w", text_of("recipe/recipe.yaml"), re.DOTALL | re.M)[1]
    listed = dict(re.findall(r"^    - ([\w-]+) (>=\S+)", section, re.MULTILINE))
    promised = PROJECT["project"]["dependencies"]
    wanted = dict(re.findall(r"([\w-]+)(>=[\d.]+)", " ".join(promised).replace("_", "-")))
    assert listed.pop("python") == ">=${{"
    assert f'python_min: "{PROJECT["project"]["requires-python"][2:]}"' in text_of(
        "recipe/recipe.yaml"
    )
    assert listed == wanted
    (build,) = PROJECT["build-system"]["requires"]
    assert f"- {build.replace('>=', ' >=')}\n" in text_of("recipe/recipe.yaml")


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
        listed = str(versions).replace("'", '"')
        assert f"python: {listed}" in text_of(".github/workflows/ci.yml")
        assert f"pythons: '{listed}'" in text_of(".github/workflows/release.yml")


@pytest.mark.skipif(not WORKFLOWS, reason="the workflows are in a clone")
def test_only_a_tag_is_published_and_only_where_someone_switched_it_on():
    text = text_of(".github/workflows/release.yml")
    assert re.search(r'^on:\n  push:\n    tags: \["v\*"\]\n\n', text, re.MULTILINE)
    (publish,) = re.findall(r"^  publish:\n(.*)", text, re.DOTALL | re.MULTILINE)
    assert "pypa/gh-action-pypi-publish@" not in text.replace(publish, "")
    assert "    needs: package\n    if: vars.PUBLISH == 'yes'\n" in publish
    assert "    environment:\n      name: pypi\n" in publish
    assert re.search(r"^    permissions:\n      id-token: write\n    steps:", publish, re.MULTILINE)
