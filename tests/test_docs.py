"""The pages of the site: their code runs, their links lead somewhere, every name has its place."""

import ast
import builtins
import importlib
import re
import runpy
import shlex
import types
from pathlib import Path

import pytest

from heatsketch.cli.arguments import parser_of
from heatsketch.comparison.run import ESTIMATORS
from problems.pages import blocks_of, run_page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOLDERS = ("howto", "explanation", "tutorials")
PAGES = sorted([*DOCS.glob("*.md"), *(page for f in FOLDERS for page in DOCS.glob(f"{f}/*.md"))])
WITH_CODE = [page for page in PAGES if "```python" in page.read_text("utf-8")]
OTHERS = "README.md DESIGN.md benchmarks/README.md papers/README.md tests/bad-inputs.md"
BESIDE = [ROOT / name for name in OTHERS.split()]
RUN = [page for page in PAGES if any(mark == "" for _, mark, _ in blocks_of(page))]
THEIR_OWN = {"adata", "array"}  # what readers have, of kinds that the text before names
COMMANDS = {
    line.strip(): None
    for page in PAGES
    for kind, _, block in blocks_of(page)
    for line in block.splitlines()
    if kind == "sh" and line.startswith("heatsketch ")
}
QUICK = {"diffusion-distance", "gpu", "million-points", "sketch", "uncertainty"}
PEERS = {"igraph", "phate", "pydiffmap", "scFates", "scanpy", "torch", "umap"}
PEERS |= {"MDAnalysis", "MDAnalysisTests", "deeptime"}
ROOMS = "anndata classical comparison datasets distributed io metrics mixture plot "
ROOMS += "uncertainty"
PUBLIC = ("heatsketch", *(f"heatsketch.{room}" for room in ROOMS.split()))
ALSO_PUBLIC = {"heatsketch.neighbors.NeighborIndex"}
NUMBER = re.compile(r"\d*\.?\d+(?:e[+-]?\d+)?")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors_of(page):
    """Return the anchors that MyST gives to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return {title.strip().replace(" ", "-") for title in plain}


def source_of(target):
    """Return the file that a page of the site is made from: the gallery from examples."""
    if target == DOCS / "reference" / "commands.rst":
        return DOCS / "_ext" / "commands.py"
    if target.parent == DOCS / "gallery":
        name = "GALLERY_HEADER.rst" if target.stem == "index" else f"{target.stem}.py"
        return ROOT / "examples" / name
    return target


def public_names():
    """Return the full name of every class and function that is public, each once."""
    found = {}
    for module in map(importlib.import_module, PUBLIC):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not isinstance(value, types.ModuleType):
                found.setdefault(id(value), f"{module.__name__}.{name}")
    return set(found.values()) | ALSO_PUBLIC


def slow_unless_quick(path, quick):
    return pytest.param(path, id=path.stem, marks=() if path.stem in quick else pytest.mark.slow)


def alike(said, line):
    """Say whether lines have the same words, and numbers that are as near as other BLAS gives.

    The worst of all pairs may be another one, so that its ratio is not compared.
    """
    said, line = (re.sub(r"worst [\d.e+]+", "worst", text) for text in (said, line))
    if NUMBER.sub("#", said) != NUMBER.sub("#", line):
        return False
    pairs = zip(*(map(float, NUMBER.findall(text)) for text in (said, line)), strict=True)
    return all(a == pytest.approx(b, rel=0.3, abs=0.02) for a, b in pairs)


@pytest.mark.parametrize("page", [slow_unless_quick(page, QUICK) for page in RUN])
def test_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        run_page(page)
    except ModuleNotFoundError as missing:
        if missing.name not in PEERS:
            raise
        run_page(page, ["sh"])
        pytest.skip(f"{missing.name} is not installed")
    printed = "".join(re.findall(r"^```text\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.M))
    lines = capsys.readouterr().out.splitlines()
    for said in printed.splitlines():
        assert any(alike(said, line) for line in lines), said
    shown = re.findall(r"images/pages/([\w-]+\.png)", page.read_text("utf-8"))
    assert [name for name in shown if not (tmp_path / name).exists()] == []


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_code_that_readers_see_makes_the_names_that_it_uses(page):
    seen = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    nodes = list(ast.walk(ast.parse("".join(seen))))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    made = {name.id for name in names if not isinstance(name.ctx, ast.Load)} | set(dir(builtins))
    made |= {(node.asname or node.name).split(".")[0] for node in nodes if type(node) is ast.alias}
    made |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    made |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    assert {name.id for name in names} <= made | THEIR_OWN


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_the_pages_are_understood(line):
    words = shlex.split(line, comments=True)[1:]
    assert "--version" in words or parser_of().parse_args(words).verb == words[0]


@pytest.mark.parametrize("page", [*BESIDE, *PAGES], ids=lambda page: page.stem)
def test_links_of_a_page_lead_somewhere(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target, anchor in LINK.findall(text):
        if "://" in target or "images/" in target:  # pictures are looked for when the site is built
            continue
        file = source_of((page.parent / target).resolve() if target else page)
        assert file.exists(), target
        if anchor:
            assert anchor in anchors_of(file), f"{target}#{anchor}"


def test_scripts_that_pages_name_are_there():
    pages = [*PAGES, *BESIDE, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    scripts = set(
        re.findall(r"\b(?:benchmarks|docs|examples|papers|tests|tools)/[\w/]+\.py\b", text)
    )
    assert [script for script in scripts if not (ROOT / script).exists()] == []


def test_every_page_is_in_the_table_of_contents():
    listed = re.findall(r"^([\w/-]+)$", (DOCS / "index.md").read_text("utf-8"), re.MULTILINE)
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES} - {"index"}
    assert pages == set(listed) - {"gallery/index", "reference", "reference/commands"}


def test_the_tour_passes_every_folder_by_names_that_are_there():
    page, package = (ROOT / "DESIGN.md").read_text("utf-8"), ROOT / "src" / "heatsketch"
    paths = set(re.findall(r"`([\w/]+(?:\.py|/))`", page)) - {"tests/", "papers/"}
    missing = [path for path in paths if not any((r / path).exists() for r in (package, ROOT))]
    folders = {init.parent.name for init in package.glob("*/__init__.py")}
    assert missing == []
    assert {path.split("/")[0] for path in paths if "/" in path} >= folders
    steps = re.findall(r"^\| `([\w.]+)` \| .* \| `([\w/]+\.py)` \|$", page, re.MULTILINE)
    assert len(steps) > 15
    for name, path in steps:
        names = re.findall(r"(?:def|class) (\w+)", (package / path).read_text("utf-8"))
        assert set(name.split(".")) <= set(names), name


def test_every_public_name_is_in_the_reference_once():
    page = (DOCS / "reference.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   (heatsketch\.[\w.]+)$", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == public_names()


def test_tables_are_those_of_the_files():
    tables = runpy.run_path(DOCS / "tables.py")
    texts = {page: page.read_text("utf-8") for page in tables["PAGES"]}
    assert [page for page, text in texts.items() if tables["filled"](text) != text] == []


def test_every_measurement_is_named_by_the_page_of_benchmarks():
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    files = [path.stem for path in (DOCS / "benchmarks").glob("*.csv")]
    assert [name for name in files if not re.search(rf"\b{name}\b", page)] == []


def test_the_page_of_methods_names_those_without_transform():
    page = (DOCS / "classical.md").read_text("utf-8")
    (said,) = re.findall(r"^All but (.*?) map new points with `transform`", page, re.MULTILINE)
    without = {make.__name__ for make in ESTIMATORS.values() if not hasattr(make, "transform")}
    assert set(re.findall(r"`(\w+)`", said)) == without
