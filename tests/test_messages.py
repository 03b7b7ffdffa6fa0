"""Messages that no other test reaches; `tests/raised.py` says which are left."""

import numpy as np
import pytest
from scipy import sparse

import heatsketch as hs
from heatsketch.cli import main
from heatsketch.neighbors import NeighborIndex

X = np.random.default_rng(0).normal(size=(40, 3))
KERNEL = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 1.0], epsilon=1.0)


def only_ones():
    nearest = NeighborIndex(X).of_points(6).indices[:, 1:]
    rows = np.repeat(np.arange(40), 5)
    return sparse.csr_matrix((np.ones(200), (rows, nearest.ravel())), shape=(40, 40))


def changed_index():
    points = X.copy()
    index = NeighborIndex(points)
    hs.HeatSketch(4, neighbors=index).fit(points)
    points[0] += 1.0
    hs.HeatSketch(4, neighbors=index).fit(points)


def cells(**fields):
    anndata = pytest.importorskip("anndata")
    return anndata.AnnData(**fields)


CASES = {
    "cells without measurements": (
        lambda: hs.anndata.heat_sketch(cells(obsm={"a": X}, shape=(40, 0))),
        ValueError,
        "adata has no X; pass use_rep",
    ),
    "a cell without neighbours": (
        lambda: hs.anndata.heat_sketch(
            cells(X=X, obsp={"distances": sparse.csr_matrix((40, 40))}), obsp="distances"
        ),
        ValueError,
        "A cell has no neighbours among the distances; compute neighbours again",
    ),
    "neighbours beyond the points": (
        lambda: NeighborIndex(X).of_points(41),
        ValueError,
        r"k=41 but the index has 40 points; pass k <= 40",
    ),
    "points changed under an index": (
        changed_index,
        ValueError,
        "have changed since it was first used; create a new index",
    ),
    "marks in place of distances": (
        lambda: hs.HeatSketch(4, neighbors=only_ones()).fit(X),
        ValueError,
        r"only ones, .* pass distances \(mode='distance'\)",
    ),
    "too many orders": (
        lambda: hs.mixture.TaylorMap(max_features=10**9, radius=1e3).fit(KERNEL, tolerance=1e-9),
        ValueError,
        "orders; pass a larger one",
    ),
    "an automatic time without the eigenvalue that follows": (
        lambda: hs.DiffusionMap(39, time="auto").fit(X),
        ValueError,
        r"needs the eigenvalue after the last one kept.*n_components <= 38, or a time",
    ),
}


@pytest.mark.parametrize(("act", "error", "message"), CASES.values(), ids=CASES)
def test_message(act, error, message):
    with pytest.raises(error, match=message):
        act()


COMMANDS = {
    "no edge list": (
        "",
        ["embed", "{in}.not", "-o", "{out}", "--graph"],
        "is not a file; pass an edge list",
    ),
}


@pytest.mark.parametrize(("text", "command", "message"), COMMANDS.values(), ids=COMMANDS)
def test_message_of_a_command(text, command, message, tmp_path, capsys):
    table = tmp_path / "table.csv"
    table.write_text(text)
    places = {"in": table, "out": tmp_path / "out.csv"}
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(main([part.format(**places) for part in command]))
    assert stop.value.code not in (0, None)
    assert message in capsys.readouterr().err
