"""Points sorted into cells: what a search in inverted lists asks of each place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from heatsketch._typing import Array
from heatsketch.backend.blocks import Block


class Probes(NamedTuple):
    """Which cells are searched for k neighbours, and the fraction of these that is found."""

    k: int
    n_probe: int  # cells searched for each query
    near: Array  # (cells, choice), from which these are chosen for a query in each cell; an array
    far: float  # queries with farther neighbours, or fewer than k in these cells, search all points
    tolerance: float  # relative difference of squares by which a point missed may be nearer
    recall: float = 1.0
    recall_error: float = 0.0  # its standard error


class Coordinates(NamedTuple):
    """The coordinates in which cells are compared."""

    blocks: Any
    centre: Block
    unit: float
    dtype: Any

    def of(self, x: Block) -> Block:
        """Return points (m, d) in these coordinates."""
        return self.blocks.native((x - self.centre) * self.unit, self.dtype)


class Cells(ABC):
    """Abstract base: points sorted into the cells of their nearest centroids.

    Parameters
    ----------
    points : block (n, d)
        Not copied. Those that a device has no room for are an array.
    coordinates : Coordinates
    centroids : (coarse, starts, fine)
        In two levels: coarse ones (c, d), starts (c + 1,), and fine ones (cells, d), of which
        those of coarse cell c are fine[starts[c] : starts[c + 1]].

    Attributes
    ----------
    own : block (n,)
        The cell of each point.
    order : block (n,)
        The points in the order of their cells, which puts neighbours close together.
    means : block (cells, d)
        The centres of the cells.
    """

    dtype: ClassVar[Any]  # of the coordinates
    own: Block
    order: Block
    means: Block

    @abstractmethod
    def __init__(
        self, points: Block, coordinates: Coordinates, centroids: tuple[Block, Array, Block]
    ) -> None: ...

    @staticmethod
    @abstractmethod
    def sizes(n: int) -> tuple[int, int]:
        """Return of how many cells n points are, and how many points train their centroids."""

    @staticmethod
    @abstractmethod
    def n_coarse(n_cells: int) -> int:
        """Return the number of coarse cells."""

    @staticmethod
    @abstractmethod
    def n_near(count: int) -> int:
        """Return from how many cells the `count` that are searched are chosen, at first."""

    @staticmethod
    @abstractmethod
    def nearest_centroids(x: Block, centroids: Block) -> Block:
        """Return the number of the nearest centroid of each x (m,), all pairs compared."""

    @staticmethod
    @abstractmethod
    def moved(centroids: Block, x: Block, owner: Block, rng: np.random.Generator) -> Block:
        """Return the means of the points x that each centroid owns.

        `owner` (m,) is the centroid of each point. One that owns none gets another place or stays.
        """

    @staticmethod
    @abstractmethod
    def squares(x: Block, y: Block) -> Block:
        """Return |x_i - y_j|² - |x_i|² (m, n) by the Gram form, exact enough to rank cells."""

    @staticmethod
    @abstractmethod
    def nearest_columns(squares: Block, count: int) -> Block:
        """Return the columns of the `count` smallest entries of each row."""

    @abstractmethod
    def of(self, x: Block) -> Block:
        """Return the cells of points (m,)."""

    @abstractmethod
    def seen_from(self, x: Block, own: Block) -> Block:
        """Return from where the nearest cells of points x, in the cells `own`, are counted."""

    @abstractmethod
    def nearest(self, x: Block | None, own: Block, probes: Probes) -> tuple[Block, Block]:
        """Return distances and numbers (m, k) of the nearest points in the cells searched.

        `own` (m,) are the cells of x; None: the points themselves. Where there are fewer than k,
        some distances are infinite.
        """

    @abstractmethod
    def nearest_of_all(self, x: Block, own: Block, k: int) -> tuple[Block, Block]:
        """Return distances and numbers (m, k) of the nearest of all points."""
