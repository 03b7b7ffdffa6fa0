"""heatsketch embed of files that are read by blocks."""

import subprocess
import sys

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import memory
from heatsketch.cli import main, streams
from heatsketch.distributed import searched, whole

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
    monkeypatch.setattr("heatsketch.memory.most_points", lambda *_, **__: 500)
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
        ("big.npy", ["--dry-run", "--plot", "p.png"], 2, "--plot needs all points at once"),
        ("big.npy", ["-o", "o.csv"], 1, "cannot be written by blocks"),
        ("digits", [], 2, "--fit-points is for points in .npy"),
        ("big.npy", ["--fit-points", "99"], 2, "'99' is not an integer >= 100"),
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


def test_a_dry_run_tells_of_the_sample(big, tmp_path, capsys, monkeypatch):
    command = ["embed", str(big), "--dry-run", *METHOD, "--memory-budget", "5"]
    assert main([*command, "--fit-points", "400"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["input"] == f"{big}: 900 points, 3 features, float32, read by blocks"
    assert lines["sample"].startswith("400 of 900 points would be fitted")
    needed = memory.predict(400, 3, method="heat-sketch", n_components=3, dtype="f4")
    assert lines["peak"] == f"{memory.in_words(needed.peak)} beyond the sample"
    assert lines["available"] == "5.0 GB: enough"
    assert [path.name for path in tmp_path.iterdir()] == ["big.npy"]
    monkeypatch.setattr(streams, "_READ_WHOLE_BYTES", 0)
    monkeypatch.setattr(streams, "_LEAST_SAMPLE", 100)
    monkeypatch.setattr("heatsketch.memory.most_points", lambda *_, **__: 500)
    assert main(["embed", str(big), "--dry-run", *METHOD]) == 0  # without being asked
    assert "500 of 900 points would be fitted" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_text_says_how_it_becomes_what_is_read_by_blocks(suffix, tmp_path, capsys, monkeypatch):
    """The command that the message names is run, and its file embedded."""
    pytest.importorskip("pyarrow")
    X = hs.datasets.swiss_roll(500, rng=0)[0]
    source, delimiter = tmp_path / f"big{suffix}", "," if suffix == ".csv" else "\t"
    np.savetxt(source, X, delimiter=delimiter, header=delimiter.join("abc"), comments="")
    monkeypatch.chdir(tmp_path)
    command = ["embed", source.name, "-o", "o.npy", *METHOD]
    assert main([*command, "--fit-points", "200"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    monkeypatch.setattr("heatsketch.memory.available", lambda: 1000.0)
    assert main(command) == 1
    assert "which is read whole, but only" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    program = said.partition('python -c "')[2].partition('"')[0]
    subprocess.run([sys.executable, "-c", program], check=True)
    assert main(["embed", "big.parquet", "-o", "o.npy", "--fit-points", "200", *METHOD]) == 0
    assert np.load("o.npy").shape == (500, 3)


def test_the_whole_graph_is_the_sketch_of_all_points(big, tmp_path, capsys):
    pytest.importorskip("dask")
    given = ["-o", str(tmp_path / "o.npy"), "--whole-graph", *METHOD]
    assert main(["embed", str(big), *given]) == 0
    assert "all 900 points in one graph" in capsys.readouterr().out
    X, model = np.load(big), hs.HeatSketch(3, random_state=0)
    expected = model.fit_transform(X, ids=np.arange(900))
    np.testing.assert_allclose(np.load(tmp_path / "o.npy"), expected, rtol=1e-5, atol=1e-6)
    assert main(["score", str(big), str(tmp_path / "o.npy")]) == 0
    assert "time         8 (recorded in the file" in capsys.readouterr().out
    for more in (["--fit-points", "400"], ["--save-model", "m"], ["--dry-run"]):
        assert main(["embed", str(big), *given, "--force", *more]) == 2
        assert "--whole-graph has none" in capsys.readouterr().err


def test_a_whole_graph_that_was_interrupted_goes_on(big, tmp_path, monkeypatch, capsys):
    pytest.importorskip("dask")

    def stop(*_):
        raise KeyboardInterrupt

    command = ["embed", str(big), "-o", str(tmp_path / "o.npy"), "--whole-graph", *METHOD]
    with monkeypatch.context() as patch:
        patch.setattr(whole, "affinity", stop)
        assert main(command) == 130
    assert main(command) == 1
    assert "--resume" in capsys.readouterr().err
    monkeypatch.setattr(searched, "neighbors_of", stop)
    assert main([*command, "--resume"]) == 0
    assert sorted(path.name for path in tmp_path.glob("o.*")) == ["o.npy", "o.npy.json"]


def test_points_mapped_by_a_sample_are_scored_at_its_time_with_a_warning(big, tmp_path, capsys):
    out = tmp_path / "o.npy"
    given = ["--fit-points", "400", "--time", "3", "--filter", "heat", *METHOD]
    assert main(["embed", str(big), "-o", str(out), *given]) == 0
    capsys.readouterr()
    assert main(["score", str(big), str(out)]) == 0
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
    assert warned.count("column 'frame'") == 1
    assert "Feature 'frame' carries" in warned
