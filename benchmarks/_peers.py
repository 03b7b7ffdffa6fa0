"""End-to-end methods by other packages and by this one: each a function X -> Embedding.

Every function imports its package itself, so that a missing package concerns no other. All take
the 30 nearest neighbours, except datafold (a radius), PHATE and openTSNE (their defaults); those
that give eigenvectors give 15, the constant one not counted.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import heatsketch as hs

NEIGHBORS, EIGENVECTORS, COLUMNS, TIME = 30, 15, 32, 8


class Embedding(NamedTuple):
    """The result of a method.

    Attributes
    ----------
    Y : array (n, k)
        As the method returns it; None if it only makes a graph.
    walk : callable or None
        () -> `Diffusion` of the method's own graph, where it has one.
    vectors : array (n, k) or None
        Right eigenvectors r of that walk, of any length.
    symmetric : bool
        The vectors are r √π instead, those of the symmetric matrix.
    time : number
        Diffusion time of Y, where `vectors` is None.
    notes : dict
    """

    Y: Any
    walk: Callable[[], hs.Diffusion] | None = None
    vectors: Any = None
    symmetric: bool = False
    time: float = TIME
    notes: dict = {}  # noqa: RUF012


# --- this library ---------------------------------------------------------------------------


def heat_sketch(X, columns=COLUMNS, time=TIME):
    fitted = hs.HeatSketch(columns, time, n_neighbors=NEIGHBORS, random_state=0).fit(X)
    return Embedding(fitted.embedding_, lambda: fitted.diffusion_, time=time, notes=_notes(fitted))


def diffusion_map(X):
    fitted = hs.DiffusionMap(EIGENVECTORS, TIME, n_neighbors=NEIGHBORS, random_state=0).fit(X)
    return Embedding(fitted.embedding_, lambda: fitted.diffusion_, notes=_notes(fitted))


def heat_embedding(X):
    fitted = hs.HeatEmbedding(2, n_neighbors=NEIGHBORS, random_state=0).fit(X)
    return Embedding(
        fitted.embedding_, lambda: fitted.diffusion_, time=fitted.time_, notes=_notes(fitted)
    )


def _notes(fitted):
    said = ("components", "recall", "affinity_seconds", "normalize_seconds", "embed_seconds")
    return {name: fitted.diagnostics_[name] for name in said if name in fitted.diagnostics_}


# --- diffusion maps and eigenvectors ----------------------------------------------------------


def spectral_embedding(X):
    from scipy import sparse
    from sklearn.manifold import SpectralEmbedding

    fitted = SpectralEmbedding(
        EIGENVECTORS,
        affinity="nearest_neighbors",
        n_neighbors=NEIGHBORS,
        eigen_solver="amg",
        random_state=0,
        n_jobs=-1,
    ).fit(X)

    def walk():
        K = sparse.csr_matrix(fitted.affinity_matrix_, copy=True)
        K.setdiag(0)  # SciPy's Laplacian does not see the diagonal
        K.eliminate_zeros()
        return hs.Diffusion.from_graph(K)

    return Embedding(fitted.embedding_, walk, fitted.embedding_)


def pydiffmap(X):
    from pydiffmap import diffusion_map as package

    fitted = package.DiffusionMap.from_sklearn(
        alpha=1.0, k=NEIGHBORS, n_evecs=EIGENVECTORS, neighbor_params={"n_jobs": -1}
    )
    Y = fitted.fit_transform(X)
    return Embedding(
        Y, lambda: hs.Diffusion.from_graph(fitted.kernel_matrix, alpha=1.0), fitted.evecs
    )


def datafold(X):
    _adapt_datafold()
    from datafold.dynfold import DiffusionMaps
    from datafold.pcfold import GaussianKernel, PCManifold

    points = PCManifold(X)
    points.optimize_parameters(random_state=0)
    cut = {"cut_off": points.cut_off}
    kernel = GaussianKernel(epsilon=points.kernel.epsilon, distance=cut)
    fitted = DiffusionMaps(kernel, n_eigenpairs=EIGENVECTORS + 1).fit(points)

    def walk():
        return hs.Diffusion.from_graph(kernel(points), alpha=1.0)

    vectors = np.asarray(fitted.eigenvectors_)[:, 1:]
    return Embedding(vectors, walk, vectors)


def _adapt_datafold():
    """Give datafold 2.0.2 the private names of scikit-learn 1.2 that it imports or inherits."""
    import sklearn.utils
    import sklearn.utils.validation as validation

    sklearn.utils._print_elapsed_time = validation._check_fit_params = None  # imported, not used
    from datafold.dynfold import DiffusionMaps, base

    check = validation.check_array
    base.check_array = lambda X, force_all_finite=True, **options: check(
        X, ensure_all_finite=force_all_finite, **options
    )
    DiffusionMaps._check_n_features = validation._check_n_features
    DiffusionMaps._check_feature_names = validation._check_feature_names


def scanpy_neighbors(X):
    _scanpy_graph(X)
    return Embedding(None)


def scanpy_diffmap(X):
    import scanpy

    data = _scanpy_graph(X)
    scanpy.tl.diffmap(data, n_comps=EIGENVECTORS + 1)
    Y = data.obsm["X_diffmap"][:, 1:]

    def walk():
        return hs.Diffusion.from_graph(data.obsp["connectivities"].astype(float), alpha=1.0)

    return Embedding(Y, walk, Y, symmetric=True)


def _scanpy_graph(X):
    import anndata
    import scanpy

    scanpy.settings.n_jobs = -1
    data = anndata.AnnData(X)
    scanpy.pp.neighbors(data, n_neighbors=NEIGHBORS, use_rep="X")
    return data


# --- pictures -------------------------------------------------------------------------------


def phate(X):
    import phate as package

    return Embedding(package.PHATE(2, n_jobs=-1, verbose=0, random_state=0).fit_transform(X))


def umap(X):
    import umap as package

    return Embedding(package.UMAP(n_neighbors=NEIGHBORS, n_jobs=-1).fit_transform(X))


def opentsne(X):
    import openTSNE

    return Embedding(np.asarray(openTSNE.TSNE(n_jobs=-1, random_state=0).fit(X)))


def torchdr_umap(X):
    import torchdr

    made = torchdr.UMAP(n_components=2, n_neighbors=NEIGHBORS, device="cpu", random_state=0)
    return Embedding(np.asarray(made.fit_transform(X)))


METHODS = {
    "HeatSketch(32)": heat_sketch,
    "DiffusionMap(15)": diffusion_map,
    "HeatEmbedding(2)": heat_embedding,
    "SpectralEmbedding, amg": spectral_embedding,
    "pyDiffMap": pydiffmap,
    "datafold": datafold,
    "scanpy neighbors": scanpy_neighbors,
    "scanpy neighbors + diffmap": scanpy_diffmap,
    "PHATE": phate,
    "UMAP": umap,
    "openTSNE": opentsne,
    "TorchDR UMAP": torchdr_umap,
}
OURS = "HeatSketch(32)"
OWN = (OURS, "DiffusionMap(15)", "HeatEmbedding(2)")
PACKAGES = (
    *("heatsketch", "numpy", "scipy", "scikit-learn", "numba", "pyamg", "pydiffmap", "datafold"),
    *("scanpy", "phate", "umap-learn", "pynndescent", "openTSNE", "torchdr", "torch"),
)
