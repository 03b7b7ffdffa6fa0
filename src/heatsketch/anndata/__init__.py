"""Embeddings of AnnData objects, in the manner of scanpy.

Each function reads the cells of `adata` as `scanpy.pp.neighbors` does, or a graph of `adata.obsp`,
and writes its result into `adata`. The library anndata is not imported: an object with `obs`,
`obsm`, `obsp` and `uns` is enough, in memory or backed by a file.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch import __version__
from heatsketch._checks import check_number
from heatsketch._typing import Array
from heatsketch.anndata.cells import Cells, plain, roots_of, target
from heatsketch.estimators import DiffusionMap, HeatEmbedding, HeatSketch
from heatsketch.markov.affinity import knn_affinity
from heatsketch.neighbors import NeighborIndex, in_metric

__all__ = ["diffusion_map", "heat_embedding", "heat_sketch", "neighbors", "pseudotime"]


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
    return _embedded(adata, estimator, Cells(use_rep, n_pcs, layer, obsp), key_added, copy)


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
    return _embedded(adata, estimator, Cells(use_rep, n_pcs, layer, obsp), key_added, copy)


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
    return _embedded(adata, estimator, Cells(use_rep, n_pcs, layer, obsp), key_added, copy)


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
    adata = target(adata, copy)
    root = roots_of(adata, root)
    estimator = DiffusionMap(2, **{"random_state": 0} | parameters)
    cells = Cells(use_rep, n_pcs, layer, obsp)
    estimator.fit(cells.of(adata, estimator))
    adata.obs[key_added] = estimator.pseudotime(root, time=time).value
    _record(adata, key_added, estimator, cells, time=time, root=root)
    return adata if copy else None


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
    adata = target(adata, copy)
    cells = Cells(use_rep, n_pcs, layer)
    points = cells.points_of(adata)
    k = min(int(check_number(n_neighbors, "n_neighbors", low=1, integer=True)), len(adata.obs) - 1)
    index = NeighborIndex(points, metric=metric, n_neighbors=k)
    built = knn_affinity(in_metric(points, metric), "self-tuning", k, index)
    prefix = "" if key_added is None else f"{key_added}_"
    adata.obsp[f"{prefix}connectivities"] = _of_cells(built.operator.stored_matrix(), built.vertex)
    adata.obsp[f"{prefix}distances"] = _distances(index, k)
    params = {"n_neighbors": k, "method": "heatsketch", "random_state": 0, "metric": metric}
    adata.uns[key_added or "neighbors"] = {
        "connectivities_key": f"{prefix}connectivities",
        "distances_key": f"{prefix}distances",
        "params": plain(params | asdict(cells)),
    }
    return adata if copy else None


def _embedded(adata: Any, estimator: Any, cells: Cells, key_added: str, copy: bool) -> Any:
    """Fit the estimator to the cells, and write what came of it."""
    adata = target(adata, copy)
    adata.obsm[f"X_{key_added}"] = np.asarray(estimator.fit_transform(cells.of(adata, estimator)))
    facts = {"time": getattr(estimator, "time_", estimator.time)}
    facts["eigenvalues"] = getattr(estimator, "eigenvalues_", None)
    found = getattr(estimator, "distortion_", None)
    if found is not None:
        within = {f"{factor:g}": share for factor, share in found.within.items()}
        facts["distortion"] = {"log_L": found.log_L, "within": within, "words": found.describe()}
    _record(adata, key_added, estimator, cells, **facts)
    return adata if copy else None


def _record(adata: Any, key: str, estimator: Any, cells: Cells, **facts: Any) -> None:
    """Write how a result was made."""
    params = estimator.get_params(deep=False) | asdict(cells) | {"neighbors": None}
    method = type(estimator).__name__
    adata.uns[key] = plain({"method": method, "version": __version__, "params": params} | facts)


def _of_cells(matrix: sparse.csr_matrix, vertex: Array) -> sparse.csr_matrix:
    """Return weights of vertices as those of the cells, without those of a cell with itself."""
    rows = matrix[vertex][:, vertex]
    rows = sparse.csr_matrix(rows - sparse.diags(rows.diagonal()))
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows


def _distances(index: NeighborIndex, k: int) -> sparse.csr_matrix:
    """Return the distances to the k nearest others, CSR (n, n); those of equal cells are 0."""
    found, n = index.of_points(k + 1), index.n
    other = found.indices != np.arange(n)[:, None]
    other[other.all(axis=1), -1] = False  # among more copies than neighbours
    columns, values = found.indices[other], found.distances[other]
    return sparse.csr_matrix((values, columns, np.arange(n + 1) * k), shape=(n, n))
