"""heatsketch distances: exact for few points, the intervals of a sketch for many, by id or row."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import heatsketch as hs
from problems.clouds import cloud
from problems.tables import write_csv

X = cloud(30, 3)
OPTIONS = ("--n-neighbors", "6", "--n-components", "40", "--time", "4")


@pytest.fixture(autouse=True)
def points(run):
    """Thirty points with ids p0, p1, …"""
    write_csv("points.csv", X, id=[f"p{n}" for n in range(30)])
    np.save("points.npy", X)


@pytest.fixture
def sketched(limits):
    limits(exact_distances=10)


def expected(i, j, **options):
    model = hs.HeatSketch(40, 4, n_neighbors=6, random_state=0).fit(X)
    return np.array(model.distance(i, j, **options)).T


def exact(i, j):
    pairs = np.broadcast_arrays(i, j)
    return hs.diffusion_distance(hs.diffusion(X, n_neighbors=6), 4, pairs=pairs)


def numbers(rows):
    return np.array([row[2:] for row in rows], dtype=float)


def test_distances_from_a_point_are_exact_and_sorted(run):
    said = run("distances", "points.csv", "--from", "p3", *OPTIONS)
    header, *rows = said.rows
    assert header == ["from", "to", "distance", "low", "high"]
    assert {row[0] for row in rows} == {"p3"}
    assert rows[0][1:3] == ["p3", "0"]
    wanted = exact(3, [int(row[1][1:]) for row in rows])
    assert len(wanted) == 30
    for column in numbers(rows).T:
        np.testing.assert_allclose(column, wanted, rtol=1e-5)
    assert np.all(np.diff(numbers(rows)[:, 0]) >= 0)
    for text in ("30 points, 3 features", "at diffusion time 4 (as given), exact"):
        assert text in said.err


@pytest.mark.usefixtures("sketched")
def test_distances_of_many_points_have_intervals(run):
    given = ("distances", "points.csv", "--from", "p3")
    found = numbers(rows := run(*given, *OPTIONS).rows[1:])
    wanted = expected(3, [int(row[1][1:]) for row in rows])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert np.all(np.diff(found[:, 0]) >= 0)
    assert found[1, 1] < found[1, 2]
    said = run(*given, "-p", "n_neighbors=6").err
    assert "at diffusion time 8 (the default; --time sets another), by a sketch of 192" in said
    assert "hold the distance with probability 0.95, each by itself" in said


def test_nothing_is_said_of_two_components(run):
    np.save("two.npy", np.vstack([cloud(20, 2), cloud(15, 2, seed=1) + 1_000]))
    Path("pairs.txt").write_text("1 2\n1 30\n", encoding="utf-8")
    given = ("distances", "two.npy", "--n-neighbors", "5")
    said = run(*given, "--from", "3")
    assert {row[1] for row in said.rows[1:]} == {str(n) for n in range(20)}
    assert "15 pair(s) in two components, between which nothing diffuses" in said.err
    _, inside, across = run(*given, "--pairs", "pairs.txt").rows
    assert float(inside[2]) > 0
    assert across == ["1", "30", "", "", ""]


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("separator", [",", "\t", " ", ";"])
def test_pairs_of_ids(run, separator):
    Path("pairs.txt").write_text(f"p1{separator}p2\n\np5{separator}p0\n", encoding="utf-8")
    given = ("--pairs", "pairs.txt", "--level", "0.8", "--simultaneous")
    _, *rows = run("distances", "points.csv", *given, *OPTIONS).rows
    assert [row[:2] for row in rows] == [["p1", "p2"], ["p5", "p0"]]
    wanted = expected([1, 5], [2, 0], level=0.8, simultaneous=True)
    np.testing.assert_allclose(numbers(rows), wanted, rtol=1e-5)


def test_without_ids_points_are_numbers_and_the_table_goes_to_a_file(run):
    given = ("distances", "points.npy", "--from", "7", "-o", "out.tsv", *OPTIONS)
    assert "out.tsv" in run(*given).lines["written"]
    rows = pd.read_csv("out.tsv", sep="\t")
    np.testing.assert_allclose(rows["distance"], exact(7, rows["to"]), rtol=1e-5)
    run(*given, code=1)  # is not overwritten
    run(*given, "--force")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("p1,p2\np1\n", "pairs.txt, line 2, does not hold a pair"),
        ("", "line 1, does not hold a pair"),
        ("p1,q2\n", "has no point 'q2'; choose from p0"),
    ],
)
def test_wrong_pairs_are_named(run, pairs, message):
    Path("pairs.txt").write_text(pairs, encoding="utf-8")
    given = ("distances", "points.csv", "--pairs", "pairs.txt")
    assert message in run(*given, code=1).err


def test_an_id_is_not_guessed(run):
    lines = ["id,gene,a,b", *(f"p{n // 2},g{n},{n},{n * n}" for n in range(12))]
    Path("points.csv").write_text("\n".join(lines), encoding="utf-8")
    given = ("distances", "points.csv")
    assert (
        "several points 'p1'; name a column without repetition"
        in run(*given, "--from", "p1", code=1).err
    )
    assert run(*given, "--from", "g7", "--id", "gene").rows[1] == ["g7", "g7", "0", "0", "0"]
    run(*given, code=2)  # neither --pairs nor --from
