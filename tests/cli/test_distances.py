"""heatsketch distances: the numbers of HeatSketch.distance, by id or by row."""

import csv

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli
from problems.clouds import cloud


@pytest.fixture
def points(tmp_path):
    """Thirty points with ids p0, p1, …"""
    X = cloud(30, 3)
    lines = [",".join([f"p{n}", *(f"{x!r}" for x in row.tolist())]) for n, row in enumerate(X)]
    (tmp_path / "points.csv").write_text("\n".join(["id,a,b,c", *lines]), encoding="utf-8")
    np.save(tmp_path / "points.npy", X)
    return tmp_path, X


OPTIONS = ("--n-neighbors", "6", "--n-components", "40", "--time", "4")


def printed(capsys, *arguments):
    assert cli.main(["distances", *map(str, arguments), *OPTIONS, "-q"]) == 0
    return list(csv.reader(capsys.readouterr().out.splitlines()))


def expected(X, i, j, **options):
    model = hs.HeatSketch(40, 4, n_neighbors=6, random_state=0).fit(X)
    return np.array(model.distance(i, j, **options)).T


def test_from_a_point_to_all(points, capsys):
    folder, X = points
    header, *rows = printed(capsys, folder / "points.csv", "--from", "p3")
    assert header == ["from", "to", "distance", "low", "high"]
    assert [row[:2] for row in rows] == [["p3", f"p{n}"] for n in range(30)]
    numbers = np.array([row[2:] for row in rows], dtype=float)
    np.testing.assert_allclose(numbers, expected(X, 3, None), rtol=1e-5)


@pytest.mark.parametrize("separator", [",", "\t", " ", ";"])
def test_pairs_of_ids(points, capsys, separator):
    folder, X = points
    (folder / "pairs.txt").write_text(f"p1{separator}p2\n\np5{separator}p0\n", encoding="utf-8")
    given = (folder / "points.csv", "--pairs", folder / "pairs.txt", "--level", "0.8")
    _, *rows = printed(capsys, *given, "--simultaneous")
    assert [row[:2] for row in rows] == [["p1", "p2"], ["p5", "p0"]]
    numbers = np.array([row[2:] for row in rows], dtype=float)
    wanted = expected(X, [1, 5], [2, 0], level=0.8, simultaneous=True)
    np.testing.assert_allclose(numbers, wanted, rtol=1e-5)


def test_without_ids_points_are_numbers_and_the_table_goes_to_a_file(points):
    folder, X = points
    out = folder / "out.tsv"
    given = ["distances", str(folder / "points.npy"), "--from", "7", "-o", str(out), *OPTIONS]
    assert cli.main(given) == 0
    rows = list(csv.reader(out.read_text(encoding="utf-8").splitlines(), delimiter="\t"))
    numbers = np.array([row[2:] for row in rows[1:]], dtype=float)
    np.testing.assert_allclose(numbers, expected(X, 7, None), rtol=1e-5)
    assert cli.main(given) == 1  # is not overwritten
    assert cli.main([*given, "--force"]) == 0


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("p1,p2\np1\n", "pairs.txt, line 2, does not hold a pair"),
        ("", "line 1, does not hold a pair"),
        ("p1,q2\n", "has no point 'q2'; pass one of its ids"),
    ],
)
def test_wrong_pairs_are_named(points, capsys, pairs, message):
    folder, _ = points
    (folder / "pairs.txt").write_text(pairs, encoding="utf-8")
    given = ["distances", str(folder / "points.csv"), "--pairs", str(folder / "pairs.txt")]
    assert cli.main(given) == 1
    assert message in capsys.readouterr().err


def test_an_id_that_is_not_unique_is_not_guessed(tmp_path, capsys):
    lines = ["id,a,b", *(f"p{n // 2},{n},{n * n}" for n in range(12))]
    (tmp_path / "points.csv").write_text("\n".join(lines), encoding="utf-8")
    assert cli.main(["distances", str(tmp_path / "points.csv"), "--from", "p1"]) == 1
    assert "has several points 'p1'" in capsys.readouterr().err
    assert cli.main(["distances", str(tmp_path / "points.csv")]) == 2  # neither --pairs nor --from


