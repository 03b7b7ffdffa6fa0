"""Files of points that several commands are tried on."""

import csv

import numpy as np
import pytest

from problems.clouds import even_circle


@pytest.fixture
def clouds(tmp_path):
    """A CSV file of three well separated groups of 20 points, with an id and a group column."""
    rng = np.random.default_rng(0)
    path = tmp_path / "clouds.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "x", "y", "z", "group"])
        for row in range(60):
            centre = 4 * np.eye(3)[row % 3]
            writer.writerow([f"p{row}", *(centre + rng.normal(size=3)), "abc"[row % 3]])
    return path


@pytest.fixture
def circle(tmp_path):
    """A file of 80 points on a circle, so that the graph is connected."""
    path = tmp_path / "circle.npy"
    np.save(path, even_circle(80))
    return path
