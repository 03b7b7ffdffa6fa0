"""Heat embedding: a picture by diffusion distances, linear or with free points; its time."""

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_n_components, check_number, check_places
from heatsketch._messages import texts_from
from heatsketch._random import numbers_at, random_block, seed_entropy
from heatsketch.core.blocks import inverse_permutation
from heatsketch.core.operators import Deflated, members_of
from heatsketch.estimators._base import DiffusionEstimator
from heatsketch.layout.free import Lengths, is_measurable
from heatsketch.layout.linear import OBJECTIVES
from heatsketch.layout.maps import (
    FreeMap,
    Map,
    free_map,
    learned_directions,
    side_by_side,
    step_graph,
)
from heatsketch.markov.coordinates import (
    ComponentCoordinates,
    TimeCurve,
    component_labels,
    deflate_components,
    direction_curve,
)
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import N_LEADING, LeadingPairs
from heatsketch.metrics.distortions import Distortion
from heatsketch.metrics.neighborhoods import far_moves, moves_against_neighbors
from heatsketch.metrics.picture import Picture, PictureQuality, sampled_geodesics
from heatsketch.spectral.filters import FILTERS, make_filter
from heatsketch.spectral.functions import MOST_COLUMNS, check_range, sketch_blocks

_ROUNDING = 1e-13  # of an eigenvalue
_MOST_WEIGHT = 1e6  # of the neighbours, with which distances count no more
FREE_DIMENSIONS, FREE_TIME = (2, 3), 8  # of a free layout
_FREE_SKETCH, _TOLERANCE = 64, 1e-3  # columns, and what is next to the error of a sketch
_SKETCH = 128  # columns for a linear one


