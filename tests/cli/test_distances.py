"""heatsketch distances: exact for few points, the intervals of a sketch for many, by id or row."""

import numpy as np
import pandas as pd
import pytest

import heatsketch as hs
from heatsketch.cli import distances
from problems.clouds import cloud
from problems.tables import write_csv


@pytest.fixture
def points(tmp_path):
    """Thirty points with ids p0, p1, …"""
    X = cloud(30, 3)
    write_csv(tmp_path / "points.csv", X, id=[f"p{n}" for n in range(30)])
    np.save(tmp_path / "points.npy", X)
    return tmp_path, X


OPTIONS = ("--n-neighbors", "6", "--n-components", "40", "--time", "4")


@pytest.fixture
def sketched(monkeypatch):
    monkeypatch.setattr(distances, "EXACT_UP_TO", 10)


def expected(X, i, j, **options):
    model = hs.HeatSketch(40, 4, n_neighbors=6, random_state=0).fit(X)
    return np.array(model.distance(i, j, **options)).T


def exact(X, i, j, time=4, n_neighbors=6, **options):
    diffusion = hs.diffusion(X, n_neighbors=n_neighbors)
    return hs.diffusion_distance(diffusion, time, pairs=np.broadcast_arrays(i, j), **options)


def numbers(rows):
    return np.array([row[2:] for row in rows], dtype=float)


def test_distances_from_a_point_are_exact_and_sorted(points, run):
    folder, X = points
    said = run("distances", folder / "points.csv", "--from", "p3", *OPTIONS)
    header, *rows = said.rows
    assert header == ["from", "to", "distance", "low", "high"]
    assert {row[0] for row in rows} == {"p3"}
    assert rows[0][1:3] == ["p3", "0"]
    wanted = exact(X, 3, [int(row[1][1:]) for row in rows])
    assert len(wanted) == 30
    for column in numbers(rows).T:
        np.testing.assert_allclose(column, wanted, rtol=1e-5)
    assert np.all(np.diff(numbers(rows)[:, 0]) >= 0)
    for text in ("30 points, 3 features", "at diffusion time 4 (as given), exact"):
        assert text in said.err


@pytest.mark.usefixtures("sketched")
def test_distances_of_many_points_have_intervals(points, run):
    folder, X = points
    given = ("distances", folder / "points.csv", "--from", "p3")
    found = numbers(rows := run(*given, *OPTIONS).rows[1:])
    wanted = expected(X, 3, [int(row[1][1:]) for row in rows])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert np.all(np.diff(found[:, 0]) >= 0)
    assert found[1, 1] < found[1, 2]
    said = run(*given, "-p", "n_neighbors=6").err
    assert "at diffusion time 8 (the default; --time sets another), by a sketch of 192" in said
    assert "hold the distance with probability 0.95, each by itself" in said


def test_nothing_is_said_of_two_components(tmp_path, run):
    X = np.vstack([cloud(20, 2), cloud(15, 2, seed=1) + 1_000])
    np.save(tmp_path / "two.npy", X)
    (tmp_path / "pairs.txt").write_text("1 2\n1 30\n", encoding="utf-8")
    given = ("distances", tmp_path / "two.npy", "--n-neighbors", "5")
    said = run(*given, "--from", "3")
    assert {row[1] for row in said.rows[1:]} == {str(n) for n in range(20)}
    assert "15 pair(s) in two components, between which nothing diffuses" in said.err
    _, inside, across = run(*given, "--pairs", tmp_path / "pairs.txt").rows
    assert float(inside[2]) > 0
    assert across == ["1", "30", "", "", ""]


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("separator", [",", "\t", " ", ";"])
def test_pairs_of_ids(points, run, separator):
    folder, X = points
    (folder / "pairs.txt").write_text(f"p1{separator}p2\n\np5{separator}p0\n", encoding="utf-8")
    given = ("--pairs", folder / "pairs.txt", "--level", "0.8", "--simultaneous")
    _, *rows = run("distances", folder / "points.csv", *given, *OPTIONS).rows
    assert [row[:2] for row in rows] == [["p1", "p2"], ["p5", "p0"]]
    wanted = expected(X, [1, 5], [2, 0], level=0.8, simultaneous=True)
    np.testing.assert_allclose(numbers(rows), wanted, rtol=1e-5)


def test_without_ids_points_are_numbers_and_the_table_goes_to_a_file(points, run):
    folder, X = points
    out = folder / "out.tsv"
    given = ("distances", folder / "points.npy", "--from", "7", "-o", out, *OPTIONS)
    assert str(out) in run(*given).lines["written"]
    rows = pd.read_csv(out, sep="\t")
    np.testing.assert_allclose(rows["distance"], exact(X, 7, rows["to"]), rtol=1e-5)
    run(*given, code=1)  # is not overwritten
    run(*given, "--force")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("p1,p2\np1\n", "pairs.txt, line 2, does not hold a pair"),
        ("", "line 1, does not hold a pair"),
        ("p1,q2\n", "has no point 'q2'; pass one of its ids"),
    ],
)
def test_wrong_pairs_are_named(points, run, pairs, message):
    folder, _ = points
    (folder / "pairs.txt").write_text(pairs, encoding="utf-8")
    given = ("distances", folder / "points.csv", "--pairs", folder / "pairs.txt")
    assert message in run(*given, code=1).err


def test_an_id_is_not_guessed(tmp_path, run):
    lines = ["id,gene,a,b", *(f"p{n // 2},g{n},{n},{n * n}" for n in range(12))]
    (tmp_path / "points.csv").write_text("\n".join(lines), encoding="utf-8")
    given = ("distances", tmp_path / "points.csv")
    assert "has several points 'p1'" in run(*given, "--from", "p1", code=1).err
    assert run(*given, "--from", "g7", "--id", "gene").rows[1] == ["g7", "g7", "0", "0", "0"]
    run(*given, code=2)  # neither --pairs nor --from
