"""What an operator says of itself beyond its five members.

Each function has a default that is right for an operator with the five members alone. A class that
knows more registers its own answer, beside the class.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array


@singledispatch
def stored_matrix(A: Any) -> Any:
    """Return the matrix (n, n) of an operator that stores it, array or CSR, else None."""
    return None


@singledispatch
def diagonal(A: Any) -> Array | None:
    """Return the diagonal (n,) where it is known without products, else None."""
    matrix = stored_matrix(A)
    return None if matrix is None else matrix.diagonal()


@singledispatch
def is_non_negative(A: Any) -> bool:
    """Say whether all entries are known to be at least 0."""
    matrix = stored_matrix(A)
    if matrix is None:
        return False
    entries = matrix.data if sparse.issparse(matrix) else matrix
    return entries.size == 0 or bool(entries.min() >= 0)


@singledispatch
def component_labels(A: Any) -> Array | None:
    """Return the component of each point (n,), numbered from 0, or None where A cannot tell."""
    return None


@singledispatch
def row_sums(A: Any) -> Array:
    """Return A 1, (n,)."""
    sums: Array = A @ np.ones(A.n)
    return sums


@singledispatch
def scaled_graph(A: Any) -> tuple[sparse.csr_matrix, Array] | None:
    """Return a CSR matrix K and s (n,) with A = diag(s) K diag(s), or None where not stored so.

    For a deflated operator those of the operator inside.
    """
    return None


@singledispatch
def accuracy(A: Any) -> dict[str, float]:
    """Return what the products of A lose beyond ordinary rounding, by name."""
    return {}


@singledispatch
def on_device(A: Any, device: Any) -> Any:
    """Return the operator with its products on a device of torch, None: on the host.

    An operator that knows nothing of devices is returned as it is.
    """
    return A
