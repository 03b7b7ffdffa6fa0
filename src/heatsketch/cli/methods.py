"""heatsketch methods: the methods, and the parameters of one with their meaning."""

import inspect
import re
import textwrap
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from heatsketch.cli.inputs import check_methods
from heatsketch.comparison.methods import ESTIMATORS, defaults

_WIDTH = 100


def run(args: Namespace) -> None:
    """Print the methods, or the parameters of one."""
    if args.method is None:
        for name, make in ESTIMATORS.items():
            print(f"{name:22} {inspect.getdoc(make).splitlines()[0]}")  # type: ignore[union-attr]
        return
    check_methods(args, [args.method])
    make = ESTIMATORS[args.method]
    meanings = meanings_of(make)
    for name, default in defaults(make).items():
        kind, meaning = meanings.get(name, ("", ""))
        head = f"{name}={default!r}"
        body = "; ".join(text for text in (kind, meaning) if text)
        print(textwrap.fill(f"{head:24} {body}", _WIDTH, subsequent_indent=" " * 25))


def meanings_of(make: Callable[..., Any]) -> dict[str, tuple[str, str]]:
    """Return the type and the first sentence about each parameter, from the docstring."""
    text = inspect.getdoc(make) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", text, re.M | re.S)
    entries = re.split(r"^(?=\S)", section[1] if section else "", flags=re.M)
    found = {}
    for entry in filter(str.strip, entries):
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        kind = re.sub(r",? *\\?\n? *default .*", "", kind)
        sentence = re.split(r"(?<=[.:;])\s", " ".join(body.split()))[0]
        for name in names.split(","):
            found[name.strip()] = (kind.strip(" \\,"), sentence)
    return found
