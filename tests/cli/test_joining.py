"""Two files of the same points: which columns are coordinates, and which rows belong together."""

import json
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest

import heatsketch as hs
from problems.clouds import cloud

X = cloud(60, 3, seed=1)
CELLS = [f"c{i}" for i in range(60)]
TIME = ("--time", 4)


def frame(values, names, **columns):
    return pd.DataFrame(columns | dict(zip(names, values.T, strict=True)))


def log_L(said):
    return float(said.lines["log L"])


@pytest.fixture
def points(run):
    """Write points named by cell, and return the log L of the picture of two of their columns."""
    frame(X, ["g1", "g2", "g3"], cell=CELLS).to_csv("points.csv", index=False)
    np.save("picture.npy", X[:, :2])
    return log_L(run("score", "points.csv", "picture.npy", *TIME))


def measures():
    """Return numbers about points, as embed and scanpy write them."""
    rng = np.random.default_rng(0)
    names = ("heat_pseudotime", "heat_pseudotime_low", "heat_pseudotime_high")
    found = {name: np.where(np.arange(60) < 30, rng.random(60), np.inf) for name in names}
    found |= {"neighbor_confidence": rng.random(60), "n_counts": rng.integers(100, 9999, 60)}
    return found | {"leiden": np.arange(60) % 7}


@pytest.mark.parametrize(
    "names", ["UMAP1 UMAP2", "umap-0 umap-1", "x y", "tSNE_X tSNE_Y", "PC 1,PC 2", "lon lat"]
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_numbers_beside_coordinates_are_no_coordinates(run, points, names, suffix):
    names = names.split("," if "," in names else " ")
    picture = frame(X[:, :2], names, cell=CELLS, **measures())
    write = picture.to_csv if suffix == ".csv" else picture.to_parquet
    write(f"picture{suffix}", index=False)
    said = run("score", "points.csv", f"picture{suffix}", *TIME)
    assert log_L(said) == points
    assert said.lines["embedding"] == f"picture{suffix}: {', '.join(names)}; joined by 'cell'"


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".h5ad"])
def test_the_pseudotime_of_several_components_is_no_coordinate(run, suffix):
    two = cloud(120, 3, seed=1) + 99 * (np.arange(120) % 2)[:, None]
    frame(two, "abc").to_csv("points.csv", index=False)
    made = run("embed", "points.csv", "-o", f"map{suffix}", *TIME, "--pseudotime", 0)
    assert "invalid value" not in made.err
    assert "60 point(s) in other components" in made.lines["pseudotime"]
    run("embed", "points.csv", "-o", "map.npy", *TIME)
    files = [("score", "points.csv", f"map{suffix}"), ("score", "points.csv", "map.npy")]
    assert len({log_L(run(*words, *TIME)) for words in files}) == 1
    said = run("audit", "points.csv", f"map{suffix}", "-o", "page.html")
    expected = hs.audit(two, np.load("map.npy"), random_state=0).describe().splitlines()[0]
    assert said.lines["trust"] == expected


def test_coordinates_are_asked_for_where_their_names_leave_a_choice(run, points):
    both = frame(X[:, :2], ["UMAP1", "UMAP2"], cell=CELLS, tSNE1=X[:, 2], tSNE2=X[:, 0])
    both.to_csv("both.csv", index=False)
    words = run("score", "points.csv", "both.csv", code=1).err
    assert "several sets of coordinates: tSNE1, tSNE2; UMAP1, UMAP2" in words
    assert "name the coordinates with --coordinates" in words
    asked = ("--coordinates", "UMAP1,UMAP2")
    assert log_L(run("score", "points.csv", "both.csv", *TIME, *asked)) == points
    said = run("audit", "points.csv", "both.csv", *asked, "-o", "page.html")
    assert said.lines["picture"] == "both.csv: UMAP1, UMAP2; joined by 'cell'"
    frame(X, ["age", "height", "weight"]).to_csv("none.csv", index=False)
    words = run("score", "points.csv", "none.csv", code=1).err
    assert "Its numeric columns are age, height, weight" in words


def test_features_of_the_points_beside_a_picture_are_no_coordinates(run, points):
    given = pd.read_csv("points.csv").assign(UMAP1=X[:, 0], UMAP2=X[:, 1])
    given.to_csv("all.csv", index=False)
    assert log_L(run("score", "points.csv", "all.csv", *TIME)) == points


ORDER = np.random.default_rng(3).permutation(60)


def shuffled(name="cell", **columns):
    columns = {key: np.asarray(column)[ORDER] for key, column in columns.items()}
    picture = frame(X[ORDER, :2], ["x", "y"], **{name: np.array(CELLS)[ORDER]}, **columns)
    return picture[[*columns, name, "x", "y"]]


@pytest.mark.parametrize("name", ["cell", "barcode", "index"])
def test_rows_in_another_order_are_joined_by_names_of_both_files(run, points, name):
    shuffled(name).to_csv("picture.csv", index=False)
    said = run("score", "points.csv", "picture.csv", *TIME)
    assert log_L(said) == points
    how = "'cell'" if name == "cell" else f"'cell' and {name!r}"
    assert said.lines["embedding"].endswith(f"; joined by {how}")
    assert said.err == ""


