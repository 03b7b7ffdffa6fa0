"""heatsketch methods: the methods, and the parameters of one with their meaning."""

import inspect
import re
import textwrap
from argparse import Namespace

from heatsketch.cli.common import check_methods
from heatsketch.comparison.run import ESTIMATORS, defaults

_HEADING = re.compile(r"^(\w.*)\n-{3,}$", re.MULTILINE)  # in a docstring


def run(args: Namespace) -> None:
    """Print the methods, or the parameters of one: their defaults, and their docstring."""
    if args.method is None:
        for name, make in ESTIMATORS.items():
            print(f"{name:22} {inspect.getdoc(make).splitlines()[0]}")  # type: ignore[union-attr]
        return
    check_methods(args, [args.method])
    make = ESTIMATORS[args.method]
    values = ", ".join(f"{name}={default!r}" for name, default in defaults(make).items())
    _, *sections = _HEADING.split(inspect.getdoc(make) or "")
    meanings = dict(zip(sections[::2], sections[1::2], strict=True)).get("Parameters", "")
    print(textwrap.fill(values, 100), meanings.strip(), sep="\n\n")
