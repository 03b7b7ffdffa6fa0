"""Approximate descents of t-SNE for many points, by other libraries."""

from importlib.util import find_spec

import numpy as np
from scipy import sparse
from sklearn.manifold import TSNE

from heatsketch._typing import Array
from heatsketch.classical.sne.descent import Schedule
from heatsketch.neighbors import Neighbors

_SKLEARN_EARLY_ITER = 250  # fixed in scikit-learn


def check_engine(method: str, k: int, schedule: Schedule) -> None:
    """Raise where the descent of a library lacks what is asked for, or is not installed."""
    name = f"method={method!r}"
    if k > 2:
        raise ValueError(f"n_components={k} but {name} allows at most 2; pass method='exact'.")
    if schedule.compression:
        raise ValueError(
            f"early_compression={schedule.compression:g} but {name} has none; pass 0, or "
            "method='exact'."
        )
    if method == "barnes-hut" and schedule.early_iter != _SKLEARN_EARLY_ITER:
        raise ValueError(
            f"early_iter={schedule.early_iter} but {name} has a fixed number of early steps; pass "
            f"early_iter={_SKLEARN_EARLY_ITER} and a larger n_iter, or method='exact'."
        )
    if method == "fft" and find_spec("openTSNE") is None:
        raise ImportError(
            "method='fft' needs openTSNE: pip install openTSNE; or pass method='barnes-hut'."
        )


def barnes_hut(
    found: Neighbors, Y: Array, perplexity: float, schedule: Schedule
) -> tuple[Array, float, int]:
    """Return scikit-learn's embedding (n, k), divergence and iterations, from the neighbours found.

    Distant points are taken together, by the cells of a tree. The perplexity is solved again, to
    1e-5.
    """
    model = TSNE(
        Y.shape[1],
        perplexity=perplexity,
        early_exaggeration=schedule.exaggeration,
        learning_rate="auto" if schedule.rate is None else schedule.rate,
        max_iter=schedule.n_iter,
        metric="precomputed",
        init=Y.astype(np.float32),
        random_state=0,  # nothing is drawn: the initial places are given
    )
    model.fit(_distance_graph(found))
    return model.embedding_, float(model.kl_divergence_), int(model.n_iter_) + 1


def _distance_graph(found: Neighbors) -> sparse.csr_matrix:
    """Return distances as CSR (n, n): each row begins with the point itself, then nearest first."""
    n, width = found.indices.shape
    own = np.arange(n)[:, None]
    indices = np.hstack([own, found.indices])
    distances = np.hstack([np.zeros((n, 1)), found.distances])
    starts = np.arange(0, n * (width + 1) + 1, width + 1)
    return sparse.csr_matrix((distances.ravel(), indices.ravel(), starts), shape=(n, n))


def interpolated(P: sparse.csr_matrix, Y: Array, schedule: Schedule) -> tuple[Array, float, int]:
    """Return openTSNE's embedding (n, k), divergence and iterations: forces by FFT on a grid."""
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PrecomputedAffinities

    places = TSNEEmbedding(
        Y.astype(float),
        PrecomputedAffinities(P.copy(), normalize=False),  # scaled in place when exaggerated
        negative_gradient_method="fft",
    )
    rate = "auto" if schedule.rate is None else 4 * schedule.rate  # (19) without its factor 4
    late = schedule.n_iter - schedule.early_iter
    for n_iter, exaggeration, momentum in (
        (schedule.early_iter, schedule.exaggeration, 0.5),
        (late, 1.0, 0.8),
    ):
        places = places.optimize(
            n_iter=n_iter,
            exaggeration=exaggeration,
            momentum=momentum,
            learning_rate=rate,
        )
    return np.asarray(places), float(places.kl_divergence), schedule.n_iter
