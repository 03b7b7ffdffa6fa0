"""Heat embedding: few coordinates whose distances are nearly the diffusion distances."""

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from heatsketch._array import content_order, seed_entropy
from heatsketch._checks import ConvergenceWarning, check_choice, check_number
from heatsketch._typing import Array
from heatsketch.estimators._base import DiffusionEstimator
from heatsketch.estimators._blocks import with_root
from heatsketch.estimators._parts import Parts, side_by_side
from heatsketch.estimators._time_choice import CURVE_ROWS, SHARE_ERROR, TimeChoice, TimeCurve
from heatsketch.estimators.near_isometric import NearIsometricProjection
from heatsketch.isometry.learn import OBJECTIVES
from heatsketch.markov.coordinates import Coordinates
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.pieces import inner, pieces
from heatsketch.markov.rows import N_LEADING
from heatsketch.metrics import Distortion, diffusion_distortion
from heatsketch.neighbors import in_metric
from heatsketch.operators import Deflated
from heatsketch.spectral.apply import Block
from heatsketch.spectral.filter_base import Filter
from heatsketch.spectral.filters import make_filter
from heatsketch.spectral.sketch import MOST_COLUMNS

SIDE_BY_SIDE = "components side by side"
_ROUNDING = 1e-13  # of an eigenvalue
_DOT = 1e-12  # size of a component next to the largest, below which it is a dot


