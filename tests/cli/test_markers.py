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


def test_columns_of_other_types_are_compared_and_medians_are_in_their_units(run):
    minutes, carrier = 60 + 40 * X[:, 0], np.where(X[:, 1] > 2, "UA", "AA")
    dates = [f"2024-03-{1 + day:02}" for day in np.arange(60) % 20]
    columns = {"minutes": minutes, "carrier": carrier, "day": dates, "group": GROUPS}
    write_csv("flights.csv", np.empty((60, 0)), "", **columns)
    said = run("markers", "flights.csv", "--label", "group", "--group", "b", "-o", "m.csv")
    assert "labels are no features: group" in said.lines["changed"]
    rows = [line.split(",") for line in Path("m.csv").read_text().splitlines()[1:]]
    found = {row[1]: [float(cell) for cell in row[2:5]] for row in rows}
    assert {*found} == {"minutes", "carrier=AA", "carrier=UA", "day"}
    own = GROUPS == "b"
    for name, values in {"minutes": minutes, "carrier=UA": carrier == "UA"}.items():
        expected = hs.markers(np.stack([values, values], 1).astype(float), own)
        assert found[name][0] == pytest.approx(expected.area[0], rel=1e-5)
        medians = np.median(values[own]), np.median(values[~own])
        assert found[name][1:] == pytest.approx(medians, rel=1e-5)
    assert found["day"][1] == pytest.approx(2024 + 70 / 366, abs=0.01)  # a date is a year
