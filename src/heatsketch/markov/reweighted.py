"""A diffusion whose points count more or less often."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.markov.diffusion import Diffusion
from heatsketch.operators.operator import scale_both_sides


def reweighted(diffusion: Diffusion, weights: Array) -> tuple[Diffusion, Array]:
    """Return the diffusion of the same affinity whose points have weights w (n,), and `columns`.

    Sums over points become weighted: with q = K w, v_i = q_i^-α Σ_j K_ij q_j^-α w_j,

        A_ij = √w_i K_ij √w_j / (q_i^α q_j^α √v_i √v_j),   π_i ∝ w_i v_i,

    which whole weights would give to points that occur so often. A new diffusion is a scaling of
    the old one. Its rows for new points are those of the old one times `columns`, up to a factor of
    each row, which the Markov form takes out. Cost: two products by a vector.
    """
    A, scaling = diffusion.operator, diffusion.scaling
    if diffusion.normalization != "markov":
        raise ValueError(
            f"The diffusion has normalization={diffusion.normalization!r}, whose distances depend "
            "on the number of points; pass one with normalization='markov'."
        )
    if scaling is None or "median_holding_time" in diffusion.diagnostics:
        raise ValueError(
            "The points of this diffusion cannot be weighed: its affinity is not one of pairs "
            "alone; pass one of affinity 'knn', 'dense', 'radius' or 'precomputed'."
        )
    unscaled = 1 / scaling.s  # K = diag(1/s) A diag(1/s)
    q = unscaled * (A @ (unscaled * weights).astype(A.dtype)).astype(float)
    c = unscaled * weights * q**-scaling.alpha
    v = c * (A @ c.astype(A.dtype)).astype(float)
    columns, measure = c / np.sqrt(v), v / v.sum()
    operator = A.scaled(columns, (min(A.spectrum[0], 0.0), 1.0), np.sqrt(measure), A.dtype)
    step = diffusion.directed_step
    step = None if step is None else times_columns(step, columns)
    changed: dict[str, Any] = {"operator": operator, "measure": measure, "directed_step": step}
    return replace(diffusion, affinity_rows=None, scaling=None, **changed), columns


def times_columns(rows: Any, columns: Array) -> Any:
    """Return rows diag(columns) of an array or a CSR matrix (m, n), in its precision."""
    if sparse.issparse(rows):
        return scale_both_sides(rows.tocsr(), np.ones(rows.shape[0]), columns, rows.dtype)
    return rows * columns.astype(rows.dtype)
