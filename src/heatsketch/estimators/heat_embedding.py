"""Heat embedding: a picture by diffusion distances, linear or with free points; its time."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heatsketch._docstrings import texts_from
from heatsketch._random import numbers_at, seed_entropy
from heatsketch._typing import Array
from heatsketch._validation import check_choice, check_n_components, check_number
from heatsketch.estimators._base import DiffusionEstimator
from heatsketch.layout.linear import OBJECTIVES
from heatsketch.layout.maps import (
    LEAST_FREE,
    FreeMap,
    Map,
    free_places,
    learned_directions,
    side_by_side,
    step_graph,
)
from heatsketch.layout.paths import is_measurable, paths_within
from heatsketch.markov.components import (
    ComponentCoordinates,
    WideCoordinates,
    component_labels,
    deflate_components,
)
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import N_LEADING
from heatsketch.markov.times import TimeCurve, direction_curve
from heatsketch.metrics.distortions import Distortion
from heatsketch.metrics.picture import Picture, PictureQuality, sampled_geodesics
from heatsketch.operators.deflated import Deflated
from heatsketch.spectral.apply import check_range
from heatsketch.spectral.filters import FILTERS, make_filter
from heatsketch.spectral.sketch import MOST_COLUMNS

_ROUNDING = 1e-13  # of an eigenvalue


@texts_from(Diffusion.from_points, DiffusionEstimator)
@dataclass(eq=False, repr=False)
class HeatEmbedding(DiffusionEstimator):
    """Embed data in few dimensions by diffusion distances: a picture.

    The points first get many coordinates whose distances are the diffusion distances: the leading
    eigenvectors and, where these are not enough, a sketch of the rest. Then a linear map of these
    to k dimensions is learned that keeps as many distances as possible. Diffusion maps use the k
    slowest directions and sketches random ones; if k is small, distant points may coincide in both.

    In two and three dimensions every point then moves by itself, from its place by the map: near
    points of the data become near points of the picture, the order of distances is kept, and tight
    groups open (``layout="free"``). No linear map can show ten groups that are all equally far from
    each other.

    Parameters
    ----------
    n_components : int, default=2
        Number k of dimensions.
    time : int >= 1 or "auto", default="auto"
        Diffusion time; with ``filter="heat"`` any positive number. "auto": the smallest time at
        which the diffusion distances of this one time have at most 4 k effective directions, or
        from which on their number no longer falls (see `time_curve_`). The reason is that k
        dimensions cannot show the many directions of small times, and large times lose structure.
    filter : {"accumulated", "power", "heat"}, default="accumulated"
        "accumulated": squared diffusion distances added up over the times t, ..., 64 t - 1, t the
        `time` (`Accumulated`). "power": the distances of one time, by λ^t; all points farther apart
        than √t steps are then equally far, so that long gradients fold. "heat": the same with
        e^{-t(1-λ)} - e^{-t}.
    n_sketch : int, default=128
        Number r of columns of the sketch that is added to 64 eigenvectors beyond 2,048 points at
        small times. Its part of a squared distance has a relative error of √(2 / r).
    objective : {"most", "worst"}, default="most"
        "most": as many pairs as possible within `factor`, with a little weight on log L, the
        logarithm of the ratio of the largest to the smallest scale of a pair. "worst": least log L
        of the training points.
    n_init : int or "auto", default="auto"
        Number of starts, see `NearIsometricProjection`; those beyond the fourth are random.
    factor : float, default=1.5
        For ``objective="most"``, > 1. The ratio of a pair is its embedded distance over its
        diffusion distance. A pair counts as kept if its ratio is within this factor of the median.
    layout : {"auto", "free", "linear"}, default="auto"
        "linear": the learned map, which keeps distances. "free": neighbours and the order of
        distances, see Notes; for two or three dimensions and ``objective="most"``. "auto": "free"
        where it is possible, else "linear".
    neighbor_weight : float >= 0, default=0.3
        For a free layout: weight a of the neighbours, next to that of the distances.
    spread : float, 0 <= spread <= 1, or "auto", default="auto"
        For a free layout. 0: it aims at the distances. 1: at their order only, with points spread
        evenly over the frame. Between the two: the mean of the logarithms of both. "auto": half
        of the misfit of the paths, see Notes; 0.5 without paths.
    path_weight : float, 0 <= path_weight <= 1, default=0.5
        For a free layout: weight of path lengths in the distances at which it aims, where k
        dimensions do not hold them. 0: diffusion distances only, which hold under noise. 1: path
        lengths only, which keep strips straight. It counts where lengths are known: for "knn" and
        "variable", in the metrics "euclidean", "cosine", "correlation" and "precomputed".
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
        Seed of the random starts. Unused if `n_init` <= 4.
    memory : str or joblib.Memory, default=None
        As in `DiffusionEstimator`.
    device : str or torch.device, default=None
        As in `DiffusionEstimator`. A free layout is computed there, too.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        In units of the diffusion distance (several components of a free layout: of that of the
        largest one, about). A linear layout is ordered by variance.
    quality_ : PictureQuality or None
        How well the picture agrees with the data X rather than with diffusion distances:
        neighbours, path lengths, far points. It is computed at the first look, as is
        `distortion_`. `quality_.describe()` says it in words. Where entries are missing, not the
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
        points to learn from.
        Where entries are missing, these are the distances of the walk between filled points.
        `distortion_` is None if all points have the same affinities.
    time_ : float
        The time used.
    time_curve_ : TimeCurve or None
        The numbers of directions by which ``time="auto"`` chose; `heatsketch.plot.time_curve` draws
        them. None for a given time.
    diagnostics_ : dict
        What was chosen and measured: neighbours, components, recall, seconds; "layout"
        ("components side by side") if the gaps between components mean nothing, see Notes; and
        "judged_by" ("entries that both points have") if `quality_` is not that of filled points.
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
    In a linear layout new points are mapped exactly as the training points: y(x) = Σ_j a(x, x_j)
    H_j, with the same H. The rows that the map is learned from are chosen by their values, not by
    their order.

    **A free layout** Y = S Z has free sources Z; S = diag(1 / M √π) M diag(√π) is the last step of
    the walk. It minimises

        a KL(p || q) + mean over pairs of huber(log |y_i - y_j| - T(log d_ij)).

    p are the weights of the graph, q = 1 / (1 + |y_i - y_j|² / s²) over all pairs, both with sum 1
    [1]_, s the median length of an edge. log d_ij = (1 - w) log δ_ij + w log g_ij, δ the diffusion
    distances, and g the lengths of the shortest paths along the graph of neighbours. Both have the
    same median, and log g at least the range of log δ. Along a strip δ grows like the root of the
    length, and g like the length. There are 12 pairs for each point, with landmarks; at
    the end a landmark of more than 120 goes back among its neighbours, near their median.
    The misfit m of the paths is 0 if k dimensions hold all of their lengths, and 1 if they hold at
    most half of the spectrum. w is 1 - m (1 - `path_weight`), and a is `neighbor_weight`, or
    2 m times it for m < ½: a strip follows its paths alone.
    T moves logarithms by `spread` towards the quantiles of distances of random points of a disc
    [2]_, which have the same order [3]_. With `sample_weight` w a pair counts w_i w_j times in both
    terms, as so many copies of the points would; pairs, start and T are chosen without weights. Far
    sums of q are taken by a tree [4]_, on a device by a grid. The start is landmark
    multidimensional scaling of g [5]_. Without paths there are 20 random pairs for each point, and
    the start is the linear layout. No step is random, and landmarks and pairs are chosen by
    content: the picture is the same for every seed, and for every order of the rows, up to
    rounding. Components of fewer than ten points stay linear, and so do operators whose entries are
    not known.

    A new point gets the weighted geometric median of the positions of its neighbours (up to 32),
    with weights K(x, x_j) / |x - x_j|; a training point its own position exactly. Given affinities
    have no distances: there the weights are K(x, x_j), and a row that is that of a training point
    gets the position of this point.

    Nothing diffuses between the components of a graph. In the Markov and the bistochastic form each
    component has its own map, which preserves the distances within it. In a free layout their edges
    have the same median length, so that points are equally dense in all. Components are placed side
    by side in rows, the widest first. The gaps mean nothing, and distances between components do
    not count in `distortion_`. The time is chosen for the largest component.

    The cost is that of 64 eigenpairs and, at small times, the products of a sketch of r columns;
    all eigenpairs of up to 512 points, and of up to 2,048 at small times. A linear layout takes
    some 300 evaluations of 6,000 pairs. A free one takes up to 128 searches for shortest paths, and
    up to 150 steps of n log n operations, and some for each edge and
    pair; a dense affinity of more than 4,096 points is made once more. `distortion_` and `quality_`
    take their time at the first look; until then the model, pickled or stored, too, keeps the
    coordinates before the layout: some 64 numbers for each point.

    References
    ----------
    .. [1] L. van der Maaten and G. Hinton, "Visualizing data using t-SNE", Journal of Machine
       Learning Research 9 (2008), 2579-2605.
    .. [2] F. Garwood, "The variance of the overlap of geometrical figures with reference to a
       bombing problem", Biometrika 34 (1947), 1-17.
    .. [3] J. B. Kruskal, "Multidimensional scaling by optimizing goodness of fit to a nonmetric
       hypothesis", Psychometrika 29 (1964), 1-27.
    .. [4] J. Barnes and P. Hut, "A hierarchical O(N log N) force-calculation algorithm", Nature 324
       (1986), 446-449.
    .. [5] V. de Silva and J. B. Tenenbaum, "Sparse multidimensional scaling using landmark points",
       Stanford University (2004).

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
    n_sketch: int = 128
    objective: str = "most"
    n_init: Any = "auto"
    factor: float = 1.5
    layout: str = "auto"
    neighbor_weight: float = 0.3
    spread: Any = "auto"
    path_weight: float = 0.5

    _states_variance = True

    def _check_parameters(self, times: list[Any]) -> None:
        check_number(self.n_components, "n_components", low=1, integer=True)
        if len(times) > 1:
            raise ValueError(f"time={self.time!r} has {len(times)} times; pass one, or 'auto'.")
        if isinstance(times[0], str):
            check_number(times[0], "time", low=1, rules=("auto",))
        else:
            FILTERS[self.filter].check_time(times[0], whole=True)
        check_number(self.n_sketch, "n_sketch", low=1, high=MOST_COLUMNS, integer=True)
        check_choice(self.objective, "objective", tuple(OBJECTIVES))
        check_number(self.n_init, "n_init", low=1, integer=True, rules=("auto",))
        check_number(self.factor, "factor", low=1, open_low=True)
        check_choice(self.layout, "layout", ("auto", "free", "linear"))
        check_number(self.neighbor_weight, "neighbor_weight", low=0)
        check_number(self.spread, "spread", low=0, high=1, rules=("auto",))
        check_number(self.path_weight, "path_weight", low=0, high=1)
        if self.layout == "free" and not self._may_be_free:
            raise ValueError(
                f"layout='free' but n_components={self.n_components} and objective="
                f"{self.objective!r}; pass layout='linear', or 2 or 3 components and 'most'."
            )

    @property
    def _may_be_free(self) -> bool:
        """Whether there is a free layout for these parameters."""
        return self.n_components in (2, 3) and self.objective == "most"

    def _mapped(self, diffusion: Diffusion, times: list[Any]) -> tuple[Map, Any]:
        """Learn a linear map of wide coordinates, from which the points of a free layout move on.

        Sets `time_` and `time_curve_`.
        """
        n, k = diffusion.n, self.n_components
        check_n_components(k, n - 1, f"there are {n} distinct points")
        self.time_: Any = 1 if times[0] == "auto" else times[0]
        self.time_curve_: TimeCurve | None = None
        coordinates = ComponentCoordinates.from_diffusion(
            diffusion, max(N_LEADING, 4 * k), self._leading_pairs
        )
        H, Y, places, judged_by = np.zeros((n, k)), np.zeros((n, k)), None, None
        rounding = max(_ROUNDING, diffusion.diagnostics.get("exponent_error", 0.0))
        largest = np.abs(coordinates.values).max(initial=0.0)
        if largest >= rounding and not diffusion.diagnostics["is_constant"]:
            if times[0] == "auto":
                self.time_curve_ = direction_curve(coordinates.each[0], self.filter, k)
                self.time_ = self.time_curve_.time
            wide, ends = self._wide_coordinates(diffusion, coordinates)
            M = self._free_graph(diffusion)
            paths = None
            if M is not None and self.path_weight:
                paths = paths_within(diffusion, wide.components)
            linear = wide if paths is None else wide.without_large(LEAST_FREE)
            directions, held_out_log_L = learned_directions(
                linear,
                k,
                np.random.default_rng(seed_entropy(self.random_state)),
                OBJECTIVES[self.objective],
                hold_out=self.objective == "most",
                factor=self.factor,
                n_init=self.n_init,
            )
            H, Y = linear.mapped(directions, k)
            if M is not None:
                spread = None if self.spread == "auto" else self.spread
                places = free_places(
                    diffusion,
                    wide,
                    M,
                    Y,
                    paths,
                    neighbor_weight=self.neighbor_weight,
                    spread=spread,
                    path_weight=self.path_weight,
                )
            judged_by = wide, ends, held_out_log_L, paths
        if len(coordinates.components) > 1:
            self.diagnostics_["layout"] = "components side by side"
            places_before = Y if places is None else places
            shifts = side_by_side(places_before, coordinates.components, diffusion.measure)
            # After the last step of the Markov form √π is 1.
            markov = self.normalization == "markov"
            H += (diffusion.root[:, None] if markov else 1.0) * shifts
            places = None if places is None else places + shifts
        if places is None:
            return self._linear_map(diffusion, [H]), judged_by
        return FreeMap(places, diffusion.root), judged_by

    def _wide_coordinates(
        self, diffusion: Diffusion, coordinates: ComponentCoordinates
    ) -> tuple[WideCoordinates, tuple[float, float]]:
        """Return coordinates with the diffusion distances, and the ends of the spectrum."""
        f = make_filter(self.filter, self.time_).reduced()
        coordinates = coordinates.enough_for(make_filter(self.filter, self.time_).minus_constant())
        ends = float(coordinates.values.min()), float(coordinates.values.max())
        check_range(f, diffusion.deflated, ends)
        numbers = None
        if self.ids_ is not None:
            ids = self.ids_[diffusion.counted]
            numbers = numbers_at(ids, diffusion.vertex, diffusion.n)
        exact = self.objective == "worst"
        wide = WideCoordinates.under(
            diffusion, coordinates, f, self.n_sketch, numbers=numbers, exact=exact
        )
        self._checked(wide.after, wide.after.dtype)
        return wide, ends

    def _free_graph(self, diffusion: Diffusion) -> Any:
        """Return the step of a free layout, CSR (n, n); None: the layout is linear."""
        if not self._may_be_free or self.layout == "linear":
            return None
        M = step_graph(diffusion)
        if M is None and self.layout == "free":
            raise ValueError(
                "layout='free' but the affinity is an operator whose entries are not known; pass a "
                "matrix, or layout='linear'."
            )
        return M

    @property
    def distortion_(self) -> Distortion | None:
        """How well the diffusion distances are kept."""
        return self._verdict[0]

    @property
    def quality_(self) -> PictureQuality | None:
        """How well the picture agrees with the data."""
        return self._verdict[1]

    @property
    def _verdict(self) -> tuple[Distortion | None, PictureQuality | None]:
        """Both of them, found at the first look and kept in place of what they are found by.

        Threads that look at once may all find them: the same ones, without waiting for each other.
        """
        check_is_fitted(self)
        fitted = self.__dict__  # another fit has others
        if isinstance(fitted["_judged"], Picture):
            fitted["_judged"] = fitted["_judged"].judged(fitted["diffusion_"])
        return fitted["_judged"]  # type: ignore[no-any-return]

    def _judge(self, judged_by: Any, gaps: Array | None) -> None:
        """Keep what `embedding_` is judged by: the distances it should keep, and the points."""
        self._judged: Any = (None, None)
        if judged_by is None:
            return
        wide, ends, held_out_log_L, paths = judged_by
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
            rows=wide.after,  # without those before the step, which take as much room
            error=wide.error,
            held_out_log_L=math.nan if self._has_free_layout else held_out_log_L,
            is_free=self._has_free_layout,
            of_points=of_points,
            geodesics=geodesics,
            gaps=gaps,
        )

    def _explained_operator(self) -> tuple[Deflated, Array | None]:
        """Return A without directions that change no distance, and labels of separate maps."""
        labels = component_labels(self.diffusion_)
        if labels is None:
            return super()._explained_operator()
        return deflate_components(self.diffusion_, labels), labels
