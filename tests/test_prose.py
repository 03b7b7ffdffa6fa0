"""The linter of the pages warns of what is long, and of nothing else."""

import runpy
from pathlib import Path

import pytest

warnings_of = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "prose.py"))["warnings_of"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Short it is. " * 50 + "\n", []),
        ("Short it is. " * 50 + "One " + "word " * 40 + "more.\n", ["README.md: a sentence of 42"]),
        ("One " + "word " * 20 + "more.\n", ["sentences have 22.0 words on average"]),
        ("A b c.\n" * 10_001, ["the pages have 30,003 words"]),
        # Neither code, nor tables, nor links are prose.
        ("```text\n" + "word " * 50 + "\n```\n| " + "word " * 50 + "|\n", []),
        ("See [this page](" + "a" * 500 + ").\n", []),
        ("- One " + "word " * 17 + "\n- One " + "word " * 17 + "\n", []),
    ],
)
def test_what_is_long_is_named(text, words, tmp_path):
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("Long " + "word " * 100, encoding="utf-8")
    found = list(warnings_of(tmp_path))
    assert len(found) == len(words)
    assert all(one.startswith(said) for one, said in zip(found, words, strict=True))
