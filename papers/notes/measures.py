"""Measures of the figures of *Linear and nonlinear dimensionality reduction*."""

from collections.abc import Callable
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier

import heatsketch as hs

HALF_TURN = 6 * np.pi  # arc length of half a turn of the innermost winding of the roll
_N_NEIGHBORS = 10
_N_DIGITS = 10
_SEARCHED_EIGENVECTORS = 60  # for one that follows height


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

    def kept(self, delta: float) -> int:
        """Return the number of coordinates above δ, (26)."""
        return 1 + int(np.max(np.flatnonzero(self.decay > delta * self.decay[0])))

    def at(self, time: int, alike: Self) -> Self:
        """Return the walk at another time, its coordinates with the signs of another walk's."""
        d = self.embedding.shape[1]
        embedding = self.right[:, 1 : d + 1] * self.eigenvalues[1 : d + 1] ** time
        signs = np.sign(np.sum(embedding * alike.embedding, axis=0))
        return self._replace(time=time, embedding=signs * embedding)

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


def strip_rows(walk: Walk, flat: np.ndarray, prefix: str = "") -> list[NotesRow]:
    """Return what the coordinates of a walk on a roll have of its length and of its height."""
    searched = walk.right[:, 1 : _SEARCHED_EIGENVECTORS + 1].T
    heights = np.array([rank_correlation(vector, flat[:, 1]) for vector in searched])
    return [
        *recovered(walk.embedding, flat, f"{prefix}coordinate"),
        *(
            NotesRow(
                f"{prefix}coordinate {m}, |correlation| with cos({m} pi s / L)",
                _cosine_correlation(Y, flat, m),
            )
            for m, Y in enumerate(walk.embedding.T, start=1)
        ),
        NotesRow(f"{prefix}eigenvector that follows height most", 1 + int(heights.argmax())),
        NotesRow(f"{prefix}its |Spearman| with height", float(heights.max())),
    ]


def _cosine_correlation(column: np.ndarray, flat: np.ndarray, m: int) -> float:
    """Return the |correlation| of a coordinate with the m-th cosine of a strip with free ends.

    Its ends are those of the points, because a mesh does not reach the ends of the roll.
    """
    along = flat[:, 0] - flat[:, 0].min()
    cosine = np.cos(m * np.pi * along / along.max())
    return float(abs(np.corrcoef(column, cosine)[0, 1]))


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


def digit_rows(points: np.ndarray, label: np.ndarray, name: str, state: int) -> list[NotesRow]:
    """Return how well neighbours, and clusters by 10-means, agree with the digits."""
    found = KMeans(_N_DIGITS, n_init=4, random_state=state).fit_predict(points)
    agreement = float(adjusted_rand_score(label, found))
    return [
        NotesRow(f"{name}, 10 neighbours right", neighbor_accuracy(points, label)),
        NotesRow(f"{name}, 10-means against digits (adjusted Rand)", agreement),
    ]


def neighbor_accuracy(X: np.ndarray, label: np.ndarray) -> float:
    """Return the share of points whose label is the most frequent among their 10 neighbours."""
    neighbors = KNeighborsClassifier(_N_NEIGHBORS).fit(X, label)
    others = neighbors.kneighbors(return_distance=False)  # without the point itself
    votes = (label[others][:, :, None] == np.arange(_N_DIGITS)).sum(axis=1)
    return float((votes.argmax(axis=1) == label).mean())


def crowding_rows(points: np.ndarray, label: np.ndarray, name: str) -> list[NotesRow]:
    """Return three measures of crowding: of all points in the middle, and of the groups.

    The distances of the second are medians over pairs, those of the third medians over points.
    """
    distances = cdist(points, points)
    np.fill_diagonal(distances, np.nan)
    same = label[:, None] == label
    within, between = np.where(same, distances, np.nan), np.where(same, np.nan, distances)
    ratio = np.nanmedian(between) / np.nanmedian(within)
    gap = np.median(np.nanmin(between, axis=1) / np.nanmin(within, axis=1))
    return [
        NotesRow(f"{name}, share in the middle", middle_share(points)),
        NotesRow(f"{name}, distance between groups over within", float(ratio)),
        NotesRow(f"{name}, nearest of another group over nearest of the own", float(gap)),
    ]


def middle_share(points: np.ndarray) -> float:
    """Return the share of points (n, 2) within the inner quarter of a disc.

    The disc is about their mean, and evenly filled it would have their mean square radius. So the
    share is 1/4 for points that fill a disc evenly, and more for points crowded in its middle.
    """
    squares = np.square(points - points.mean(axis=0)).sum(axis=1)
    return float(np.mean(squares < squares.mean() / 2))  # the radius of the disc, squared, is twice
