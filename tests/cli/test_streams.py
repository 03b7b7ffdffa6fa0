"""heatsketch embed of files that are read by blocks."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import heatsketch as hs

METHOD = ("--method", "heat-sketch", "--n-components", "3")
SAMPLE = ("--fit-points", "400")


@pytest.fixture(autouse=True)
def big(run):
    np.save("big.npy", hs.datasets.swiss_roll(900, rng=0)[0].astype(np.float32))


def test_a_sample_is_fitted_and_the_model_is_kept(run):
    X = np.load("big.npy")
    X[5, 1] = np.nan
    np.save("big.npy", X)
    given = (*SAMPLE, "--standardize", "--missing", "drop", "--save-model", "o.model", *METHOD)
    said = run("embed", "big.npy", "-o", "o.npy", *given).out
    assert "1 of 900 rows left out" in said
    assert "columns standardised by the sample" in said
    assert "899 points, 3 features, read by blocks" in said
    assert "400 of 900 points were fitted; distances of other points differ by" in said
    assert "written      o.npy, o.model" in said
    run("transform", "o.model", "big.npy", "-o", "again.npy")
    assert len(np.load("again.npy")) == 899
    np.testing.assert_allclose(np.load("again.npy"), np.load("o.npy"), rtol=1e-5)


def test_blocks_parts_and_few_points_give_the_same_bytes(run):
    Path("parts").mkdir()
    for number, part in enumerate(np.array_split(np.load("big.npy"), 11)):
        np.save(f"parts/p{number}.npy", part)
    for one, other in (
        (("big.npy", *SAMPLE), ("parts", *SAMPLE)),
        (("big.npy",), ("big.npy", "--fit-points", "900")),  # few enough: as ever
        (("big.npy", "--resume"), ("big.npy",)),  # there is nothing to go on with
    ):
        for name, given in (("a.npy", one), ("b.npy", other)):
            run("embed", *given, "-o", name, *METHOD, "--force")
        assert Path("a.npy").read_bytes() == Path("b.npy").read_bytes()


def test_a_sample_is_taken_where_memory_holds_no_more(run, limits):
    limits(read_whole_bytes=0, least_sample=100, available=lambda: 1e7)
    said = run("embed", "big.npy", "-o", "o.npy", *METHOD).out
    (count,) = re.findall(r"(\d+) of 900 points were fitted", said)
    assert 100 <= int(count) < 900
    limits(least_sample=int(count) + 1)
    assert "by blocks" not in run("embed", "big.npy", "-o", "p.npy", *METHOD).out


@pytest.mark.parametrize(
    ("source", "given", "code", "words"),
    [
        ("big.npy", ["--plot", "p.png"], 2, "--plot needs all points at once"),
        ("big.npy", ["--label", "kind"], 1, "no id or label column 'kind'; choose from x0, x1"),
        ("big.npy", ["-o", "o.h5ad"], 1, "only a .h5ad source becomes one"),
        ("big.npy", ["-o", "o.csv"], 1, "cannot be written by blocks"),
        ("digits", [], 2, "--fit-points is for .npy"),
        ("big.npy", ["--fit-points", "99"], 1, "fit_points=99"),
        ("big.npy", ["--cluster", "local:0"], 1, "--cluster local:0 names no workers; pass local"),
        ("big.npy", ["--cluster", ""], 1, "names no workers; pass local:N"),
        ("big.npy", ["--method", "fisher-discriminant"], 1, "is fitted to labels"),
    ],
)
def test_what_blocks_cannot_do_is_said(source, given, code, words, tmp_path, run):
    method = () if "--method" in given else METHOD
    said = run("embed", source, "-o", "o.npy", *SAMPLE, *method, *given, code=code)
    assert words in said.err
    assert {path.name for path in tmp_path.iterdir()} == {"big.npy"}


def test_points_mapped_by_a_sample_are_scored_at_its_time_with_a_warning(run):
    out, made = "o.npy", ("--metadata", "made.json")
    run("embed", "big.npy", "-o", out, *SAMPLE, "--time", "3", "--filter", "heat", *METHOD, *made)
    said = run("score", "big.npy", out, *made)
    assert said.lines["time"] == "3 (recorded in the file of the embedding)"
    assert "mapped by a model of 400 points (others, or a sample)" in said.err
    assert "among the 900 points" in said.err


def test_warnings_of_a_stream_name_the_columns(run):
    columns = dict(zip("xyz", np.load("big.npy").T, strict=True)) | {"frame": np.arange(900) / 3}
    parquet.write_table(pa.table(columns), "big.parquet", row_group_size=200)
    out = ("-o", "o.parquet")
    warned = run("embed", "big.parquet", *out, *SAMPLE, *METHOD).err
    assert warned.count("Feature 'frame' carries") == 1
