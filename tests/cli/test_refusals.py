"""What the command line refuses, and how it says so."""

import io
import os
import warnings
from pathlib import Path

import pytest

import heatsketch as hs
from heatsketch.cli import main
from heatsketch.io.formats import FORMATS


@pytest.fixture
def no_computing(monkeypatch):
    def refuse(*_, **__):
        pytest.fail("computed before checking")

    monkeypatch.setattr(hs.HeatEmbedding, "fit_transform", refuse)


@pytest.mark.usefixtures("no_computing")
def test_a_missing_writer_stops_the_run(clouds, monkeypatch, run):
    lacking = FORMATS[".h5ad"]._replace(package="no_such_module")
    monkeypatch.setitem(FORMATS, ".h5ad", lacking)
    said = run("embed", clouds, "-o", "out.h5ad", code=1)
    assert 'pip install "heatsketch[io]"' in said.err


@pytest.mark.usefixtures("no_computing")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("-o old.csv", "old.csv exists; pass --force"),
        ("-o new.csv --plot old.png", "old.png exists; pass --force"),
        ("-o new.csv --save-model old.csv", "old.csv exists; pass --force"),
        ("-o new.csv --save-model clouds.csv --force", "clouds.csv is also the input"),
        ("-o new.csv --plot new.jpg", "new.jpg has no known picture suffix; choose from .png"),
        ("-o missing/out.csv --force", "does not exist; create it"),
        ("-o clouds.csv --force", "is also the input"),
        ("-o folder.csv --force", "is a folder"),
        ("--in-place --force", "only that can be changed in place"),
        ("-o locked/out.csv", "is not writable; choose another folder"),
    ],
)
def test_what_cannot_be_written_stops_the_run(clouds, tmp_path, given, message, run, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _: "locked" not in str(path))
    for folder in ("folder.csv", "locked"):
        (tmp_path / folder).mkdir()
    Path("old.csv").write_text("old")
    Path("old.png").write_text("old")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert message in run("embed", clouds, *given.split(), code=1).err
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


@pytest.mark.usefixtures("no_computing")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("-p kind=gaussian -m diffusion-map", "no parameter 'kind'; it belongs to heat-sketch"),
        ("-m mixture-diffusion --alpha 1", "has no parameter 'alpha'; it belongs to"),
        ("-p n_neighbours=5", "no parameter 'n_neighbours'; did you mean 'n_neighbors'?"),
        ("-p share", "'share' is not NAME=VALUE"),
        ("--factor 2", "parameters of a method are given as -p factor=VALUE"),
        ("--sep ;", "how INPUT is read is given as --read sep=VALUE"),
        ("--read sepp=;", "'sepp' is not one of key, sep, decimal, header"),
        ("-o out.xlsx", "out.xlsx has no known suffix"),
        ("--method heat-skech", "did you mean 'heat-sketch'?"),
        ("--n-neighbours 5", "--n-neighbours 5; did you mean '--n-neighbors'?"),
        ("--in-place", "leave out --output"),
        ("--intervals", "--intervals belongs to heat-sketch"),
        ("--pseudotime p3 -m isomap", "--pseudotime belongs to heat-embedding"),
        ("--pseudotime p3 -o out.npy", "other than .npy"),
        ("-o new.csv --save-model new.csv", "new.csv is another output"),
        ("--graph --standardize", "--standardize is for points, but INPUT is a graph"),
        ("--graph --method pca", "--graph: pca is about points; choose a diffusion method"),
    ],
)
def test_wrong_usage_is_named(clouds, given, message, run):
    said = run("embed", clouds, "-o", "out.csv", *given.split(), code=2)
    (line,) = said.err.splitlines()  # the usage would hide it
    assert line.startswith("heatsketch: error: ")
    assert message in line


def test_misspelt_files_sets_and_commands_are_suggested(clouds, run):
    for name, meant in (("cluods.csv", "clouds.csv"), ("digit", "digits")):
        assert f"did you mean {meant!r}?" in run("embed", name, "-o", "out.npy", code=1).err
    (line,) = run("embedd", "digits", code=2).err.splitlines()
    assert "did you mean 'embed'?" in line


def test_errors_are_one_line_and_debug_adds_the_place(run):
    Path("holes.csv").write_text("a,b\n1,2\n3,nan\n4,5\n" + "6,7\n" * 20)
    given = ("embed", "holes.csv", "-o", "out.csv")
    (line,) = run(*given, code=1).err.splitlines()
    assert line.startswith("heatsketch: error: ")
    assert "NaN" in line
    assert "Traceback" in run(*given, "--debug", code=1).err
    assert not Path("out.csv").exists()


def test_letters_that_a_pipe_cannot_hold_stop_nothing(circle, monkeypatch, capsys):
    """Windows gives pipes its own encoding, which lacks λ; ASCII lacks more."""
    pipe = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", pipe)
    for line in ("embed --help", "methods", f"scales {circle} -q"):
        assert main(line.split()) == 0
        pipe.flush()  # as at the end of the process
    assert b"nearest neighbours" in pipe.buffer.getvalue()
    assert capsys.readouterr().err == ""


def test_unexpected_errors_are_named_with_their_type(clouds, monkeypatch, run):
    def fail(*_):
        raise KeyError("left")

    monkeypatch.setattr(hs.HeatEmbedding, "fit_transform", fail)
    said = run("embed", clouds, "-o", "out.csv", code=1)
    assert "KeyError: 'left' (--debug" in said.err


def interrupt(*_):
    raise KeyboardInterrupt


def interrupt_a_compiled_loop(*_):
    """What an interrupt becomes that comes while one is called."""
    try:
        interrupt()
    except KeyboardInterrupt as cause:
        try:
            raise SystemError("a result with an exception set") from cause
        except SystemError as inner:
            raise SystemError("CPUDispatcher returned a result with an exception set") from inner


@pytest.mark.parametrize("stop", [interrupt, interrupt_a_compiled_loop])
def test_interrupting_leaves_nothing_half_written(stop, clouds, tmp_path, monkeypatch, run):
    monkeypatch.setattr(hs.HeatEmbedding, "fit_transform", stop)
    said = run("embed", clouds, "-o", "out.csv", code=130)
    assert said.err.startswith("heatsketch: interrupted")
    assert list(tmp_path.iterdir()) == [clouds]


def test_warnings_are_lines_and_quiet_drops_them_but_not_errors(clouds, monkeypatch, run):
    def compute(self, X):
        warnings.warn("two\n groups", hs.DisconnectedWarning, stacklevel=2)
        raise ValueError("stop here")

    monkeypatch.setattr(hs.HeatEmbedding, "fit_transform", compute)
    given, error = ("embed", clouds, "-o", "out.csv"), "heatsketch: error: stop here\n"
    assert run(*given, code=1).err == "heatsketch: warning: two groups\n" + error
    assert run(*given, "-q", code=1).err == error
