"""Heat embedding: few coordinates whose distances are nearly the diffusion distances."""

import math
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from heatsketch._checks import check_choice, check_number
from heatsketch._random import seed_entropy
from heatsketch._typing import Array
from heatsketch.estimators._base import DiffusionEstimator, Scaled
from heatsketch.estimators._blocks import with_root
from heatsketch.estimators.layout import side_by_side
from heatsketch.estimators.time_choice import TimeCurve, choose_time
from heatsketch.isometry.learn import (
    AUTO_STARTS,
    MAX_ROWS,
    OBJECTIVES,
    Settings,
    first_equal,
    learn,
    oriented,
    typical_ratio,
)
from heatsketch.isometry.pairs import ALL_PAIRS_UP_TO
from heatsketch.markov.components import component_labels, deflate_components, within_component
from heatsketch.markov.coordinates import Coordinates
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import N_LEADING
from heatsketch.metrics import Distortion, diffusion_distortion
from heatsketch.metrics.picture import PictureQuality, picture_quality
from heatsketch.neighbors import COORDINATES, in_metric
from heatsketch.operators import Deflated
from heatsketch.operators.products import multiply
from heatsketch.spectral.apply import in_range
from heatsketch.spectral.cache import caching
from heatsketch.spectral.filters import Filter, make_filter, of_one_time
from heatsketch.spectral.sketch import MOST_COLUMNS

SIDE_BY_SIDE = "components side by side"
_MAX_ITER = 60  # of each descent
_HELD_OUT = 0.2  # fraction of the sampled rows that judge a map and do not take part in it
_ROWS_TO_SPARE = 500  # of fewer rows none are held out
_LEAST_ROWS = 64  # from which the map of a component is learned
_ROUNDING = 1e-13  # of an eigenvalue
_DEGENERATE = 1e-12  # size of a component next to the largest, below which it is one place


