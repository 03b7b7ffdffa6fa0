"""Measure the English that users read: `python tests/english.py [-v]`.

Pages, docstrings of public names, and the help of every command: how long sentences are. With -v it
prints the sentences of more than 40 words. tests/test_docs.py holds the pages to what is said here.
"""

import argparse
import importlib
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST, MEAN = 40, 18
MODULES = "anndata classical comparison datasets distributed io metrics mixture plot uncertainty"
END = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[A-Z0-9`\"'*(\[λεπα])")


def pages():
    """Return the pages that are written by hand, the changelog left out."""
    roots = [path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"]
    return sorted(roots) + sorted(
        path for path in (ROOT / "docs").glob("**/*.md") if "_build" not in path.parts
    )


def prose_of_page(text):
    """Return the sentences of Markdown: no code, no tables, no comments, no headings."""
    text = re.sub(r"```.*?```|~~~.*?~~~|<!--.*?-->|\$\$.*?\$\$", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`\n]*`", "X", text)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "#", "!["))]
    lines = [re.sub(r"^\s*([-*>]|\d+\.)\s+(\[.\] )?", "\n", line) for line in lines]
    return sentences("\n".join(lines))


def prose_of_docstring(text):
    """Return the sentences of a numpydoc docstring: no examples, no names of parameters."""
    text = re.sub(r"(?s)\nExamples\n-+\n.*?(?=\n\n[A-Z]\w+\n-+\n|\Z)", "\n", text)
    text = re.sub(r"(?m)^.*\n-{3,}$", "", text)
    text = re.sub(r"(?m)^\S.*\n(?=    )", "\n", text)  # what has an indented text below it
    return sentences(re.sub(r"``?[^`]*``?", "X", text))


def sentences(text):
    """Return the sentences of paragraphs."""
    split = [END.split(" ".join(block.split())) for block in re.split(r"\n\s*\n", text)]
    return [sentence for block in split for sentence in block if len(sentence.split()) > 1]


def public_docstrings():
    """Return the docstrings of public classes, functions and methods, each once."""
    texts = set()
    for module in ("heatsketch", *(f"heatsketch.{name}" for name in MODULES.split())):
        found = importlib.import_module(module)
        for value in [getattr(found, name) for name in found.__all__]:
            members = vars(value).items() if inspect.isclass(value) else ()
            for member in (value, *(v for name, v in members if name[0] != "_")):
                if callable(member) and (text := inspect.getdoc(member)):
                    texts.add(text)
    return texts


def helps():
    """Return the help of every command."""
    from heatsketch.cli.arguments import parser_of

    (verbs,) = (a for a in parser_of()._actions if isinstance(a, argparse._SubParsersAction))
    actions = [action for parser in verbs.choices.values() for action in parser._actions]
    return [a.help for a in actions if a.help and a.help != argparse.SUPPRESS]


def measure(texts):
    """Return the mean length of sentences, and those that are too long."""
    lengths = [len(sentence.split()) for sentence in texts]
    long = [sentence for sentence in texts if len(sentence.split()) > LONGEST]
    return sum(lengths) / max(len(lengths), 1), long


def main():
    """Print a line for the pages, the docstrings and the help."""
    groups = {
        "pages": [s for page in pages() for s in prose_of_page(page.read_text(encoding="utf-8"))],
        "docstrings": [s for text in public_docstrings() for s in prose_of_docstring(text)],
        "help": [s for text in helps() for s in sentences(text.replace("\n", "\n\n"))],
    }
    for name, texts in groups.items():
        mean, long = measure(texts)
        print(f"{name}: {len(texts)} sentences, mean {mean:.1f} words, {len(long)} over {LONGEST}")
        if "-v" in sys.argv:
            print("".join(f"  > {sentence}\n" for sentence in long))
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages())
    print(f"pages: {words:,} words")


if __name__ == "__main__":
    main()
