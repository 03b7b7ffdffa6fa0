"""What is read from an AnnData object, in memory or backed by a file, and how it is written."""

from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import check_parameters, warn_if_transposed
from heatsketch._version import __version__
from heatsketch.core.graph import graph
from heatsketch.io.anndata_files import default_array
from heatsketch.io.table import check_names

WHERE = ("use_rep", "n_pcs", "layer", "obsp")  # of the representation, as in scanpy


def target(adata: Any, copy: bool) -> Any:
    """Return the object to write to, `adata` or a copy; raise if it is not an AnnData."""
    if not all(hasattr(adata, name) for name in ("obs", "obsm", "obsp", "uns", "X")):
        raise TypeError(
            f"adata is of type {type(adata).__name__}; pass an AnnData, or its points to an "
            "estimator such as heatsketch.HeatEmbedding()."
        )
    return adata.to_memory(copy=True) if copy else adata


def points_of(adata: Any, use_rep: str | None, n_pcs: int | None, layer: str | None) -> Any:
    """Return the representation of the cells (n, d) that scanpy would choose."""
    warn_if_transposed(adata.obs_names, adata.var_names)
    if layer is not None:
        if use_rep not in (None, "X") or n_pcs:
            raise ValueError(f"layer={layer!r} and use_rep or n_pcs; pass one.")
        return in_memory(entry_of(adata, "layers", layer))
    name = use_rep or "X"
    if use_rep is None and n_pcs != 0:
        name = default_array(adata.n_vars, adata.obsm, "adata", "use_rep='X'")
    if name == "X":
        if adata.X is None:
            raise ValueError("adata has no X; pass use_rep, a name in obsm, or layer.")
        return in_memory(adata.X)
    points = entry_of(adata, "obsm", name)
    if n_pcs is not None and not 0 <= n_pcs <= points.shape[1]:
        raise ValueError(f"n_pcs={n_pcs}; {name} has columns for n_pcs <= {points.shape[1]}.")
    return points[:, : n_pcs or None]


def entry_of(adata: Any, part: str, name: str) -> Any:
    """Return an array of obs, obsm, obsp or layers, or raise with the existing names."""
    entries = getattr(adata, part)
    check_names([name], entries.keys(), f"adata.{part}", "entry")
    entry = entries[name]
    return entry.to_numpy() if hasattr(entry, "to_numpy") else entry


def in_memory(X: Any) -> Any:
    """Return an array or matrix, read from the file of a backed object."""
    return X if sparse.issparse(X) else X[:]


def storable(value: Any) -> Any:
    """Convert a value to numbers, text, arrays and dictionaries without None, for .h5ad files."""
    if isinstance(value, dict):
        return {str(k): storable(item) for k, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return np.asarray(value)
    is_plain = isinstance(value, bool | int | float | str | np.ndarray | np.generic)
    return value if is_plain else repr(value)


def fit_to_cells(
    caller: Any, adata: Any, make: Any, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Fit an estimator to the cells, or to a graph of them; return it and the record of the fit.

    The options are those that the caller, a function of `anndata`, was given beside its own.
    """
    check_parameters(caller.__name__, options, caller, make, also=WHERE)
    given = {name: options.pop(name, None) for name in WHERE}
    estimator = make(**{"random_state": 0} | options)
    *where, obsp = given.values()
    if obsp is None:
        X = points_of(adata, *where)
    elif obsp.endswith("distances"):
        X, distances = points_of(adata, *where), sparse.csr_matrix(entry_of(adata, "obsp", obsp))
        k = min(estimator.n_neighbors, int(np.diff(distances.indptr).min()))
        if k == 0:
            raise ValueError("A cell has no neighbours among the distances; compute them again.")
        estimator.set_params(neighbors=distances, n_neighbors=k)
    elif any(option is not None for option in where):
        raise ValueError(f"obsp={obsp!r} and use_rep, n_pcs or layer; pass one of them.")
    else:
        X = graph(entry_of(adata, "obsp", obsp), names=adata.obs_names)
        estimator.set_params(affinity="precomputed")
    params = estimator.fit(X).get_params(deep=False) | given | {"neighbors": None}
    return estimator, {"method": make.__name__, "version": __version__, "params": params}
