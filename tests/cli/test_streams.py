"""heatsketch embed of files that are read by blocks."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.cli import main, streams

METHOD = ("--method", "heat-sketch", "--n-components", "3")


@pytest.fixture
def big(tmp_path):
    np.save(tmp_path / "big.npy", hs.datasets.swiss_roll(900, rng=0)[0].astype(np.float32))
    return tmp_path / "big.npy"


def test_a_sample_is_fitted_and_the_model_is_kept(big, tmp_path, capsys):
    out, model, again = tmp_path / "o.npy", tmp_path / "o.model", tmp_path / "again.npy"
    given = ["--fit-points", "400", "--standardize", "--save-model", str(model), *METHOD]
    assert main(["embed", str(big), "-o", str(out), *given]) == 0
    said = capsys.readouterr().out
    assert "900 points, 3 features, read by blocks" in said
    assert "400 of 900 points were fitted; distances of other points differ by" in said
    assert f"written      {out}, {model}" in said
    assert main(["transform", str(model), str(big), "-o", str(again)]) == 0
    np.testing.assert_allclose(np.load(again), np.load(out), rtol=1e-5)


def test_points_that_are_few_enough_are_embedded_as_ever(big, tmp_path):
    for name, given in (("a.npy", []), ("b.npy", ["--fit-points", "900"])):
        assert main(["embed", str(big), "-o", str(tmp_path / name), *METHOD, *given, "-q"]) == 0
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_a_folder_of_parts_is_read(big, tmp_path):
    (tmp_path / "parts").mkdir()
    for number, part in enumerate(np.array_split(np.load(big), 11)):
        np.save(tmp_path / "parts" / f"p{number}.npy", part)
    for name, source in (("a.npy", big), ("b.npy", tmp_path / "parts")):
        given = ["-o", str(tmp_path / name), "--fit-points", "400", *METHOD, "-q"]
        assert main(["embed", str(source), *given]) == 0
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_a_sample_is_taken_where_memory_holds_no_more(big, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(streams, "_READ_WHOLE_BYTES", 0)
    monkeypatch.setattr(streams, "_LEAST_SAMPLE", 100)
    monkeypatch.setattr("heatsketch.distributed.stream.points_that_fit", lambda *_: 500)
    assert main(["embed", str(big), "-o", str(tmp_path / "o.npy"), *METHOD]) == 0
    assert "500 of 900 points were fitted" in capsys.readouterr().out
    monkeypatch.setattr(streams, "_LEAST_SAMPLE", 501)
    assert main(["embed", str(big), "-o", str(tmp_path / "p.npy"), *METHOD]) == 0
    assert "read by blocks" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "given", "code", "words"),
    [
        ("big.npy", ["--plot", "p.png"], 2, "--plot needs all points at once"),
        ("big.npy", ["--label", "kind"], 1, "no id or label column 'kind'; choose from x0, x1"),
        ("big.npy", ["-o", "o.h5ad"], 1, "only a .h5ad source becomes one"),
        ("big.npy", ["-o", "o.csv"], 1, "cannot be written by blocks"),
        ("digits", [], 2, "--fit-points is for points in .npy"),
        ("big.npy", ["--fit-points", "99"], 1, "fit_points=99"),
    ],
)
def test_what_blocks_cannot_do_is_said(
    source, given, code, words, big, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    command = ["embed", source, "-o", "o.npy", "--fit-points", "400", *METHOD, *given]
    assert main(command) == code
    assert words in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"big.npy"}


def test_resume_begins_where_there_is_nothing(big, tmp_path):
    out = tmp_path / "o.npy"
    assert main(["embed", str(big), "-o", str(out), "--resume", *METHOD, "-q"]) == 0
    assert np.load(out).shape == (900, 3)


@pytest.mark.parametrize(
    ("method", "words"),
    [("sne", "SNE has no transform"), ("fisher-discriminant", "is fitted to labels")],
)
def test_methods_that_map_no_other_points_are_refused(method, words, big, tmp_path, capsys):
    command = ["embed", str(big), "-o", str(tmp_path / "o.npy"), "--fit-points", "400"]
    assert main([*command, "--method", method]) != 0
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["big.npy"]


@pytest.mark.parametrize("given", [(), ("--read", "decimal=,", "--read", "sep=;")])
def test_text_is_embedded_by_blocks_as_parquet_is(given, big, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = np.load(big).astype(float)
    parquet.write_table(pa.table(dict(zip("xyz", X.T, strict=True))), tmp_path / "big.parquet")
    sep, mark = (";", ",") if given else (",", ".")
    lines = [sep.join(repr(float(x)).replace(".", mark) for x in row) for row in X]
    (tmp_path / "big.csv").write_text("\n".join([sep.join("xyz"), *lines]) + "\n")
    for name, options in (("big.parquet", ()), ("big.csv", given)):
        out = str(tmp_path / f"{name}.npy")
        command = ["embed", str(tmp_path / name), "-o", out, "--fit-points", "400", *METHOD, "-q"]
        assert main([*command, *options]) == 0
    text, table = tmp_path / "big.csv.npy", tmp_path / "big.parquet.npy"
    assert text.read_bytes() == table.read_bytes()


def test_points_mapped_by_a_sample_are_scored_at_its_time_with_a_warning(big, tmp_path, capsys):
    out = tmp_path / "o.npy"
    given = ["--fit-points", "400", "--time", "3", "--filter", "heat", *METHOD]
    made = ["--metadata", str(tmp_path / "made.json")]
    assert main(["embed", str(big), "-o", str(out), *given, *made]) == 0
    capsys.readouterr()
    assert main(["score", str(big), str(out), *made]) == 0
    said, warned = capsys.readouterr()
    assert "time         3 (recorded in the file of the embedding)" in said
    assert "mapped by a model of 400 points (others, or a sample)" in warned
    assert "among the 900 points" in warned


@pytest.mark.filterwarnings("default::UserWarning")
def test_warnings_of_a_stream_name_the_columns(big, tmp_path, capsys):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = dict(zip("xyz", np.load(big).T, strict=True)) | {"frame": np.arange(900.0)}
    parquet.write_table(pa.table(columns), tmp_path / "big.parquet", row_group_size=200)
    given = ["-o", str(tmp_path / "o.parquet"), "--fit-points", "400", *METHOD]
    assert main(["embed", str(tmp_path / "big.parquet"), *given]) == 0
    warned = capsys.readouterr().err
    assert warned.count("the features 'frame' may be ids") == 1
    assert "Feature 'frame' carries" in warned
