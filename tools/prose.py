"""Warn of pages that grow and of sentences that are long: `python tools/prose.py`.

It prints warnings and never fails: an honest page may need its words.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

MOST_WORDS = 30_000  # of all pages
MEAN_LENGTH = 18  # words of a sentence
LONGEST = 40
END = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[A-Z0-9`\"'*(\[λεπα])")  # of a sentence


def pages_of(root: Path) -> list[Path]:
    """Return the pages that people write, but for the changelog."""
    pages = [*root.glob("docs/**/*.md"), *root.glob("*.md")]
    return sorted(p for p in pages if "_build" not in p.parts and p.name != "CHANGELOG.md")


def sentences_of(text: str) -> list[str]:
    """Return the sentences of Markdown: no code, no tables, no comments, no headings."""
    text = re.sub(r"```.*?```|~~~.*?~~~|<!--.*?-->|\$\$.*?\$\$", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`\n]*`", "X", text)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "#", "!["))]
    text = "\n".join(re.sub(r"^\s*([-*>]|\d+\.)\s+(\[.\] )?", "\n", line) for line in lines)
    paragraphs = [END.split(" ".join(block.split())) for block in re.split(r"\n\s*\n", text)]
    return [sentence for found in paragraphs for sentence in found if len(sentence.split()) > 1]


def warnings_of(root: Path) -> Iterator[str]:
    """Yield what is long in the pages of a project."""
    texts = {page.relative_to(root): page.read_text("utf-8") for page in pages_of(root)}
    words = sum(len(text.split()) for text in texts.values())
    if words > MOST_WORDS:
        yield f"the pages have {words:,} words; say it in {MOST_WORDS:,}"
    lengths = []
    for page, text in texts.items():
        for sentence in sentences_of(text):
            lengths.append(len(sentence.split()))
            if lengths[-1] > LONGEST:
                yield f"{page}: a sentence of {lengths[-1]} words; divide it: {sentence[:60]}…"
    if lengths and sum(lengths) / len(lengths) > MEAN_LENGTH:
        mean = sum(lengths) / len(lengths)
        yield f"sentences have {mean:.1f} words on average; {MEAN_LENGTH} read well"


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # a console may lack letters of the pages
    for warning in warnings_of(Path(__file__).parents[1]):
        print(f"warning: {warning}")
