"""heatsketch compare of two files: the numbers of the library, by id, by row, or as samples."""

import csv

import numpy as np
import pytest

import heatsketch as hs
from problems.clouds import cloud
from problems.tables import write_csv


@pytest.fixture
def files(tmp_path):
    """Forty points with ids, and the same after a change of some, in another order."""
    X = cloud(40, 3, seed=1)
    Z, order = X.copy(), np.random.default_rng(0).permutation(40)
    Z[:5] += 0.5
    ids = np.array([f"p{i}" for i in range(40)])
    first = write_csv(tmp_path / "a.csv", X, id=ids)
    second = write_csv(tmp_path / "b.csv", Z[order], id=ids[order])
    return tmp_path, first, second, X, Z


OPTIONS = ("--n-neighbors", "6", "--n-components", "16", "--time", "4")


def expected(X, Z, **options):
    a, b = (
        hs.HeatSketch(1, n_neighbors=6).fit(P, ids=[f"p{i}" for i in range(len(P))]) for P in (X, Z)
    )
    return hs.diffusion_discrepancy(a, b, time=4, n_components=16, rng=0, **options)


def table(path):
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


def test_points_with_common_ids_are_matched_and_others_left_out(files, run):
    folder, first, second, X, Z = files
    found, out = expected(X, Z), folder / "out.csv"
    lines = run("compare", first, second, "-o", out, *OPTIONS).lines
    low, high = found.interval()[1:]
    assert lines["discrepancy"] == f"{found.value:.4g} (95 %: {low:.4g} to {high:.4g})"
    assert lines["points"] == "40 points of both, by their ids; 0 and 0 only in one"
    assert lines["written"] == str(out)
    header, *rows = table(out)
    assert header == ["id", "discrepancy", "low", "high"]
    assert [row[0] for row in rows] == [f"p{i}" for i in range(40)]
    numbers = np.array([row[1:] for row in rows], dtype=float).T
    np.testing.assert_allclose(numbers, found.point_interval(), rtol=1e-5)
    fewer = write_csv(folder / "fewer.csv", Z[10:], id=[f"p{i}" for i in range(10, 40)])
    lines = run("compare", first, fewer, "-o", folder / "out.tsv", *OPTIONS).lines
    assert lines["points"] == "30 points of both, by their ids; 10 and 0 only in one"
    assert (folder / "out.tsv").read_text().startswith("id\tdiscrepancy\tlow\thigh\np10\t")


def test_the_same_rows_need_no_ids(files, run):
    folder, _, _, X, Z = files
    np.save(folder / "a.npy", X)
    np.save(folder / "b.npy", Z)
    lines = run(
        "compare", folder / "a.npy", folder / "b.npy", "--same-rows", "--filter", "heat", *OPTIONS
    ).lines
    a, b = (hs.diffusion(P, n_neighbors=6) for P in (X, Z))
    found = hs.diffusion_discrepancy(a, b, time=4, n_components=16, filter="heat", rng=0)
    assert lines["discrepancy"].startswith(f"{found.value:.4g} (")
    assert lines["points"] == "40 points of both"


def test_other_points_are_samples(files, run):
    folder, first, _, X, _ = files
    other = write_csv(folder / "c.csv", cloud(30, 3, seed=9), id=range(30))
    out, picture = folder / "out.csv", folder / "out.png"
    lines = run("compare", first, other, "-o", out, "--plot", picture, *OPTIONS).lines
    found = hs.uncertainty.sample_discrepancy(
        X, cloud(30, 3, seed=9), time=4, n_components=16, n_neighbors=6, rng=0
    )
    assert lines["discrepancy"].startswith(f"{found.value:.4g} (95 %")
    assert lines["p-value"].startswith(f"{found.p_value:.3g}, ")
    header, *rows = table(out)
    assert header == ["file", "id", "discrepancy"]
    assert [row[1] for row in rows[39:42]] == ["p39", "0", "1"]
    np.testing.assert_allclose(
        [float(row[2]) for row in rows], np.concatenate(found.per_point), rtol=1e-5
    )
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_other_is_read_in_the_units_of_input(files, run):
    """Standardised by itself, a data set that is moved and stretched would be the same one."""
    folder, first, _, X, _ = files
    moved = write_csv(folder / "moved.csv", 5 + 3 * X, id=[f"q{i}" for i in range(40)])
    units = (X.mean(axis=0), X.std(axis=0))
    found = hs.uncertainty.sample_discrepancy(
        *((P - units[0]) / units[1] for P in (X, 5 + 3 * X)),
        time=4,
        n_components=16,
        n_neighbors=6,
        rng=0,
    )
    lines = run("compare", first, moved, "--standardize", *OPTIONS).lines
    assert lines["discrepancy"].startswith(f"{found.value:.4g} (")
    assert float(lines["p-value"].split(",")[0]) < 0.05


def test_what_cannot_be_compared_is_an_error(files, run):
    folder, first, second, _, _ = files
    np.save(folder / "wide.npy", cloud(40, 5))
    said = run("compare", first, folder / "wide.npy", *OPTIONS, code=1)
    assert "different features" in said.err
    said = run("compare", first, second, "-o", folder / "out.png", code=2)
    assert "out.png" in said.err
    other = write_csv(folder / "c.csv", cloud(30, 3), id=range(30))
    assert "need the same points" in run("compare", first, other, "--filter", "heat", code=2).err
