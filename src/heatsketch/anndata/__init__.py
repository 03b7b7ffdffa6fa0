"""Embeddings of AnnData objects, in the manner of scanpy.

Each function reads the cells of `adata` as `scanpy.pp.neighbors` does, or a graph of `adata.obsp`,
and writes its result into `adata`. The library anndata is not imported: an object with `obs`,
`obsm`, `obsp` and `uns` is enough, in memory or backed by a file.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from heatsketch._checks import check_number, check_parameters, warn_if_transposed
from heatsketch._messages import texts_from
from heatsketch._version import __version__
from heatsketch.comparison.audit import Audit, columns_for_points
from heatsketch.comparison.audit import audit as audit_picture
from heatsketch.core.graph import graph
from heatsketch.estimators import DiffusionMap, HeatEmbedding, HeatSketch
from heatsketch.io.anndata_files import default_array
from heatsketch.io.metadata import KEY, encoded
from heatsketch.io.table import check_names, column_with
from heatsketch.markov.affinity import knn_affinity
from heatsketch.metrics.markers import Markers, having
from heatsketch.metrics.markers import markers as markers_of
from heatsketch.neighbors import NeighborIndex, in_metric

__all__ = [
    "audit",
    "coloring",
    "diffusion_map",
    "heat_embedding",
    "heat_sketch",
    "markers",
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
    places: str | None = None,
    key_added: str = "heat",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Embed cells in few dimensions so that distances are nearly diffusion distances.

    This is `HeatEmbedding` of the cells; ``sc.pl.embedding(adata, "heat")`` draws it.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, in memory or backed by a file.
    n_components : int, default=2
        Number k of coordinates.
    use_rep : str, default=None
        "X", or a name in `obsm`. By default X if it has at most 50 genes, else "X_pca" if it
        exists, else X with a warning.
    n_pcs : int, default=None
        Number of leading columns to use of an entry of `obsm`; by default all. X always has all of
        its genes. 0 means X.
    layer : str, default=None
        A layer to use instead of X.
    obsp : str, default=None
        A graph of the cells. A name that ends in "distances" means distances to neighbours; the
        coordinates of the cells are still needed. Others mean weights, such as "connectivities",
        and are used instead of coordinates, without `use_rep`, `n_pcs` or `layer`.
    places : str, default=None
        An entry of `obsm` with places of an earlier picture, to which this one keeps; NaN for cells
        that have none. ``obs["heat_moved"]``, named by `key_added`, then says how far cells moved
        against their old neighbours, see `HeatEmbedding.fit`.
    key_added : str, default="heat"
        Results are in ``obsm["X_heat"]`` and ``uns["heat"]``.
    copy : bool, default=False
        Return a copy of `adata` with the results, instead of writing them into it.
    **parameters
        Parameters of `HeatEmbedding`, such as `time` or `n_neighbors`; `random_state` is 0 by
        default.

    Returns
    -------
    AnnData or None
        A copy with the results if `copy`, else None. ``obsm["X_heat"]`` has the embedding, of shape
        (n_samples, n_components), ``uns["heat"]`` the method, its parameters, the version, the time
        used and the distortion of distances, ``uns["heatsketch"]`` the record of these that the
        command ``heatsketch score`` reads from a file.

    Raises
    ------
    TypeError, ValueError
        `adata` is no AnnData; the representation, layer or graph does not exist, or several are
        given; errors of the estimator.
    MemoryError
        X of a backed object does not fit.

    See Also
    --------
    HeatEmbedding : Embed data in few dimensions that keep diffusion distances.
    anndata.heat_sketch : Sketch cells by `HeatSketch`.
    anndata.diffusion_map : Compute the diffusion map of cells.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> adata = anndata.AnnData(X)
    >>> hs.anndata.heat_embedding(adata)
    >>> adata.obsm["X_heat"].shape
    (100, 2)
    """
    where = {"use_rep": use_rep, "n_pcs": n_pcs, "layer": layer, "obsp": obsp}
    options = {"n_components": n_components} | where | {"places": places} | parameters
    return _embed(heat_embedding, adata, HeatEmbedding, key_added, copy, options)


