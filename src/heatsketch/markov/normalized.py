"""From an affinity to A: scaling, connectivity and certificates."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._checks import check_number
from heatsketch._typing import Array
from heatsketch.markov.affinity import Affinity
from heatsketch.markov.certificates import (
    certify_measure,
    certify_spectrum,
    check_connectivity,
    general_advice,
)
from heatsketch.markov.normalization import (
    Scaling,
    bistochastic_scaling,
    markov_scaling,
)
from heatsketch.operators import Operator
from heatsketch.operators.order import first_inputs
from heatsketch.operators.properties import accuracy


class Normalized(NamedTuple):
    """A, the scaling that made it, M where it is not A, and the diagnostics of all."""

    operator: Operator
    scaling: Scaling
    one_sided: sparse.csr_matrix | None
    diagnostics: dict[str, Any]


def normalized(
    built: Affinity,
    normalization: str,
    alpha: float,
    tol: float,
    max_iter: int,
    dtype: Any = np.float64,
    advise: Callable[[Array], str] = general_advice,
) -> Normalized:
    """Normalise an affinity, as `Diffusion.from_points` describes; check what must hold."""
    started = time.perf_counter()
    check_number(alpha, "alpha")  # numbers, also where they are not used
    check_number(tol, "tol", low=0)
    check_number(max_iter, "max_iter", low=1, integer=True)
    K, inputs = built.operator, first_inputs(built.vertex)
    if normalization == "bistochastic":
        scaling = bistochastic_scaling(K, tol, max_iter, inputs)
    else:
        scaling = markov_scaling(K, alpha if normalization == "markov" else 1.0, inputs)
    A = scaling.of(K, dtype)
    one_sided = None if built.one_sided is None else scaling.rows(built.one_sided, dtype)
    diagnostics = (
        built.diagnostics
        | check_connectivity(K, scaling.row_sums, advise, inputs)
        | scaling.diagnostics
    )
    certify_spectrum(K, scaling)
    diagnostics |= certify_measure(A, scaling.measure, scaling.diagnostics)
    diagnostics |= accuracy(A)
    diagnostics["normalize_seconds"] = time.perf_counter() - started
    return Normalized(A, scaling, one_sided, diagnostics)
