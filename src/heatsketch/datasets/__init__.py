"""Data sets with known coordinates: curves, surfaces, clouds, and handwritten digits.

Every function returns `(X, coordinates)`: the points, and the coordinates or the label of each.
"""

from collections.abc import Callable

from heatsketch._typing import Array
from heatsketch.datasets.shapes import (
    circle,
    circle_with_outliers,
    digits,
    gaussian_clouds,
    klein_bottle,
    stretched_torus,
    swiss_roll,
)

DATASETS: dict[str, Callable[..., tuple[Array, Array]]] = {
    "digits": digits,
    "circle": circle,
    "circle_with_outliers": circle_with_outliers,
    "stretched_torus": stretched_torus,
    "klein_bottle": klein_bottle,
    "gaussian_clouds": gaussian_clouds,
    "swiss_roll": swiss_roll,
}

# Names of the coordinates as columns of a table. They begin with "label", so that a set that is
# written to a file is read with the same features.
COORDINATES: dict[str, tuple[str, ...]] = {
    "digits": ("label",),
    "circle": ("label_angle",),
    "circle_with_outliers": ("label_angle",),
    "stretched_torus": ("label_u", "label_v"),
    "klein_bottle": ("label_u", "label_v"),
    "gaussian_clouds": ("label",),
    "swiss_roll": ("label_arc", "label_height"),
}

__all__ = [
    "COORDINATES",
    "DATASETS",
    "circle",
    "circle_with_outliers",
    "digits",
    "gaussian_clouds",
    "klein_bottle",
    "stretched_torus",
    "swiss_roll",
]
