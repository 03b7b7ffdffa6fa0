"""Words for messages, without a slow import."""

import difflib
from collections.abc import Iterable
from typing import Any


def did_you_mean(name: Any, known: Iterable[str], end: str = ".") -> str:
    """Return the end of a sentence: the most similar known name as a suggestion, or `end`."""
    lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(str(name).lower(), lower, n=1)
    return f"; did you mean {lower[near[0]]!r}?" if near else end
