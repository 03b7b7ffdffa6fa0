"""What is read from AnnData objects, as scanpy chooses it, and what their files can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import check_number
from heatsketch._words import did_you_mean
from heatsketch.io.anndata_files import default_array
from heatsketch.operators import graph


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


@dataclass(frozen=True)
class Cells:
    """What represents the cells of an AnnData, in the words of scanpy; see `heat_embedding`."""

    use_rep: str | None = None
    n_pcs: int | None = None
    layer: str | None = None
    obsp: str | None = None

    def of(self, adata: Any, estimator: Any) -> Any:
        """Return what the estimator is fitted to; for a graph, set its parameters accordingly."""
        if self.obsp is None:
            return self.points_of(adata)
        matrix = _entry(adata, "obsp", self.obsp)
        if self.obsp.endswith("distances"):
            distances = sparse.csr_matrix(matrix)
            fewest = int(np.diff(distances.indptr).min())
            if fewest == 0:
                raise ValueError(
                    "A cell has no neighbours among the distances; compute neighbours again."
                )
            k = min(estimator.n_neighbors, fewest)
            estimator.set_params(neighbors=distances, n_neighbors=k)
            return self.points_of(adata)
        for name in ("use_rep", "n_pcs", "layer"):
            if (value := getattr(self, name)) is not None:
                raise ValueError(f"{name}={value!r} and obsp={self.obsp!r}; pass one of them.")
        estimator.set_params(affinity="precomputed")
        return graph(matrix, names=adata.obs_names)

    def points_of(self, adata: Any) -> Any:
        """Return the representation of the cells (n, d) that scanpy would choose."""
        use_rep, n_pcs = self.use_rep, self.n_pcs
        if n_pcs is not None:
            check_number(n_pcs, "n_pcs", low=0, integer=True)
        if self.layer is not None:
            if use_rep not in (None, "X") or n_pcs:
                raise ValueError(
                    f"layer={self.layer!r} and use_rep={use_rep!r} or n_pcs={n_pcs}; pass one."
                )
            return _in_memory(_entry(adata, "layers", self.layer))
        if use_rep is None and n_pcs != 0:
            use_rep = default_array(adata.n_vars, adata.obsm, "adata", "use_rep='X'")
        if use_rep in (None, "X"):
            if adata.X is None:
                raise ValueError("adata has no X; pass use_rep, a name in obsm, or layer.")
            return _in_memory(adata.X)
        points = _entry(adata, "obsm", use_rep)
        if n_pcs is not None and n_pcs > points.shape[1]:
            raise ValueError(
                f"n_pcs={n_pcs} but {use_rep} has {points.shape[1]} columns; pass n_pcs <= "
                f"{points.shape[1]}."
            )
        return getattr(points, "to_numpy", lambda: points)()[:, : n_pcs or None]


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
    """Return an array or matrix, read from the file of a backed object."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return X
    return X.to_memory() if hasattr(X, "to_memory") else X[:]


def roots_of(adata: Any, root: Any) -> Any:
    """Return the numbers of the cells that are named, or what else says where time starts."""
    if root is None:
        if "iroot" not in adata.uns:
            raise ValueError(
                'There is no root; pass the name or the number of a cell, or set uns["iroot"].'
            )
        return int(adata.uns["iroot"])
    if np.asarray(root).dtype.kind not in "OU":
        return root
    known, places = np.asarray(adata.obs_names, dtype=str), []
    for name in map(str, np.atleast_1d(root)):
        found = np.flatnonzero(known == name)
        if len(found) != 1:
            raise ValueError(
                f"root={name!r} is the name of {len(found)} cells; pass one of obs_names, or the "
                f"number of a cell{did_you_mean(name, known.tolist())}"
            )
        places.append(int(found[0]))
    return np.array(places)


def plain(facts: dict[Any, Any]) -> dict[str, Any]:
    """Return what .h5ad files hold: numbers, text, arrays and dictionaries, without None."""
    kept: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            kept[str(name)] = plain(value)
        elif isinstance(value, list | tuple):
            kept[str(name)] = np.asarray(value)
        elif isinstance(value, bool | int | float | str | np.ndarray | np.generic):
            kept[str(name)] = value
        elif value is not None:
            kept[str(name)] = repr(value)
    return kept
