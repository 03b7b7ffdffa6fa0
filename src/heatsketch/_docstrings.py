"""Docstrings that show a text which is written once, in another docstring."""

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Documented = TypeVar("Documented")

_ENTRY = re.compile(r"^(\S.*)\n((?: {4}.*\n?)+)", re.MULTILINE)  # of a section: its head and text
_AS_IN = re.compile(r"^(\S.*)\n {4}As in `([\w.]+)`\.( ?)", re.MULTILINE)


def texts_from(*homes: Any) -> Callable[[Documented], Documented]:
    """Replace "As in `home`." in an entry by what the docstring of home says under the same name.

    What follows in the entry stays. The source is true without this, so that a reader of the code,
    or of an editor that does not run it, still knows where to look.
    """
    texts = {
        (_last(home.__qualname__), _name(head)): text.rstrip()
        for home in homes
        for head, text in _ENTRY.findall(inspect.cleandoc(home.__doc__ or ""))
    }

    def text_of(found: re.Match[str]) -> str:
        head, home, more = found.groups()
        return f"{head}\n{texts[_last(home), _name(head)]}" + ("\n    " if more else "")

    def documented(target: Documented) -> Documented:
        if target.__doc__:  # python -OO leaves none
            target.__doc__ = _AS_IN.sub(text_of, inspect.cleandoc(target.__doc__))
        return target

    return documented


def _name(head: str) -> str:
    return head.partition(" : ")[0]


def _last(name: str) -> str:
    return name.rpartition(".")[2]  # a method may stand in a base of the class by which it is named
