"""Embeddings of AnnData objects, in the manner of scanpy.

Each function reads the cells of `adata` as `scanpy.pp.neighbors` does, or a graph of `adata.obsp`,
and writes its result into `adata`. The library anndata is not imported: an object with `obs`,
`obsm`, `obsp` and `uns` is enough, in memory or backed by a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch import __version__
from heatsketch._checks import check_number
from heatsketch.comparison.audit import Audit
from heatsketch.comparison.audit import audit as audit_picture
from heatsketch.estimators import DiffusionMap, HeatEmbedding, HeatSketch
from heatsketch.io.anndata_files import default_array
from heatsketch.io.table import require
from heatsketch.markov.affinity import knn_affinity
from heatsketch.neighbors import NeighborIndex, in_metric
from heatsketch.operators.graph import graph

__all__ = [
    "audit",
    "coloring",
    "diffusion_map",
    "heat_embedding",
    "heat_sketch",
    "neighbors",
    "pseudotime",
]


def heat_embedding(
    adata: Any,
    n_components: int = 2,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    obsp: str | None = None,
    key_added: str = "heat",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Embed cells in few dimensions so that distances are nearly diffusion distances.

    `HeatEmbedding` of the cells, whose picture is ``sc.pl.embedding(adata, "heat")``.

    Parameters
    ----------
    adata : AnnData
        n cells; also a backed one.
    n_components : int, default 2
    use_rep : str, optional
        "X", or a name in `obsm`. By default X of at most 50 genes, else "X_pca" if there is one,
        else X with a warning.
    n_pcs : int, optional
        Columns of the representation that are used; by default all. 0 means X.
    layer : str, optional
        A layer in place of X.
    obsp : str, optional
        A graph of the cells in place of their coordinates: weights, as in "connectivities"; or
        distances, where the name ends so, as in "distances": then neighbours are these.
    key_added : str, default "heat"
        Results are in ``obsm["X_heat"]`` and ``uns["heat"]``.
    copy : bool, default False
        Return a copy of `adata` with the results, instead of writing them into it.
    **parameters
        Of the estimator, such as `time` or `n_neighbors`; `random_state` is 0 by default.

    Returns
    -------
    AnnData or None
        ``obsm["X_heat"]`` (n, k), and in ``uns["heat"]`` the method, its parameters, the version,
        the time used and what distances are kept.

    Raises
    ------
    TypeError, ValueError
        Not an AnnData; no such representation, layer or graph; several of them; what the estimator
        raises.
    MemoryError
        X of a backed object does not fit.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> adata = anndata.AnnData(X)
    >>> hs.anndata.heat_embedding(adata)
    >>> adata.obsm["X_heat"].shape
    (100, 2)
    """
    estimator = HeatEmbedding(n_components, **{"random_state": 0} | parameters)
    return _embed(adata, estimator, Cells(use_rep, n_pcs, layer, obsp), key_added, copy)


