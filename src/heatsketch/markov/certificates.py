"""What is checked of a diffusion before anyone uses it, and what is warned of."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch._checks import CertificateError, DisconnectedWarning, ScaleWarning, name_rows
from heatsketch._random import random_block
from heatsketch._typing import Array
from heatsketch.markov.normalization import Scaling
from heatsketch.operators.operator import Deflated, Operator, Scaled
from heatsketch.spectral.eigenpairs import eigh

_MAX_MEASURE_ERROR = 1e-6  # largest error of A √π = √π that rounding can explain


def check_connectivity(K: Operator, row_sums: Array, points: Array) -> dict[str, Any]:
    """Count components and isolated points; warn of several, raise where most points are alone.

    `points` (n,): the input point at each vertex, for messages.
    """
    own, alone = K.diagonal(), np.empty(0, dtype=int)
    if own is not None:  # points whose affinity to all others together is negligible
        alone = np.flatnonzero(row_sums - own <= 1e-12 * row_sums)
    if len(alone) == K.n > 1 or len(alone) > max(1, K.n // 2):
        raise ValueError(
            f"{len(alone)} of {K.n} points have no affinity to any other: the bandwidth is too "
            "small; pass a larger epsilon (see heatsketch.ksum and connecting_epsilon)."
        )
    labels, found = K.components(), {"isolated": len(alone)}
    if labels is None:
        return found
    found |= _bipartite(K, labels)
    sizes = np.sort(np.bincount(labels))[::-1]
    if len(sizes) > 1:
        warnings.warn(
            f"The affinity falls into {len(sizes)} components (sizes {name_rows(sizes)}): nothing "
            "diffuses between them, and the distance between components says only that they are "
            "apart. More neighbours (or edges), or a larger epsilon (heatsketch.connecting_epsilon "
            "computes one), would connect them"
            + (f"; points {name_rows(np.sort(points[alone]))} stand alone." if len(alone) else "."),
            DisconnectedWarning,
            stacklevel=5,
        )
    return {"components": len(sizes)} | found


def _bipartite(K: Operator, labels: Array) -> dict[str, int]:
    """Count the components in which every step goes from one half to the other, if there are any.

    None with a self-loop is one. Two copies of the vertices of the others, joined from copy to
    copy, have two components for each of these, and one for each that is not bipartite.
    """
    matrix = K.matrix
    if not sparse.issparse(matrix):
        return {}
    looped = np.bincount(labels, weights=matrix.diagonal() > 0) > 0
    kept = ~looped[labels]
    if not kept.any():
        return {}
    matrix = matrix if kept.all() else matrix[kept][:, kept]
    copies = sparse.bmat([[None, matrix], [matrix, None]], format="csr")
    count = connected_components(copies, directed=False)[0] - np.count_nonzero(~looped)
    return {"bipartite": int(count)} if count > 0 else {}


def certify(K: Operator, A: Operator, scaling: Scaling) -> dict[str, Any]:
    """Measure how well A √π = √π holds; raise if it is off, or if A has eigenvalues beyond 1.

    Non-negative entries of K and A √π = √π are enough; where entries are not known, the largest
    eigenvalue is computed. Warn where A has nothing but √π.
    """
    root = np.sqrt(scaling.measure)
    if not K.is_non_negative():
        honest = Scaled(K, scaling.s)  # without the claim that is in question
        top = float(eigh(Deflated(honest, root), 1, tol=1e-4, rng=0).values[0])
        if top > 1 + 1e-6:
            raise CertificateError(
                f"The normalised operator has an eigenvalue {top:.4g} beyond 1, so the affinity "
                "has negative entries and its powers would grow; pass a non-negative affinity, or "
                "a low-rank factor that approximates one better."
            )
    probe = random_block(A.n, 1, "gaussian", 0)[:, 0]
    probe -= root * (root @ probe)
    image, other = (A @ np.column_stack([root, probe])).T
    error = float(np.max(np.abs(image - root) / root))
    rounding = 50 * float(np.finfo(A.dtype).eps)
    allowed = max(
        _MAX_MEASURE_ERROR, rounding, 2 * scaling.diagnostics.get("scaling_residual", 0.0)
    )
    if not error <= allowed:
        raise CertificateError(
            f"A √π = √π is off by {error:.1e} where rounding explains {allowed:.0e}; the affinity "
            "changes between products or has entries beyond float64."
        )
    rest = np.linalg.norm(other - root * (root @ other))
    is_constant = bool(rest <= rounding * np.linalg.norm(probe))
    if is_constant and A.n > 1:
        warnings.warn(
            "All points have the same affinities, to rounding: the embedding carries no "
            "information, and is zero. Pass a smaller epsilon, or points that differ.",
            ScaleWarning,
            stacklevel=5,
        )
    return {"row_sum_error": error, "is_constant": is_constant}


def warn_of_distances(operator: Operator) -> None:
    """Warn when a matrix of distances seems to have been passed as an affinity."""
    K = operator.matrix
    if K is None or operator.n < 3:
        return
    nonzero = K.nnz if sparse.issparse(K) else np.count_nonzero(K)
    if (K.diagonal() != 0).any() or nonzero < operator.n * (operator.n - 1):
        return
    K = K.toarray() if sparse.issparse(K) else K
    i, j = np.unravel_index(K.argmax(), K.shape)
    # The triangle inequality, also for squared distances. Of affinities, the largest breaks it.
    if K[i, j] <= 2 * (K[i] + K[j]).min():
        warnings.warn(
            "K is zero on its diagonal and positive everywhere else: it looks like distances, not "
            "affinities; pass exp(-K**2 / epsilon).",
            stacklevel=3,
        )
