"""Measures of the figures of *Linear and nonlinear dimensionality reduction*."""

from collections.abc import Callable
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

import heatsketch as hs

HALF_TURN = 6 * np.pi  # arc length of half a turn of the innermost winding of the roll


class NotesRow(NamedTuple):
    """A quantity measured for a figure.

    Attributes
    ----------
    quantity : str
    value : float
        Computed here.
    notes : float
        Value printed in the notes; NaN where they have none.
    """

    quantity: str
    value: float
    notes: float = nan


Drawn = tuple[list[NotesRow], Callable[[str, Path], None]]  # and what draws them: (title, path)


class Walk(NamedTuple):
    """The random walk of §9.2 on points, with all its eigenpairs."""

    epsilon: float
    time: int  # (29), with λ_{d+1}
    printed_time: int  # with λ_d, as printed
    eigenvalues: np.ndarray  # (n,), descending
    right: np.ndarray  # r_m, (n, n)
    left: np.ndarray  # l_m, (n, n)
    embedding: np.ndarray  # (n, 3)

    @property
    def decay(self) -> np.ndarray:
        """|λ_m|^t, m >= 1."""
        return np.abs(self.eigenvalues[1:]) ** self.time

    def power(self) -> np.ndarray:
        """P^t, (n, n), by (34)."""
        return (self.right * self.eigenvalues**self.time) @ self.left.T


def recovered(Y: np.ndarray, flat: np.ndarray, name: str = "coordinate") -> list[NotesRow]:
    """Return |Spearman| of each coordinate of an embedding with those of the flat strip."""
    return [
        NotesRow(f"{name} {m}, |Spearman| with {what}", rank_correlation(column, known))
        for m, column in enumerate(Y.T, start=1)
        for known, what in zip(flat.T, ("arc length", "height"), strict=True)
    ]


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Return |Spearman|; 0 if x or y is constant."""
    value = hs.metrics.rank_correlation(x, y)
    return 0.0 if isnan(value) else abs(value)


def winding(Y: np.ndarray, angle: np.ndarray) -> tuple[float, float]:
    """Return how often a closed curve of points Y (n, 2), ordered by angle (n,), runs around 0.

    Whole turns, positive counter-clockwise; and the share of the steps in the direction of the
    whole curve, 1 if the angle about the origin is monotone.
    """
    z = Y[np.argsort(angle), 0] + 1j * Y[np.argsort(angle), 1]
    steps = np.angle(np.roll(z, -1) * z.conj())
    number = float(np.round(steps.sum() / (2 * np.pi)))
    return number, float(np.mean(np.sign(steps) == np.sign(number)))


def loop_rows(Y: np.ndarray, angle: np.ndarray, name: str) -> list[NotesRow]:
    """Return the winding number of the first two coordinates, and the share of steps forward."""
    number, forward = winding(Y[:, :2], angle)
    return [
        NotesRow(f"{name}, winding number", abs(number)),
        NotesRow(f"{name}, share of steps forward", forward),
    ]


def pieces(Y: np.ndarray, widths: float = 6.0, smallest: int = 5) -> int:
    """Return the number of components of at least `smallest` points of an embedding.

    Points are joined if they are nearer than `widths` medians of the distance to the nearest one.
    """
    tree = cKDTree(Y)
    near = np.median(tree.query(Y, 2)[0][:, 1])
    graph = tree.sparse_distance_matrix(tree, widths * near, output_type="coo_matrix")
    _, labels = connected_components(graph, directed=False)
    return int((np.bincount(labels) >= smallest).sum())
