"""The warning about new points that are far from all training points."""

from __future__ import annotations

import warnings

from heatsketch._checks import ScaleWarning, name_rows
from heatsketch._typing import Array


def warn_of_far_points(rows: Array) -> None:
    """Warn that these new points get their nearest training point as their only neighbour."""
    warnings.warn(
        f"{len(rows)} new point(s) (rows {name_rows(rows)}) are too far from all training points; "
        "each gets its nearest training point as its only neighbour.",
        ScaleWarning,
        stacklevel=5,
    )
