"""What becomes of new points that no training point reaches."""

from __future__ import annotations

import warnings

from heatsketch._checks import ScaleWarning, name_rows
from heatsketch._typing import Array


def warn_of_far_points(rows: Array) -> None:
    """Warn that each of some new points is given its nearest training point as only neighbour.

    That is the limit of the neighbours of a point that moves away.
    """
    warnings.warn(
        f"{len(rows)} new point(s) (rows {name_rows(rows)}) are too far from all training points; "
        "each is given its nearest training point as only neighbour.",
        ScaleWarning,
        stacklevel=5,
    )