class HeatEmbedding(DiffusionEstimator):
    """Embed data in few dimensions so that distances are nearly diffusion distances.

    The points get coordinates whose distances are their diffusion distances (`Coordinates`: the
    leading eigenvectors and, where these leave something out, a sketch of the rest). Of all linear
    maps of these to k dimensions, the one is learned that keeps most distances
    (`NearIsometricProjection`). Diffusion maps use the k slowest directions and sketches random
    ones; if k is small, distant points may coincide in both.

    Parameters
    ----------
    n_components : int, default 2
        Number k of dimensions.
    time : int >= 1 or "auto", default "auto"
        Diffusion time; real and positive with ``filter="heat"``. "auto": the smallest of 1, 2, 4,
        ... at which k dimensions keep a share `share` of the distances within `factor`: at small
        times the data have more dimensions, large times forget small distances. If there is none,
        the time with the largest share.
    filter : "power" or "heat", default "power"
        λ^t, or e^{-t(1-λ)} less e^{-t}.
    n_sketch : int, default 128
        Number r of columns of the sketch of what 64 eigenvectors leave out, beyond 2,048 points at
        small times: this part of a squared distance has an error of √(2 / r) of it.
    objective : "most" or "worst", default "most"
        "most": as many pairs as possible within `factor`, and among maps within 0.01 of that share
        the one with the least log L. "worst": the least log L.
    n_init : int or "auto", default "auto"
        Number of starts, see `NearIsometricProjection`; those beyond the fourth are random.
    share, factor : float, default 0.8 and 1.5
        For ``time="auto"``; `factor` also for ``objective="most"``.
    metric, affinity, epsilon, n_neighbors, neighbors, normalization, alpha, tol, max_iter, \
random_state, memory
        As in `HeatSketch`: for distances that do not depend on the density of the sample pass
        ``affinity="variable"`` (``alpha=1`` alone does not do it). Up to 2,048 points, and at large
        times, nothing is random unless `n_init` is above 4.

    Attributes
    ----------
    embedding_ : array (n, k)
        Ordered by variance, in units of the diffusion distance.
    distortion_ : Distortion
        How well the diffusion distances of `Diffusion.rows` are kept, by `diffusion_distortion`,
        which ``heatsketch score`` computes too; `distortion_.describe()` summarises it in one line.
        `held_out_log_L` is that of points which were left out when a first map was learned, though
        they took part in the diffusion. None if all points have the same affinities.
    projection_ : NearIsometricProjection
        The map of the coordinates (or None, likewise), learned from at most 20,000 points; of
        several components that of the largest.
    time_ : float
        The time used.
    time_curve_ : TimeCurve or None
        What ``time="auto"`` measured; `heatsketch.plot.time_curve` draws it.
    diagnostics_ : dict
        As in `HeatSketch`. With "layout" ("components side by side") if the gaps between components
        mean nothing, see Notes.
    diffusion_, epsilon_, n_iter_, ids_, n_features_in_, feature_names_in_
        As in `HeatSketch`.

    Notes
    -----
    New points are mapped exactly as the training points: y(x) = Σ_j a(x, x_j) H_j, with the same H.
    The rows that the map is learned from are chosen by their values, not by their order: other
    orders differ by rounding and by ties between neighbours. At the time chosen this moves points
    by some hundredths of their size (digits 6 %, a roll 2 %); at a time at which two dimensions
    keep few distances another map may be as good, and be found.

    Nothing diffuses between the components of a graph. In the Markov and the bistochastic form each
    has a map of its own, which keeps the distances within it, and they stand side by side in rows,
    the widest first: the gaps mean nothing, and distances between components count neither for the
    time nor in `distortion_`. (Not beyond 2²⁵ points x components: then also for the components
    themselves there is one map.)

    Cost: all eigenpairs up to 2,048 points, else 64; at small times also
    the products of a sketch of r columns; and the projection. The embedding keeps distances; t-SNE
    shows gaps between classes more clearly.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(200, rng=0)
    >>> embedding = hs.HeatEmbedding(2, affinity="dense", epsilon=0.25, time=8, random_state=0)
    >>> Y = embedding.fit_transform(X)
    >>> embedding.distortion_.within[1.25]
    1.0
    """

    _method = "heat-embedding"

    def __init__(
        self,
        n_components: int = 2,
        time: Any = "auto",
        *,
        filter: str = "power",
        n_sketch: int = 128,
        objective: str = "most",
        n_init: Any = "auto",
        share: float = 0.8,
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
        self.share = share
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
        check_number(self.share, "share", low=0, high=1, open_low=True)
        check_number(self.factor, "factor", low=1, open_low=True)

    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Fit the diffusion on the points X, choose the time, learn the map; see `HeatSketch`.

        Raises
        ------
        ValueError, TypeError, MemoryError, CertificateError
            As `HeatSketch`; a time that is neither a number nor "auto".
        """
        self.time_: Any = 1
        self.projection_: NearIsometricProjection | None = None
        self.distortion_: Distortion | None = None
        self.time_curve_: TimeCurve | None = None
        self._all_eigenvalues: Array | None = None
        super().fit(X, y, ids=ids)
        known = self.__dict__.pop("_known", None)  # eigenpairs, which need not be kept
        held_out = self.__dict__.pop("_held_out", math.nan)
        if "_layout" in self.__dict__:
            self.diagnostics_["layout"] = self.__dict__.pop("_layout")
        if self.projection_ is not None:
            found = diffusion_distortion(
                self.embedding_,
                self.diffusion_,
                self.time_,
                filter=self.filter,
                eigenpairs=known,
                log_scale=self.diagnostics_["log_scale"],
            )
            self.distortion_ = found._replace(held_out_log_L=held_out)
        return self

    def _factor(self, diffusion: Diffusion, times: list[Any], X: Any) -> list[Block]:
        k, limit = self.n_components, diffusion.n - 1
        if k > limit:
            raise ValueError(
                f"n_components={k} needs at least {k + 1} distinct points, got {diffusion.n}; pass "
                f"n_components <= {limit}."
            )
        self.time_ = 1 if _is_auto(times) else times[0]
        if diffusion.diagnostics["flat"]:  # all distances are zero
            return [Block(np.zeros((diffusion.n, k)), 0.0)]
        seeds = np.random.default_rng(seed_entropy(self.random_state)).integers(2**31, size=2)
        labels = pieces(diffusion)
        numbers = self._numbers(diffusion)
        coordinates = Coordinates.of(diffusion, k, self.n_sketch, int(seeds[0]), labels, numbers)
        order = self._in_order_of_content(X, diffusion)
        if labels is None:
            parts = Parts.whole(order)
        else:
            parts = Parts.components(order, labels, coordinates)
            if np.abs(coordinates.values).max(initial=0.0) < _ROUNDING:  # each is a dot
                return [self._beside(Block(np.zeros((diffusion.n, k)), 0.0), diffusion, parts)]
        if coordinates.rest is None:
            self._all_eigenvalues = coordinates.values
        if coordinates.rest is None or len(coordinates.values) == N_LEADING:
            self._known = coordinates.values, coordinates.vectors
        stepped = functools.partial(self._stepped, diffusion, rows=parts.rows)
        own = stepped(coordinates.vectors)
        judged, of_pairs = parts.judged(CURVE_ROWS)

        def of_judged(rows: Array) -> list[Array]:
            return [rows[some] for some in judged]

        choice = TimeChoice(
            coordinates,
            self._quotient,
            of_judged(own),
            lambda block: of_judged(stepped(block)),
            parts.columns[: len(judged)],
            of_pairs,
            k,
            self.share,
            self.factor,
        )
        if _is_auto(times):
            self.time_curve_ = choice.curve()
            self.time_ = self.time_curve_.time
        found = self._mapped(coordinates, parts, own, stepped, choice, int(seeds[1]))
        return [found if labels is None else self._beside(found, diffusion, parts)]

    def _mapped(
        self,
        coordinates: Coordinates,
        parts: Parts,
        own: Array,
        stepped: Callable[[Array], Array],
        choice: TimeChoice,
        seed: int,
    ) -> Block:
        """Learn the maps of the parts at the time chosen; return the vectors and the rest by them.

        `own` are rows of the vectors after the last product, `stepped` applies it to others.
        """
        f = self._quotient(self.time_)
        weights, log_scale = coordinates.weights(f)
        weights = weights[: max(self.n_components, np.count_nonzero(weights))]
        n_pairs, rest = len(weights), coordinates.rest_of(f)
        F = np.hstack([own[:, :n_pairs] * weights, *(stepped(block) for _, (block,) in rest)])
        columns = parts.columns_of(n_pairs, F.shape[1])
        rows = zip(parts.learned, columns, strict=True)
        learned = self._learned([F[at][:, some] for at, some in rows], choice, seed)
        maps = [_widened(W, some, F.shape[1]) for W, some in zip(learned, columns, strict=True)]
        of_parts = list(zip(parts.vertices, maps, strict=True))
        H = np.empty((len(coordinates.vectors), self.n_components))
        for part, W in of_parts:
            H[part] = (coordinates.vectors[part, :n_pairs] * weights) @ W[:n_pairs]
        for some, (block,) in rest:
            for part, W in of_parts:
                H[part] += block[part] @ W[n_pairs:][some]
        return Block(H, log_scale)

    def _beside(self, inside: Block, diffusion: Diffusion, parts: Parts) -> Block:
        """Move the components, whose embeddings all lie around 0, beside each other."""
        self._layout = SIDE_BY_SIDE
        root, H = np.sqrt(diffusion.measure), inside.values
        Y = self._rows_of(diffusion.smooth(with_root(H, diffusion.measure)), H.dtype)
        mass = np.array([diffusion.measure[part].sum() for part in parts.vertices])
        shifts = side_by_side(Y, parts.vertices, mass)
        # What M maps to a constant.
        constant = root if self.normalization == "markov" else np.ones(diffusion.n)
        for part, shift in zip(parts.vertices, shifts, strict=True):
            H[part] += constant[part, None] * shift
        return inside

    def _learned(self, parts: list[Array], choice: TimeChoice, seed: int) -> list[Array]:
        """Learn a map (r, k) of the rows (p, r) of each part; note what they keep of the sample."""
        maps, self._held_out = [], math.nan
        size = max(float(np.abs(F).max(initial=0.0)) for F in parts)
        for part, F in enumerate(parts):
            if np.ptp(F, axis=0).max(initial=0.0) <= _DOT * size:
                maps.append(np.zeros((F.shape[1], self.n_components)))
                continue
            projection = NearIsometricProjection(
                self.n_components,
                objective=self.objective,
                factor=self.factor,
                n_init=self.n_init,
                random_state=seed,
            )
            starts = []
            if part < len(choice.own):
                followed = choice.followed(self.time_, F[: len(choice.own[part])], part)
                starts = [] if followed is None else [followed]
            else:
                projection.validation_fraction = 0.0  # others say how well new points fit
            projection._fit(F, np.arange(len(F)), starts, for_new_points=False)
            self.projection_ = self.projection_ or projection
            self._held_out = np.fmax(self._held_out, projection.distortion_.held_out_log_L)
            maps.append(
                projection.components_.T if len(parts) == 1 else _without_rounding(projection)
            )
        if self.time_curve_ is not None:
            samples = [F[: len(own)] for F, own in zip(parts, choice.own, strict=False)]
            kept = choice.kept_by([S @ W for S, W in zip(samples, maps, strict=False)], samples)
            self._promise(self.time_curve_, kept)
        return maps

    def _promise(self, curve: TimeCurve, kept: float) -> None:
        """Put the share that is kept on the curve; warn if it is not the one wanted."""
        curve.shares[curve.times == curve.time] = kept
        if kept < self.share - SHARE_ERROR:
            warnings.warn(
                f"No time keeps {self.share:g} of the distances within a factor "
                f"{self.factor:g} in {self.n_components} dimensions; time {self.time_} keeps "
                f"{kept:.2f} of them. Pass a larger n_components, or a time.",
                ConvergenceWarning,
                stacklevel=7,
            )

    def _compared(self) -> tuple[Deflated, Array | None]:
        """Return A without what distances do not see, and components mapped by themselves."""
        labels = pieces(self.diffusion_)
        if labels is None:
            return super()._compared()
        return inner(self.diffusion_, labels), labels

    def _quotient(self, time: Any) -> Filter:
        return make_filter(self.filter, time).quotient()

    def _stepped(self, diffusion: Diffusion, H: Array, rows: Array) -> Array:
        """Apply the last product to H (n, c); its rows are those whose distances are to be kept."""
        stepped = diffusion.smooth(with_root(H, diffusion.measure))
        return self._rows_of(stepped[rows], H.dtype)

    def _in_order_of_content(self, X: Any, diffusion: Diffusion) -> Array:
        """Return the vertices in an order that looks random but is not that of the rows."""
        if isinstance(X, Diffusion):
            return content_order(diffusion.measure[:, None])
        # Of affinities also the columns are in the order of the points.
        given = self.affinity == "precomputed"
        order = content_order(in_metric(X, self.metric), columns=not given)
        if diffusion.vertex is None:
            return order
        vertices = diffusion.vertex[order]
        _, first = np.unique(vertices, return_index=True)
        return vertices[np.sort(first)]


def _widened(W: Array, rows: Any, width: int) -> Array:
    """Return a map (width, k) that has these rows (r, k), and else zeros."""
    wide = np.zeros((width, W.shape[1]))
    wide[rows] = W
    return wide


def _without_rounding(projection: NearIsometricProjection) -> Array:
    """Return the map (r, k), exactly 0 in dimensions for which a component has no directions."""
    W: Array = projection.components_.T
    sizes = np.linalg.norm(W, axis=0)
    return np.where(sizes > _DOT * sizes.max(), W, 0.0)


def _is_auto(times: list[Any]) -> bool:
    return isinstance(times[0], str) and times[0] == "auto"
