"""Refusals that no other test raises: neighbours, times, mixtures, tables, models, outputs."""

import contextlib
import io as streams
import json
import logging
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pytest
from scipy import sparse

import heatsketch as hs
from bad_inputs.cases import K, X, refused
from heatsketch import io
from heatsketch.classical import LaplacianEigenmap
from heatsketch.cli import main
from heatsketch.distributed import embed
from heatsketch.neighbors import NeighborIndex
from problems.spectra import path_graph

N = len(X)
CELLS_APART = anndata.AnnData(X=X, obsp={"distances": sparse.csr_matrix((N, N))})
KERNEL = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 1.0], epsilon=1.0)


def nearest(change: Callable[[np.ndarray], np.ndarray]) -> sparse.csr_matrix:
    """Return distances to the 15 nearest points, changed, as a sparse matrix."""
    found = NeighborIndex(X).of_points(16)
    places = np.repeat(np.arange(N), 15), found.indices[:, 1:].ravel()
    return sparse.csr_matrix((change(found.distances[:, 1:].ravel()), places), shape=(N, N))


def steps_of_no_numbers() -> Any:
    steps = sparse.csr_matrix(np.full((N, N), np.nan))
    walk = replace(hs.Diffusion.from_affinity(K), directed_step=steps)
    return hs.HeatSketch(2, affinity="precomputed").fit(walk)


def new_affinities(rows: Any) -> Any:
    return hs.HeatSketch(2, affinity="precomputed").fit(K).transform(rows)


def mixture_of(points: Any, **options: Any) -> Any:
    return hs.MixtureDiffusion(**{"mixture": 2, "random_state": 0} | options).fit(points)


NEGATIVE = np.r_[K[:3], [np.r_[-1e-3, K[3, 1:]]]]
CALLS: list[tuple[Callable[[], Any], str, type[Exception]]] = [
    (lambda: NeighborIndex(X).of_points(61), "k=61 but the index has 60 points", ValueError),
    (
        lambda: hs.HeatSketch(4, neighbors=nearest(np.ones_like)).fit(X),
        "only ones, which mark neighbours but are not their distances",
        ValueError,
    ),
    (
        lambda: LaplacianEigenmap(2, epsilon="edges", neighbors=nearest(np.zeros_like)).fit(X),
        "epsilon='edges' but most edges have length zero",
        ValueError,
    ),
    (
        lambda: hs.DiffusionMap(59, time="auto").fit(X),
        "needs the eigenvalue after the last one kept",
        ValueError,
    ),
    (steps_of_no_numbers, "The embedding is not finite", hs.CertificateError),
    (lambda: new_affinities(NEGATIVE), "must be non-negative", ValueError),
    (lambda: new_affinities(sparse.csr_matrix(NEGATIVE)), "(bad rows: 3)", ValueError),
    (
        lambda: hs.sketch((path_graph(3000) / 2).astype(np.float32), hs.Heat(1e6), 2, rng=0),
        "more than float32 has digits for",
        ValueError,
    ),
    (lambda: hs.Heat(5.0).reduced().reduced(), "cannot be reduced; pass Power(p)", TypeError),
    (
        lambda: hs.anndata.heat_sketch(anndata.AnnData(obsm={"a": X}, shape=(N, 0))),
        "adata has no X; pass use_rep",
        ValueError,
    ),
    (
        lambda: hs.anndata.heat_sketch(CELLS_APART, obsp="distances"),
        "A cell has no neighbours among the distances",
        ValueError,
    ),
    (
        lambda: hs.MixtureKernel([0.5, 0.5], np.eye(2), np.eye(2), epsilon=1.0),
        "may be tied or diag; pass covariance_type",
        ValueError,
    ),
    (
        lambda: hs.MixtureKernel([1.0], np.zeros((1, 99)), [1e-9 * np.eye(99)], epsilon=1e-9),
        "beyond float64; rescale the data",
        ValueError,
    ),
    (lambda: KERNEL.low_rank([[0.0], [1e3]]), "Affinities of these points are beyond", ValueError),
    (
        lambda: mixture_of(np.ones((20, 3)), mixture=1, epsilon=1.0),
        "same transition densities up to rounding",
        ValueError,
    ),
    (lambda: mixture_of(X, tolerance=1e9), "tolerance=1e+09 needs no coordinates", ValueError),
]


@pytest.mark.parametrize(("call", "words", "error"), CALLS, ids=[words for _, words, _ in CALLS])
def test_calls(call: Callable[[], Any], words: str, error: type[Exception]) -> None:
    with refused(error, words):
        call()


# Files: each is given an empty folder.