def heat_sketch(
    adata: Any,
    n_components: int | str = 32,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    obsp: str | None = None,
    key_added: str = "heat_sketch",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Sketch cells so that distances are diffusion distances, in expectation: `HeatSketch`.

    Parameters
    ----------
    adata, n_components, use_rep, n_pcs, layer, obsp, key_added, copy, **parameters
        As in `heat_embedding`.

    Returns
    -------
    AnnData or None
        ``obsm["X_heat_sketch"]`` (n, k), which may be `use_rep` of other tools.

    Raises
    ------
    TypeError, ValueError
        As in `heat_embedding`.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> adata = anndata.AnnData(np.random.default_rng(0).normal(size=(100, 5)))
    >>> hs.anndata.heat_sketch(adata, time=4)
    >>> adata.obsm["X_heat_sketch"].shape
    (100, 32)
    """
    estimator = HeatSketch(n_components, **{"random_state": 0} | parameters)
    return _embed(adata, estimator, Cells(use_rep, n_pcs, layer, obsp), key_added, copy)


def diffusion_map(
    adata: Any,
    n_components: int | str = 15,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    obsp: str | None = None,
    key_added: str = "diffusion_map",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Compute the diffusion map of cells: `DiffusionMap`.

    Parameters
    ----------
    adata, n_components, use_rep, n_pcs, layer, obsp, key_added, copy, **parameters
        As in `heat_embedding`. With ``obsp="connectivities", normalization="symmetric"`` it is that
        of ``sc.tl.diffmap(adata)``, up to the lengths of columns and its trivial first one.

    Returns
    -------
    AnnData or None
        ``obsm["X_diffusion_map"]`` (n, k), and the eigenvalues in ``uns``.

    Raises
    ------
    TypeError, ValueError
        As in `heat_embedding`.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> adata = anndata.AnnData(np.random.default_rng(0).normal(size=(100, 5)))
    >>> hs.anndata.diffusion_map(adata, 3)
    >>> adata.uns["diffusion_map"]["eigenvalues"].shape
    (3,)
    """
    estimator = DiffusionMap(n_components, **{"random_state": 0} | parameters)
    return _embed(adata, estimator, Cells(use_rep, n_pcs, layer, obsp), key_added, copy)


def pseudotime(
    adata: Any,
    root: Any = None,
    *,
    time: float = 8,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    obsp: str | None = None,
    key_added: str = "heat_pseudotime",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Say how late each cell is, from 0 at a root to 1 at the farthest.

    Parameters
    ----------
    adata, use_rep, n_pcs, layer, obsp, copy, **parameters
        As in `heat_embedding`; parameters of `DiffusionMap`.
    root : str, int, several of them, or mask (n,), optional
        Names (of `obs_names`) or numbers of the cells where time starts; by default
        ``uns["iroot"]``, as in scanpy.
    time : float, default 8
        Steps that are left out, see `DiffusionMap.pseudotime`; 1 is that of ``sc.tl.dpt``.
    key_added : str, default "heat_pseudotime"

    Returns
    -------
    AnnData or None
        ``obs["heat_pseudotime"]`` (n,), infinite in components of the graph without the root; how
        it was made in ``uns["heat_pseudotime"]``.

    Raises
    ------
    ValueError
        No root; a name that no cell has, or several have; and as in `heat_embedding`.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> adata = anndata.AnnData(np.linspace(0, 1, 100)[:, None])
    >>> hs.anndata.pseudotime(adata, 0)
    >>> bool((np.diff(adata.obs["heat_pseudotime"]) > 0).all())
    True
    """
    adata = _target(adata, copy)
    root = _roots(adata, root)
    estimator = DiffusionMap(2, **{"random_state": 0} | parameters)
    cells = Cells(use_rep, n_pcs, layer, obsp)
    estimator.fit(cells.read(adata, estimator))
    adata.obs[key_added] = estimator.pseudotime(root, time=time).value
    _record(adata, key_added, estimator, cells, time=time, root=root)
    return adata if copy else None


def audit(
    adata: Any,
    basis: str = "X_umap",
    *,
    labels: str | None = None,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    obsp: str | None = None,
    **parameters: Any,
) -> Audit:
    """Say of each cell how far its place in a picture can be believed: `heatsketch.audit`.

    Parameters
    ----------
    adata, use_rep, n_pcs, layer, obsp
        As in `heat_embedding`.
    basis : str, default "X_umap"
        The picture, a name in `obsm`.
    labels : str, optional
        A column of `obs`, between whose groups the gaps are compared.
    **parameters
        Of `HeatSketch`; by default 64 columns, ``filter="accumulated"``, time 8 and random_state 0.

    Returns
    -------
    Audit
        And ``obs["umap_trust"]`` and ``obs["umap_dubious"]``, by the name of the basis.

    Raises
    ------
    TypeError, ValueError
        As in `heat_embedding`; no such picture or column.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> adata = anndata.AnnData(X, obsm={"X_umap": X})
    >>> found = hs.anndata.audit(adata)
    >>> bool(adata.obs["umap_trust"].mean() > 0.7)
    True
    """
    cells = Cells(use_rep, n_pcs, layer, obsp)
    picture = _entry(_target(adata, False), "obsm", basis)
    groups = None if labels is None else _entry(adata, "obs", labels)
    default: dict[str, Any] = {"n_components": 64, "filter": "accumulated", "random_state": 0}
    estimator = HeatSketch(**default | parameters)
    estimator.fit(cells.read(adata, estimator))
    seed = estimator.random_state
    found = audit_picture(estimator, picture, labels=groups, random_state=seed)
    name = basis.removeprefix("X_")
    adata.obs[f"{name}_trust"], adata.obs[f"{name}_dubious"] = found.trust, found.dubious
    return found


def coloring(adata: Any, genes: int | Sequence[str] = 20) -> dict[str, Any]:
    """Return what a report colours cells by: columns of `obs`, genes, and scanpy's own colours.

    Parameters
    ----------
    adata : AnnData
        In memory or backed by a file.
    genes : int or sequence of str, default 20
        Names in `var_names`, or else in `raw`; a number takes the most variable genes, by what
        `scanpy.pp.highly_variable_genes` stored in `var`, or else by the variance of `X`.

    Returns
    -------
    dict
        `labels` (DataFrame, n rows) and `colors` ({column: {category: colour}}), for `report`.

    Raises
    ------
    ValueError
        No such gene.

    Examples
    --------
    >>> import anndata, heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> adata = anndata.AnnData(X)
    >>> shown = hs.anndata.coloring(adata, genes=["1"])
    >>> list(shown["labels"].columns)
    ['1']
    >>> page = hs.report(hs.DiffusionMap().fit(X), **shown)
    """
    names = _most_variable(adata, genes) if isinstance(genes, int) else list(genes)
    labels, raw = adata.obs.copy(), getattr(adata, "raw", None)
    known = [adata.var_names, *([] if raw is None else [raw.var_names])]
    require(names, [gene for each in known for gene in each], "adata", "gene")
    for place, each in zip((adata, raw), known, strict=False):
        own = [name for name in names if name in each and name not in labels]
        if own:
            values = _in_memory(place[:, own].X)
            labels[own] = values.toarray() if sparse.issparse(values) else np.array(values)
    colors = {
        name: dict(zip(map(str, column.cat.categories), adata.uns[f"{name}_colors"], strict=False))
        for name, column in adata.obs.items()
        if column.dtype == "category" and f"{name}_colors" in adata.uns
    }
    return {"labels": labels, "colors": colors}


def _most_variable(adata: Any, count: int) -> list[str]:
    """Return the names of the most variable genes, the first one first."""
    stored = [name for name in ("variances_norm", "dispersions_norm") if name in adata.var]
    if stored:
        spread = adata.var[stored[0]].fillna(0).to_numpy()
    else:
        X = _in_memory(adata.X)
        spread = sparse.csr_array(X).power(2).mean(axis=0) - np.ravel(X.mean(axis=0)) ** 2
    return [str(name) for name in adata.var_names[np.argsort(-spread, kind="stable")[:count]]]


def neighbors(
    adata: Any,
    n_neighbors: int = 15,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    metric: str = "euclidean",
    key_added: str | None = None,
    copy: bool = False,
) -> Any:
    """Compute the neighbours of cells, for what reads those of ``sc.pp.neighbors``.

    Distances to the nearest cells, and the self-tuning Gaussian weights of this library, which
    ``sc.tl.umap``, ``sc.tl.leiden`` and the functions here (``obsp="connectivities"``) use.

    Parameters
    ----------
    adata, use_rep, n_pcs, layer, copy
        As in `heat_embedding`.
    n_neighbors : int, default 15
        Others, without the cell itself.
    metric : "euclidean", "cosine" or "correlation", default "euclidean"
        As in `HeatSketch`: "cosine" is the chord, √(2 - 2 cos).
    key_added : str, optional
        By default results are in ``uns["neighbors"]``, ``obsp["connectivities"]`` and
        ``obsp["distances"]``, else in ``uns[key_added]`` and in `obsp` under
        "{key_added}_connectivities" and "{key_added}_distances".

    Returns
    -------
    AnnData or None

    Raises
    ------
    TypeError, ValueError
        As in `heat_embedding`; n_neighbors out of range.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> adata = anndata.AnnData(np.random.default_rng(0).normal(size=(100, 5)))
    >>> hs.anndata.neighbors(adata, 10)
    >>> adata.obsp["distances"].nnz
    1000
    """
    adata, cells = _target(adata, copy), Cells(use_rep, n_pcs, layer)
    points = cells.points(adata)
    k = min(int(check_number(n_neighbors, "n_neighbors", low=1, integer=True)), len(adata.obs) - 1)
    index = NeighborIndex(points, metric=metric, n_neighbors=k)
    built = knn_affinity(in_metric(points, metric), "self-tuning", k, index)
    weights = built.operator.matrix[built.vertex][:, built.vertex].tocsr()
    weights.setdiag(0)  # as scanpy has them
    weights.eliminate_zeros()
    weights.sort_indices()
    prefix = "" if key_added is None else f"{key_added}_"
    adata.obsp[f"{prefix}connectivities"] = weights
    adata.obsp[f"{prefix}distances"] = _distances(index, k)
    params = {"n_neighbors": k, "method": "heatsketch", "random_state": 0, "metric": metric}
    adata.uns[key_added or "neighbors"] = {
        "connectivities_key": f"{prefix}connectivities",
        "distances_key": f"{prefix}distances",
        "params": _storable(params | asdict(cells)),
    }
    return adata if copy else None


def _embed(adata: Any, estimator: Any, cells: Cells, key: str, copy: bool) -> Any:
    """Fit an estimator to the cells, and write its coordinates and how they were made."""
    adata = _target(adata, copy)
    adata.obsm[f"X_{key}"] = np.asarray(estimator.fit_transform(cells.read(adata, estimator)))
    facts = {"time": getattr(estimator, "time_", estimator.time)}
    facts["eigenvalues"] = getattr(estimator, "eigenvalues_", None)
    found = getattr(estimator, "distortion_", None)
    if found is not None:
        within = {f"{factor:g}": fraction for factor, fraction in found.within.items()}
        facts["distortion"] = {"log_L": found.log_L, "within": within, "words": found.describe()}
    _record(adata, key, estimator, cells, **facts)
    return adata if copy else None


def _record(adata: Any, key: str, estimator: Any, cells: Cells, **facts: Any) -> None:
    """Write how a result was made."""
    params = estimator.get_params(deep=False) | asdict(cells) | {"neighbors": None}
    method = type(estimator).__name__
    adata.uns[key] = _storable({"method": method, "version": __version__, "params": params} | facts)


def _target(adata: Any, copy: bool) -> Any:
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

    def read(self, adata: Any, estimator: Any) -> Any:
        """Return what the estimator is fitted to; for a graph, set its parameters accordingly."""
        if self.obsp is None:
            return self.points(adata)
        matrix = _entry(adata, "obsp", self.obsp)
        if self.obsp.endswith("distances"):
            distances = sparse.csr_matrix(matrix)
            k = min(estimator.n_neighbors, int(np.diff(distances.indptr).min()))
            if k == 0:
                raise ValueError(
                    "A cell has no neighbours among the distances; compute them again."
                )
            estimator.set_params(neighbors=distances, n_neighbors=k)
            return self.points(adata)
        for name in ("use_rep", "n_pcs", "layer"):
            if (value := getattr(self, name)) is not None:
                raise ValueError(f"{name}={value!r} and obsp={self.obsp!r}; pass one of them.")
        estimator.set_params(affinity="precomputed")
        return graph(matrix, names=adata.obs_names)

    def points(self, adata: Any) -> Any:
        """Return the representation of the cells (n, d) that scanpy would choose."""
        n_pcs = self.n_pcs
        if n_pcs is not None:
            check_number(n_pcs, "n_pcs", low=0, integer=True)
        if self.layer is not None:
            if self.use_rep not in (None, "X") or n_pcs:
                raise ValueError(f"layer={self.layer!r} and use_rep or n_pcs; pass one.")
            return _in_memory(_entry(adata, "layers", self.layer))
        name = self.use_rep or "X"
        if self.use_rep is None and n_pcs != 0:
            name = default_array(adata.n_vars, adata.obsm, "adata", "use_rep='X'")
        if name == "X":
            if adata.X is None:
                raise ValueError("adata has no X; pass use_rep, a name in obsm, or layer.")
            return _in_memory(adata.X)
        points = _entry(adata, "obsm", name)
        if n_pcs is not None and n_pcs > points.shape[1]:
            raise ValueError(f"n_pcs={n_pcs}; {name} has columns for n_pcs <= {points.shape[1]}.")
        return points[:, : n_pcs or None]


def _entry(adata: Any, part: str, name: str) -> Any:
    """Return an array of obs, obsm, obsp or layers, or raise with those there are."""
    entries = getattr(adata, part)
    require([name], entries.keys(), f"adata.{part}", "entry")
    entry = entries[name]
    return entry.to_numpy() if hasattr(entry, "to_numpy") else entry


def _in_memory(X: Any) -> Any:
    """Return an array or matrix, read from the file of a backed object."""
    return X if sparse.issparse(X) else X[:]


def _roots(adata: Any, root: Any) -> Any:
    """Return the numbers of the cells that are named, or what else says where time starts."""
    if root is None:
        if "iroot" not in adata.uns:
            raise ValueError('There is no root; pass a cell or its name, or set uns["iroot"].')
        return int(adata.uns["iroot"])
    if np.asarray(root).dtype.kind not in "OU":
        return root
    known, names = np.asarray(adata.obs_names, dtype=str), np.atleast_1d(root).astype(str).tolist()
    require(names, known, "adata", "cell")
    for name in names:
        if (count := int((known == name).sum())) > 1:
            raise ValueError(f"{count} cells are called {name!r}; pass the number of one.")
    return np.array([int((known == name).argmax()) for name in names])


def _storable(value: Any) -> Any:
    """Return what .h5ad files hold: numbers, text, arrays and dictionaries, without None."""
    if isinstance(value, dict):
        return {str(k): _storable(item) for k, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return np.asarray(value)
    is_plain = isinstance(value, bool | int | float | str | np.ndarray | np.generic)
    return value if is_plain else repr(value)


def _distances(index: NeighborIndex, k: int) -> sparse.csr_matrix:
    """Return the distances to the k nearest others, CSR (n, n); those of equal cells are 0."""
    found, n = index.query(None, k + 1), index.n
    other = found.indices != np.arange(n)[:, None]
    other[other.all(axis=1), -1] = False  # among more copies than neighbours
    columns, values = found.indices[other], found.distances[other]
    return sparse.csr_matrix((values, columns, np.arange(n + 1) * k), shape=(n, n))