def test_row_numbers_of_pandas_do_not_hide_the_names(run, points):
    pd.read_csv("points.csv").to_csv("points.csv")
    shuffled().to_csv("picture.csv")
    assert log_L(run("score", "points.csv", "picture.csv", *TIME)) == points


def test_names_of_cells_in_obs_are_joined_with_a_column(run, points):
    obs = pd.DataFrame(index=CELLS)
    anndata.AnnData(X, obs=obs).write_h5ad("points.h5ad")
    shuffled().to_csv("picture.csv", index=False)
    assert log_L(run("score", "points.h5ad", "picture.csv", *TIME)) == points
    np.savez("picture.npz", embedding=X[ORDER, :2], names=np.array(CELLS)[ORDER])
    assert log_L(run("score", "points.csv", "picture.npz", *TIME)) == points


def test_ids_that_are_numbers_are_joined_where_they_are_named(run, points):
    numbers = 1000 + np.arange(60)
    frame(X, "abc", number=numbers).to_csv("points.csv", index=False)
    shuffled(number=numbers).drop(columns="cell").to_csv("picture.csv", index=False)
    for given in (("--id", "number"), ("--exclude", "number")):
        said = run("score", "points.csv", "picture.csv", *TIME, *given)
        assert log_L(said) == points
        assert said.lines["embedding"] == "picture.csv: x, y; joined by 'number'"


def test_rows_that_one_file_lacks_are_counted(run, points):
    picture = shuffled()
    pd.concat([picture, picture.head(2).assign(cell=["new1", "new2"])]).to_csv(
        "more.csv", index=False
    )
    said = run("score", "points.csv", "more.csv", *TIME)
    assert log_L(said) == points
    assert said.lines["embedding"].endswith("'cell', 2 of its rows are not in points.csv")
    picture.tail(57).to_csv("fewer.csv", index=False)
    words = run("score", "points.csv", "fewer.csv", code=1).err
    assert "it lacks 3 of the 60 points of points.csv (by 'cell')" in words


def test_rows_joined_by_order_are_said_and_warned_of_if_a_column_disagrees(run, points):
    assert run("score", "points.csv", "picture.npy", *TIME).lines["embedding"].endswith("by row")
    patients = np.array([f"p{i // 2}" for i in range(60)])  # names that repeat join nothing
    frame(X, "abc", patient=patients).to_csv("points.csv", index=False)
    frame(X[:, :2], "xy", patient=patients).to_csv("same.csv", index=False)
    assert run("score", "points.csv", "same.csv", *TIME).err == ""
    shuffled(patient=patients).drop(columns="cell").to_csv("picture.csv", index=False)
    said = run("score", "points.csv", "picture.csv", *TIME)
    assert said.lines["embedding"].endswith("joined by row")
    assert "joined by row, but column 'patient' differs: row 0 has 'p0' and" in said.err
    frame(X, "abc", cell=CELLS).to_csv("points.csv", index=False)
    frame(X[:, :2], "xy", cell=[f"s1_{cell}" for cell in CELLS]).to_csv("other.csv", index=False)
    assert "column 'cell' differs" in run("score", "points.csv", "other.csv", *TIME).err


def test_pictures_beside_each_other_are_joined_each_by_its_ids(run, points):
    shuffled().to_csv("picture.csv", index=False)
    shuffled("barcode").to_csv("other.csv", index=False)
    files = ("points.csv", "picture.csv", "--beside", "other.csv")
    said = run("audit", *files, "-o", "page.html", "--table", "t.csv")
    assert said.lines["beside"] == "other.csv: x, y; joined by 'cell' and 'barcode'"
    np.testing.assert_allclose(
        pd.read_csv("t.csv")["trust"], hs.audit(X, X[:, :2], random_state=0).trust, atol=1e-9
    )
    page = Path("page.html").read_text("utf-8")
    facts = json.loads(page.partition('id="facts">')[2].partition("</script>")[0])
    assert facts["n_points"] == 60


def test_data_of_two_files_are_compared_by_names_of_both(run, points):
    named = pd.read_csv("points.csv")
    named.iloc[ORDER][["g3", "cell", "g1", "g2"]].to_csv("other.csv", index=False)
    said = run("compare", "points.csv", "other.csv")  # features in another order, too
    assert said.lines["matched"] == "by their ids; 0 and 0 points are in one file only"
    assert float(said.lines["discrepancy"].split()[0]) < 1e-6
    said = run("compare", "points.csv", "other.csv", "--same-rows")
    assert "joined by row, but column 'cell' differs" in said.err


