"""The heat sketch: Gaussian process embedding."""

import numbers
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_in_range, check_number
from heatsketch._messages import texts_from
from heatsketch._random import check_ids, numbers_at, random_block
from heatsketch.estimators._base import DiffusionEstimator, read_filled, remembered
from heatsketch.layout.maps import Map
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.new_points import PointKernel
from heatsketch.spectral.filters import FILTERS
from heatsketch.spectral.functions import KINDS, MOST_COLUMNS, sketch_blocks
from heatsketch.uncertainty.intervals import Interval, columns_for, distance_interval
from heatsketch.uncertainty.resampling import Sketched, neighbor_confidence


@texts_from(Diffusion.from_points, DiffusionEstimator)
@dataclass(eq=False, repr=False)
class HeatSketch(DiffusionEstimator, Sketched):
    """Embed data so that Euclidean distances are diffusion distances, in expectation.

    The embedding is Y = A^t G / √k for a normalised affinity A and a random matrix G with k columns
    [1]_. No eigenvectors are computed. For Gaussian G, k |y_i - y_j|² / D² is chi-square with k
    degrees of freedom for every pair of points. One standard deviation of a squared distance is
    therefore √(2/k) of it: 25 % at 32 columns, 9 % at 256.

    D is the diffusion distance, `diffusion_distance(model.diffusion_, t)`, without the trivial
    direction √π (which only changes the symmetric form). In the default neighbour graph every
    point, also a new one, takes its first step M to its own nearest neighbours. There Y = M A^(t-1)
    G / √k, and D is the distance between rows of M A^(t-1) (`Diffusion.rows`).

    Parameters
    ----------
    n_components : int or "auto", default=32
        Number k of columns. "auto": the number that `tolerance` needs.
    time : int >= 1, or a sequence of times, default=8
        Diffusion time: the power t of A. With ``filter="heat"`` any positive number. A sequence
        gives the sketches of all times side by side, with the same G, in one pass.
    filter : {"power", "heat", "accumulated"}, default="power"
        "power": λ^t. "heat": e^{-t(1-λ)} - e^{-t}; the term e^{-t} (no jump yet, 3e-4 at t = 8) is
        left out, because it is not defined for new points. "accumulated": squared distances added
        up over the times t, ..., 64 t - 1, so that far points stay far (see `Accumulated`).
    kind : {"gaussian", "rademacher"}, default="gaussian"
        Entries of G: N(0, 1) or ±1 with equal probability.
    affinity : {"knn", "variable", "dense", "radius", "precomputed"}, default="knn"
        As in `DiffusionEstimator`. For "precomputed" prefer ``filter="heat"``. "variable" (see
        `alpha`) is for geometry in few dimensions: a step is as long as the fastest point needs,
        and the median point moves once in `diagnostics_["median_holding_time"]` steps; multiply the
        time by this number.
    epsilon : float or {"self-tuning", "ksum", "median", "nearest"}, default="self-tuning"
        As in `Diffusion.from_points`.
    n_neighbors : int, default=15
        As in `Diffusion.from_points`.
    neighbors : NeighborIndex, transformer or sparse matrix, default=None
        As in `DiffusionEstimator`.
    metric : str or callable, default="euclidean"
        As in `Diffusion.from_points`.
    normalization : {"markov", "symmetric", "bistochastic"}, default="markov"
        As in `Diffusion.from_points`.
    alpha : float, default=1
        As in `Diffusion.from_points`.
    tol : float, default=1e-8
        As in `Diffusion.from_points`.
    max_iter : int, default=1000
        As in `Diffusion.from_points`.
    tolerance : float, 0 < tolerance < 1, default=0.1
        For ``n_components="auto"``: the relative error of a distance that 95 of 100 sketches do not
        exceed. It takes `columns_for` (tolerance) columns: 192 for 0.1.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of G.
    memory : str or joblib.Memory, default=None
        As in `DiffusionEstimator`.
    device : str or torch.device, default=None
        As in `DiffusionEstimator`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components) or (n_samples, n_components * n_times)
        Coordinates. With several times, the sketches of all times side by side.
    diffusion_ : Diffusion
        Operator, stationary measure and rows for new points.
    epsilon_ : float or ndarray of shape (n_samples,)
        Bandwidth ε used, or local scales of the points.
    ids_ : ndarray of shape (n_samples,) or None
        Names of the points, if passed to `fit`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.
    neighbor_confidence_ : ndarray of shape (n_samples,)
        Fraction, 0 to 1, of the `n_neighbors` nearest points that stay the same when columns are
        drawn again. It can colour a picture. Computed at each access by
        `uncertainty.neighbor_confidence`.

    See Also
    --------
    HeatEmbedding : Embed data in few dimensions that keep diffusion distances.
    DiffusionMap : Embed data by the leading eigenvectors of the diffusion.
    columns_for : Compute the number of columns for a relative error.
    sketch : Apply a filter of an operator to random columns.

    Notes
    -----
    With n points, k columns and nnz entries of the graph, the cost is the neighbour search and t
    sparse products of 2 nnz k operations; memory holds four blocks of n k numbers. From 16,384
    points on, products of float32 data are computed in float32: distances agree with those of
    float64 within 1e-3, mostly 1e-6. With ``affinity="dense"`` and d features, t products take 2 n²
    (d + k) operations; above 4,096 points the kernel is not stored.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Algorithms 4 and 5.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, labels = hs.datasets.digits()
    >>> hs.HeatSketch(n_components=16, random_state=0).fit_transform(X).shape
    (1797, 16)
    """

    n_components: int | str = 32
    time: Any = 8
    _: KW_ONLY
    kind: str = "gaussian"
    tolerance: float = 0.1

    def _check_parameters(self, times: list[Any]) -> None:
        most, rules = MOST_COLUMNS, ("auto",)
        check_number(self.n_components, "n_components", low=1, high=most, integer=True, rules=rules)
        check_choice(self.kind, "kind", KINDS)
        if self.n_components == "auto":
            columns_for(self.tolerance)  # checks the tolerance
        for t in times:
            FILTERS[self.filter].check_time(t, whole=True)

    def _mapped(self, diffusion: Diffusion, times: list[Any]) -> tuple[Map, Any]:
        A = diffusion.deflated
        filters = [FILTERS[self.filter](float(t)).reduced() for t in times]
        k: Any = columns_for(self.tolerance) if self.n_components == "auto" else self.n_components
        vertex, seed = diffusion.vertex, self.random_state
        if self.ids_ is None:
            native = A.blocks.native  # a device gathers rows faster
            G = native(random_block(len(vertex), k, self.kind, seed), A.dtype)
            G = G[native(diffusion.first_points)]
        else:
            numbers = numbers_at(self.ids_[diffusion.counted], vertex, diffusion.n)
            G = random_block(diffusion.n, k, self.kind, seed, numbers)
        return self._linear_map(
            diffusion, sketch_blocks(A, filters, A.blocks.native(G, A.dtype))
        ), None

    def distance(
        self,
        i: Any,
        j: Any = None,
        *,
        level: float = 0.95,
        simultaneous: bool = False,
        time: Any = None,
    ) -> Interval:
        """Return the diffusion distance of points with its interval.

        The distance is `diffusion_distance(model.diffusion_, t)`. In a neighbour graph this is the
        distance between rows of M A^(t-1), whose first step goes to a point's own neighbours, not
        between rows of A^t.

        Parameters
        ----------
        i, j : int or array-like of int
            Points: one pair, or arrays that are broadcast to pairs. Without j: i against all
            points, which are the last axis of the result.
        level : float, 0 < level < 1, default=0.95
            Probability that an interval contains its distance, which is exact for Gaussian columns.
        simultaneous : bool, default=False
            `level` is the probability that all intervals hold at once. False: each interval by
            itself has this probability.
        time : number, default=None
            One of the times of the fit. It is required if there are several.

        Returns
        -------
        Interval
            `value` (unbiased), `low`, `high`.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; a time that is not one of the fit; indices that are not of points; a level
            that is not between 0 and 1.

        Examples
        --------
        >>> import heatsketch as hs
        >>> X, angle = hs.datasets.circle(60, rng=0)
        >>> model = hs.HeatSketch(64, random_state=0).fit(X)
        >>> D = hs.diffusion_distance(model.diffusion_, 8, pairs=([0], [30]))[0]
        >>> interval = model.distance(0, 30)
        >>> bool(interval.low < D < interval.high)
        True
        """
        check_is_fitted(self)
        times = self._fit_times
        if time is None and len(times) == 1:
            time = times[0]
        if not isinstance(time, numbers.Real) or time not in times:
            raise ValueError(f"time={time!r} is not one of the times {times}; pass one of them.")
        F = self.embedding_[:, self._independent_columns()[times.index(time)]]
        return distance_interval(F, i, j, level=level, simultaneous=simultaneous)

    def update(self, added: Any = None, removed: Any = None, *, ids: Any = None) -> Self:
        """Remove points and add others, without a new fit.

        Added points get the rows of `transform`, after all others. The graph stays that of the
        points of the fit: walks do not enter added points, and still pass through removed ones. All
        other rows keep every bit, so that adding points and removing them again changes nothing.
        When a fraction s of the points has been replaced by others of the same distribution, rows
        differ from those of a new fit by about √s of their size; `refresh` makes this fit. Until
        `refresh`, `transform` and `novelty` compare with the points of the fit, and `pseudotime`,
        `explained_diffusion_variance`, `data_interval`, `diffusion_discrepancy`, `audit` and
        `report` raise ValueError.

        Parameters
        ----------
        added : {array-like, sparse matrix} of shape (n_new_samples, n_features), default=None
            Points to add.
        removed : int or array-like of int of shape (n_removed,), default=None
            Rows of `embedding_` before this update.
        ids : array-like of shape (n_new_samples,), default=None
            Names of the added points. `fit` must also have had ids, so that in `refresh` points
            keep their random rows.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; added points that are not a finite table of the features of the fit;
            ids that are missing or already in use; removed rows that do not exist.

        Examples
        --------
        >>> import heatsketch as hs
        >>> X, angle = hs.datasets.circle(60, rng=0)
        >>> model = hs.HeatSketch(8, random_state=0).fit(X[:50], ids=range(50))
        >>> model.update(X[50:], removed=[3, 4], ids=range(50, 60)).embedding_.shape
        (58, 8)
        >>> model.refresh().embedding_.shape
        (58, 8)
        """
        points, all_ids, training = self._present()
        Y = self.embedding_
        if removed is not None:
            rows = np.atleast_1d(np.asarray(removed))
            if rows.size and rows.dtype.kind not in "iu":
                raise TypeError(
                    f"removed is of dtype {rows.dtype}; pass rows of embedding_, integers."
                )
            check_in_range(rows, "removed", len(Y))
            kept = np.setdiff1d(np.arange(len(Y)), rows)
            if len(kept) < 2:
                raise ValueError(f"removed leaves {len(kept)} points; leave at least two.")
            points, all_ids, Y = points[kept], all_ids[kept], Y[kept]
        if added is not None:
            X = read_filled(self, added)
            if ids is None:
                raise ValueError("ids are missing; pass ids of the added points, as to fit.")
            new_ids = check_ids(ids, X.shape[0])
            if (new_ids.dtype.kind in "iu") != (all_ids.dtype.kind in "iu"):
                raise TypeError(
                    f"ids of the added points are of dtype {new_ids.dtype} but those of the fit of "
                    f"{all_ids.dtype}; pass ids of one kind."
                )
            all_ids = check_ids([*all_ids.tolist(), *new_ids.tolist()], len(Y) + X.shape[0])
            Y = np.vstack([Y, self._placed(X).astype(Y.dtype)])
            stack = sparse.vstack if sparse.issparse(points) else np.vstack
            points = stack([points, training.as_training(X)]).astype(points.dtype)
        self._points, self.embedding_, self.ids_ = points, Y, all_ids
        return self

    @remembered
    def refresh(self) -> Self:
        """Fit the current points with their ids, as `fit` would.

        Raises
        ------
        NotFittedError, ValueError, TypeError, MemoryError
            Before `fit`; as `fit`, for the current points.
        """
        points, ids, _ = self._present()
        names = self._result("feature_names_in_")
        self.fit(points, ids=ids)
        if names is not None:
            self.feature_names_in_ = names
        return self

    def _present(self) -> tuple[Any, Array, PointKernel]:
        """Return the current points, their ids and the rule of the fit, or raise without them."""
        check_is_fitted(self)
        if self.ids_ is None:
            raise ValueError(
                "The points have no ids, by which they would keep their random rows; pass them to "
                "fit(X, ids=...)."
            )
        scaling = self.diffusion_.scaling
        if scaling is not None and scaling.weights is not None:
            raise ValueError(
                "The points of the fit have weights, which others lack; fit again, with "
                "sample_weight for all points."
            )
        training = self.diffusion_.out_of_sample
        if not isinstance(training, PointKernel):
            raise ValueError(
                "The diffusion was not built from points, so that there is no rule for others; fit "
                "points, with an affinity other than 'precomputed'."
            )
        if self.neighbors is not None and not hasattr(self.neighbors, "get_params"):
            raise ValueError(
                "neighbors holds those of the points of the fit alone; pass a transformer, or "
                "leave it out."
            )
        return (training.points if self._points is None else self._points), self.ids_, training

    @property
    def neighbor_confidence_(self) -> Array:
        """Fraction of the nearest points that stay the same when columns are drawn again, (n,)."""
        check_is_fitted(self)
        return neighbor_confidence(self, min(self._fitted_as.n_neighbors, len(self.embedding_) - 1))

    def _independent_columns(self) -> Array:
        """Return the numbers of the columns of each time (T, k); these columns are independent."""
        return np.arange(self._n_features_out).reshape(len(self._fit_times), -1)
