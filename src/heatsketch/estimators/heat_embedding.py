"""Heat embedding: few coordinates whose distances are nearly the diffusion distances."""

import functools
import warnings
from typing import Any, Self

import numpy as np

from heatsketch._array import content_order, seed_entropy
from heatsketch._checks import ConvergenceWarning, check_choice, check_number
from heatsketch._typing import Array
from heatsketch.estimators._base import DiffusionEstimator, with_root
from heatsketch.estimators._time_choice import CURVE_ROWS, SHARE_ERROR, TimeChoice, TimeCurve
from heatsketch.estimators.near_isometric import NearIsometricProjection
from heatsketch.isometry.learn import MAX_ROWS, OBJECTIVES
from heatsketch.markov.coordinates import Coordinates
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import N_LEADING
from heatsketch.metrics import Distortion, diffusion_distortion
from heatsketch.neighbors import in_metric
from heatsketch.spectral.apply import Block
from heatsketch.spectral.filters import Filter, make_filter
from heatsketch.spectral.sketch import MOST_COLUMNS


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
    n_init : int, default 1
        Number of starts, see `NearIsometricProjection`; those beyond the fourth are random.
    share, factor : float, default 0.8 and 1.5
        For ``time="auto"``; `factor` also for ``objective="most"``.
    metric, affinity, epsilon, n_neighbors, neighbors, normalization, alpha, tol, max_iter, \
random_state
        As in `HeatSketch`. Up to 2,048 points, and at large times, nothing is random unless
        `n_init` is above 4.

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
        The map of the coordinates (or None, likewise), learned from at most 20,000 points.
    time_ : float
        The time used.
    time_curve_ : TimeCurve or None
        What ``time="auto"`` measured; `heatsketch.plot.time_curve` draws it.
    diffusion_, epsilon_, diagnostics_, n_iter_, n_features_in_, feature_names_in_
        As in `HeatSketch`.

    Notes
    -----
    New points are mapped exactly as the training points: y(x) = Σ_j a(x, x_j) H_j, with the same H.
    The rows that the map is learned from are chosen by their values: the embedding does not depend
    on the order of the rows. Cost: all eigenpairs up to 2,048 points, else 64; at small times also
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
        n_init: int = 1,
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

    def _check_parameters(self, times: list[Any]) -> None:
        check_number(self.n_components, "n_components", low=1, integer=True)
        if len(times) > 1:
            raise ValueError(f"time={self.time!r} has {len(times)} times; pass one, or 'auto'.")
        if not _is_auto(times):
            self._filter.check_time(times[0], whole=True)
        check_number(self.n_sketch, "n_sketch", low=1, high=MOST_COLUMNS, integer=True)
        check_choice(self.objective, "objective", OBJECTIVES)
        check_number(self.n_init, "n_init", low=1, integer=True)
        check_number(self.share, "share", low=0, high=1, open_low=True)
        check_number(self.factor, "factor", low=1, open_low=True)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the diffusion on the points X, choose the time, learn the map; see `HeatSketch`."""
        self.time_: Any = 1
        self.projection_: NearIsometricProjection | None = None
        self.distortion_: Distortion | None = None
        self.time_curve_: TimeCurve | None = None
        super().fit(X, y)
        known = self.__dict__.pop("_known", None)  # eigenpairs, which need not be kept
        if self.projection_ is not None:
            found = diffusion_distortion(
                self.embedding_,
                self.diffusion_,
                self.time_,
                filter=self.filter,
                eigenpairs=known,
                log_scale=self.diagnostics_["log_scale"],
            )
            held_out = self.projection_.distortion_.held_out_log_L
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
        coordinates = Coordinates.of(diffusion, k, self.n_sketch, int(seeds[0]))
        if coordinates.rest is None or len(coordinates.values) == N_LEADING:
            self._known = coordinates.values, coordinates.vectors
        rows = self._in_order_of_content(X, diffusion)[:MAX_ROWS]
        stepped = functools.partial(self._stepped, diffusion, rows=rows)
        own = stepped(coordinates.vectors)
        choice = TimeChoice(
            coordinates,
            self._quotient,
            own[:CURVE_ROWS],
            lambda block: stepped(block)[:CURVE_ROWS],
            k,
            self.share,
            self.factor,
        )
        if _is_auto(times):
            self.time_curve_ = choice.curve()
            self.time_ = self.time_curve_.time
        f = self._quotient(self.time_)
        weights, log_scale = coordinates.weights(f)
        used = slice(0, max(k, np.count_nonzero(weights)))
        rest = coordinates.rest_of(f)
        parts = [own[:, used] * weights[used], *(stepped(block) for _, (block,) in rest)]
        W = self._learned(np.hstack(parts), choice, int(seeds[1]))
        H = (coordinates.vectors[:, used] * weights[used]) @ W[used]
        for columns, (block,) in rest:
            H += block @ W[used.stop :][columns]
        return [Block(H, log_scale)]

    def _learned(self, F: Array, choice: TimeChoice, seed: int) -> Array:
        """Learn the map (r, k) from the rows F (p, r); note what it keeps of the sample."""
        projection = NearIsometricProjection(
            self.n_components,
            objective=self.objective,
            factor=self.factor,
            n_init=self.n_init,
            random_state=seed,
        )
        sample = F[:CURVE_ROWS]
        followed = choice.followed(self.time_, sample)
        projection._fit(F, np.arange(len(F)), [] if followed is None else [followed])
        self.projection_ = projection
        W: Array = projection.components_.T
        if self.time_curve_ is not None:
            curve, kept = self.time_curve_, choice.kept_by(sample @ W, sample)
            curve.shares[curve.times == curve.time] = kept
            if kept < self.share - SHARE_ERROR:
                warnings.warn(
                    f"No time keeps {self.share:g} of the distances within a factor "
                    f"{self.factor:g} in {self.n_components} dimensions; time {self.time_} keeps "
                    f"{kept:.2f} of them. Pass a larger n_components, or a time.",
                    ConvergenceWarning,
                    stacklevel=5,
                )
        return W

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


def _is_auto(times: list[Any]) -> bool:
    return isinstance(times[0], str) and times[0] == "auto"
