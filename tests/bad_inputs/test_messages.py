"""Refusals that no other test raises: neighbours, times, mixtures, tables, models, outputs."""

import contextlib
import io as streams
import json
import logging
import zipfile
from dataclasses import replace

import anndata
import numpy as np
import pandas as pd
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
LONG_PATH = (path_graph(3000) / 2).astype(np.float32)
NO_X = anndata.AnnData(obsm={"a": X}, shape=(N, 0))
CELLS_APART = anndata.AnnData(X=X, obsp={"distances": sparse.csr_matrix((N, N))})
KERNEL = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 1.0], epsilon=1.0)


def nearest(change):
    """Return distances to the 15 nearest points, changed, as a sparse matrix."""
    found = NeighborIndex(X).query(None, 16)
    places = np.repeat(np.arange(N), 15), found.indices[:, 1:].ravel()
    return sparse.csr_matrix((change(found.distances[:, 1:].ravel()), places), shape=(N, N))


def steps_of_no_numbers():
    steps = sparse.csr_matrix(np.full((N, N), np.nan))
    walk = replace(hs.Diffusion.from_affinity(K), directed_step=steps)
    return hs.HeatSketch(2, affinity="precomputed").fit(walk)


def mixture_of(points, **options):
    return hs.MixtureDiffusion(**{"mixture": 2, "random_state": 0} | options).fit(points)


CALLS = {  # by words of the message
    "k=61 but the index has 60 points": lambda: NeighborIndex(X).query(None, 61),
    "only ones, which mark neighbours but are not their distances": lambda: hs.HeatSketch(
        neighbors=nearest(np.ones_like)
    ).fit(X),
    "epsilon='edges' but most edges have length zero": lambda: LaplacianEigenmap(
        2, epsilon="edges", neighbors=nearest(np.zeros_like)
    ).fit(X),
    "needs the eigenvalue after the last one kept": lambda: hs.DiffusionMap(59, "auto").fit(X),
    "The embedding is not finite": steps_of_no_numbers,
    "more than float32 has digits for": lambda: hs.sketch(LONG_PATH, hs.Heat(1e6), 2, rng=0),
    "cannot be reduced; pass Power(p)": lambda: hs.Heat(5.0).reduced().reduced(),
    "not of one size: row 1 differs": lambda: hs.HeatSketch(2).fit(pd.Series([X[0], X[0, :1]])),
    "adata has no X; pass use_rep": lambda: hs.anndata.heat_sketch(NO_X),
    "A cell has no neighbours among the distances": lambda: hs.anndata.heat_sketch(
        CELLS_APART, obsp="distances"
    ),
    "covariance_type where the shape is that of two": lambda: hs.MixtureKernel(
        [0.5, 0.5], np.eye(2), np.eye(2), epsilon=1.0
    ),
    "beyond float64; rescale the data": lambda: hs.MixtureKernel(
        [1.0], np.zeros((1, 99)), [1e-9 * np.eye(99)], epsilon=1e-9
    ),
    "Affinities of these points are beyond": lambda: KERNEL.low_rank([[0.0], [1e3]]),
    "same transition densities up to rounding": lambda: mixture_of(
        np.ones((20, 3)), mixture=1, epsilon=1.0
    ),
    "tolerance=1e+09 needs 0 coordinates": lambda: mixture_of(X, tolerance=1e9),
}
OTHER_ERRORS = {  # than a ValueError
    "The embedding is not finite": hs.CertificateError,
    "cannot be reduced; pass Power(p)": TypeError,
}


@pytest.mark.parametrize("words", CALLS)
def test_calls(words):
    with refused(OTHER_ERRORS.get(words, ValueError), words):
        CALLS[words]()


def test_an_affinity_of_too_high_a_rank(limits):
    """Points far apart next to epsilon: the affinity is the identity, of full rank."""
    limits(mixture_rank=8)
    kernel = hs.MixtureKernel([1.0], [[0.0]], [25.0], epsilon=1e-3)
    points = np.linspace(-5, 5, 9)[:, None]
    assert kernel.low_rank(points[:8]).factor.shape == (8, 8)
    with refused(ValueError, "has a rank over 8; pass a larger epsilon or tol"):
        kernel.low_rank(points)


