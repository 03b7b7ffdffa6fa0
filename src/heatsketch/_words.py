"""Words for messages, without a slow import."""

import difflib
from collections.abc import Iterable
from typing import Any


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return a suggestion to append to a message: the known name that is most like this one."""
    lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(str(name).lower(), lower, n=1)
    return f"; did you mean {lower[near[0]]!r}?" if near else ""
