"""heatsketch distances: exact for few points, the intervals of a sketch for many, by id or row."""

import csv

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli
from heatsketch.cli import distances
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


@pytest.fixture
def sketched(monkeypatch):
    monkeypatch.setattr(distances, "EXACT_UP_TO", 10)


def expected(X, i, j, **options):
    model = hs.HeatSketch(40, 4, n_neighbors=6, random_state=0).fit(X)
    return np.array(model.distance(i, j, **options)).T


def exact(X, i, j, time=4, **options):
    pairs = np.broadcast_arrays(i, j)
    diffusion = hs.diffusion(X, **{"n_neighbors": 6} | options)
    return hs.diffusion_distance(diffusion, time, pairs=pairs)


def test_distances_from_a_point_are_exact_and_sorted(points, capsys):
    folder, X = points
    header, *rows = printed(capsys, folder / "points.csv", "--from", "p3")
    assert header == ["from", "to", "distance", "low", "high"]
    assert {row[0] for row in rows} == {"p3"}
    assert rows[0][1:3] == ["p3", "0"]
    numbers = np.array([row[2:] for row in rows], dtype=float)
    assert np.all(np.diff(numbers[:, 0]) >= 0)
    wanted = exact(X, 3, [int(row[1][1:]) for row in rows])
    assert len(wanted) == 30
    for column in numbers.T:
        np.testing.assert_allclose(column, wanted, rtol=1e-5)


@pytest.mark.usefixtures("sketched")
def test_distances_of_many_points_have_intervals(points, capsys):
    folder, X = points
    _, *rows = printed(capsys, folder / "points.csv", "--from", "p3")
    numbers = np.array([row[2:] for row in rows], dtype=float)
    wanted = expected(X, 3, [int(row[1][1:]) for row in rows])
    np.testing.assert_allclose(numbers, wanted, rtol=1e-5)
    assert np.all(np.diff(numbers[:, 0]) >= 0)
    assert numbers[1, 1] < numbers[1, 2]


def test_nothing_is_said_of_two_components(tmp_path, capsys):
    X = np.vstack([cloud(20, 2), cloud(15, 2, seed=1) + 1_000])
    np.save(tmp_path / "two.npy", X)
    (tmp_path / "pairs.txt").write_text("1 2\n1 30\n", encoding="utf-8")
    command = ["distances", str(tmp_path / "two.npy"), "--n-neighbors", "5"]
    assert cli.main([*command, "--from", "3"]) == 0
    out, err = capsys.readouterr()
    found = {row[1] for row in csv.reader(out.splitlines()[1:])}
    assert found == {str(n) for n in range(20)}
    assert "15 pair(s) in two components, between which nothing diffuses" in err
    assert cli.main([*command, "--pairs", str(tmp_path / "pairs.txt"), "-q"]) == 0
    _, inside, across = csv.reader(capsys.readouterr().out.splitlines())
    assert float(inside[2]) > 0
    assert across == ["1", "30", "", "", ""]


def test_distances_are_those_of_the_model_that_is_given(points, capsys):
    folder, X = points
    model = folder / "map.model"
    made = ["--time", "3", "--filter", "heat", "--n-neighbors", "8", "--save-model", str(model)]
    assert cli.main(["embed", str(folder / "points.csv"), "-o", str(folder / "m.csv"), *made]) == 0
    capsys.readouterr()
    command = ["distances", str(folder / "points.csv"), "--from", "p3", "--model", str(model)]
    assert cli.main(command) == 0
    out, err = capsys.readouterr()
    assert f"at diffusion time 3 (that of {model}), exact" in err
    rows = list(csv.reader(out.splitlines()[1:]))
    at = [int(row[1][1:]) for row in rows]
    wanted = hs.diffusion_distance(
        hs.diffusion(X, n_neighbors=8), 3, filter="heat", pairs=np.broadcast_arrays(3, at)
    )
    np.testing.assert_allclose([float(row[2]) for row in rows], wanted, rtol=1e-5)
    assert cli.main([*command, "--time", "5"]) == 2
    assert "time is that of --model" in capsys.readouterr().err
    moved = (folder / "points.csv").read_text(encoding="utf-8").replace(",0.", ",1.")
    (folder / "other.csv").write_text(moved, encoding="utf-8")
    assert cli.main(["distances", str(folder / "other.csv"), *command[2:]]) == 1
    assert "was not fitted to the points of" in capsys.readouterr().err


