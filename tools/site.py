"""Check the built site: `python tools/site.py docs/_build/html`.

Every link within it leads to a page, and to an anchor of that page; the search knows the words that
people come with.
"""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SOUGHT = ("UMAP", "error bar", "new points", "AnnData", "CSV")


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.anchors |= {named.get("id") or "", named.get("name") or ""}
        self.links += [named[key] for key in ("href", "src") if named.get(key)]


def broken(folder):
    """Return (page, link) of the links that lead nowhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            exists = target.exists()
            if target in pages and exists:
                exists = unquote(parts.fragment) in pages[target].anchors
            if not exists:
                found.append((path.relative_to(folder).as_posix(), link))
    return found


def missing(folder):
    """Return the words that the index of the search does not know."""
    text = (folder / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(re.fullmatch(r"Search\.setIndex\((.*)\);?", text.strip(), re.DOTALL)[1])
    known = index["terms"].keys() | index["titleterms"].keys()
    stems = [word.lower() for phrase in SOUGHT for word in phrase.split()]
    return [word for word in stems if not {word, word.rstrip("s")} & known]


def main():
    """Print what is wrong; exit 1 if anything is."""
    folder = Path(sys.argv[1]).resolve()
    links, words = broken(folder), missing(folder)
    for page, link in links:
        print(f"{page}: {link} leads nowhere")
    for word in words:
        print(f"the search does not know {word!r}")
    sys.exit(bool(links or words))


if __name__ == "__main__":
    main()
