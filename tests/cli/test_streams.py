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
        ("big.npy", ["--output-key", "a"], 2, "--output-key needs all points at once"),
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
