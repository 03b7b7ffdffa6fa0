"""Runs of the whole graph that end and go on: the same bytes, and no neighbour searched twice."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.distributed import search, searched, sketch, whole, whole_graph
from heatsketch.distributed.state import State
from heatsketch.operators import dask_tiles
from problems.clusters import points

da = pytest.importorskip("dask.array")
pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")

TILES, BLOCKS, ROWS = 8, 5, 300
OPTIONS = {"tile_rows": 300}
SKETCH = hs.HeatSketch(3, time=3, random_state=0)


class Break(BaseException):
    """What a run is ended by, as by Ctrl-C."""


@pytest.fixture(autouse=True)
def blocks(monkeypatch):
    monkeypatch.setattr(whole_graph, "BLOCK_ROWS", ROWS)


def outputs(out):
    """The bytes of an output, and of what is said of it beside."""
    if out.is_dir():
        return [part.read_bytes() for part in sorted(out.iterdir())]
    return [out.read_bytes(), out.with_name(f"{out.name}.json").read_bytes()]


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A source, and what a run without a break makes of it."""
    folder = tmp_path_factory.mktemp("whole")
    np.save(folder / "x.npy", points())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_graph, "BLOCK_ROWS", ROWS)
        done = {
            suffix: sketch(folder / "x.npy", SKETCH, folder / f"y{suffix}", **OPTIONS)
            for suffix in (".npy", "")
        }
    assert done[""].diagnostics["tiles"] == TILES
    return folder / "x.npy", done


def watch(patch, module, name, ends_at=None):
    """Count the calls of a function, one of which may end the run."""
    own, counted = getattr(module, name), []

    def call(*given, **named):
        counted.append(name)
        if len(counted) == ends_at:
            raise Break
        return own(*given, **named)

    patch.setattr(module, name, call)
    return counted


def broken(source, out, module, name, at=1):
    """Let a run end at a call of a function."""
    with pytest.MonkeyPatch.context() as patch:
        watch(patch, module, name, at)
        with pytest.raises(Break):
            sketch(source, SKETCH, out, **OPTIONS)


@pytest.mark.parametrize(
    ("module", "name", "at", "suffix", "searches", "written"),
    [
        (search, "_search_tile", 3, ".npy", TILES, BLOCKS),
        (searched, "_keep_tile", 5, ".npy", TILES, BLOCKS),
        (whole, "affinity", 1, ".npy", 0, BLOCKS),
        (dask_tiles, "multiply", 20, ".npy", 0, BLOCKS),
        (whole_graph, "_keep", 4, ".npy", 0, BLOCKS - 3),
        (whole_graph, "_keep", 4, "", 0, BLOCKS - 3),
        (whole_graph, "assemble", 1, ".npy", 0, 0),
        (State, "remove", 1, ".npy", 0, 0),
        (State, "remove", 1, "", 0, 0),
    ],
)
def test_a_run_goes_on_from_where_it_ended(
    module, name, at, suffix, searches, written, whole_run, tmp_path, monkeypatch
):
    """At a call of each phase."""
    source, known = whole_run
    out = tmp_path / f"y{suffix}"
    broken(source, out, module, name, at)
    assert State.of(out).goes_on == (searches == 0)
    asked = watch(monkeypatch, search, "_search_tile")
    kept = watch(monkeypatch, whole_graph, "_keep")
    done = sketch(source, SKETCH, out, resume=True, **OPTIONS)
    assert (len(asked), len(kept)) == (searches, written)
    assert done.diagnostics == known[suffix].diagnostics
    assert outputs(out) == outputs(known[suffix].output)
    assert not State.of(out).folder.exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"estimator": hs.HeatSketch(3, time=4, random_state=0)}, "time was 3, is 4"),
        ({"estimator": hs.HeatSketch(3, time=3, random_state=1)}, "random_state was 0, is 1"),
        ({"tile_rows": 301}, "tile_rows was 300, is 301"),
        ({"recall": 1}, r"recall was 0\.98, is 1"),
        ({"features": ["x0", "x1"]}, "reading was"),
    ],
)
def test_another_run_is_not_gone_on_with(changed, said, whole_run, tmp_path):
    source, _ = whole_run
    out = tmp_path / "y.npy"
    broken(source, out, whole, "affinity")
    with pytest.raises(ValueError, match=said):
        sketch(source, **{"estimator": SKETCH, "output": out, **OPTIONS} | changed, resume=True)
    with pytest.raises(FileExistsError, match=r"pass resume=True .* or force=True"):
        sketch(source, SKETCH, out, **OPTIONS)
    with pytest.raises(ValueError, match=r"fit_points was null, is 300"):
        hs.distributed.embed(source, out, SKETCH, fit_points=300, resume=True)


def test_a_source_that_changes_is_refused(tmp_path):
    source, out = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(source, points())
    broken(source, out, whole, "affinity")
    np.save(source, points() + 1)
    with pytest.raises(ValueError, match="content was"):
        sketch(source, SKETCH, out, resume=True, **OPTIONS)

    def change(*given):
        np.save(source, points())
        return embedding_of(*given)

    embedding_of = whole_graph.embedding_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_graph, "embedding_of", change)
        with pytest.raises(ValueError, match="changed while it was read; begin again with force"):
            sketch(source, SKETCH, out, force=True, **OPTIONS)
    assert not out.exists()


def test_blocks_of_a_dask_array_are_those_of_the_run(whole_run, tmp_path):
    """Parts that are written are kept, and they are its chunks."""
    out = tmp_path / "y.npy"
    array = da.from_array(points(), chunks=(400, -1))
    broken(array, out, whole_graph, "_keep", 2)
    with pytest.raises(ValueError, match=r"block_rows was \[400, 400, 400, 300\], is \[500"):
        sketch(array.rechunk((500, -1)), SKETCH, out, resume=True, **OPTIONS)
    sketch(array, SKETCH, out, resume=True, **OPTIONS)
    assert out.read_bytes() == whole_run[1][".npy"].output.read_bytes()


def test_nothing_is_kept_of_a_run_without_output(whole_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = watch(monkeypatch, searched, "_keep_tile")
    Y = sketch(whole_run[0], SKETCH, **OPTIONS).embedding
    np.testing.assert_array_equal(Y.compute(), np.load(whole_run[1][".npy"].output))
    assert kept == list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="resume=True without output"):
        sketch(whole_run[0], SKETCH, resume=True, **OPTIONS)


def test_neighbours_take_the_bytes_that_are_promised(whole_run, tmp_path):
    """On disk 12 (n_neighbors + 1) + 8 bytes a point, and 2 kB a tile."""
    out = tmp_path / "y.npy"
    broken(whole_run[0], out, whole, "affinity")
    files = list(State.of(out).folder.glob("tile-*"))
    size = sum(file.stat().st_size for file in files)
    assert len(files) == TILES
    promised = len(points()) * (12 * (SKETCH.n_neighbors + 1) + 8)
    assert promised <= size <= promised + 2000 * TILES


def test_a_run_that_ended_as_it_began_is_in_nobodys_way(whole_run, tmp_path):
    out = tmp_path / "y.npy"
    State.of(out).parts.mkdir(parents=True)
    sketch(whole_run[0], SKETCH, out, **OPTIONS)
    assert outputs(out) == outputs(whole_run[1][".npy"].output)