def command(*words: object) -> None:
    """Run a command; what it says where it fails is the error."""
    said = streams.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(streams.StringIO()):
        code = main(list(map(str, words)))
    if code:
        raise ValueError(said.getvalue())


def saved(folder: Path, points: Any = X) -> Path:
    np.save(folder / "points.npy", points)
    return folder / "points.npy"


def written(folder: Path, text: str, **options: Any) -> Any:
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return io.read_table(folder / "t.csv", **options)


def sheet_without_rows(folder: Path) -> Any:
    import openpyxl

    openpyxl.Workbook().save(folder / "t.xlsx")
    return io.read_table(folder / "t.xlsx")


def sparse_with_a_gap(folder: Path) -> Any:
    sparse.save_npz(folder / "t.npz", sparse.csr_matrix([[1.0, 0], [np.nan, 2], [0, 3]]))
    return io.read_table(folder / "t.npz", missing="median")


def comparison_in_a_file(folder: Path) -> None:
    (folder / "out").write_text("")
    command("compare", saved(folder), "-o", folder / "out")


def folder_that_is_there(folder: Path) -> Any:
    (folder / "out").mkdir()
    return embed(saved(folder), folder / "out", hs.HeatSketch(2))


def another_folder_of_state(folder: Path) -> Any:
    (folder / "out.npy.partial").mkdir()
    (folder / "out.npy.partial" / "notes.txt").write_text("of another program")
    return embed(saved(folder), folder / "out.npy", hs.HeatSketch(2))


def archive(folder: Path) -> Any:
    np.savez(folder / "points.npz", X=X)
    return embed(folder / "points.npz", folder / "o.npy", hs.HeatSketch(2))


def changed_while_read(folder: Path) -> Any:
    path = saved(folder)

    class Meddler(logging.Handler):
        """Writes to the file as soon as the library says what it does."""

        def emit(self, record: logging.LogRecord) -> None:
            np.save(path, np.r_[X, X])

    logger, meddler = logging.getLogger("heatsketch"), Meddler()
    level = logger.level
    logger.addHandler(meddler)
    logger.setLevel(logging.INFO)
    try:
        return embed(path, folder / "out.npy", hs.HeatSketch(2))
    finally:
        logger.removeHandler(meddler)
        logger.setLevel(level)


def transform_of_a_map_alone(folder: Path) -> None:
    hs.save_model(hs.classical.SNE(2, perplexity=5, random_state=0).fit(X[:20]), folder / "a.model")
    command("transform", folder / "a.model", saved(folder), "-o", folder / "out.npy")


def later_format(folder: Path) -> Any:
    header = {"format": 99, "facts": {"heatsketch": "9.1.0"}}
    with zipfile.ZipFile(folder / "a.model", "w") as parts:
        parts.writestr("header.json", json.dumps(header))
    return hs.load_model(folder / "a.model")


FILES: list[tuple[Callable[[Path], Any], str, type[Exception]]] = [
    (sheet_without_rows, "t.xlsx is empty; pass a table with at least one row", ValueError),
    (
        lambda folder: io.read_table(saved(folder, [[1, np.nan]] * 5), missing="median"),
        "holds no number, so that there is no median",
        ValueError,
    ),
    (
        lambda folder: written(folder, "a,b\n1,\n,3\n4,\n", missing="drop"),
        "has a gap; pass missing='median'",
        ValueError,
    ),
    (sparse_with_a_gap, "is sparse and has gaps; pass missing='drop'", ValueError),
    (
        lambda folder: io.read_table(saved(folder), exclude=("x0", "x1", "x2", "x3")),
        "are excluded; leave one as a feature",
        ValueError,
    ),
    (lambda folder: hs.load_model(saved(folder)), "points.npy", ValueError),
    (later_format, "a.model has format 99, of heatsketch 9.1.0", ValueError),
    (transform_of_a_map_alone, "holds a SNE, which has no rule for new points", ValueError),
    (comparison_in_a_file, "out is a file; name a folder", ValueError),
    (folder_that_is_there, "out exists; name a folder that does not", FileExistsError),
    (another_folder_of_state, "holds something else; move it away", FileExistsError),
    (changed_while_read, "points.npy changed while it was read", ValueError),
    (
        lambda folder: embed("nowhere.npy", folder / "out.npy", hs.HeatSketch(2)),
        "nowhere.npy does not exist",
        FileNotFoundError,
    ),
    (archive, "points.npz is not read by blocks; pass", ValueError),
]


@pytest.mark.parametrize(("act", "words", "error"), FILES, ids=[words for _, words, _ in FILES])
def test_files(act: Any, words: str, error: type[Exception], tmp_path: Path) -> None:
    with refused(error, words):
        act(tmp_path)