def test_distances_find_pairs_by_any_column_of_names(run, points):
    Path("pairs.csv").write_text("c3,c50\nc7,c8\n")
    found = run("distances", "points.csv", "--pairs", "pairs.csv", *TIME, "-o", "named.csv")
    Path("pairs.csv").write_text("3,50\n7,8\n")
    run("distances", "points.csv", "--pairs", "pairs.csv", *TIME, "-o", "rows.csv")
    named, rows = pd.read_csv("named.csv"), pd.read_csv("rows.csv")
    assert named["from"].tolist() == ["c3", "c7"]
    np.testing.assert_array_equal(named["distance"], rows["distance"])
    assert found.err == ""


@pytest.mark.parametrize("cells", [CELLS, None])
def test_a_missing_coordinate_is_named_with_its_file_row_and_column(run, points, cells):
    picture = frame(X[:, :2], ["UMAP1", "UMAP2"], **({"cell": cells} if cells else {}))
    picture.loc[7, "UMAP2"] = np.nan
    picture.to_csv("picture.csv", index=False)
    for command in (("score", *TIME), ("audit", *TIME, "-o", "a.html")):
        said = run(command[0], "points.csv", "picture.csv", *command[1:], code=1)
        assert "Input picture.csv contains NaN: 1 value(s)" in said.err
        assert "row 7, column 'UMAP2'" in said.err


@pytest.fixture
def grown(run):
    """Write a picture of some points, and more points in another order."""
    points = frame(X, ["g1", "g2", "g3"], cell=CELLS)
    points[:45].to_csv("old.csv", index=False)
    points[::-1].to_csv("new.csv", index=False)
    run("embed", "old.csv", "-o", "old-map.csv")
    return pd.read_csv("old-map.csv").set_index("cell")


def test_a_picture_keeps_to_old_places_that_are_joined_by_id(run, grown):
    said = run("embed", "new.csv", "--places", "old-map.csv", "-o", "map.csv")
    assert said.lines["places"].startswith("45 of 60 known, joined by 'cell'; 0 moved")
    assert "0 known points moved" in said.lines["picture"]
    found = pd.read_csv("map.csv").set_index("cell").loc[CELLS]
    names = ["heatembedding0", "heatembedding1"]
    moves = np.linalg.norm(found[names][:45] - grown[names], axis=1)
    assert np.median(moves) < 0.05 * np.ptp(grown[names].to_numpy())
    assert found["heat_moved"].isna().tolist() == [False] * 45 + [True] * 15
    places = np.full((60, 2), np.nan)
    places[15:] = grown[names][::-1]
    model = hs.HeatEmbedding(random_state=0).fit(X[::-1], places=places)
    np.testing.assert_allclose(found[names][::-1], model.embedding_, rtol=1e-6)


def test_places_that_cannot_be_joined_or_used_are_refused(run, grown):
    frame(X, ["g1", "g2", "g3"]).to_csv("nameless.csv", index=False)
    refused = run("embed", "nameless.csv", "--places", "old-map.csv", "-o", "a.csv", code=1)
    assert "45 rows, nameless.csv 60, and no ids join them" in refused.err
    strange = pd.read_csv("old-map.csv").assign(cell=[f"d{i}" for i in range(45)])
    strange.to_csv("strange.csv", index=False)
    old = run("embed", "old.csv", "--places", "strange.csv", "-o", "c.csv", code=1)
    assert "no ids join them" in old.err  # though there are as many rows
    other = ("-m", "heat-sketch", "-o", "b.csv")
    refused = run("embed", "new.csv", "--places", "old-map.csv", *other, code=2)
    assert "--places belongs to heat-embedding" in refused.err


@pytest.mark.parametrize("how", [("--encode",), ("--encode", "--missing", "median"), ()])
@pytest.mark.parametrize("ids", ["text", "numbers"])
def test_features_that_never_repeat_join_files_in_another_order(run, how, ids):
    """With --encode names are features that are left out, and numbers are features anyway."""
    rng = np.random.default_rng(4)
    p, numbers = rng.permutation(60), rng.choice(10**6, 60, replace=False)
    fid = numbers if ids == "numbers" else [f"F{number:06d}" for number in numbers]
    points = frame(X, ["g1", "g2", "g3"], fid=fid, colour=["red", "green"] * 30)
    points.iloc[p].to_csv("points.csv", index=False)
    points[["g1", "g2", "g3", "colour"]].iloc[p].to_csv("bare.csv", index=False)
    frame(X[:, :2], ["PC1", "PC2"], fid=fid).to_csv("picture.csv", index=False)
    frame(X[p, :2], ["PC1", "PC2"], fid=np.asarray(fid)[p]).to_csv("ordered.csv", index=False)
    said = run("score", "points.csv", "picture.csv", *TIME, *how)
    assert said.lines["embedding"] == "picture.csv: PC1, PC2; joined by 'fid'"
    assert log_L(said) == log_L(run("score", "points.csv", "ordered.csv", *TIME, *how))
    audited = run("audit", "points.csv", "picture.csv", "-o", "page.html", *how)
    assert audited.lines["picture"].endswith("joined by 'fid'")
    by_row = run("score", "bare.csv", "ordered.csv", *TIME, *how)
    assert by_row.lines["embedding"].endswith("joined by row")
