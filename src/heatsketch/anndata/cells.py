"""What is read from AnnData objects, as scanpy chooses it, and what their files can hold."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch import memory
from heatsketch._checks import check_number
from heatsketch._words import did_you_mean
from heatsketch.operators import graph

_N_PCS = 50  # genes up to which scanpy uses X itself


def target(adata: Any, copy: bool) -> Any:
    """Return the object to write to, or raise if it is not an AnnData."""
    if not all(hasattr(adata, name) for name in ("obs", "obsm", "obsp", "uns", "X")):
        raise TypeError(
            f"adata is of type {type(adata).__name__}; pass an AnnData, or its points to an "
            "estimator such as heatsketch.HeatEmbedding()."
        )
    if not copy:
        return adata
    return adata.to_memory() if getattr(adata, "isbacked", False) else adata.copy()


def graph_or_points(
    estimator: Any,
    adata: Any,
    use_rep: str | None,
    n_pcs: int | None,
    layer: str | None,
    obsp: str | None,
) -> Any:
    """Return what the estimator is fitted to; of a graph, set its parameters accordingly."""
    if obsp is None:
        return points_of(adata, use_rep, n_pcs, layer)
    held = _entry(adata, "obsp", obsp)
    if obsp.endswith("distances"):
        return _with_neighbors(estimator, held, points_of(adata, use_rep, n_pcs, layer))
    given = {"use_rep": use_rep, "n_pcs": n_pcs, "layer": layer}
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}={value!r} and obsp={obsp!r}; pass one of them.")
    estimator.set_params(affinity="precomputed")
    return graph(held, names=adata.obs_names)


def _with_neighbors(estimator: Any, distances: Any, points: Any) -> Any:
    """Let the estimator use these neighbours, as many as every cell has at the least."""
    others = sparse.csr_matrix(distances)
    fewest = int(np.diff(others.indptr).min())
    if fewest == 0:
        raise ValueError("A cell has no neighbours among the distances; compute neighbours again.")
    estimator.set_params(neighbors=others, n_neighbors=min(estimator.n_neighbors, fewest))
    return points


def points_of(adata: Any, use_rep: str | None, n_pcs: int | None, layer: str | None) -> Any:
    """Return the representation of the cells (n, d) that scanpy would choose."""
    if n_pcs is not None:
        n_pcs = int(check_number(n_pcs, "n_pcs", low=0, integer=True))
    if layer is not None:
        if use_rep not in (None, "X") or n_pcs:
            raise ValueError(f"layer={layer!r} and use_rep={use_rep!r} or n_pcs={n_pcs}; pass one.")
        return _in_memory(_entry(adata, "layers", layer))
    if use_rep is None and n_pcs != 0 and adata.n_vars > _N_PCS:
        use_rep = "X_pca" if "X_pca" in adata.obsm else _warned_of_genes(adata)
    if use_rep in (None, "X"):
        if adata.X is None:
            raise ValueError("adata has no X; pass use_rep, a name in obsm, or layer.")
        return _in_memory(adata.X)
    held = _entry(adata, "obsm", use_rep)
    if n_pcs is not None and n_pcs > held.shape[1]:
        raise ValueError(
            f"n_pcs={n_pcs} but {use_rep} has {held.shape[1]} columns; pass n_pcs <= "
            f"{held.shape[1]}."
        )
    held = getattr(held, "to_numpy", lambda: held)()
    return held[:, : n_pcs or None]


def _warned_of_genes(adata: Any) -> str:
    warnings.warn(
        f"adata has no X_pca, so that distances are those of all {adata.n_vars} genes in X; run "
        "sc.pp.pca(adata) first, or pass use_rep='X' if that is what you mean.",
        stacklevel=5,
    )
    return "X"


def _entry(adata: Any, part: str, name: str) -> Any:
    """Return an entry of obsm, obsp or layers, or raise with those there are."""
    entries = getattr(adata, part)
    if name not in entries:
        known = list(entries.keys())
        raise ValueError(
            f"adata.{part} has no {name!r}; choose from {', '.join(known) or 'nothing'}"
            f"{did_you_mean(name, known)}"
        )
    return entries[name]


def _in_memory(X: Any) -> Any:
    """Return an array or matrix that may still be in a file, if it fits."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return X
    stored = getattr(X, "group", None)  # of a sparse matrix in a file
    size = 12 * stored["data"].shape[0] if stored is not None else X.size * X.dtype.itemsize
    instead = "pass use_rep, the name of coordinates in obsm such as X_pca."
    memory.require(float(size), "All numbers of the file", instead)
    return X.to_memory() if hasattr(X, "to_memory") else X[:]


def roots_of(adata: Any, root: Any) -> Any:
    """Return the numbers of the cells that are named, or what else says where time starts."""
    if root is None:
        if "iroot" not in adata.uns:
            raise ValueError(
                'There is no root; pass the name or the number of a cell, or set uns["iroot"].'
            )
        return int(adata.uns["iroot"])
    given = np.atleast_1d(np.asarray(root))
    if given.dtype.kind not in "OU":
        return root
    names = [str(name) for name in given.tolist()]
    known = np.asarray(adata.obs_names, dtype=str)
    places = [np.flatnonzero(known == name) for name in names]
    for name, found in zip(names, places, strict=True):
        if len(found) != 1:
            raise ValueError(
                f"root={name!r} is the name of {len(found)} cells; pass one of obs_names, or the "
                f"number of a cell{did_you_mean(name, known.tolist())}"
            )
    return np.concatenate(places)


def plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what .h5ad files hold: numbers, text, arrays and dictionaries, without None."""
    kept = {name: value for name, value in facts.items() if value is not None}
    return {name: _plain_value(value) for name, value in kept.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, dict):
        return plain({str(name): one for name, one in value.items()})
    if isinstance(value, list | tuple):
        return np.asarray(value)
    if isinstance(value, bool | int | float | str | np.ndarray | np.generic):
        return value
    return repr(value)
