"""Words for messages, without a slow import."""

import difflib
import math
from collections.abc import Iterable
from typing import Any


def did_you_mean(name: Any, known: Iterable[str], end: str = ".") -> str:
    """Return the end of a sentence: a suggestion, the known name most like this one, or `end`."""
    lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(str(name).lower(), lower, n=1)
    return f"; did you mean {lower[near[0]]!r}?" if near else end


def between(interval: tuple[float, float], before: str = "") -> str:
    """Return an interval in brackets, " (1.2 to 1.3)"; nothing if it is not known."""
    low, high = interval
    return f" ({before}{low:.3g} to {high:.3g})" if math.isfinite(low) else ""