def test_embed_writes_how_certain_neighbours_are(points, capsys):
    folder, X = points
    out = folder / "map.csv"
    given = ["embed", str(folder / "points.csv"), "-o", str(out), "--n-neighbors", "6"]
    assert cli.main([*given, "--method", "heat-sketch", "--intervals"]) == 0
    assert "certain, for a tenth of the points" in capsys.readouterr().out
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    found = np.array([row["neighbor_confidence"] for row in rows], dtype=float)
    model = hs.HeatSketch(n_neighbors=6, random_state=0).fit(X)
    np.testing.assert_allclose(found, model.neighbor_confidence_)
    assert cli.main(["score", str(folder / "points.csv"), str(out)]) == 0  # is no coordinate
    assert "log L" in capsys.readouterr().out
    assert cli.main([*given, "--force", "--intervals"]) == 2
    assert "--intervals belongs to heat-sketch" in capsys.readouterr().err


def test_pseudotime_adds_columns(points, capsys):
    folder, X = points
    out = folder / "late.csv"
    given = ["embed", str(folder / "points.csv"), "-o", str(out), "--n-neighbors", "6", "-q"]
    assert cli.main([*given, "--pseudotime", "p3"]) == 0
    assert "pseudotime" in capsys.readouterr().out
    with out.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    wanted = hs.HeatEmbedding(n_neighbors=6, random_state=0).fit(X).pseudotime(3)
    names = ("pseudotime", "pseudotime_low", "pseudotime_high")
    for name, values in zip(names, wanted, strict=True):
        np.testing.assert_allclose([float(row[name]) for row in rows], values)


def test_pseudotime_says_what_it_cannot_do(points, capsys):
    folder, _ = points
    given = ["embed", str(folder / "points.csv"), "-q", "--n-neighbors", "6", "--pseudotime"]
    assert cli.main([*given, "p77", "-o", str(folder / "o.csv")]) == 1
    assert "has no point 'p77'" in capsys.readouterr().err
    assert cli.main([*given, "p3", "-o", str(folder / "o.npy")]) == 2
    assert "other than .npy" in capsys.readouterr().err
    assert cli.main([*given, "p3", "-o", str(folder / "o.csv"), "--method", "isomap"]) == 2
    assert "--pseudotime belongs to heat-embedding" in capsys.readouterr().err


def test_columns_of_the_input_are_not_replaced(points, capsys):
    folder, _ = points
    lines = (folder / "points.csv").read_text(encoding="utf-8").splitlines()
    lines = [f"{line},{'pseudotime' if n == 0 else f'early {n}'}" for n, line in enumerate(lines)]
    (folder / "points.csv").write_text("\n".join(lines), encoding="utf-8")
    given = ["embed", str(folder / "points.csv"), "-o", str(folder / "o.csv"), "--pseudotime", "p3"]
    assert cli.main([*given, "-q", "--n-neighbors", "6"]) == 1
    assert "has a column 'pseudotime', which this run adds" in capsys.readouterr().err
    assert not (folder / "o.csv").exists()


@pytest.mark.parametrize("method", ["heat-embedding", "diffusion-map"])
def test_the_summary_says_what_the_estimator_does_of_the_share_explained(points, method, capsys):
    folder, X = points
    given = ["embed", str(folder / "points.csv"), "-o", str(folder / "o.csv"), "-q"]
    assert cli.main([*given, "--n-neighbors", "6", "--method", method]) == 0
    make = {"heat-embedding": hs.HeatEmbedding, "diffusion-map": hs.DiffusionMap}[method]
    model = make(n_neighbors=6, random_state=0).fit(X)
    words = f"{model.explained_diffusion_variance().describe()}, by 2 coordinates"
    assert f"explained    {words}" in capsys.readouterr().out


def test_it_is_said_which_distances_these_are(points, capsys):
    folder, _ = points
    given = ["distances", str(folder / "points.csv"), "--from", "p3", *OPTIONS]
    assert cli.main(given) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 31  # the table alone: others may read it
    for text in ("30 points, 3 features", "at diffusion time 4", "40 columns", "probability 0.95"):
        assert text in printed.err
    assert cli.main([*given, "-o", str(folder / "out.csv")]) == 0
    assert "out.csv" in capsys.readouterr().out
