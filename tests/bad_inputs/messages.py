"""Calls that are refused, but for those with points and files: neighbours and mixtures."""

from dataclasses import replace

import numpy as np
from scipy import sparse

import heatsketch as hs
from bad_inputs.cases import Case, Refused
from bad_inputs.inputs import K, X, path_graph
from heatsketch.classical import LaplacianEigenmap
from heatsketch.neighbors import NeighborIndex

KERNEL = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 1.0], epsilon=1.0)
N = len(X)


def nearest(scale=1.0):
    """Return distances to the 15 nearest points as a sparse matrix, times a number."""
    found = NeighborIndex(X).of_points(16)
    places = np.repeat(np.arange(N), 15), found.indices[:, 1:].ravel()
    return sparse.csr_matrix((scale * found.distances[:, 1:].ravel(), places), shape=(N, N))


def only_ones():
    marks = nearest()
    marks.data[:] = 1
    return hs.HeatSketch(4, neighbors=marks).fit(X)


def no_numbers():
    A = hs.Diffusion.from_affinity(K)
    steps = sparse.csr_matrix(np.full((N, N), np.nan))
    return hs.HeatSketch(2, affinity="precomputed").fit(replace(A, one_sided=steps))


def new_affinities(rows):
    return hs.HeatSketch(2, affinity="precomputed").fit(K).transform(rows)


def cells(**fields):
    import anndata

    return anndata.AnnData(**fields)


def mixture_of(points, **options):
    return hs.MixtureDiffusion(**{"mixture": 2, "random_state": 0} | options).fit(points)


NEIGHBORS = {
    "beyond": Case(
        "more neighbours than an index has points",
        lambda: NeighborIndex(X).of_points(61),
        Refused("k=61 but the index has 60 points; pass k <= 60"),
    ),
    "marks": Case(
        "a graph of ones as `neighbors` where distances are wanted",
        only_ones,
        Refused("only ones", "pass distances (mode='distance')"),
    ),
    "lengths of zero": Case(
        "a `LaplacianEigenmap` of edges most of which have length zero",
        lambda: LaplacianEigenmap(2, epsilon="edges", neighbors=nearest(0.0)).fit(X),
        Refused("epsilon='edges' but most edges have length zero", "weights='binary'"),
    ),
    "times": Case(
        "an automatic time without the eigenvalue that follows",
        lambda: hs.DiffusionMap(59, time="auto").fit(X),
        Refused("needs the eigenvalue after the last one kept", "n_components <= 58, or a time"),
    ),
    "not finite": Case(
        "a `Diffusion` made by hand whose steps are not numbers",
        no_numbers,
        Refused("The embedding is not finite", error=hs.CertificateError),
    ),
    "huge affinities": Case(
        "affinities of a new point whose sum is beyond float64",
        lambda: new_affinities(np.full((1, N), 1e308)),
        Refused("positive, finite row sums (bad rows: 0)"),
    ),
    "negative affinities": Case(
        "a negative affinity of a new point",
        lambda: new_affinities(np.r_[K[:3], [np.r_[-1e-3, K[3, 1:]]]]),
        Refused("must be non-negative", "(bad rows: 3)"),
    ),
    "negative sparse affinities": Case(
        "a negative affinity of a new point, sparse",
        lambda: new_affinities(sparse.csr_matrix(np.r_[K[:3], [np.r_[-1e-3, K[3, 1:]]]])),
        Refused("must be non-negative", "(bad rows: 3)"),
    ),
    "digits": Case(
        "a time for whose series float32 has too few digits",
        lambda: hs.sketch((path_graph(3000) / 2).astype(np.float32), hs.Heat(1e6), 2, rng=0),
        Refused(
            "more than float32 has digits for", "pass a smaller time, or the operator in float64"
        ),
    ),
    "reduced": Case(
        "a filter from which no further product can be taken",
        lambda: hs.Heat(5.0).reduced().reduced(),
        Refused("cannot be reduced; pass Power(p) or Heat(t)", error=TypeError),
    ),
    "no measurements": Case(
        "cells without measurements",
        lambda: hs.anndata.heat_sketch(cells(obsm={"a": X}, shape=(N, 0))),
        Refused("adata has no X; pass use_rep"),
    ),
    "a cell alone": Case(
        "a cell without neighbours among the distances",
        lambda: hs.anndata.heat_sketch(
            cells(X=X, obsp={"distances": sparse.csr_matrix((N, N))}), obsp="distances"
        ),
        Refused("A cell has no neighbours among the distances; compute neighbours again"),
    ),
}

MIXTURES = {
    "weights": Case(
        "weights that do not sum to 1",
        lambda: hs.MixtureKernel([0.5, 0.6], [[0.0], [2.0]], [1.0, 1.0], epsilon=1.0),
        Refused("weights"),
    ),
    "negative": Case(
        "a covariance with a negative eigenvalue",
        lambda: hs.MixtureKernel([1.0], [[0.0, 0.0]], [np.diag([1.0, -0.5])], epsilon=1.0),
        Refused("negative eigenvalue -0.5", "positive semidefinite"),
    ),
    "ambiguous": Case(
        "covariances (K, K): tied or diagonal?",
        lambda: hs.MixtureKernel([0.5, 0.5], np.eye(2), np.eye(2), epsilon=1.0),
        Refused("may be tied or diag; pass covariance_type"),
    ),
    "densities": Case(
        "densities beyond float64",
        lambda: hs.MixtureKernel([1.0], np.zeros((1, 99)), [1e-9 * np.eye(99)], epsilon=1e-9),
        Refused("beyond float64; rescale the data"),
    ),
    "affinities": Case(
        "points whose affinities are beyond float64",
        lambda: KERNEL.low_rank([[0.0], [1e3]]),
        Refused("Affinities of these points are beyond float64; rescale the data"),
    ),
    "one point": Case(
        "all points the same",
        lambda: mixture_of(np.ones((20, 3)), mixture=1, epsilon=1.0),
        Refused("same transition densities up to rounding", "smaller epsilon"),
    ),
    "tolerance": Case(
        "a tolerance above all distances",
        lambda: mixture_of(X, tolerance=1e9),
        Refused("tolerance=1e+09 needs no coordinates", "pass a smaller tolerance"),
    ),
}
