"""heatsketch methods: the methods, and the parameters of one with their meaning."""

import inspect
import re
import textwrap
from argparse import Namespace

from heatsketch.cli.common import check_methods
from heatsketch.comparison.methods import ESTIMATORS, defaults

# The part of a docstring below "Parameters" and its line, up to the next heading.
_PARAMETERS = re.compile(
    r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.MULTILINE | re.DOTALL
)


def run(args: Namespace) -> None:
    """Print the methods, or the parameters of one: their defaults, and their docstring."""
    if args.method is None:
        for name, make in ESTIMATORS.items():
            print(f"{name:22} {inspect.getdoc(make).splitlines()[0]}")  # type: ignore[union-attr]
        return
    check_methods(args, [args.method])
    make = ESTIMATORS[args.method]
    values = ", ".join(f"{name}={default!r}" for name, default in defaults(make).items())
    meanings = "".join(_PARAMETERS.findall(inspect.getdoc(make) or ""))
    print(textwrap.fill(values, 100), meanings.rstrip(), sep="\n\n")