@texts_from(heat_embedding)
def heat_sketch(
    adata: Any,
    n_components: int | str = 32,
    *,
    key_added: str = "heat_sketch",
    copy: bool = False,
    **options: Any,
) -> Any:
    """Sketch cells so that distances are diffusion distances, in expectation: `HeatSketch`.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, in memory or backed by a file.
    copy : bool, default=False
        Return a copy of `adata` with the results, instead of writing them into it.
    n_components : int or "auto", default=32
        Number of random columns.
    key_added : str, default="heat_sketch"
        Results are in ``obsm["X_heat_sketch"]`` and ``uns["heat_sketch"]``.
    **options
        What represents the cells: `use_rep` ("X" or a name in `obsm`), `n_pcs` (leading columns of
        such an entry), `layer` in place of X, or `obsp`, a graph; and parameters of the estimator,
        such as `time`, `n_neighbors` or `random_state`.

    Returns
    -------
    AnnData or None
        A copy with the results if `copy`, else None. ``obsm["X_heat_sketch"]`` has the sketch, of
        shape (n_samples, n_components); other tools can use it as `use_rep`.

    Raises
    ------
    TypeError, ValueError
        As in `heat_embedding`.

    See Also
    --------
    HeatSketch : Embed data by random columns; distances are right on average.
    anndata.heat_embedding : Embed cells by `HeatEmbedding`.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> adata = anndata.AnnData(np.random.default_rng(0).normal(size=(100, 5)))
    >>> hs.anndata.heat_sketch(adata, time=4)
    >>> adata.obsm["X_heat_sketch"].shape
    (100, 32)
    """
    options = {"n_components": n_components} | options
    return _embed(heat_sketch, adata, HeatSketch, key_added, copy, options)


@texts_from(heat_sketch)
def diffusion_map(
    adata: Any,
    n_components: int | str = 15,
    *,
    key_added: str = "diffusion_map",
    copy: bool = False,
    **options: Any,
) -> Any:
    """Compute the diffusion map of cells: `DiffusionMap`.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, in memory or backed by a file.
    copy : bool, default=False
        Return a copy of `adata` with the results, instead of writing them into it.
    n_components : int, float in (0, 1) or "auto", default=15
        Number of coordinates, see `DiffusionMap`.
    key_added : str, default="diffusion_map"
        Results are in ``obsm["X_diffusion_map"]`` and ``uns["diffusion_map"]``.
    **options
        As in `heat_sketch`. With ``obsp="connectivities", normalization="symmetric"`` the result is
        that of ``sc.tl.diffmap(adata)``, up to the lengths of columns and its trivial first column.

    Returns
    -------
    AnnData or None
        A copy with the results if `copy`, else None. ``obsm["X_diffusion_map"]`` has the
        coordinates, of shape (n_samples, n_components), and ``uns`` the eigenvalues.

    Raises
    ------
    TypeError, ValueError
        As in `heat_sketch`.

    See Also
    --------
    DiffusionMap : Embed data by the leading eigenvectors of the diffusion.
    anndata.heat_embedding : Embed cells by `HeatEmbedding`.
    anndata.pseudotime : Compute the pseudotime of cells.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> adata = anndata.AnnData(np.random.default_rng(0).normal(size=(100, 5)))
    >>> hs.anndata.diffusion_map(adata, 3)
    >>> adata.uns["diffusion_map"]["eigenvalues"].shape
    (3,)
    """
    options = {"n_components": n_components} | options
    return _embed(diffusion_map, adata, DiffusionMap, key_added, copy, options)


