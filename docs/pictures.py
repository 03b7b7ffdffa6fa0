"""Draw the pictures of the pages: run the code of each page, and keep what it draws.

Run: python docs/pictures.py [first sketch density ...]

A page shows images/pages/NAME.png where its code writes NAME.png; tests/test_docs.py checks it.
"""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
CODE = re.compile(r"^(?:```|<!-- )python\n(.*?)^(?:```|-->)$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"images/pages/([\w-]+\.png)")


def main(names):
    """Run the pages of these names, or all that show such a picture."""
    for page in sorted(DOCS.glob("**/*.md")):
        text = page.read_text(encoding="utf-8")
        if (page.stem not in names) if names else not SHOWN.search(text):
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for table in (DOCS / "_static").glob("*.csv"):  # that readers have
                shutil.copy(table, folder)
            exec("\n".join(CODE.findall(text)), {})
            for name in SHOWN.findall(text):
                (DOCS / "images" / "pages" / name).write_bytes(Path(name).read_bytes())
            os.chdir(DOCS)


if __name__ == "__main__":
    main(sys.argv[1:])
