"""heatsketch markers: groups by a column of labels, each against the others or against some."""

from pathlib import Path

import numpy as np
import pytest

import heatsketch as hs
from problems.tables import write_csv

X = np.random.default_rng(0).normal(size=(60, 3)) + 4 * np.eye(3)[np.arange(60) % 3]
GROUPS = np.array(list("abc" * 20))


def test_every_label_in_turn_has_the_numbers_of_python(run, clouds):
    header, *rows = run("markers", clouds, "-q").rows
    assert header[:3] == ["group", "feature", "area"]
    assert [row[0] for row in rows] == sorted("abc" * 3)
    found = hs.markers(X, GROUPS == "b", names=list("xyz"))
    own = [row[1:] for row in rows if row[0] == "b"]
    assert [row[0] for row in own] == found.names.tolist()
    for name, cells in zip(
        list(found.columns())[1:], list(zip(*own, strict=True))[1:], strict=True
    ):
        assert [*map(float, cells)] == pytest.approx(getattr(found, name), rel=1e-5)


def test_one_group_against_another_in_a_file(run, clouds):
    said = run("markers", clouds, "--group", "a", "--against", "c", "-o", "m.csv")
    assert said.lines["groups"] == "a (20 against 20)"
    assert "too small" in said.lines["p-values"]
    found = hs.markers(X, GROUPS == "a", GROUPS == "c", names=list("xyz"))
    assert Path("m.csv").read_text().splitlines()[1].split(",")[1] == found.names[0]


def test_gaps_are_left_out(run):
    points = X.astype(object)
    points[::7, 1] = ""
    write_csv("gaps.csv", points, "xyz", group=GROUPS)
    rows = run("markers", "gaps.csv", "--group", "b", "-q").rows[1:]
    there = np.arange(60) % 7 != 0
    alone = hs.markers(X[there], GROUPS[there] == "b")
    (area,) = [float(row[2]) for row in rows if row[1] == "y"]
    assert area == pytest.approx(alone.area[alone.index == 1][0], rel=1e-5)


def test_labels_that_are_not_there_are_named(run, clouds):
    assert "did you mean" in run("markers", clouds, "--group", "aa", code=1).err
    write_csv("plain.csv", X, "xyz")
    assert "pass --label" in run("markers", "plain.csv", code=1).err
    assert "row" in run("markers", clouds, "--group", "a", "--against", "a", code=1).err
