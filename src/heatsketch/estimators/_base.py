"""Bases of the estimators.

`Embedder` has what all embeddings share: parameters, input, output, names. `DiffusionEstimator`
goes from X to the diffusion and has new points, distances and inverses.
"""

import copy
import numbers
import sys
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import wraps
from pickle import PicklingError
from typing import Any, Self, cast

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, check_memory, validate_data

from heatsketch._arrays import Array, device_of, returned_for
from heatsketch._checks import (
    Checked,
    check_choice,
    check_level,
    check_number,
    check_parameters,
    check_points,
    check_weights,
    features_named,
    precision_of,
    read_points,
)
from heatsketch._messages import CertificateError, device_memory, logger, rows_numbered, warn
from heatsketch._random import check_ids, data_hash, seed_entropy
from heatsketch._state import Method, fresh
from heatsketch._threads import one_thread_of_blas
from heatsketch.core.blocks import HOST, Block
from heatsketch.core.graph import Graph, as_graph, is_graph
from heatsketch.core.operators import Deflated, Operator
from heatsketch.device.blocks import blocks_on, found_here
from heatsketch.estimators.local_maps import derivatives, points_at, warn_of_places
from heatsketch.layout.maps import FreeMap, LinearMap, Map
from heatsketch.markov.affinity import AFFINITIES, as_matrix
from heatsketch.markov.diffusion import Beside, Diffusion, reweighted, times_columns
from heatsketch.markov.new_points import PointKernel
from heatsketch.markov.rows import leading_pairs
from heatsketch.neighbors.missing import Donors
from heatsketch.scales import WIDE_CUT
from heatsketch.spectral.filters import FILTERS, make_filter, times_of
from heatsketch.spectral.traces import N_PROBES, ExplainedVariance, explained_variance
from heatsketch.uncertainty.intervals import Interval
from heatsketch.uncertainty.pseudotimes import pseudotime
from heatsketch.uncertainty.resampling import Sketched, Weighed


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array (n, d), without importing Dask."""
    lazy = sys.modules.get("dask.array")
    return lazy is not None and isinstance(X, lazy.Array) and X.ndim == 2


def lazily_mapped(estimator: Any, X: Any) -> Any:
    """Return the coordinates (n, k) as a Dask array of the chunks of X (n, d).

    The model is one task, which workers pass to each other.
    """
    from dask import delayed

    validate_data(estimator, X, reset=False, skip_check_array=True)
    model = delayed(copy.copy(estimator), pure=False, traverse=False)  # not changed by a later fit
    whole = X.rechunk({1: -1})
    k, dtype = estimator._n_features_out, precision_of(X)
    return whole.map_blocks(
        _mapped,
        model=model,
        width=k,
        dtype=dtype,
        chunks=(whole.chunks[0], (k,)),
        meta=np.empty((0, 0), dtype),
    )


def _mapped(block: Any, model: Any = None, width: int = 0, block_info: Any = None) -> Array:
    """Return the coordinates of a chunk."""
    if not block.shape[0]:
        return np.empty((0, width), precision_of(block))
    try:
        return np.asarray(model.transform(block))
    except Exception as error:
        number = block_info[0]["chunk-location"][0]
        error.add_note(f"(in chunk {number} of a Dask array, whose rows are counted from 0)")
        raise


def remembered(fit: Method) -> Method:
    """Make a fit change the estimator at its end or not at all, and remember its parameters.

    It works on a copy, whose attributes the estimator gets at the end. BLAS has one thread
    meanwhile, because its sums depend on the number of them; tiles have all.
    """

    @wraps(fit)
    def whole(self: Any, *args: Any, **options: Any) -> Any:
        draft = fresh(self)
        draft._fitted_as = type(self)(**self.get_params(deep=False))
        try:
            with one_thread_of_blas():
                fit(draft, *args, **options)
        except RuntimeError:
            with device_memory():  # says what to pass where it was too small
                raise
        self.__dict__ = draft.__dict__
        return self

    return cast(Method, whole)


class Embedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Abstract base: `fit` sets `embedding_` (n, k); `transform`, where it exists, maps any points.

    A fit that raises or is interrupted leaves the estimator as it was.
    Coordinates have the precision of the points, float32 or float64. `fit` reads arrays of Dask,
    zarr and h5py whole. Given a tensor of torch, `fit_transform` returns a tensor on its device;
    fitted attributes are arrays.
    """

    embedding_: Array
    # An estimator with the parameters of the fit, whatever `set_params` says since.
    _fitted_as: Any = None
    _takes_sparse: bool = False
    # Whether summaries state the explained variance. That of a `HeatSketch` takes as long as the
    # sketch, and its distances are right on average however small it is.
    _states_variance: bool = False
    _fit_times: Any = (None,)  # of a method without a time
    _has_free_layout: bool = False
    _leading_pairs = staticmethod(leading_pairs)

    def __init_subclass__(cls, **options: Any) -> None:
        """Let every fit change the estimator at its end, at once, or not at all."""
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = remembered(cls.fit)  # type: ignore[method-assign]

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Make an estimator, or suggest the name of a parameter in place of an unknown one."""
        check_parameters(cls.__name__, parameters, cls)
        return super().__new__(cls)

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the points.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points; sparse only if the class accepts it. With ``metric="precomputed"`` distances of
            shape (n_samples, n_samples). A model that needs them later keeps a copy.
        y : array-like of shape (n_samples,), default=None
            Labels of the points. Only the discriminants use it; all others ignore it.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table of numbers, or too few of them; parameters out of
            range or of another type.
        """

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit to X and return its embedding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points, as in `fit`.
        y : array-like of shape (n_samples,), default=None
            Labels, for the discriminants alone.
        **fit_params
            Other parameters of `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Coordinates of the points.

        Raises
        ------
        ValueError, TypeError, MemoryError, CertificateError
            As in `fit`.
        """
        self.fit(X, y, **fit_params)
        if is_dask(X) and hasattr(self, "transform"):
            return lazily_mapped(self, X)
        return returned_for(self.embedding_, X)

    @property
    def _time(self) -> Any:
        """The time of the fit, chosen or as it was given; None for methods without one."""
        given = self._fitted_as.get_params(deep=False).get("time")
        return given if (chosen := self._result("time_")) is None else chosen

    def _result(self, name: str) -> Any:
        """Return an attribute that only some fits set, such as "distortion_"; else None."""
        return getattr(self, name, None)

    def __sklearn_is_fitted__(self) -> bool:
        """Say whether a fit has ended."""
        return "embedding_" in vars(self)

    def _as_fitted(self) -> Self:
        """Return a copy with the parameters of the fit, which later calls do not change."""
        check_is_fitted(self)
        return copy.copy(self).set_params(**self._fitted_as.get_params(deep=False))

    def _refuse_other_points(self, X: Any) -> None:
        """Raise if X (n, d) has other values than the points of the fit, where these are known."""
        given = self._fitted_as.get_params(deep=False)
        known = self._result("_data_hash")
        if known is None or "precomputed" in (given.get("metric"), given.get("affinity")):
            return
        points = check_points(X, allow_nan=True)
        kinds = {points.dtype, self.embedding_.dtype}
        if known not in [data_hash(points.astype(kind, copy=False)) for kind in kinds]:
            raise ValueError(
                f"X {points.shape} has other values, or another order of the rows or columns, than "
                f"the points that {type(self).__name__} was fitted to; pass the X of the fit, and "
                "other columns of the same rows as labels."
            )

    def _read_places(self, Y: Any) -> Array:
        """Return places (m, k) in float64, or raise if they are not places of this embedding."""
        check_is_fitted(self)
        Y, k = check_points(Y, "Y", min_rows=1, accept_sparse=False), self._n_features_out
        if Y.shape[1] != k:
            raise ValueError(f"Y has {Y.shape[1]} columns but there are {k} coordinates; pass {k}.")
        return Y.astype(np.float64, copy=False)  # type: ignore[no-any-return]

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        parameters = self.get_params(deep=False)
        given = "precomputed" in (parameters.get("affinity"), parameters.get("metric"))
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.positive_only = given
        tags.input_tags.pairwise = given and "landmarks" not in parameters
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


_NO_ZEROS = (
    "sample_weight is zero for some points, but {} between all points are given; leave out the "
    "rows and columns of these points."
)


@dataclass(frozen=True, eq=False)
class Given:
    """What a fit is given.

    Attributes
    ----------
    X : array, CSR matrix or Diffusion
        Points, affinities, or the diffusion itself.
    diffusion : Diffusion
        Points of weight 0 are `beside` it.
    gaps : array of bool (points that count, d) or None
        The entries of the points that were missing, and are filled.
    """

    X: Any
    diffusion: Diffusion
    gaps: Array | None = None


def read_filled(est: Any, X: Any) -> Any:
    """Return new points as they are read, their missing entries filled; affinities have none."""
    points, donors = read_gaps(est, X, reset=False)
    return points if donors is None else donors.fill(points)


def read_gaps(est: Any, X: Any, reset: bool) -> tuple[Any, Donors | None]:
    """Return points as they are read, and the rows by which gaps are filled, if there are any."""
    parameters = est if reset else est._fitted_as
    has_points = "precomputed" not in (parameters.affinity, parameters.metric)
    copy = reset and has_points  # X may be changed in place later; given matrices are copied below
    points = read_points(est, X, reset, accept_sparse=True, allow_nan=has_points, copy=copy)
    if reset:
        est._donors = est._filled = None
    if not has_points or sparse.issparse(points):
        return points, None
    if not np.isnan(points).any():
        return points, None
    if reset:
        est._donors = Donors.of(points, est.n_neighbors)
    donors = est._donors
    if donors is None:  # the points of the fit are complete
        training = est.diffusion_.out_of_sample
        if parameters.metric != "euclidean" or not isinstance(training, PointKernel):
            raise ValueError(
                "X has missing entries, but those of the fit, by which they could be filled, "
                "are not known; fill them first."
            )
        donors = Donors.of(np.asarray(training.points), parameters.n_neighbors)
    return points, donors


def read_input(est: Any, X: Any, weights: Any) -> Given:
    """Return what a fit is given: points, affinities, or a diffusion itself."""
    is_a_graph = not hasattr(X, "shape") and is_graph(X)  # neither a table nor a matrix
    is_whole = isinstance(X, Operator | LinearOperator | Diffusion)
    fits = X.normalization if isinstance(X, Diffusion) else est.normalization
    wanted = "precomputed", fits
    if (is_whole or is_a_graph) and wanted != (est.affinity, est.normalization):
        raise ValueError(
            f"X is of type {type(X).__name__} but the estimator has affinity="
            f"{est.affinity!r} and normalization={est.normalization!r}; pass "
            f"affinity='precomputed' and normalization={fits!r}."
        )
    options = {name: getattr(est, name) for name in ("normalization", "alpha", "tol", "max_iter")}
    options["device"] = device_of(X) if est.device is None else est.device
    if est.affinity != "precomputed":
        return _read_points(est, X, weights, options)
    if est.metric != "euclidean":
        raise ValueError(
            f"metric={est.metric!r} but affinity='precomputed', so that X holds no points; "
            "pass points, or leave out metric."
        )
    options["sample_weight"] = weights
    if isinstance(X, Diffusion) and weights is not None:
        raise ValueError(
            "X is a Diffusion, which has weights of its own; pass sample_weight to the "
            "function that makes it."
        )
    if weights is not None and not np.all(weights):
        raise ValueError(_NO_ZEROS.format("affinities"))
    if is_whole:
        diffusion = X if isinstance(X, Diffusion) else Diffusion.from_affinity(X, **options)
        new = diffusion.out_of_sample
        est._data_hash = None  # of an earlier fit
        est.n_features_in_ = diffusion.n if new is None else new.width
        est.__dict__.pop("feature_names_in_", None)
        return Given(diffusion, diffusion)
    graph = as_graph(X, "X") if is_a_graph else None
    table = X if graph is None else as_matrix(graph)
    table, _ = read_gaps(est, table, reset=True)
    given = table if graph is None else Graph(table, graph.names)
    return Given(table, Diffusion.from_affinity(given, **options))


def _read_points(est: Any, X: Any, weights: Any, options: dict[str, Any]) -> Given:
    """Return points, their missing entries filled, and their diffusion; some may count nothing."""
    names = ("metric", "affinity", "epsilon", "n_neighbors", "neighbors", "cut")
    options |= {name: getattr(est, name) for name in names}
    points, donors = read_gaps(est, X, reset=True)
    gaps = None
    if donors is not None:
        gaps, points = np.isnan(points), donors.fill(points)
        est._filled = points[gaps]
    training, beside = points, None
    if weights is not None:
        weights = check_weights(weights, points.shape[0], low=0)
        counted = weights > 0
        if not counted.all():
            if est.metric == "precomputed" or sparse.issparse(est.neighbors):
                raise ValueError(_NO_ZEROS.format("distances"))
            if np.count_nonzero(counted) < 2:
                raise ValueError(
                    f"sample_weight is above 0 for {np.count_nonzero(counted)} point(s); pass "
                    "weights above 0 of at least 2."
                )
            beside = Beside(counted, points[~counted])
            training, weights = points[counted], weights[counted]
            gaps = None if gaps is None else gaps[counted]
    options["sample_weight"] = weights
    build = check_memory(est.memory).cache(Diffusion.from_points)
    try:
        with features_named(getattr(est, "feature_names_in_", None)):
            diffusion = build(Checked(training), **options)
    except PicklingError as error:
        raise TypeError(
            "memory stores results by their parameters, but metric or neighbors cannot be "
            "pickled; pass a function of a module, or leave out memory."
        ) from error
    return Given(points, replace(diffusion, beside=beside), gaps)


@dataclass(eq=False, repr=False)
class DiffusionEstimator(Embedder, Weighed):
    """Abstract base: subclasses compute H, and the embedding is the product A H.

    The rows of A H are divided by √π in the Markov form. H is (f(A) - f(0)) A⁻¹ applied to random
    columns or eigenvectors. Rows of new points are rows of A, so `transform` is the same product,
    and gives training points the same coordinates as `fit`. In the bistochastic form without a
    neighbour graph it makes the sums of their rows 1, which the scaling does up to `tol`: the
    coordinates of a point then differ by at most this fraction.

    Parameters
    ----------
    affinity : {"knn", "variable", "dense", "radius", "precomputed"}, default="knn"
        "knn": the graph of nearest neighbours. "variable": the same graph with weights that remove
        the density of the sample. "dense": all pairs. "radius": pairs closer than 5 √(ε/2).
        "precomputed": X is a symmetric affinity, or a graph of any library (`heatsketch.graph`).
    neighbors : NeighborIndex, transformer, sparse matrix or "pynndescent", default=None
        Neighbours for "knn" and "variable": a `heatsketch.neighbors.NeighborIndex`, a scikit-learn
        `KNeighborsTransformer` or another transformer that returns sparse graphs of distances, or
        the distances to the neighbours, a sparse matrix of shape (n_samples, n_samples). None: they
        are searched; if the search is not exact, its recall is measured. "pynndescent": that
        library searches, which may take half the time for vectors of hundreds of numbers; the graph
        is then another for another order of the rows, and its recall is not known.
    memory : str or joblib.Memory, default=None
        Folder of a cache of diffusions. Fits to the same points that differ only in time, columns
        or seed then build one graph, for example in ``GridSearchCV`` over `time`.
    device : str or torch.device, default=None
        Device of torch, such as "cuda", that does the work: neighbours, graph and products. By
        default that of X, if X is a tensor on a device, else the processor. The fitted model is
        on the processor, and needs no device.
    """

    n_components: Any = 2
    time: Any = 1
    _: KW_ONLY
    filter: str = "power"
    affinity: str = "knn"
    epsilon: float | str = "self-tuning"
    n_neighbors: int = 15
    neighbors: Any = None
    metric: Any = "euclidean"
    normalization: str = "markov"
    alpha: float = 1.0
    tol: float = 1e-8
    max_iter: int = 1000
    random_state: Any = None
    memory: Any = None
    device: Any = None

    # rows by which missing entries are filled, and what those of the fit became
    _donors = cast("Donors | None", None)
    _filled = cast(Any, None)
    cut = WIDE_CUT  # of the kernel for "radius"; a parameter of some subclasses
    deflate = True  # leave out the trivial direction; likewise
    # by which the coordinates of any point follow from what it is near to
    _map = cast("Map", None)
    _takes_sparse = True

    @property
    def distance(self) -> Any:
        """Not here: a `HeatSketch` has distances with an error bar."""
        raise AttributeError(
            f"{type(self).__name__} has no distance with an error bar; HeatSketch has one, and "
            "diffusion_distance(model.diffusion_, time, pairs=(i, j)) is exact."
        )

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not tags.input_tags.pairwise
        return tags

    @abstractmethod
    def _check_parameters(self, times: list[Any]) -> None:
        """Raise if parameters of the subclass are out of range, before the graph is built."""

    @abstractmethod
    def _mapped(self, diffusion: Diffusion, times: list[Any]) -> tuple[Map, Any]:
        """Return the map, with the coordinates of every time, and what `_judge` judges it by."""

    def _linear_map(self, diffusion: Diffusion, factors: list[Block]) -> LinearMap:
        """Return the map of factors H (n, k), one for every time."""
        A = diffusion.operator
        H = A.blocks.xp.hstack([A.blocks.native(factor, A.dtype) for factor in factors])
        if diffusion.diagnostics["is_constant"]:  # H is rounding alone
            H[:] = 0
        step = diffusion.step()
        return LinearMap(step.beside_root(H), step.is_markov)

    def _judge(self, judged_by: Any, gaps: Array | None) -> None:
        """Keep what is needed to say how good `embedding_` is; `gaps` are the entries filled."""

    def fit(self, X: Any, y: Any = None, *, ids: Any = None, sample_weight: Any = None) -> Self:
        """Fit the diffusion to points and embed them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points. Missing entries, NaN, become means of the entries of the nearest rows, found by
            the entries that both have, and again by the entries of the row until these stay. Up to
            256 columns a trend is added, by the other entries of the row, as far as it helps;
            ``diagnostics_["filled"]`` has them in the order of ``np.isnan(X).nonzero()``. With
            ``affinity="precomputed"`` X is a symmetric affinity or graph of shape (n_samples,
            n_samples), a graph of networkx or igraph, a `heatsketch.graph`, an operator, or a
            `Diffusion` of the same normalization, which is used without change. The model keeps a
            copy of an array, as large as X, so that X may be changed in place later.
        y : ignored
            Present for the interface of scikit-learn.
        ids : array-like of shape (n_samples,), default=None
            Names of the points: integers, strings or bytes. They are kept in `ids_`. The random
            numbers of a point then depend on `random_state` and its id, not on its row. The same
            points in another order get the same coordinates, up to rounding, and fits of several
            data sets with the same `random_state` can be compared point by point
            (`diffusion_discrepancy`). The meta-estimators of scikit-learn pass ids after
            ``set_fit_request(ids=True)``.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each point counts, for the Markov form: sums over points are weighted, as if
            there were so many points at each place. With ``affinity="dense"`` whole weights give
            the diffusion of repeated rows; in a neighbour graph equal points are one, so that
            weights count more than repeated rows. A point with weight 0 is placed by `transform`
            (not beside given affinities or distances, where it is refused), and every method knows
            it by its row; it has no part in the diffusion and in measures of quality, and NaN in
            `epsilon_` and `eigenvectors_`.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table of numbers, or too few; an affinity that is
            negative or not symmetric; parameters out of range, of another type, or that do not
            go with X.
        MemoryError
            The fit needs more memory than is available. For (n, n) matrices the message says how
            much, and what to change.
        CertificateError
            A result that fails its own check, such as one that is not finite.
        """
        check_choice(self.filter, "filter", tuple(FILTERS))
        check_choice(self.affinity, "affinity", (*AFFINITIES, "precomputed"))
        times = times_of(self.time)
        self._check_parameters(times)
        given = read_input(self, X, sample_weight)
        X, diffusion = given.X, given.diffusion
        self.ids_ = None if ids is None else check_ids(ids, diffusion.n_points)
        self.diffusion_ = diffusion
        self._points: Any = None  # after an update: the current points, not those of the fit
        self.diagnostics_ = dict(diffusion.diagnostics)
        if self._donors is not None:
            self.diagnostics_ |= {"filled": self._filled, "fill_rounds": self._donors.rounds}
        if "bipartite" in diffusion.diagnostics and self.filter != "heat":
            warn(
                UserWarning,
                f"{diffusion.diagnostics['bipartite']} component(s) of the graph are bipartite: a "
                "walk is in one half after an even number of steps and in the other after an odd "
                "one, so that the halves never come nearer. Pass filter='heat', whose walks wait "
                "for random times.",
            )
        started = time.perf_counter()
        logger.info("embedding %s points", f"{diffusion.n_points:,}")
        placed, judged_by = self._mapped(diffusion, times)
        A = diffusion.operator
        Y = A.blocks.host(placed.training(diffusion.step()))
        self._map = placed if A.blocks is HOST else placed.there(HOST)
        self._has_free_layout = isinstance(placed, FreeMap)
        chosen = getattr(self, "time_", None)
        self._fit_times = times if chosen is None else times_of(chosen)
        self.epsilon_ = diffusion.expand(diffusion.epsilon)
        self.n_iter_ = max(1, int(diffusion.diagnostics.get("scaling_iterations", 1)))
        dtype = A.dtype if isinstance(X, Diffusion) else X.dtype
        self.embedding_ = diffusion.expand(self._checked(Y, dtype))
        if A.blocks is not HOST:  # a model may be used without its device
            self.diffusion_ = diffusion.landed()
        if (beside := diffusion.beside) is not None:
            with rows_numbered(np.flatnonzero(~beside.counted)):
                self.embedding_[~beside.counted] = self._placed(beside.points)
        self._judge(judged_by, given.gaps)
        self.diagnostics_["embed_seconds"] = time.perf_counter() - started
        return self

    @device_memory()
    def transform(self, X: Any) -> Array:
        """Embed points, old or new; the coordinates of a point depend on that point alone.

        A warning names points with hardly any affinity to training points, at the scale of these.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new_samples, n_features)
            Points; missing entries, NaN, are filled by the training points. With
            ``affinity="precomputed"`` the affinities to the training points, of shape
            (n_new_samples, n_samples).

        Returns
        -------
        ndarray of shape (n_new_samples, n_components)
            Coordinates of the points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit;
            negative affinities.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazily_mapped(self, X)
        points = read_filled(self, X)
        device = device_of(X) or found_here(self.device)
        return returned_for(self._placed(points, device), X)

    def novelty(self, X: Any) -> Array:
        """Compute the novelty of points compared with the training points, from 0 to 1.

        The novelty of a point is the fraction of training points that have a larger affinity to the
        other training points than this point has to them. Typical points get 0.5; 1 % of points
        from the same distribution exceed 0.99; points outside the data get 1. Points are compared
        by their affinity to the `n_neighbors` nearest training points, at the scale of these: Σ_j
        exp(-|x - x_j|² / s_j²), with s_j the distance of x_j to its (n_neighbors // 2)-th
        neighbour. Precomputed affinities are compared by the sums of their rows, points of a
        mixture by their density.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_new_samples,)
            Novelty of each point.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.

        Notes
        -----
        The cost is a search for the neighbours of the points, and another for those of these
        neighbours. The first call leaves out up to 2,048 training points.
        """
        check_is_fitted(self)
        return self.diffusion_.novelty(read_filled(self, X))

    def sensitivity(self, X: Any) -> Array:
        """Compute how the place of each point changes with its features.

        These are the derivatives of `transform`, in closed form. A large one says that this feature
        makes the point be where it is, rather than beside it. Features in different units
        compare after multiplication by their standard deviations.

        Parameters
        ----------
        X : array-like of shape (m_samples, n_features)
            Points, new ones or training points. A training point is compared with the others
            alone: of a free layout `transform` returns its own place for this point only.
            Missing entries, NaN, are filled; derivatives by these are 0, and those by the others
            count what is filled by them.

        Returns
        -------
        ndarray of shape (m_samples, n_components, n_features)
            Derivatives, in units of the coordinates by those of the features.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit; a fit to
            affinities, to sparse points, or in another metric than the Euclidean one.

        Notes
        -----
        Derivatives are those for the neighbours that each point has; where one enters or leaves,
        places jump a little. In a free layout a place also jumps where neighbours in two groups
        pull equally. The cost is that of `transform`, times the number of features.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> X = np.random.default_rng(0).uniform(size=(300, 2)) * [5, 0.1]
        >>> model = hs.DiffusionMap(1).fit(X)
        >>> S = model.sensitivity(X)
        >>> S.shape, bool(np.abs(S[:, 0, 0]).mean() > np.abs(S[:, 0, 1]).mean())
        ((300, 1, 2), True)
        """
        check_is_fitted(self)
        points, donors = read_gaps(self, X, reset=False)
        if donors is None:
            return derivatives(self.diffusion_, self._map, points)
        slopes = derivatives(self.diffusion_, self._map, donors.fill(points))
        return donors.by_given(points, slopes)

    def inverse_transform(self, Y: Any) -> Array:
        """Return points at given places, by a local linear fit to the nearest training places.

        At the place of a training point it is this point, if no other has the same place. A
        warning names places that are farther from all training places than any of these is.

        Parameters
        ----------
        Y : array-like of shape (m_samples, n_components)
            Places, in the coordinates of `embedding_`.

        Returns
        -------
        ndarray of shape (m_samples, n_features)
            Points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; places that are not a finite table of as many columns as coordinates; a
            fit to affinities or distances.

        Notes
        -----
        The fit weighs 15 places, or more for many coordinates, by 1/|y - y_j|². Points are those of
        the metric: directions of length 1 for "cosine". The cost is a search among the places,
        and a small system of equations for each.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> X, angle = hs.datasets.circle(200, rng=0)
        >>> model = hs.HeatEmbedding(random_state=0).fit(X)
        >>> bool(np.allclose(model.inverse_transform(model.embedding_), X))
        True
        """
        Y = self._read_places(Y)
        kernel = self.diffusion_.out_of_sample
        has_points = isinstance(kernel, PointKernel) and self._fitted_as.metric != "precomputed"
        if not has_points:
            raise ValueError(
                "The fit was to affinities or distances, so that no points are known; fit points."
            )
        points = cast(PointKernel, kernel).points
        if sparse.issparse(points):
            raise ValueError("The training points are sparse; fit X.toarray() for an inverse.")
        vertices = self._map.training(self.diffusion_.step())[self.diffusion_.vertex]
        places = vertices.astype(self.embedding_.dtype).astype(float)
        warn_of_places(places, Y)
        return points_at(places, points, Y)

    def _current_diffusion(self) -> Diffusion:
        """Return the diffusion of the points of `embedding_`, or raise if these have changed.

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; after `update`, because the diffusion is that of the points of the fit.
        """
        check_is_fitted(self)
        if self._points is not None:
            raise ValueError(
                "Points were added or removed since the fit, but the diffusion is that of the "
                "points of the fit; call refresh() first."
            )
        return self.diffusion_

    def explained_diffusion_variance(
        self, level: float = 0.95, *, index: int = 0, n_probes: int = N_PROBES
    ) -> ExplainedVariance:
        """Compute how much of the diffusion the coordinates explain, with intervals.

        It is the fraction of tr f(A)², without the trivial direction, in the span of the first 1,
        2, ..., k coordinates. For eigenvectors this is Σ λ_m^2t / (tr A^2t - 1), like the explained
        variance of a PCA. With the heat filter f is e^{-t(1-λ)} - e^{-t}. A is the symmetric
        operator of `diffusion_`, although the last step in a neighbour graph is directed. For a
        `HeatSketch` it is the fraction in the span of the random columns; its distances are right
        on average however small this is. If each component of the graph has its own map, each has a
        span of its own. A free layout is not made for this fraction: its coordinates are functions
        on the points like any others, and a linear layout usually explains more.

        Parameters
        ----------
        level : float, default=0.95
            Probability of the intervals. Up to 2,048 points the result is exact. Beyond, the part
            that the coordinates leave out is estimated by random columns, always the same ones.
        index : int, default=0
            Number of the time, if there are several.
        n_probes : int >= 2, default=64
            Number of random columns; fewer are faster, and the intervals wider.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; a level that is not between 0 and 1; an index without a time; fewer than 2
            columns.

        Notes
        -----
        Cost: t products with k columns, or √(70 t) for large t; all eigenvalues of up to 2,048
        points, and beyond, twice as many products with `n_probes` columns. `fit` computes nothing
        of it, and the result is not stored.
        """
        self._current_diffusion()
        times = self._fit_times
        index = check_number(index, "index", low=0, high=len(times) - 1, integer=True)
        width = self.embedding_.shape[1] // len(times)
        first = index * width + (not self._fitted_as.deflate)  # after the trivial one
        A, labels = self._explained_operator()
        return explained_variance(
            A,
            make_filter(self._fitted_as.filter, times[index]).minus_constant(),
            self._map.spanned(A, slice(first, (index + 1) * width)),
            check_level(level),
            values=self._result("eigenvalues_"),
            labels=labels,
            n_probes=check_number(n_probes, "n_probes", low=2, integer=True),
        )

    @property
    def explained_diffusion_variance_ratio_(self) -> Array:
        """Fraction of the diffusion variance that each coordinate adds, (k,) or (k · times,)."""
        check_is_fitted(self)
        count = range(len(self._fit_times))
        return np.concatenate([self.explained_diffusion_variance(index=i).ratio for i in count])

    def _explained_operator(self) -> tuple[Deflated, Array | None]:
        """Return A without directions that change no distance, and labels of separate maps."""
        return self.diffusion_.deflated, None

    def pseudotime(self, root: Any, *, time: Any = 8, level: float = 0.95) -> Interval:
        """Compute how late each point is, from 0 at a root to 1 at the farthest, with intervals.

        The pseudotime of x is the distance between the rows of root and x in Σ_s M A^(s-1), summed
        over all steps s from `time` on, divided by its largest value. It weighs a direction by
        λ^time / (1 - λ). So it follows long branches, where the diffusion distance of one time no
        longer grows, and needs no choice of a scale; time 1 is *Diffusion pseudotime* (Haghverdi et
        al. 2016). It depends on `diffusion_`, on `filter` ("accumulated" counts as "power") and,
        beyond 2,048 points, on `random_state`, not on the time or the coordinates of the model.

        Parameters
        ----------
        root : int, array-like of int, or mask of shape (n_samples,)
            The training point where time starts; 0 and 1 for each point are a mask. With several, a
            walk starts at each of them with the same probability, and the smallest value is not
            exactly 0. For roots far from each other, call once for each and take the minimum.
        time : int >= 1, default=8
            First step of the sum. With ``filter="heat"`` any positive number. The default does not
            depend on the time of the model. Smaller times keep more noise, larger ones only the
            largest branches.
        level : float, default=0.95
            Probability of each interval.

        Returns
        -------
        Interval
            `value`, `low`, `high` (n_samples,); infinite in components of the graph without the
            root, as in scanpy's ``dpt_pseudotime``.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; a root that is no point, or roots in several components; a time or a level
            out of range.

        Notes
        -----
        Up to 2,048 points all eigenpairs are computed, and low = value = high. Beyond, there are 32
        eigenpairs and a sketch of the others by 32 Gaussian columns. The interval is that of the
        sketch, by the exact chi-square distribution, as in `HeatSketch.distance`. The largest
        value, which is the unit, is exact: distances of 16 of the farthest points, at different
        places, are computed without a sketch. For the error of few data see `data_interval`. Cost:
        these eigenpairs, and a series of some √(110 / (1 - λ)) products with 48 columns, λ the 33rd
        eigenvalue.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> late = hs.DiffusionMap().fit(X).pseudotime(0)
        >>> float(late.value[0]), float(late.value[99]), bool((np.diff(late.value) > 0).all())
        (0.0, 1.0, True)
        """
        return pseudotime(
            self._current_diffusion(),
            root,
            time,
            filter=self._fitted_as.filter,
            level=level,
            rng=np.random.default_rng(seed_entropy(self._fitted_as.random_state)),
        )

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return names of columns: class and number, such as "diffusionmap0", "diffusionmap1".

        With several times the time stands between them: "heatsketch_t2_0".

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; `input_features` are not those of the fit.
        """
        check_is_fitted(self)
        times = self._fit_times
        if len(times) == 1:
            return super().get_feature_names_out(input_features)
        name, width = type(self).__name__.lower(), self._n_features_out // len(times)
        return np.asarray([f"{name}_t{t}_{i}" for t in times for i in range(width)], dtype=object)

    def _under_weights(self, X: Any) -> Callable[[Array], Array]:
        """Return a function that embeds points X (m, d), given weights (n,) of the vertices.

        See `data_interval`. G is the same for all weights. The search for the neighbours of X is
        done once.
        """
        current, times = self._current_diffusion(), self._fit_times
        diffusion = replace(current, beside=None)
        seed = self._fitted_as.random_state
        if not isinstance(seed, numbers.Integral):
            if isinstance(self, Sketched):
                raise TypeError(
                    f"random_state={seed!r} does not give every resample the same random matrix; "
                    "fit with an integer."
                )
            seed = 0
        X = read_filled(self, X)
        rows = self._map.weights(diffusion.near(X))
        ids = None if self.ids_ is None else self.ids_[current.counted]
        fresh = clone(self._fitted_as).set_params(
            affinity="precomputed",
            neighbors=None,
            normalization=diffusion.normalization,
            metric="euclidean",
            time=times if len(times) > 1 else times[0],
            n_components=self._n_features_out // len(times),
            random_state=seed,
        )

        def embed(weights: Array) -> Array:
            weighed, columns = reweighted(diffusion, weights)
            model = fresh.fit(weighed, ids=ids)
            # A point that counts w times pulls w times as strongly at a free one.
            weighed_rows = times_columns(rows, weights if self._has_free_layout else columns)
            return model._checked(model._map.weighed(weighed_rows), X.dtype)

        return embed

    def _placed(self, X: Any, device: Any = None) -> Array:
        """Return the coordinates of points that have been read (m, k), found on a device."""
        blocks = HOST if device is None else blocks_on(device)
        placed, Y = self._map.there(blocks), np.empty((X.shape[0], self._n_features_out))
        for rows, near in self.diffusion_.near_by_tiles(X, blocks):
            Y[rows] = placed.place(near)
        return self._checked(Y, X.dtype)

    def _checked(self, rows: Array, dtype: np.dtype) -> Array:
        """Return coordinates (m, k) in this precision, or raise if they are not finite."""
        if not np.isfinite(rows).all():
            raise CertificateError("The embedding is not finite; pass affinities in range.")
        return np.ascontiguousarray(rows, dtype)
