"""Heat embedding: a picture by diffusion distances, linear or with free points; its time."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from heatsketch._checks import check_choice, check_n_components, check_number
from heatsketch._random import numbers_at, seed_entropy
from heatsketch._typing import Array
from heatsketch.estimators._base import DiffusionEstimator
from heatsketch.layout.free import free_layout
from heatsketch.layout.linear import OBJECTIVES, first_equal, learn_linear_map
from heatsketch.layout.objective import sampled_pairs
from heatsketch.markov.components import ComponentCoordinates, component_labels, deflate_components
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import N_LEADING, Coordinates, LeadingPairs, leading_pairs
from heatsketch.metrics.distances import DiffusionDistances
from heatsketch.metrics.distortions import Distortion, compare_distances
from heatsketch.metrics.picture import PictureQuality, picture_quality, sampled_geodesics
from heatsketch.neighbors import COORDINATES, in_metric, pair_distances
from heatsketch.operators.operator import Deflated
from heatsketch.operators.torch import on_device
from heatsketch.spectral.filters import FILTERS
from heatsketch.spectral.sketch import MOST_COLUMNS

DIRECTIONS_PER_DIMENSION = 4
_STILL = 1.25  # directions no longer fall if those at t are at most so many times those at 4 t
_LEAST_GROUP = 10  # points
_LAST_TIME = 2**40
_BEYOND = 4  # doublings of the chosen time up to which the curve goes
_HELD_OUT = 0.2  # fraction of the sampled rows that measure a map and take no part in learning it
_ROWS_TO_SPARE = 500  # with fewer rows none are held out
_LEAST_ROWS = 64  # for the map of a component, if it has so many
_SCALE_PAIRS = 20_000  # of which a map keeps the median distance
_ROUNDING = 1e-13  # of an eigenvalue
_DEGENERATE = 1e-12  # size of a component next to the largest, below which it is one place
_LEAST_FREE = 10  # points of a component whose layout is free
_PAIRS_OF_A_POINT, _MOST_PAIRS = 20, 2_000_000  # whose distances a free layout keeps
_GAP, _LEAST_GAP = 0.2, 0.1  # between discs: of the median radius, and of the largest


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
    spread : float, 0 <= spread <= 1, default=0.5
        For a free layout. 0: it aims at the distances. 1: at their order only, with points spread
        evenly over the frame. Between the two: the mean of the logarithms of both.
    affinity : {"knn", "variable", "dense", "radius", "precomputed"}, default="knn"
        "knn": the graph of nearest neighbours. "variable": the same graph with weights that remove
        the density of the sample. "dense": all pairs. "radius": pairs closer than 5 √(ε/2).
        "precomputed": X is a symmetric affinity, or a graph of any library (`heatsketch.graph`).
    epsilon : float or {"self-tuning", "ksum", "median", "nearest"}, default="self-tuning"
        Bandwidth ε of exp(-|x-y|²/ε), in squared data units, or the rule that chooses it.
        "self-tuning": ε_ij = s_i s_j, where s is the distance to the (n_neighbors // 2)-th
        neighbour. "ksum": see `ksum`. "median": the median squared distance of two points.
        "nearest": twice the mean squared distance to the nearest other point. The rules ignore
        distances of 0. "radius" needs a number or one of the other rules. "variable" allows only
        "self-tuning", where its s² is twice the mean square of the distances to the neighbours.
    n_neighbors : int, default=15
        Number of neighbours of each point in the graph, and for self-tuning scales. In a graph,
        duplicates count as one point. If there are too few distinct points, all others are
        neighbours, with a warning.
    neighbors : NeighborIndex, transformer or sparse matrix, default=None
        Neighbours for "knn" and "variable": a `heatsketch.neighbors.NeighborIndex`, a scikit-learn
        `KNeighborsTransformer` or another transformer that returns sparse graphs of distances, or
        the distances to the neighbours, a sparse matrix of shape (n_samples, n_samples). None: they
        are searched; if the search is not exact, its recall is measured.
    metric : str or callable, default="euclidean"
        Distance between points. "cosine": the chord |x/|x| - y/|y||, with the square 2 - 2
        cos(x, y), for text, counts and other data whose lengths mean nothing. "correlation": the
        same after the mean of each row has been subtracted from it. X may be sparse for
        "euclidean", "cosine" and "manhattan" only. The metrics below are exact and take n²
        distances (some seconds for 10,000 points): "manhattan"; "hamming", the fraction of features
        that differ; "jaccard", the distance of the sets of features that are not 0; a function of
        two rows, which is slow (for some hundred points). "precomputed": X holds distances of shape
        (n_samples, n_samples), and `transform` takes the distances of shape
        (n_new_samples, n_samples) from new points to the training points.
    normalization : {"markov", "symmetric", "bistochastic"}, default="markov"
        Matrix whose rows are compared: Pᵗ with weights 1/√π, Aᵗ of the symmetric form, or Bᵗ of the
        bistochastic form.
    alpha : float, default=1
        For the Markov form: the power of the density by which affinities are divided. With
        "variable", and with "radius" and "dense" at one small ε, 1 removes the effect of the
        density of the sample and 0 keeps it. With a self-tuning bandwidth ("knn", the default, and
        "dense") no value of `alpha` removes it, because steps are short where points are dense; use
        ``affinity="variable"`` instead.
    tol : float, default=1e-8
        For the bistochastic form: largest |row sum - 1|, 0 < tol <= 1e-3. The other normalizations
        ignore it.
    max_iter : int, default=1000
        For the bistochastic form: largest number of iterations of the scaling.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the random starts. Unused if `n_init` <= 4.
    memory : str or joblib.Memory, default=None
        Folder of a cache of diffusions. Fits to the same points that differ only in time, columns
        or seed then build one graph, for example in ``GridSearchCV`` over `time`.
    device : str or torch.device, default=None
        Device of torch, such as "cuda", that does the work: neighbours, graph, products and layout.
        By default that of X, if X is a tensor on a device, else the processor. The fitted model is
        on the processor, and needs no device.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        In units of the diffusion distance (several components of a free layout: of that of the
        largest one, about). A linear layout is ordered by variance.
    quality_ : PictureQuality or None
        How well the picture agrees with the data X rather than with diffusion distances:
        neighbours, large distances, far points. `quality_.describe()` summarises it in one line.
        None for precomputed affinities, for metrics other than "euclidean", "cosine",
        "correlation" and "precomputed", and if all points have the same affinities.
    distortion_ : Distortion
        How well the diffusion distances of `Diffusion.rows` are kept, by `diffusion_distortion`,
        which ``heatsketch score`` computes too; `distortion_.describe()` summarises it in one line.
        `held_out_log_L` is log L of points that took part in the diffusion but not in learning the
        map. It is NaN with ``objective="worst"``, in a free layout, or if no component has 500
        points to learn from.
        `distortion_` is None if all points have the same affinities.
    time_ : float
        The time used.
    time_curve_ : TimeCurve or None
        The numbers of directions by which ``time="auto"`` chose; `heatsketch.plot.time_curve` draws
        them. None for a given time.
    diagnostics_ : dict
        What was chosen and measured: neighbours, components, recall, seconds, and "layout"
        ("components side by side") if the gaps between components mean nothing, see Notes.
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
    [1]_, s the median length of an edge. d_ij are the diffusion distances of 20 random pairs for
    each point. T moves their logarithms by `spread` towards the quantiles of distances of random
    points of a disc [2]_, which have the same order [3]_. Far sums of q are taken by a tree [4]_,
    on a device by a grid. The start is the linear layout, no step is random, and pairs are chosen
    by content: the picture is the same for every seed, and for every order of the rows, up to
    rounding. Components of fewer than ten points stay linear, and so do operators whose entries are
    not known.

    A new point gets the weighted geometric median of the positions of its neighbours (up to 32),
    with weights K(x, x_j) / |x - x_j|; a training point its own position exactly. Given affinities
    have no distances: there the weights are K(x, x_j), and a row that is that of a training point
    gets the position of this point.

    Nothing diffuses between the components of a graph. In the Markov and the bistochastic form each
    component has its own map, which preserves the distances within it. In a free layout components
    get areas in proportion to their numbers of points. Components are placed side by side in rows,
    the widest first. The gaps mean nothing, and distances between components do not count in
    `distortion_`. The time is chosen for the largest component.

    The cost is that of 64 eigenpairs and, at small times, the products of a sketch of r columns;
    all eigenpairs of up to 512 points, and of up to 2,048 at small times; some 300 evaluations of
    6,000 pairs; `distortion_` and `quality_`. A free layout takes up to 300 steps (150 beyond
    20,000 points) of n log n operations, and some for each edge and pair; a dense affinity of more
    than 4,096 points is made once more.

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
    spread: float = 0.5

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
        check_number(self.spread, "spread", low=0, high=1)
        if self.layout == "free" and not self._may_be_free:
            raise ValueError(
                f"layout='free' but n_components={self.n_components} and objective="
                f"{self.objective!r}; pass layout='linear', or 2 or 3 components and 'most'."
            )

    @property
    def _may_be_free(self) -> bool:
        """Whether there is a free layout for these parameters."""
        return self.n_components in (2, 3) and self.objective == "most"

    def _factor(self, diffusion: Diffusion, times: list[Any]) -> tuple[list[Array], Any]:
        """Return H (n, k), whose last step is the embedding, and the distances it should keep.

        F (n, r) and H = F W are coordinates before the last step. After it they are `wide` (n, r),
        whose distances the map W should keep, and Y = wide W, from which a free layout starts. Sets
        `time_` and `time_curve_`.
        """
        n = diffusion.n
        k = check_n_components(self.n_components, n - 1, f"there are {n} distinct points")
        self.time_: Any = 1 if times[0] == "auto" else times[0]
        self.time_curve_: TimeCurve | None = None
        coordinates = ComponentCoordinates.from_diffusion(
            diffusion, max(N_LEADING, 4 * k), self._leading_pairs
        )
        components = coordinates.components
        values = np.concatenate([component.values for component in coordinates.each])
        rounding = max(_ROUNDING, diffusion.diagnostics.get("exponent_error", 0.0))
        H = np.zeros((diffusion.n, k))
        Y = np.zeros_like(H)
        wanted = None
        if np.abs(values).max(initial=0.0) >= rounding and not diffusion.diagnostics["is_constant"]:
            if times[0] == "auto":
                self.time_curve_ = direction_curve(coordinates.each[0], self.filter, k)
                self.time_ = self.time_curve_.time
            ends = values.min(), values.max()
            distances = DiffusionDistances.from_operator(
                diffusion, self.time_, self.filter, within_components=True, ends=ends
            )
            numbers = None
            if self.ids_ is not None:
                numbers = numbers_at(self.ids_, diffusion.vertex, diffusion.n)
            exact = self.objective == "worst"
            F, error = coordinates.under(
                distances.rows.filter, self.n_sketch, numbers=numbers, exact=exact
            )
            wide = self._checked(diffusion.step() @ F, F.dtype)
            place = np.argsort(diffusion.sample(diffusion.n))  # in the order of content
            maps, held_out_log_L = self._maps(components, place, wide)
            for vertices, W in zip(components, maps, strict=True):
                H[vertices] = F[vertices] @ W
                Y[vertices] = wide[vertices] @ W
            if self._may_be_free and self.layout != "linear":
                self._positions = self._free_positions(diffusion, components, place, wide, Y)
            wanted = WantedDistances(wide, distances, error, held_out_log_L)
        if len(components) > 1:
            # Components, which all have their mean at 0, are moved beside each other.
            self.diagnostics_["layout"] = "components side by side"
            mass = np.array([diffusion.measure[vertices].sum() for vertices in components])
            markov = self.normalization == "markov"
            constant = diffusion.root if markov else np.ones(len(H))  # after a step: 1
            places = Y if self._positions is None else self._positions
            shifts = side_by_side(places, components, mass)
            for vertices, shift in zip(components, shifts, strict=True):
                places[vertices] += shift
                H[vertices] += constant[vertices, None] * shift
        return [H], wanted

    def _judge(self, X: Any, wanted: Any) -> None:
        """Measure `embedding_` by the distances it should keep, and by the points X."""
        self.distortion_: Distortion | None = None
        self.quality_: PictureQuality | None = None
        if wanted is None:
            return
        Y = np.asarray(self.embedding_, dtype=float)
        is_free = self._positions is not None
        wide = self.diffusion_.expand(wanted.coordinates)
        distortion = compare_distances(Y, wide, wanted.distances, wanted.error)
        held_out_log_L = math.nan if is_free else wanted.held_out_log_L
        self.distortion_ = distortion._replace(held_out_log_L=held_out_log_L)
        given = self.metric == "precomputed"
        if self.affinity != "precomputed" and (given or self.metric in COORDINATES):
            X = X if given else in_metric(X, self.metric)
            geodesics = sampled_geodesics(X, self.diffusion_, distances=given)
            self.quality_ = picture_quality(
                X, Y, self.diffusion_, distortion, geodesics, distances=given, is_free=is_free
            )

    def _maps(
        self, components: list[Array], place: Array, wide: Array
    ) -> tuple[list[Array], float]:
        """Learn a map (r, k) from sampled rows of each component; return log L of unseen ones.

        Rows are chosen by their place (n,) in the order of content. Maps have the scale that keeps
        the median distance.
        """
        k = self.n_components
        rng = np.random.default_rng(seed_entropy(self.random_state))
        objective = OBJECTIVES[self.objective]
        count = max(_LEAST_ROWS, objective.rows // len(components))
        samples = [wide[vertices[np.argsort(place[vertices])[:count]]] for vertices in components]
        size = max(float(np.abs(S).max()) for S in samples) or 1.0
        maps, held_out_log_L = [], math.nan
        for S in samples:
            W = np.zeros((wide.shape[1], k))
            S = S / size
            S = S[np.unique(first_equal(S))]
            used = np.flatnonzero(np.ptp(S, axis=0) > _DEGENERATE)
            if len(used):  # else the component is one place
                spared = self.objective == "most" and len(S) >= _ROWS_TO_SPARE
                S = S[:, used]
                learned = learn_linear_map(
                    S,
                    k,
                    rng,
                    objective=objective,
                    factor=self.factor,
                    n_init=self.n_init,
                    validation_fraction=_HELD_OUT * spared,
                )
                images = S @ learned.components.T
                pairs = sampled_pairs(len(S), _SCALE_PAIRS)
                W[used] = learned.components.T / typical_ratio(images, S, *pairs)
                held_out_log_L = np.fmax(held_out_log_L, learned.held_out_log_L)
            maps.append(W)
        return maps, float(held_out_log_L)

    def _free_positions(
        self,
        diffusion: Diffusion,
        components: list[Array],
        place: Array,
        wide: Array,
        start: Array,
    ) -> Array | None:
        """Return positions (n, k): a free layout of each component of ten points and more.

        It keeps the distances of `wide` (n, r). None if there is no such component. Several
        components get areas in proportion to their numbers of points. `place` as in `_maps`.
        """
        M = diffusion.sparse_step()
        if M is None and self.layout == "free":
            raise ValueError(
                "layout='free' but the affinity is an operator whose entries are not known; pass a "
                "matrix, or layout='linear'."
            )
        large = [c for c in components if len(c) >= _LEAST_FREE and np.ptp(start[c]) > 0]
        if M is None or not large:
            return None
        Y = start.astype(float)
        for vertices in large:
            n, ordered = len(vertices), vertices[np.argsort(place[vertices])]
            count = min(_PAIRS_OF_A_POINT * n, max(_MOST_PAIRS, n))
            i, j = (ordered[side] for side in sampled_pairs(n, count))
            blocks = diffusion.operator.blocks
            pairs = map(blocks.native, (i, j))
            distances = blocks.host(pair_distances(wide, wide, *pairs))
            own = M if n == diffusion.n else M[vertices][:, vertices]
            Y[vertices] = free_layout(
                on_device(own, blocks.device),
                diffusion.root[vertices],
                Y[vertices],
                (np.searchsorted(vertices, i), np.searchsorted(vertices, j)),
                np.log(np.maximum(distances, _DEGENERATE * distances.max())),
                neighbor_weight=self.neighbor_weight,
                spread=self.spread,
            )
            i, j = (ordered[side] for side in sampled_pairs(n, _SCALE_PAIRS))
            Y[vertices] /= typical_ratio(Y, wide, i, j)
            if diffusion.directed_step is None:  # equal points have a vertex each, but one place
                own = wide[vertices]
                Y[vertices] = Y[vertices[first_equal(own / np.abs(own).max())]]
        for vertices in components:
            Y[vertices] -= Y[vertices].mean(axis=0)
        if len(components) > 1:
            sizes = np.array([np.sqrt(np.mean(np.square(Y[c]))) for c in components])
            counts = np.array([len(c) for c in components])
            shares = (counts / counts[0]) ** (1 / self.n_components)
            factors = shares * sizes[0] / np.where(sizes > 0, sizes, 1.0)
            for vertices, factor in zip(components, factors, strict=True):
                Y[vertices] *= factor
        return Y

    def _explained_operator(self) -> tuple[Deflated, Array | None]:
        """Return A without directions that change no distance, and labels of separate maps."""
        labels = component_labels(self.diffusion_)
        if labels is None:
            return super()._explained_operator()
        return deflate_components(self.diffusion_, labels), labels


class WantedDistances(NamedTuple):
    """Coordinates whose distances an embedding should keep, and what is known of them."""

    coordinates: Array  # (n, r), of the vertices, after the last step
    distances: DiffusionDistances  # the exact ones
    error: float  # of a mean squared distance by the coordinates
    held_out_log_L: float  # of the map, over rows that it was not learned from


class TimeCurve(NamedTuple):
    """The effective number of directions against diffusion time, and the time chosen.

    Attributes
    ----------
    times : array (m,)
        Ascending: 1, 2, 4, ..., and the time chosen.
    directions : array (m,)
        Effective number of directions of the diffusion distances at one time t: (Σ λ^2t)² / Σ λ^4t.
    wanted : float
        The largest number that k dimensions can show: 4 k.
    time : int
        The smallest time with at most `wanted` directions, or from which on they no longer fall.
    """

    times: Array
    directions: Array
    wanted: float
    time: int


def choose_time(
    diffusion: Diffusion,
    n_components: int = 2,
    *,
    filter: str = "accumulated",
    leading: LeadingPairs = leading_pairs,
) -> TimeCurve:
    """Choose the time as `HeatEmbedding` does, without the embedding; see `direction_curve`."""
    count = max(N_LEADING, 4 * n_components)
    coordinates = ComponentCoordinates.from_diffusion(diffusion, count, leading)
    return direction_curve(coordinates.each[0], filter, n_components)


def direction_curve(coordinates: Coordinates, filter: str, k: int) -> TimeCurve:
    """Choose the diffusion time for a picture in k dimensions.

    A linear map from m directions to k dimensions keeps most distances if m is not much larger than
    k. Smaller times have more directions, which the map cannot show; larger times lose structure.
    If there are more than 4 k tight groups that hardly touch, each stays a direction until times at
    which it is a single place. Therefore the search ends earlier, where the directions no longer
    fall. (With waiting walks they do not fall at first either, so at least ten points per direction
    are required.)
    """
    wanted = float(DIRECTIONS_PER_DIMENSION * k)
    count = len(coordinates.values) + coordinates.remaining.counts.sum()  # of eigenvalues
    f = FILTERS["power" if filter == "accumulated" else filter]  # also for sums, one time
    low, time, high = 0, 1, _LAST_TIME  # too many directions at low, few enough at high
    while high - low > 1:
        now, later = (coordinates.directions(f(t)) for t in (time, 4 * time))
        if now <= wanted or now <= min(count / _LEAST_GROUP, _STILL * later):
            high = time
        else:
            low = time
        time = min(2 * time, (low + high + 1) // 2)
    last = math.ceil(math.log2(high)) + _BEYOND
    times = np.union1d(2 ** np.arange(last + 1), [high])
    curve = np.array([coordinates.directions(f(int(time))) for time in times])
    return TimeCurve(times, curve, wanted, high)


def typical_ratio(Y: Array, F: Array, i: Array, j: Array) -> float:
    """Return the median ratio of distances of rows Y (n, k) to those of F (n, r), not 0."""
    distances = pair_distances(F, F, i, j)
    apart = distances > 0
    ratios = pair_distances(Y, Y, i, j)[apart] / distances[apart]
    median, largest = float(np.median(ratios)), float(ratios.max())
    return median if median > _DEGENERATE * largest else largest


def side_by_side(Y: Array, components: Sequence[Array], mass: Array) -> Array:
    """Return shifts (C, k) of components of Y (n, k) after which their discs stand in rows, apart.

    The discs have their centres at the means. They stand in rows like words in a text, the largest
    one first, in about a square; with k = 1 there is one row. `mass` (C,) weighs the components:
    the weighted mean of the shifts is 0.
    """
    means = np.array([Y[rows].mean(axis=0, dtype=float) for rows in components])
    radii = np.array(
        [
            np.linalg.norm(Y[rows] - mean, axis=1).max()
            for rows, mean in zip(components, means, strict=True)
        ],
        dtype=float,
    )
    gap = max(_GAP * float(np.median(radii)), _LEAST_GAP * float(radii.max())) or 1.0
    steps = 2 * radii + gap
    is_line = Y.shape[1] == 1
    width = np.inf if is_line else max(np.sqrt(np.sum(steps**2)), steps.max())
    shifts, x, y, height = -means, 0.0, 0.0, 0.0
    for disc in np.argsort(-radii, kind="stable"):
        step = steps[disc]
        if x + step > width * (1 + 1e-9):  # the next row
            x, y, height = 0.0, y - height, 0.0
        height = max(height, step)  # discs hang from the upper edge of their row
        shifts[disc, 0] += x + step / 2
        if not is_line:
            shifts[disc, 1] += y - step / 2
        x += step
    return shifts - mass @ shifts / mass.sum()