def test_ids_may_begin_with_a_minus(tmp_path, capsys):
    X = cloud(30, 3)
    lines = [",".join([f"-s{n}", *(f"{x!r}" for x in row)]) for n, row in enumerate(X.tolist())]
    (tmp_path / "minus.csv").write_text("\n".join(["id,a,b,c", *lines]), encoding="utf-8")
    source = str(tmp_path / "minus.csv")
    for given in (["--from", "-s3"], ["--from=-s3"]):
        assert cli.main(["distances", source, *given, "-q"]) == 0
        assert capsys.readouterr().out.splitlines()[1].startswith("-s3,-s3,0,")
    late = ["embed", source, "-o", str(tmp_path / "late.csv"), "--pseudotime", "-s3", "-q"]
    assert cli.main(late) == 0


@pytest.mark.usefixtures("sketched")
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
    wanted = exact(X, 7, [int(row[1]) for row in rows[1:]])
    np.testing.assert_allclose(numbers[:, 0], wanted, rtol=1e-5)
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


def test_a_column_that_holds_the_point_is_named(tmp_path, capsys):
    lines = ["gene,a,b", *(f"g{n},{n},{n * n}" for n in range(20))]
    (tmp_path / "genes.csv").write_text("\n".join(lines), encoding="utf-8")
    command = ["distances", str(tmp_path / "genes.csv"), "--from", "g7", "-q"]
    assert cli.main(command) == 1
    assert "'g7' is not an id; name its column with --id gene." in capsys.readouterr().err
    assert cli.main([*command, "--id", "gene"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "g7,g7,0,0,0"


def test_pseudotime_adds_columns(points, capsys):
    folder, X = points
    out = folder / "late.csv"
    given = ["embed", str(folder / "points.csv"), "-o", str(out), "--n-neighbors", "6", "-q"]
    assert cli.main([*given, "--pseudotime", "p3"]) == 0
    assert "pseudotime" in capsys.readouterr().out
    with out.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    wanted = hs.HeatEmbedding(n_neighbors=6, random_state=0).fit(X).pseudotime(3)
    names = ("heat_pseudotime", "heat_pseudotime_low", "heat_pseudotime_high")
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
    lines = [
        f"{line},{'heat_pseudotime' if n == 0 else f'early {n}'}" for n, line in enumerate(lines)
    ]
    (folder / "points.csv").write_text("\n".join(lines), encoding="utf-8")
    given = ["embed", str(folder / "points.csv"), "-o", str(folder / "o.csv"), "--pseudotime", "p3"]
    assert cli.main([*given, "-q", "--n-neighbors", "6"]) == 1
    assert "has a column 'heat_pseudotime', which this run adds" in capsys.readouterr().err
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
    for text in ("30 points, 3 features", "at diffusion time 4 (as given), exact"):
        assert text in printed.err
    assert cli.main([*given, "-o", str(folder / "out.csv")]) == 0
    assert "out.csv" in capsys.readouterr().out


@pytest.mark.usefixtures("sketched")
def test_it_is_said_how_sure_a_sketch_is_and_that_the_time_is_the_default(points, capsys):
    folder, _ = points
    given = ["distances", str(folder / "points.csv"), "--from", "p3", "-p", "n_neighbors=6"]
    assert cli.main(given) == 0
    said = capsys.readouterr().err
    assert "at diffusion time 8 (the default; --time sets another), by a sketch of 192" in said
    assert "hold the distance with probability 0.95, each by itself" in said