class HeatEmbedding(DiffusionEstimator):
    """Embed data in few dimensions so that distances are nearly diffusion distances.

    The points get coordinates whose distances are their diffusion distances: the leading
    eigenvectors and, where these leave something out, a sketch of the rest (`Coordinates`). Of all
    linear maps of these to k dimensions, the one is learned that keeps most distances. Diffusion
    maps use the k slowest directions and sketches random ones; if k is small, distant points may
    coincide in both.

    Parameters
    ----------
    n_components : int, default 2
        Number k of dimensions.
    time : int >= 1 or "auto", default "auto"
        Diffusion time; real and positive with ``filter="heat"``. "auto": the smallest time at which
        the distances of one time have at most 4 k effective directions, see `TimeCurve`. At small
        times there are more directions than k dimensions can show; large times forget structure.
    filter : "accumulated", "power" or "heat", default "accumulated"
        "accumulated": squared diffusion distances added up over all times from `time` to 64 times
        `time` (`Accumulated`). "power": the distances of one time, λ^t, beyond which all points
        farther apart than √t steps are equally far, so that long gradients fold. "heat":
        e^{-t(1-λ)} less e^{-t}.
    n_sketch : int, default 128
        Number r of columns of the sketch of what 64 eigenvectors leave out, beyond 2,048 points at
        small times: this part of a squared distance has an error of √(2 / r) of it.
    objective : "most" or "worst", default "most"
        "most": as many pairs as possible within `factor`, with a little weight on log L. "worst":
        the least log L, of the given points.
    n_init : int or "auto", default "auto"
        Number of starts, see `NearIsometricProjection`; those beyond the fourth are random.
    factor : float, default 1.5
        For ``objective="most"``.
    metric, affinity, epsilon, n_neighbors, neighbors, normalization, alpha, tol, max_iter, \
random_state, memory
        As in `HeatSketch`: for distances that do not depend on the density of the sample pass
        ``affinity="variable"`` (``alpha=1`` alone does not do it). `random_state` only counts if
        `n_init` is above 4.

    Attributes
    ----------
    embedding_ : array (n, k)
        Ordered by variance, in units of the diffusion distance.
    quality_ : PictureQuality or None
        How far the picture can be believed, judged by the data and not by its own distances:
        neighbours, large distances, far points. `quality_.describe()` says it in a line. None for
        given affinities.
    distortion_ : Distortion
        How well the diffusion distances of `Diffusion.rows` are kept, by `diffusion_distortion`,
        which ``heatsketch score`` computes too; `distortion_.describe()` summarises it in one line.
        `held_out_log_L` is that of points which took no part in learning the map, though they took
        part in the diffusion (from 500 points on). None if all points have the same affinities.
    time_ : float
        The time used.
    time_curve_ : TimeCurve or None
        What ``time="auto"`` counted; `heatsketch.plot.time_curve` draws it.
    diagnostics_ : dict
        As in `HeatSketch`. With "layout" ("components side by side") if the gaps between components
        mean nothing, see Notes.
    diffusion_, epsilon_, n_iter_, ids_, n_features_in_, feature_names_in_
        As in `HeatSketch`.

    Notes
    -----
    New points are mapped exactly as the training points: y(x) = Σ_j a(x, x_j) H_j, with the same H.
    The rows that the map is learned from are chosen by their values, not by their order.

    Nothing diffuses between the components of a graph. In the Markov and the bistochastic form each
    has a map of its own, which keeps the distances within it, and they stand side by side in rows,
    the widest first: the gaps mean nothing, and distances between components do not count in
    `distortion_`. The time is chosen for the largest component.

    Cost: 64 eigenpairs and, at small times, the products of a sketch of r columns; all eigenpairs
    of up to 512 points, and of up to 2,048 at small times; some 300 evaluations of 6,000 pairs;
    `distortion_` and `quality_`. The embedding keeps distances; t-SNE shows gaps between classes
    more clearly.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(200, rng=0)
    >>> embedding = hs.HeatEmbedding(2, affinity="dense", epsilon=0.25, time=8, random_state=0)
    >>> Y = embedding.fit_transform(X)
    >>> embedding.distortion_.within[1.25]
    1.0
    """

    def __init__(
        self,
        n_components: int = 2,
        time: Any = "auto",
        *,
        filter: str = "accumulated",
        n_sketch: int = 128,
        objective: str = "most",
        n_init: Any = "auto",
        factor: float = 1.5,
        affinity: str = "knn",
        epsilon: float | str = "self-tuning",
        n_neighbors: int = 15,
        neighbors: Any = None,
        metric: str = "euclidean",
        normalization: str = "markov",
        alpha: float = 1.0,
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
        memory: Any = None,
    ) -> None:
        self.n_components = n_components
        self.time = time
        self.filter = filter
        self.n_sketch = n_sketch
        self.objective = objective
        self.n_init = n_init
        self.factor = factor
        self.affinity = affinity
        self.epsilon = epsilon
        self.n_neighbors = n_neighbors
        self.neighbors = neighbors
        self.metric = metric
        self.normalization = normalization
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.memory = memory

    def _check_parameters(self, times: list[Any]) -> None:
        check_number(self.n_components, "n_components", low=1, integer=True)
        if len(times) > 1:
            raise ValueError(f"time={self.time!r} has {len(times)} times; pass one, or 'auto'.")
        if not _is_auto(times):
            if isinstance(times[0], str):
                check_number(times[0], "time", low=1, rules=("auto",))
            self._filter.check_time(times[0], whole=True)
        check_number(self.n_sketch, "n_sketch", low=1, high=MOST_COLUMNS, integer=True)
        check_choice(self.objective, "objective", OBJECTIVES)
        check_number(self.n_init, "n_init", low=1, integer=True, rules=("auto",))
        check_number(self.factor, "factor", low=1, open_low=True)

    @caching()  # the density of the eigenvalues is asked for by the time and by `distortion_`
    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Fit the diffusion on the points X, choose the time, learn the map; see `HeatSketch`.

        Raises
        ------
        ValueError, TypeError, MemoryError, CertificateError
            As `HeatSketch`; a time that is neither a number nor "auto".
        """
        self.time_: Any = 1
        self.time_curve_: TimeCurve | None = None
        self.distortion_: Distortion | None = None
        self.quality_: PictureQuality | None = None
        self._all_eigenvalues: Array | None = None
        self._learned: _Learned | None = None
        self._has_layout = False
        super().fit(X, y, ids=ids)
        learned = self.__dict__.pop("_learned")
        if self.__dict__.pop("_has_layout"):
            self.diagnostics_["layout"] = SIDE_BY_SIDE
        if learned is None:  # all distances are zero
            return self
        found = diffusion_distortion(
            self.embedding_,
            self.diffusion_,
            self.time_,
            filter=self.filter,
            eigenpairs=learned.eigenpairs(make_filter(self.filter, self.time_).reduced()),
            log_scale=self.diagnostics_["log_scale"],
        )
        self.distortion_ = found._replace(held_out_log_L=learned.held_out_log_L)
        if learned.points is not None:
            self.quality_ = picture_quality(learned.points, self.embedding_, self.diffusion_, found)
        return self

    def _factor(self, diffusion: Diffusion, times: list[Any], X: Any) -> list[Scaled]:
        """Return H (n, k), whose rows after the last step are the embedding."""
        k, limit = self.n_components, diffusion.n - 1
        if k > limit:
            raise ValueError(
                f"n_components={k} needs at least {k + 1} distinct points, got {diffusion.n}; pass "
                f"n_components <= {limit}."
            )
        self.time_ = 1 if _is_auto(times) else times[0]
        if diffusion.diagnostics["is_constant"]:  # all distances are zero
            return [(np.zeros((diffusion.n, k)), 0.0)]
        components = _components(diffusion)
        coordinates = [
            Coordinates.of(_inside(diffusion, vertices, components), max(N_LEADING, 4 * k))
            for vertices in components
        ]
        self._has_layout = len(components) > 1
        if max(float(np.abs(one.values).max(initial=0.0)) for one in coordinates) < _ROUNDING:
            return [(self._beside(np.zeros((diffusion.n, k)), diffusion, components), 0.0)]
        if _is_auto(times):
            self.time_curve_ = choose_time(coordinates[0], self._filter_of_one_time, k)
            self.time_ = self.time_curve_.time
        rng = np.random.default_rng(seed_entropy(self.random_state))
        F, coordinates, log_scale = self._coordinates(diffusion, components, coordinates)
        samples = self._samples(diffusion, components)
        maps, held_out = self._maps(diffusion, samples, F, rng)
        H = np.zeros((diffusion.n, k))
        for vertices, W in zip(components, maps, strict=True):
            H[vertices] = F[vertices] @ W
        H = self._beside(H, diffusion, components)
        known = self.affinity != "precomputed" and self.metric in COORDINATES
        points = in_metric(X, self.metric) if known else None
        self._learned = _Learned(components, coordinates, held_out, points)
        self._all_eigenvalues = self._learned.all_eigenvalues()
        return [in_range(H, log_scale, F.dtype)]

    def _coordinates(
        self,
        diffusion: Diffusion,
        components: list[Array],
        coordinates: list[Coordinates],
    ) -> tuple[Array, list[Coordinates], float]:
        """Return the coordinates F (n, r) of all vertices at the time chosen, and their log scale.

        Each component has its own; shorter ones are filled with zeros. All eigenpairs of up to
        2,048 vertices are computed where the leading ones are not enough.
        """
        f = make_filter(self.filter, self.time_).reduced()
        numbers = self._numbers(diffusion)
        blocks, log_scales = [], []
        for c, vertices in enumerate(components):
            if self.objective == "worst" or not coordinates[c].are_complete(f):
                coordinates[c] = coordinates[c].all_known()
            own = None if numbers is None else numbers[vertices]
            block, log_scale = coordinates[c].under(f, self.n_sketch, seed=0, numbers=own)
            blocks.append(block)
            log_scales.append(log_scale)
        common = max(log_scales)
        F = np.zeros((diffusion.n, max(block.shape[1] for block in blocks)), blocks[0].dtype)
        for vertices, block, log_scale in zip(components, blocks, log_scales, strict=True):
            F[vertices, : block.shape[1]] = block * math.exp(log_scale - common)
        return F, coordinates, common

    def _maps(
        self, diffusion: Diffusion, samples: list[Array], F: Array, rng: np.random.Generator
    ) -> tuple[list[Array], float]:
        """Learn a map (r, k) from sampled vertices of each component; return log L of unseen ones.

        Maps have the scale that keeps the median distance.
        """
        k = self.n_components
        settings = Settings(
            self.objective,
            self.factor,
            rank=None,
            n_init=AUTO_STARTS[self.objective] if self.n_init == "auto" else self.n_init,
            max_iter=_MAX_ITER,
            validation_fraction=0.0,
        )
        rows = self._stepped(diffusion, F, np.concatenate(samples))
        maps, held_out, size = [], math.nan, float(np.abs(rows).max())
        for S in np.split(rows, np.cumsum([len(sample) for sample in samples])[:-1]):
            S, W = S / (size or 1.0), np.zeros((F.shape[1], k))
            S = S[np.unique(first_equal(S))]
            used = np.flatnonzero(np.ptp(S, axis=0) > _DEGENERATE)
            if len(used):  # else the component is one place
                dimensions = min(k, len(used))
                spared = self.objective == "most" and len(S) >= _ROWS_TO_SPARE
                own = replace(settings, validation_fraction=_HELD_OUT * spared)
                learned = learn(S[:, used], dimensions, own, rng, for_new_points=False)
                map_ = oriented(learned.components, S[:, used]).T
                W[used, :dimensions] = map_ / typical_ratio(map_, S[:, used])
                held_out = np.fmax(held_out, learned.held_out_log_L)
            maps.append(W)
        return maps, float(held_out)

    def _beside(self, H: Array, diffusion: Diffusion, components: list[Array]) -> Array:
        """Move the components, whose embeddings all lie around 0, beside each other."""
        if len(components) == 1:
            return H
        Y = self._stepped(diffusion, H, slice(None))
        mass = np.array([diffusion.measure[vertices].sum() for vertices in components])
        # The last step maps it to a constant.
        constant = np.sqrt(diffusion.measure) if self.normalization == "markov" else np.ones(len(H))
        for vertices, shift in zip(components, side_by_side(Y, components, mass), strict=True):
            H[vertices] += constant[vertices, None] * shift
        return H

    def _stepped(self, diffusion: Diffusion, H: Array, vertices: Any) -> Array:
        """Return rows of H (n, c) after the last step, whose distances are to be kept."""
        wide, step = with_root(H, diffusion.measure), diffusion.directed_step
        if step is None or isinstance(vertices, slice):
            return self._rows_of(diffusion.last_step(wide)[vertices], H.dtype)
        return self._rows_of(multiply(step[vertices], wide), H.dtype)

    def _filter_of_one_time(self, time: int) -> Filter:
        """Return the filter whose directions are counted: at one time, also of sums over times."""
        return make_filter(of_one_time(self.filter), time)

    def _compared(self) -> tuple[Deflated, Array | None]:
        """Return A without what distances do not see, and components mapped by themselves."""
        labels = component_labels(self.diffusion_)
        if labels is None:
            return super()._compared()
        return deflate_components(self.diffusion_, labels), labels

    def _samples(self, diffusion: Diffusion, components: list[Array]) -> list[Array]:
        """Return the vertices of each component from which its map is learned, shuffled.

        They are chosen by the values of the points, not by the order of the rows.
        """
        order = diffusion.sample(diffusion.n)
        rank = np.argsort(order)
        most = max(_LEAST_ROWS, MAX_ROWS[self.objective] // len(components))
        return [vertices[np.argsort(rank[vertices])[:most]] for vertices in components]


class _Learned(NamedTuple):
    """What `fit` needs once the map is learned."""

    components: list[Array]
    coordinates: list[Coordinates]
    held_out_log_L: float
    points: Any  # where the affinity is not given

    def eigenpairs(self, f: Filter) -> tuple[Array, Array] | None:
        """Return the eigenpairs of the whole that are known, if they suffice to compare all pairs.

        Beyond 2,048 points the leading ones are enough: they are compared with a sketch.
        """
        whole, *others = self.coordinates
        if others or not (whole.are_complete(f) or whole.operator.n > ALL_PAIRS_UP_TO):
            return None
        return whole.values, whole.vectors

    def all_eigenvalues(self) -> Array | None:
        """Return all eigenvalues inside the components, if they are known."""
        if any(len(one.others.values) for one in self.coordinates):
            return None
        return np.concatenate([one.values for one in self.coordinates])


def _components(diffusion: Diffusion) -> list[Array]:
    """Return the vertices of each component, ascending, the largest component first."""
    labels = component_labels(diffusion)
    if labels is None:
        return [np.arange(diffusion.n)]
    sizes, order = np.bincount(labels), np.argsort(labels, kind="stable")
    components = np.split(order, np.cumsum(sizes)[:-1])
    return sorted(components, key=len, reverse=True)


def _inside(diffusion: Diffusion, vertices: Array, components: list[Array]) -> Deflated:
    """Return A of one component without its trivial direction."""
    if len(components) == 1:
        return diffusion.deflated()
    return within_component(diffusion, vertices)


def _is_auto(times: list[Any]) -> bool:
    return isinstance(times[0], str) and times[0] == "auto"
