"""Warnings about new points that are far from all training points."""

from __future__ import annotations

from heatsketch._checks import warn_of_rows
from heatsketch._typing import Array

HARDLY_ANY = 1e-6  # affinity at the scale of the training points


def warn_of_far_points(rows: Array) -> None:
    """Warn that these new points get their nearest training point as their only neighbour."""
    warn_of_rows(
        rows,
        "are too far from all training points; each gets its nearest training point as its only "
        "neighbour.",
        stacklevel=5,
    )


def warn_of_faint_points(rows: Array) -> None:
    """Warn that these new points, if any, rest on hardly any affinity."""
    if len(rows):
        warn_of_rows(
            rows,
            "have hardly any affinity to the training points at the scale learned (below 1e-6): "
            "their coordinates are those of training points nearby, however far. See novelty(X), "
            "or leave them out.",
            stacklevel=5,
        )
