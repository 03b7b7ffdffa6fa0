"""Running commands, and files of points that several of them are tried on."""

import csv
import warnings
from typing import NamedTuple

import numpy as np
import pytest

from heatsketch.cli import main
from problems.clouds import even_circle
from problems.tables import write_csv


class Said(NamedTuple):
    """What a command printed."""

    out: str
    err: str

    @property
    def lines(self):
        """The lines of a summary, by name."""
        return {line[:12].strip(): line[13:] for line in self.out.splitlines()}

    @property
    def rows(self):
        """The rows of a table."""
        return list(csv.reader(self.out.splitlines()))


@pytest.fixture
def run(capsys, tmp_path, monkeypatch, short_search):
    """Run a command, whose warnings become lines; check its exit code, return what it printed.

    It runs in `tmp_path`, and so does the test.
    """
    monkeypatch.chdir(tmp_path)

    def run(*words, code=0):
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            found = main([str(word) for word in words])
        said = Said(*capsys.readouterr())
        assert found == code, said.err
        return said

    return run


@pytest.fixture
def clouds(tmp_path):
    """A CSV file of three well separated groups of 20 points, with an id and a group column."""
    X = np.random.default_rng(0).normal(size=(60, 3)) + 4 * np.eye(3)[np.arange(60) % 3]
    ids, groups = [f"p{row}" for row in range(60)], list("abc" * 20)
    return write_csv(tmp_path / "clouds.csv", X, "xyz", id=ids, group=groups)


@pytest.fixture
def circle(tmp_path):
    """A file of 80 points on a circle, so that the graph is connected."""
    path = tmp_path / "circle.npy"
    np.save(path, even_circle(80))
    return path