@texts_from(heat_sketch)
def pseudotime(
    adata: Any,
    root: Any = None,
    *,
    time: float = 8,
    key_added: str = "heat_pseudotime",
    copy: bool = False,
    **options: Any,
) -> Any:
    """Compute how late each cell is: 0 at one root, 1 at the farthest cell that it reaches.

    With ``time=1`` it is the diffusion pseudotime of [1]_.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, in memory or backed by a file.
    copy : bool, default=False
        Return a copy of `adata` with the results, instead of writing them into it.
    root : str, int, sequence of these, or mask of shape (n_samples,), default=None
        Names (in `obs_names`) or numbers of the cells where time starts, or a mask; by default
        ``uns["iroot"]``, which scanpy uses. With several roots a walk starts at each with the same
        probability, and no cell is at 0.
    time : float, default=8
        First step of the sum, see `DiffusionMap.pseudotime`; 1 is the pseudotime of ``sc.tl.dpt``.
    key_added : str, default="heat_pseudotime"
        Results are in ``obs["heat_pseudotime"]`` and ``uns["heat_pseudotime"]``, bounds in
        ``obs["heat_pseudotime_low"]`` and ``obs["heat_pseudotime_high"]``.
    **options
        As in `heat_sketch`.

    Returns
    -------
    AnnData or None
        A copy with the results if `copy`, else None. ``obs["heat_pseudotime"]`` has the values,
        infinite in components of the graph without the root; ``uns["heat_pseudotime"]`` has the
        method and its parameters.

    Raises
    ------
    TypeError, ValueError
        As in `heat_sketch`. No root is given; a name belongs to no cell, or to several.

    See Also
    --------
    anndata.diffusion_map : Compute the diffusion map of cells.

    References
    ----------
    .. [1] L. Haghverdi et al., "Diffusion pseudotime robustly reconstructs lineage branching",
       Nature Methods 13 (2016), 845-848.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> adata = anndata.AnnData(np.linspace(0, 1, 100)[:, None])
    >>> hs.anndata.pseudotime(adata, 0)
    >>> bool((np.diff(adata.obs["heat_pseudotime"]) > 0).all())
    True
    """
    adata = target(adata, copy)
    if root is None:
        if "iroot" not in adata.uns:
            raise ValueError('There is no root; pass a cell or its name, or set uns["iroot"].')
        root = int(adata.uns["iroot"])
    elif np.asarray(root).dtype.kind in "OU":
        names = np.atleast_1d(root).astype(str).tolist()
        lost = [name for name in names if name not in adata.obs_names]
        if lost and (column := column_with(lost[0], adata.obs)) is not None:
            what = f"adata has no cell {lost[0]!r}; it is a value of obs[{column!r}]"
            raise ValueError(f"{what}: pass adata.obs[{column!r}] == {lost[0]!r}.")
        check_names(names, adata.obs_names, "adata", "cell", 5)
        root = adata.obs_names.get_indexer_for(names)
        if len(root) > len(names):
            raise ValueError(f"Several cells have one of the names {names}; pass numbers of cells.")
    estimator, facts = fit_to_cells(pseudotime, adata, DiffusionMap, {"n_components": 2} | options)
    for end, late in estimator.pseudotime(root, time=time)._asdict().items():
        adata.obs[key_added if end == "value" else f"{key_added}_{end}"] = late
    adata.uns[key_added] = storable(facts | {"time": time, "root": root})
    return adata if copy else None


@texts_from(heat_sketch)
def audit(
    adata: Any,
    basis: str = "X_umap",
    *,
    labels: str | None = None,
    **options: Any,
) -> Audit:
    """Measure for each cell how well its place in a picture can be trusted, by `heatsketch.audit`.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, in memory or backed by a file.
    basis : str, default="X_umap"
        Name of the picture in `obsm`.
    labels : str, default=None
        A column of `obs`; the gaps between its groups are compared.
    **options
        As in `heat_sketch`. By default ``filter="accumulated"``, time 8, ``random_state=0``, and as
        many columns as in `heatsketch.audit`.

    Returns
    -------
    Audit
        The result. The function also writes ``obs["umap_trust"]`` and ``obs["umap_dubious"]``,
        named after the basis.

    Raises
    ------
    TypeError, ValueError
        As in `heat_sketch`. The picture or column does not exist.

    See Also
    --------
    audit : Find the points of a picture that can be believed.
    anndata.coloring : Collect the colours of a report on cells.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> adata = anndata.AnnData(X, obsm={"X_umap": X})
    >>> found = hs.anndata.audit(adata)
    >>> bool(adata.obs["umap_trust"].mean() > 0.7)
    True
    """
    picture = entry_of(target(adata, False), "obsm", basis)
    groups = None if labels is None else entry_of(adata, "obs", labels)
    default = {"n_components": columns_for_points(len(picture)), "filter": "accumulated"}
    default |= {"random_state": 0} | options
    estimator, _ = fit_to_cells(audit, adata, HeatSketch, default)
    found = audit_picture(estimator, picture, labels=groups, random_state=default["random_state"])
    name = basis.removeprefix("X_")
    adata.obs[f"{name}_trust"], adata.obs[f"{name}_dubious"] = found.trust, found.dubious
    return found