@texts_from(Diffusion.from_points, DiffusionEstimator)
@dataclass(eq=False, repr=False)
class HeatEmbedding(DiffusionEstimator):
    """Embed data in few dimensions by diffusion distances: a picture.

    In two and three dimensions every point moves by itself (``layout="free"``). Near points of the
    data become near points of the picture, the order of distances is kept, and tight groups open.
    No linear map can show ten groups that are all equally far from each other.

    ``layout="linear"``, and any other number of dimensions, is a linear map. The points first get
    many coordinates whose distances are the diffusion distances: the leading eigenvectors and,
    where these are not enough, a sketch of the rest. Then a map of these to k dimensions is learned
    that keeps as many distances as possible. Diffusion maps use the k slowest directions and
    sketches random ones; if k is small, distant points may coincide in both.

    Parameters
    ----------
    n_components : int, default=2
        Number k of dimensions.
    time : int >= 1 or "auto", default="auto"
        Diffusion time; with ``filter="heat"`` any positive number. "auto" is 8 in a free layout. In
        a linear one it is the smallest time at which the diffusion distances of this one time have
        at most 4 k effective directions, or from which on their number no longer falls (see
        `time_curve_`). The reason is that k dimensions cannot show the many directions of small
        times, and large times lose structure.
    filter : {"accumulated", "power", "heat"}, default="accumulated"
        "accumulated": squared diffusion distances added up over the times t, ..., 64 t - 1, t the
        `time` (`Accumulated`). "power": the distances of one time, by λ^t; all points farther apart
        than √t steps are then equally far, so that long gradients fold. "heat": the same with
        e^{-t(1-λ)} - e^{-t}.
    n_sketch : int or "auto", default="auto"
        Number r of columns of the sketch. In a free layout ("auto": 64) it gives all diffusion
        distances. In a linear one ("auto": 128) it is added to 64 eigenvectors beyond 2,048 points
        at small times. Its part of a squared distance has a relative error of √(2 / r).
    objective : {"most", "worst"}, default="most"
        "most": as many pairs as possible within `factor`, with a little weight on log L, the
        logarithm of the ratio of the largest to the smallest scale of a pair. "worst": least log L
        of the training points.
    n_init : int or "auto", default="auto"
        For a linear layout: number of starts, see `NearIsometricProjection`; those beyond the
        fourth are random.
    factor : float, default=1.5
        For a linear layout and ``objective="most"``, > 1. The ratio of a pair is its embedded
        distance over its diffusion distance. A pair counts as kept if its ratio is within this
        factor of the median.
    layout : {"auto", "free", "linear"}, default="auto"
        "linear": the learned map, which keeps distances. "free": neighbours and the order of
        distances, see Notes; for two or three dimensions and ``objective="most"``. "auto": "free"
        where it is possible, else "linear".
    neighbor_weight : float >= 0, default=0.3
        For a free layout: weight a of the neighbours, next to that of the distances. A larger one
        makes neighbours truer, and far distances less true.
    spread : float, 0 <= spread <= 1, or "auto", default="auto"
        For a free layout: how far it is spread over the frame. 0: it aims at the distances. 1: at
        their order only, with quantiles as in a disc; and in two dimensions a smooth map at the end
        makes the density of the points more even. "auto": in proportion to the misfit, see Notes,
        so that a strip keeps its shape.
    path_weight : float, 0 <= path_weight <= 1, default=0.3
        For a free layout. 0: it aims at path lengths as far as k dimensions hold them, else at
        diffusion and straight distances. 1: at path lengths in any case, which take short cuts
        where there is noise. It counts where distances of points are known: not for given
        affinities, and in the metrics "euclidean", "cosine", "correlation" and "precomputed".
    place_weight : float >= 0, default=0.3
        For a fit with `places`: how much points keep to theirs where neighbours and distances want
        them elsewhere. ``float("inf")``: they do not move at all.
    affinity : {"knn", "variable", "dense", "radius", "precomputed"}, default="knn"
        As in `DiffusionEstimator`.
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
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the random starts of a linear layout. Unused in a free one, and if `n_init` <= 4.
    memory : str or joblib.Memory, default=None
        As in `DiffusionEstimator`.
    device : str or torch.device, default=None
        As in `DiffusionEstimator`. A free layout is computed there, too.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        In units of the diffusion distance, in the median (parts of a free layout that stand side by
        side: of that of the largest one, about). A linear layout is ordered by variance.
    quality_ : PictureQuality or None
        How well the picture agrees with the data X rather than with diffusion distances:
        neighbours, path lengths, far points. It is computed at the first look, as is
        `distortion_`. `quality_.describe()` says it in words, also whether k dimensions hold the
        path lengths (`quality_.misfit`). Where entries are missing, not the
        filled points count: the distance of two points, and the length of an edge, is that by the
        entries that both have,
        √(Σ (x_i - y_i)² n_features / n_both); a pair that shares none does not count. None for
        precomputed affinities, for metrics other than "euclidean", "cosine", "correlation" and
        "precomputed", and if all points have the same affinities.
    distortion_ : Distortion
        How well the diffusion distances of `Diffusion.rows` are kept, by `diffusion_distortion`,
        which ``heatsketch score`` computes too; `distortion_.describe()` summarises it in one line.
        `held_out_log_L` is log L of points that took part in the diffusion but not in learning the
        map. It is NaN with ``objective="worst"``, in a free layout, or if no component has 500
        points to learn from. A free layout aims at other distances, too, and is not made for these.
        Where entries are missing, these are the distances of the walk between filled points.
        `distortion_` is None if all points have the same affinities.
    time_ : float
        The time used.
    time_curve_ : TimeCurve or None
        The numbers of directions by which ``time="auto"`` chose; `heatsketch.plot.time_curve` draws
        them. None for a given time, and in a free layout.
    moved_ : ndarray of shape (n_samples,) or None
        After a fit with `places`: how far each point moved against its 15 nearest neighbours in the
        old picture, beyond their median move, and beyond the shift and turn that fit them best, in
        units of the median edge; NaN for points that had no place. None without `places`.
    diagnostics_ : dict
        What was chosen and measured: neighbours, components, recall, seconds; "misfit" of a free
        layout, see Notes (of its largest part, if parts stand side by side); "layout" ("components
        side by side") if the gaps between components mean nothing; and "judged_by" ("entries that
        both points have") if `quality_` is not that of filled points.
    diffusion_ : Diffusion
        Operator, stationary measure and rows for new points.
    epsilon_ : float or ndarray of shape (n_samples,)
        Bandwidth ε used, or local scales of the points.
    n_iter_ : int
        Iterations of the bistochastic scaling; 1 for the other forms.
    ids_ : ndarray of shape (n_samples,) or None
        Names of the points, if passed to `fit`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    See Also
    --------
    HeatSketch : Embed data in many coordinates to compute with.
    DiffusionMap : Embed data by the leading eigenvectors of the diffusion.
    audit : Say of each point of a picture how far its place can be believed.
    NearIsometricProjection : Learn a linear map that keeps distances.

    Notes
    -----
    **A free layout** Y minimises

        a KL(p || q) + mean over pairs of huber(log |y_i - y_j| - T_ij),

    p the weights of the graph, and q = 1 / (1 + |y_i - y_j|² / s²) over all pairs, both with sum 1
    [1]_; s is half the median length of an edge. There are 12 pairs for each point, with up to 128
    landmarks. a is `neighbor_weight`, or 2 m times it for a misfit m below ½: neighbours, which
    push each other away, would tear a strip into crumbs. A row of p counts less, the more points of
    its component are neighbours: who is near says nothing where all are.

    *Targets.* Of each pair there are three distances: g, the length of the shortest path along the
    graph of neighbours (of a dense affinity: of its 16 largest entries); δ, the diffusion distance,
    by a sketch; and e, the straight distance of the points. With the misfit m

        T = (1 - m) log g + m (log δ + log e) / 2,

    where all three have the same median, and log g at least the range of the others. Along a strip
    δ grows like the root of the length, and g like the length, so that g keeps strips straight.
    Between groups in many dimensions all paths are about equally long, and δ and e tell more. m is
    0 if k dimensions hold the path lengths between all landmarks, and those within the nearer half
    of the landmarks around one, and 1 if they hold at most half of the spectrum. Paths longer than
    3.5 median ones are cut there, unless all fit, in nearer quarters and eighths, too. In T, though
    not for `spread`, m is 1 - `path_weight` times this. `spread` moves T towards the quantiles of
    the distances of random points of a disc [2]_, which have the same order [3]_. At the end the
    density of the points, smoothed, diffuses for a part of the way to an even one, and the points
    with it [4]_; this map is smooth and one-to-one.

    *Descent.* 150 steps start at landmark multidimensional scaling [5]_ of g, spread like T. They
    are as long as s, which opens groups; the shorter, the more the start fits (m below 1/8). Far
    sums of q are taken by a tree [6]_, on a device by a grid. No step is random, and landmarks,
    pairs and random columns are chosen by content: the picture is the same for every seed, and for
    every order of the rows, up to rounding. With `sample_weight` w a pair counts w_i w_j times in
    both terms, as so many copies of the points would; pairs, start and T are chosen without
    weights. An operator whose entries are not known has a linear layout.

    *Places.* A fit with places p_i of m known points adds `place_weight` / m Σ huber(|y_i -
    p_i| / 2s), starts from them, and does not make the density more even again. A known point of
    which half of the 15 nearest points by diffusion distance have places that are together, and far
    from its own one, starts among those, like a new point.

    *New points.* A new point x is at a minimum of Σ_j w_j log(1 + |y - y_j|² / s²) over its 15
    nearest training points, with w_j = K(x, x_j): where the attraction of q alone would bring it.
    The search starts at the best one of their places. A training point gets its own place exactly,
    and so does a row of given affinities that is that of a training point; w_j grows by 0.01
    squared local scales over |x - x_j|², so that near it the place changes smoothly.

    *Components.* No path and no diffusion leads from one component of the graph to another. Their
    points have straight distances: there g is e times the typical ratio g / e, and δ does not
    count. So all components are in one picture, and its gaps follow the distances of the points.

    **Side by side.** In a linear layout of the Markov or the bistochastic form each component has a
    map of its own, and in a free one of given affinities, or in other metrics than those above,
    where T = log δ, a layout of its own; these have edges of the same median length. They stand
    side by side in rows, the widest first. Only then do the gaps mean nothing. Distances between
    components never count in `distortion_`.

    **A linear layout** maps new points exactly as the training points: y(x) = Σ_j a(x, x_j) H_j,
    with the same H. The rows that the map is learned from are chosen by their values, not by their
    order. The time is chosen for the largest component.

    **Cost.** A free layout takes the products of a sketch of r columns, 24 to 128 searches for
    shortest paths, and 150 steps of n log n operations, and some for each edge and pair; a dense
    affinity of more than 4,096 points is made once more. A linear one takes 64 eigenpairs (all of
    up to 512 points, and of up to 2,048 at small times), at small times a sketch, and some 300
    evaluations of 6,000 pairs. `distortion_` and `quality_` take their time at the first look, in a
    free layout that of 64 eigenpairs; until then a linear model, pickled or stored, too, keeps the
    coordinates of the diffusion distances, some 64 numbers for each point.

    References
    ----------
    .. [1] L. van der Maaten and G. Hinton, "Visualizing data using t-SNE", Journal of Machine
       Learning Research 9 (2008), 2579-2605.
    .. [2] F. Garwood, "The variance of the overlap of geometrical figures with reference to a
       bombing problem", Biometrika 34 (1947), 1-17.
    .. [3] J. B. Kruskal, "Multidimensional scaling by optimizing goodness of fit to a nonmetric
       hypothesis", Psychometrika 29 (1964), 1-27.
    .. [4] M. T. Gastner and M. E. J. Newman, "Diffusion-based method for producing
       density-equalizing maps", Proceedings of the National Academy of Sciences 101 (2004),
       7499-7504.
    .. [5] V. de Silva and J. B. Tenenbaum, "Sparse multidimensional scaling using landmark points",
       Stanford University (2004).
    .. [6] J. Barnes and P. Hut, "A hierarchical O(N log N) force-calculation algorithm", Nature 324
       (1986), 446-449.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(200, rng=0)
    >>> how = {"affinity": "dense", "epsilon": 0.25, "time": 8}
    >>> linear = hs.HeatEmbedding(2, layout="linear", **how).fit(X)
    >>> linear.distortion_.within[1.25]
    1.0
    >>> free = hs.HeatEmbedding(2, **how).fit(X)
    >>> bool((free.transform(X[:5]) == free.embedding_[:5]).all())
    True
    """

    n_components: int = 2
    time: Any = "auto"
    _: KW_ONLY
    filter: str = "accumulated"
    n_sketch: Any = "auto"
    objective: str = "most"
    n_init: Any = "auto"
    factor: float = 1.5
    layout: str = "auto"
    neighbor_weight: float = 0.3
    spread: Any = "auto"
    path_weight: float = 0.3
    place_weight: float = 0.3

    _before = cast("Array | None", None)  # places (n, k) that the fit was given
    _judged = cast(Any, None)
    _states_variance = True

    @texts_from(DiffusionEstimator.fit)
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: Any = None,
        sample_weight: Any = None,
        places: Any = None,
    ) -> Self:
        """Fit the diffusion to points and embed them, near old places where points have some.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As in `DiffusionEstimator.fit`.
        y : ignored
            As in `DiffusionEstimator.fit`.
        ids : array-like of shape (n_samples,), default=None
            As in `DiffusionEstimator.fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `DiffusionEstimator.fit`.
        places : array-like of shape (n_samples, n_components), default=None
            Places of an earlier picture, which this one keeps to (see `place_weight`), NaN where a
            point had none. The picture is in their frame and unit. New points fit in: they start
            among the known ones to which they are near. So a map stays while the data grow, a few
            places given by hand hold a picture, and two embeddings of the same things become
            comparable; `moved_` says which points went against their old neighbours. For a free
            layout.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError, MemoryError, CertificateError
            As in `DiffusionEstimator.fit`; places of another shape, infinite, or known in part.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> X, labels = hs.datasets.digits()
        >>> before = hs.HeatEmbedding().fit_transform(X[:900])
        >>> places = np.full((1000, 2), np.nan)
        >>> places[:900] = before
        >>> model = hs.HeatEmbedding().fit(X[:1000], places=places)
        >>> moves = np.linalg.norm(model.embedding_[:900] - before, axis=1)
        >>> bool(np.median(moves) < 0.01 * np.ptp(before))
        True
        """
        known = None if places is None else check_places(places, self.n_components)
        self._before = None if known is None or np.isnan(known).all() else known
        super().fit(X, y, ids=ids, sample_weight=sample_weight)
        self.moved_: Array | None = None if known is None else np.full(len(known), np.nan)
        if self._before is not None:
            edge = 2 * self._map.s if isinstance(self._map, FreeMap) else 1.0
            self.moved_ = moves_against_neighbors(self._before, self.embedding_, edge)
            if isinstance(self._judged, Picture):
                found = far_moves(self.moved_, self.embedding_, edge)
                self._judged = replace(self._judged, moved=found)
        return self

    def _of_vertices(self, diffusion: Diffusion, known: Array) -> Array:
        """Return the known places of the vertices (n, k): means over the points of each."""
        if len(known) != diffusion.n_points:
            raise ValueError(
                f"places has {len(known)} rows but X has {diffusion.n_points} points; pass a "
                "row for each, NaN where a point had no place."
            )
        every = ~np.isnan(known[:, 0])
        known = known if diffusion.beside is None else known[diffusion.beside.counted]
        held = ~np.isnan(known[:, 0])
        pinned = np.count_nonzero(every) if self.place_weight == math.inf else 1
        if np.count_nonzero(held) < pinned:
            raise ValueError(
                f"{np.count_nonzero(every) - np.count_nonzero(held)} point(s) of weight 0 have "
                "places, but are placed beside the others; leave out these places."
            )
        at, n = diffusion.vertex[held], diffusion.n
        counts = np.bincount(at, minlength=n)
        sums = np.array([np.bincount(at, column, n) for column in known[held].T])
        with np.errstate(invalid="ignore"):
            means = (sums / counts).T
        if self.place_weight == math.inf and not np.allclose(means[at], known[held]):
            raise ValueError(
                "place_weight=inf but some equal points have different places; give them one place."
            )
        return cast(Array, means)

    def _check_parameters(self, times: list[Any]) -> None:
        check_number(self.n_components, "n_components", low=1, integer=True)
        if len(times) > 1:
            raise ValueError(f"time={self.time!r} has {len(times)} times; pass one, or 'auto'.")
        if isinstance(times[0], str):
            check_number(times[0], "time", low=1, rules=("auto",))
        else:
            FILTERS[self.filter].check_time(times[0], whole=True)
        check_number(
            self.n_sketch, "n_sketch", low=1, high=MOST_COLUMNS, integer=True, rules=("auto",)
        )
        check_choice(self.objective, "objective", tuple(OBJECTIVES))
        check_number(self.n_init, "n_init", low=1, integer=True, rules=("auto",))
        check_number(self.factor, "factor", low=1, open_low=True)
        check_choice(self.layout, "layout", ("auto", "free", "linear"))
        check_number(self.neighbor_weight, "neighbor_weight", low=0, high=_MOST_WEIGHT)
        check_number(self.spread, "spread", low=0, high=1, rules=("auto",))
        check_number(self.path_weight, "path_weight", low=0, high=1)
        if self.place_weight != math.inf:
            check_number(self.place_weight, "place_weight", low=0, high=_MOST_WEIGHT)
        is_possible = self.n_components in FREE_DIMENSIONS and self.objective == "most"
        self._tries_free = is_possible and self.layout != "linear"
        if self._before is not None and not self._tries_free:
            raise ValueError(
                f"places are for a free layout, but layout={self.layout!r}, n_components="
                f"{self.n_components} and objective={self.objective!r}; pass layout='free', 2 or 3 "
                "components and 'most', or leave out places."
            )
        if self.layout == "free" and not is_possible:
            raise ValueError(
                f"layout='free' but n_components={self.n_components} and objective="
                f"{self.objective!r}; pass layout='linear', or 2 or 3 components and 'most'."
            )

    def _mapped(self, diffusion: Diffusion, times: list[Any]) -> tuple[Map, Any]:
        """Let the points of a free layout move, or learn a linear map of wide coordinates."""
        n, k = diffusion.n, self.n_components
        check_n_components(k, n - 1, f"there are {n} distinct points")
        self.time_curve_: TimeCurve | None = None
        M = step_graph(diffusion) if self._tries_free else None
        if M is None and (self.layout == "free" or self._before is not None):
            raise ValueError(
                "layout='free' or places are given but the affinity is an operator whose entries "
                "are not known; pass a matrix, or layout='linear' without places."
            )
        if diffusion.diagnostics["is_constant"]:
            self.time_: Any = 1 if times[0] == "auto" else times[0]
            return self._linear_map(diffusion, [np.zeros((n, k))]), None
        if M is None:
            return self._learned(diffusion, times)
        self.time_ = FREE_TIME if times[0] == "auto" else times[0]
        return self._free(diffusion, M)

    def _free(self, diffusion: Diffusion, M: Any) -> tuple[Map, Any]:
        """Sketch the diffusion distances, with random rows by content, and move the points."""
        lengths, A = Lengths.along_graph(diffusion, M), diffusion.deflated
        order = diffusion.sample(diffusion.n) if lengths is None else lengths.order
        n_sketch = _FREE_SKETCH if self.n_sketch == "auto" else self.n_sketch
        G = np.empty((diffusion.n, n_sketch))
        G[order] = random_block(diffusion.n, n_sketch, "gaussian", 0)
        f = make_filter(self.filter, self.time_).reduced()
        (H,) = sketch_blocks(A, [f], A.blocks.native(G, A.dtype), _TOLERANCE)
        F = A.blocks.host(diffusion.step() @ H)
        if lengths is not None:
            parts = [(np.arange(diffusion.n), lengths)]
        else:
            labels = component_labels(diffusion)
            labels = np.zeros(diffusion.n, int) if labels is None else labels
            place = inverse_permutation(order)
            members = sorted(members_of(labels), key=len, reverse=True)
            parts = [(c, Lengths.of_rows(F[c], np.argsort(place[c]))) for c in members]
        if len(parts) > 1:
            self.diagnostics_["layout"] = "components side by side"
        placed, self.diagnostics_["misfit"] = free_map(
            diffusion,
            M,
            F,
            parts,
            self.n_components,
            neighbor_weight=self.neighbor_weight,
            spread=None if self.spread == "auto" else self.spread,
            path_weight=self.path_weight,
            known=None if self._before is None else self._of_vertices(diffusion, self._before),
            place_weight=float(self.place_weight),
        )
        if math.isnan(self.diagnostics_["misfit"]):  # each part is one place
            return placed, None
        return placed, (None, 0.0, None, math.nan, lengths)

    def _learned(self, diffusion: Diffusion, times: list[Any]) -> tuple[Map, Any]:
        """Learn a linear map of wide coordinates of each component; sets the time."""
        n, k = diffusion.n, self.n_components
        self.time_ = 1 if times[0] == "auto" else times[0]
        coordinates = ComponentCoordinates.from_diffusion(
            diffusion, max(N_LEADING, 4 * k), self._leading_pairs
        )
        H, Y, judged_by = np.zeros((n, k)), np.zeros((n, k)), None
        rounding = max(_ROUNDING, diffusion.diagnostics.get("exponent_error", 0.0))
        if np.abs(coordinates.values).max(initial=0.0) >= rounding:
            if times[0] == "auto":
                self.time_curve_ = direction_curve(coordinates.each[0], self.filter, k)
                self.time_ = self.time_curve_.time
            F, error, ends = self._wide(diffusion, coordinates)
            after, place = diffusion.step() @ F, np.argsort(diffusion.sample(n))
            self._checked(after, after.dtype)
            directions, held_out_log_L = learned_directions(
                after,
                [c[np.argsort(place[c])] for c in coordinates.components],
                k,
                np.random.default_rng(seed_entropy(self.random_state)),
                OBJECTIVES[self.objective],
                hold_out=self.objective == "most",
                factor=self.factor,
                n_init=self.n_init,
            )
            for vertices, W in zip(coordinates.components, directions, strict=True):
                H[vertices], Y[vertices] = F[vertices] @ W, after[vertices] @ W
            judged_by = after, error, ends, held_out_log_L, None
        if len(coordinates.components) > 1:
            self.diagnostics_["layout"] = "components side by side"
            shifts = side_by_side(Y, coordinates.components, diffusion.measure)
            # After the last step of the Markov form √π is 1.
            H += (diffusion.root[:, None] if self.normalization == "markov" else 1.0) * shifts
        return self._linear_map(diffusion, [H]), judged_by

    def _wide(
        self, diffusion: Diffusion, coordinates: ComponentCoordinates
    ) -> tuple[Array, float, tuple[float, float]]:
        """Return coordinates F (n, r) before the last step, their error, the ends of the spectrum.

        Distances of rows of S F are the diffusion distances.
        """
        f = make_filter(self.filter, self.time_).reduced()
        coordinates = coordinates.enough_for(make_filter(self.filter, self.time_).minus_constant())
        ends = float(coordinates.values.min()), float(coordinates.values.max())
        check_range(f, diffusion.deflated, ends)
        numbers = None
        if self.ids_ is not None:
            ids = self.ids_[diffusion.counted]
            numbers = numbers_at(ids, diffusion.vertex, diffusion.n)
        n_sketch = _SKETCH if self.n_sketch == "auto" else self.n_sketch
        F, error = coordinates.under(f, n_sketch, numbers=numbers, exact=self.objective == "worst")
        return F, error, ends

    @property
    def distortion_(self) -> Distortion | None:
        """How well the diffusion distances are kept."""
        return self._verdict()[0]

    @property
    def quality_(self) -> PictureQuality | None:
        """How well the picture agrees with the data."""
        return self._verdict()[1]

    def _verdict(
        self, leading: LeadingPairs | None = None
    ) -> tuple[Distortion | None, PictureQuality | None]:
        """Return both of them, found at the first look and kept in place of what finds them.

        Threads that look at once may all find them: the same ones, without waiting for each other.
        """
        check_is_fitted(self)
        fitted = self.__dict__  # another fit has others
        if isinstance(fitted["_judged"], Picture):
            find = leading or self._leading_pairs
            fitted["_judged"] = fitted["_judged"].judged(fitted["diffusion_"], find)
        return fitted["_judged"]  # type: ignore[no-any-return]

    def _judge(self, judged_by: Any, gaps: Array | None) -> None:
        """Keep what `embedding_` is judged by: the distances it should keep, and the points."""
        self._judged = (None, None)
        if judged_by is None:
            return
        rows, error, ends, held_out_log_L, paths = judged_by
        diffusion, geodesics = self.diffusion_, None
        of_points = self.affinity != "precomputed" and is_measurable(diffusion)
        if of_points and gaps is not None:
            self.diagnostics_["judged_by"] = "entries that both points have"
        elif of_points and paths is not None:
            geodesics = sampled_geodesics(diffusion, paths)
        self._judged = Picture(
            places=np.array(self.embedding_, dtype=float),
            time=self.time_,
            filter=self.filter,
            ends=ends,
            rows=rows,
            error=error,
            held_out_log_L=held_out_log_L,
            is_free=self._has_free_layout,
            misfit=self.diagnostics_.get("misfit", math.nan),
            of_points=of_points,
            geodesics=geodesics,
            gaps=gaps,
        )

    def _explained_operator(self) -> tuple[Deflated, Array | None]:
        """Return A without directions that change no distance, and labels of separate maps."""
        labels = component_labels(self.diffusion_)
        if labels is None or "layout" not in self.diagnostics_:  # one picture of all components
            return super()._explained_operator()
        return deflate_components(self.diffusion_, labels), labels