# Files: each is given an empty folder.


def command(*words):
    """Run a command; what it says where it fails is the error."""
    said = streams.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(streams.StringIO()):
        code = main(list(map(str, words)))
    if code:
        raise ValueError(said.getvalue())


def saved(folder, points=X):
    np.save(folder / "points.npy", points)
    return folder / "points.npy"


def written(folder, text, **options):
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return io.read_table(folder / "t.csv", **options)


def sheet_without_rows(folder):
    import openpyxl

    openpyxl.Workbook().save(folder / "t.xlsx")
    return io.read_table(folder / "t.xlsx")


def sparse_with_a_gap(folder):
    sparse.save_npz(folder / "t.npz", sparse.csr_matrix([[1.0, 0], [np.nan, 2], [0, 3]]))
    return io.read_table(folder / "t.npz", missing="median")


def comparison_in_a_file(folder):
    (folder / "out").write_text("")
    command("compare", saved(folder), "-o", folder / "out")


def streamed(source, out):
    return embed(source, out, hs.HeatSketch(2))


def folder_that_is_there(folder):
    (folder / "out").mkdir()
    return streamed(saved(folder), folder / "out")


def another_folder_of_state(folder):
    (folder / "out.npy.partial").mkdir()
    (folder / "out.npy.partial" / "notes.txt").write_text("of another program")
    return streamed(saved(folder), folder / "out.npy")


def archive(folder):
    np.savez(folder / "points.npz", X=X)
    return streamed(folder / "points.npz", folder / "o.npy")


def changed_while_read(folder):
    path = saved(folder)

    # As soon as the library says what it does, another writes to the file.
    logger, meddler = logging.getLogger("heatsketch"), logging.Handler()
    meddler.emit = lambda record: np.save(path, np.r_[X, X])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logger, "handlers", [meddler])
        patch.setattr(logger, "level", logging.INFO)
        return streamed(path, folder / "out.npy")


def transform_of_a_map_alone(folder):
    model = hs.classical.SNE(2, perplexity=5, n_iter=20, early_iter=5).fit(X[:20])
    hs.save_model(model, folder / "a.model")
    command("transform", folder / "a.model", saved(folder), "-o", folder / "out.npy")


def later_format(folder):
    header = {"format": 99, "facts": {"heatsketch": "9.1.0"}}
    with zipfile.ZipFile(folder / "a.model", "w") as parts:
        parts.writestr("header.json", json.dumps(header))
    return hs.load_model(folder / "a.model")


FILES = {
    "t.xlsx is empty; pass a table with at least one row": sheet_without_rows,
    "holds no number, so that there is no median": lambda folder: io.read_table(
        saved(folder, [[1, np.nan]] * 5), missing="median"
    ),
    "has a gap; pass missing='median'": lambda folder: written(
        folder, "a,b\n1,\n,3\n4,\n", missing="drop"
    ),
    "is sparse and has gaps; pass missing='drop'": sparse_with_a_gap,
    "are excluded; leave one as a feature": lambda folder: io.read_table(
        saved(folder), exclude=("x0", "x1", "x2", "x3")
    ),
    "points.npy": lambda folder: hs.load_model(saved(folder)),
    "a.model has format 99, of heatsketch 9.1.0": later_format,
    "(SNE) has no rule for new points": transform_of_a_map_alone,
    "out is a file; name a folder": comparison_in_a_file,
    "out exists; name a folder that does not": folder_that_is_there,
    "holds something else than a run; move it away": another_folder_of_state,
    "points.npy changed while it was read": changed_while_read,
    "nowhere.npy does not exist": lambda folder: streamed("nowhere.npy", folder / "out.npy"),
    "points.npz is not read by blocks; pass": archive,
}
NO_VALUES = {
    "out exists; name a folder that does not": FileExistsError,
    "holds something else than a run; move it away": FileExistsError,
    "nowhere.npy does not exist": FileNotFoundError,
}


@pytest.mark.parametrize("words", FILES)
def test_files(words, tmp_path):
    with refused(NO_VALUES.get(words, ValueError), words):
        FILES[words](tmp_path)