def coloring(adata: Any, genes: int | Sequence[str] = 20) -> dict[str, Any]:
    """Return the colours of a report on cells: columns of `obs`, genes, and scanpy's own colours.

    Parameters
    ----------
    adata : AnnData
        In memory or backed by a file.
    genes : int or sequence of str, default=20
        Names of genes in `var_names`, or else in `raw`. A number: the number of genes of largest
        variance, which `scanpy.pp.highly_variable_genes` stored in `var`, or else computed from
        `X`.

    Returns
    -------
    dict
        `labels` (DataFrame with a row for each cell) and `colors` ({column: {category: colour}}),
        for `report`.

    Raises
    ------
    ValueError
        A gene does not exist.

    See Also
    --------
    report : Show an embedding in one page of HTML.
    anndata.audit : Audit a picture of cells.

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
    if not isinstance(genes, int):
        names = list(genes)
    else:
        stored = [name for name in ("variances_norm", "dispersions_norm") if name in adata.var]
        if stored:
            spread = adata.var[stored[0]].fillna(0).to_numpy()
        else:
            spread = StandardScaler(with_mean=False).fit(in_memory(adata.X)).var_
        names = adata.var_names[np.argsort(-spread, kind="stable")[:genes]].tolist()
    labels, places = adata.obs.copy(), [each for each in (adata, adata.raw) if each is not None]
    check_names(names, [gene for place in places for gene in place.var_names], "adata", "gene", 5)
    for place in places:
        own = [name for name in names if name in place.var_names and name not in labels]
        if own:
            labels[own] = sparse.csr_matrix(in_memory(place[:, own].X)).toarray()
    colors = {
        name: dict(zip(map(str, column.cat.categories), adata.uns[f"{name}_colors"], strict=False))
        for name, column in adata.obs.items()
        if column.dtype == "category" and f"{name}_colors" in adata.uns
    }
    return {"labels": labels, "colors": colors}


def markers(
    adata: Any,
    column: str,
    group: Any,
    against: Any = None,
    *,
    layer: str | None = None,
) -> Markers:
    """Find the genes that distinguish a group of cells, by `heatsketch.markers`.

    The numbers are those of ``sc.tl.rank_genes_groups`` with ``method="wilcoxon"``,
    ``tie_correct=True`` and ``use_raw=False``. Clusters that were found in the same genes make
    p-values optimistic, here as there.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, in memory or backed by a file.
    column : str
        A column of `obs`.
    group : label or sequence of labels
        The cells whose entry is this, or one of these.
    against : label or sequence of labels, default=None
        The cells that they are compared with; by default all others.
    layer : str, default=None
        A layer to use instead of X.

    Returns
    -------
    Markers
        The genes in the order of their effect.

    Raises
    ------
    TypeError, ValueError
        Not an AnnData; a column, label or layer that does not exist; a label on both sides.

    See Also
    --------
    markers : Find the features that distinguish a group of points.
    anndata.audit : Measure how well the place of each cell can be trusted.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> X[:20, 2] += 3
    >>> adata = anndata.AnnData(X)
    >>> adata.obs["kind"] = ["B"] * 20 + ["T"] * 40
    >>> str(hs.anndata.markers(adata, "kind", "B").names[0])
    '2'
    """
    entries = entry_of(target(adata, False), "obs", column)
    X = adata.X if layer is None else entry_of(adata, "layers", layer)
    if X is None:
        raise ValueError("adata has no X; pass layer.")
    sides = [None if side is None else having(entries, side, column) for side in (group, against)]
    return markers_of(in_memory(X), *sides, names=list(adata.var_names))


@texts_from(heat_embedding, in_metric)
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
    """Compute the neighbours of cells, in place of ``sc.pp.neighbors``.

    The results are distances to the nearest cells, and the self-tuning Gaussian weights of this
    library. ``sc.tl.umap``, ``sc.tl.leiden`` and the functions here (``obsp="connectivities"``) use
    them.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, in memory or backed by a file.
    use_rep : str, default=None
        "X", or a name in `obsm`. By default X if it has at most 50 genes, else "X_pca" if it
        exists, else X with a warning.
    n_pcs : int, default=None
        Number of leading columns to use of an entry of `obsm`; by default all. X always has all of
        its genes. 0 means X.
    layer : str, default=None
        A layer to use instead of X.
    copy : bool, default=False
        Return a copy of `adata` with the results, instead of writing them into it.
    n_neighbors : int, default=15
        Number of neighbours, without the cell itself; at most n - 1 are used.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        As in `in_metric`.
    key_added : str, default=None
        Names of the results. By default they are in ``uns["neighbors"]``,
        ``obsp["connectivities"]`` and ``obsp["distances"]``, else in ``uns[key_added]`` and in
        `obsp` under "{key_added}_connectivities" and "{key_added}_distances".

    Returns
    -------
    AnnData or None
        A copy with the results if `copy`, else None.

    Raises
    ------
    TypeError, ValueError
        As in `heat_embedding`. n_neighbors < 1.

    See Also
    --------
    neighbors.NeighborIndex : Search for nearest neighbours.
    anndata.heat_embedding : Embed cells by `HeatEmbedding`.

    Examples
    --------
    >>> import anndata, numpy as np, heatsketch as hs
    >>> adata = anndata.AnnData(np.random.default_rng(0).normal(size=(100, 5)))
    >>> hs.anndata.neighbors(adata, 10)
    >>> adata.obsp["distances"].nnz
    1000
    """
    adata = target(adata, copy)
    points, n = points_of(adata, use_rep, n_pcs, layer), len(adata.obs)
    k = min(int(check_number(n_neighbors, "n_neighbors", low=1, integer=True)), n - 1)
    index = NeighborIndex(points, metric=metric, n_neighbors=k)
    built = knn_affinity(in_metric(points, metric), "self-tuning", k, index)
    weights = built.operator.matrix[built.vertex][:, built.vertex].tocsr()
    weights.setdiag(0)  # as in scanpy
    weights.eliminate_zeros()
    near = index.query(None, k + 1).without_itself()
    prefix = "" if key_added is None else f"{key_added}_"
    adata.obsp[f"{prefix}connectivities"] = weights
    adata.obsp[f"{prefix}distances"] = near.as_csr(n)
    params = {"n_neighbors": k, "method": "heatsketch", "random_state": 0, "metric": metric}
    params |= {"use_rep": use_rep, "n_pcs": n_pcs, "layer": layer}
    adata.uns[key_added or "neighbors"] = {
        "connectivities_key": f"{prefix}connectivities",
        "distances_key": f"{prefix}distances",
        "params": storable(params),
    }
    return adata if copy else None


def _embed(
    caller: Any, adata: Any, make: Any, key: str, copy: bool, options: dict[str, Any]
) -> Any:
    """Fit an estimator to the cells, and write its coordinates and how they were made."""
    adata = target(adata, copy)
    estimator, facts = fit_to_cells(caller, adata, make, options)
    adata.obsm[f"X_{key}"] = np.asarray(estimator.embedding_)
    if (moved := estimator._result("moved_")) is not None:
        adata.obs[f"{key}_moved"] = moved
    elif f"{key}_moved" in adata.obs:  # of an earlier picture of this name
        del adata.obs[f"{key}_moved"]
    facts["time"] = estimator._time
    facts["eigenvalues"] = estimator._result("eigenvalues_")
    if (found := estimator._result("distortion_")) is not None:
        within = {f"{factor:g}": fraction for factor, fraction in found.within.items()}
        facts["distortion"] = {"log_L": found.log_L, "within": within, "words": found.describe()}
    adata.uns[key] = storable(facts)
    _keep_record(adata, f"X_{key}", estimator, facts)
    return adata if copy else None


def _keep_record(adata: Any, name: str, estimator: Any, facts: dict[str, Any]) -> None:
    """Keep the record that the command writes, too, so that `heatsketch score` reads it.

    There is none of a graph or of some columns of an entry, which the command does not read.
    """
    records = {**adata.uns.get(KEY, {})}
    records.pop(name, None)  # of an earlier picture
    made = facts["params"]
    if made["obsp"] is None and not made["n_pcs"]:
        rep, layer = made["use_rep"], made["layer"]
        entry = rep if rep in (None, "X") else f"obsm/{rep}"
        entry = entry if layer is None else f"layers/{layer}"
        Y = estimator.embedding_
        records[name] = encoded(
            {
                "version": __version__,
                "method": facts["method"],
                "parameters": estimator.get_params(deep=False),
                "time": estimator._time,
                "reading": {} if entry is None else {"key": entry},
                "dtype": str(Y.dtype),
                "columns": estimator.get_feature_names_out().tolist(),
                "data": estimator._data_hash,
            }
        )
    if records or KEY in adata.uns:
        adata.uns[KEY] = records


# What is read from an AnnData object, and how it is written

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
    places, fitted = options.pop("places", None), {}
    if places is not None:
        given["places"], fitted["places"] = places, entry_of(adata, "obsm", places)
    estimator = make(**{"random_state": 0} | options)
    *where, obsp = (given[name] for name in WHERE)
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
    params = estimator.fit(X, **fitted).get_params(deep=False) | given | {"neighbors": None}
    return estimator, {"method": make.__name__, "version": __version__, "params": params}
