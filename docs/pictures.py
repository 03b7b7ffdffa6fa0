"""Draw the pictures of the tutorials: run the code of each page, and keep what it draws.

Run: python docs/pictures.py [first cells molecules]

A page shows images/tutorials/NAME.png where its code writes NAME.png; tests/test_docs.py checks it.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
CODE = re.compile(r"^(?:```|<!-- )python\n(.*?)^(?:```|-->)$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"images/tutorials/([\w-]+\.png)")


def main(names):
    """Run the pages of these names, or all of them."""
    pages = [
        page for page in sorted(DOCS.glob("tutorials/*.md")) if page.stem in names or not names
    ]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            exec("\n".join(CODE.findall(text)), {})
            for name in SHOWN.findall(text):
                (DOCS / "images" / "tutorials" / name).write_bytes(Path(name).read_bytes())
            os.chdir(DOCS)


if __name__ == "__main__":
    main(sys.argv[1:])
