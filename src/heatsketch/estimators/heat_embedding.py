"""Heat embedding: few coordinates whose distances are nearly the diffusion distances."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from heatsketch._array import random_block, seed_entropy
from heatsketch._checks import ConvergenceWarning, check_number, logger
from heatsketch._typing import Array
from heatsketch.estimators._base import DiffusionEstimator, with_root
from heatsketch.estimators.near_isometric import EQUAL_BITS, NearIsometricProjection
from heatsketch.markov.diffusion import Diffusion
from heatsketch.metrics import Distortion, share_within
from heatsketch.operators.base import first_inputs
from heatsketch.spectral.apply import SPECTRAL_LIMIT, Block, apply
from heatsketch.spectral.eigenpairs import all_eigenpairs
from heatsketch.spectral.filters import Power, make_filter
from heatsketch.spectral.sketch import MOST_COLUMNS, sketch_blocks

TIMES = (1, 2, 4, 8, 16, 32, 64, 128)  # tried by time="auto"
_CURVE_ROWS = 400
_SHARE_ERROR = 0.01  # of a share of the pairs of so many rows
_NEGLIGIBLE_WEIGHT = 1e-12  # of an eigenvector, relative to the largest


class TimeCurve(NamedTuple):
    """The share of pairs whose distance k dimensions keep, against diffusion time.

    Attributes
    ----------
    times : array (m,)
    shares : array (m,)
        Share of the pairs of a sample whose ratio is within `factor` of the median. The curve ends
        where it reaches `share`.
    factor, share : float
        The parameters of the estimator.
    time : int
        The smallest time with that share; if there is none, the time with the largest share.
    """

    times: Array
    shares: Array
    factor: float
    share: float
    time: int


class HeatEmbedding(DiffusionEstimator):
    """Embed data in few dimensions so that all distances are nearly diffusion distances.

    The data become a sketch Aᵗ G / √r of many columns, whose distances are the diffusion distances
    (up to 2,048 points without error, by all eigenvectors). Of all linear maps of the sketch to k
    dimensions, the one is learned whose largest change of a distance is smallest
    (`NearIsometricProjection`). Diffusion maps use the k slowest directions and sketches random
    ones; if k is small, distant points may coincide in both.

    Parameters
    ----------
    n_components : int, default 2
        Number k of dimensions.
    time : int >= 1 or "auto", default "auto"
        Diffusion time; real and positive with ``filter="heat"``. "auto": the smallest of 1, 2, 4,
        ..., 128 at which k dimensions keep a share `share` of the distances within `factor`: at
        small times the data have more dimensions, large times forget small distances. If there is
        none, the time with the largest share.
    filter : "power" or "heat", default "power"
        λ^t, or e^{-t(1-λ)} less e^{-t}.
    n_sketch : int, default 256
        Number r of columns of the sketch, used beyond 2,048 points: one standard deviation of a
        distance is 1 / √(2 r) of it, 4 % at 256.
    share, factor : float, default 0.8 and 1.5
        For ``time="auto"``.
    affinity, epsilon, n_neighbors, neighbors, metric, normalization, alpha, tol, max_iter,
    random_state
        As in `HeatSketch`.

    Attributes
    ----------
    embedding_ : array (n, k)
        Ordered by variance, in units of the diffusion distance.
    distortion_ : Distortion
        How well the distances between rows of the sketch are kept (with the default neighbour
        graph those of the one-sided walk, see `HeatSketch`); `distortion_.describe()` summarises it
        in one line. `held_out_log_L` is that of points which were left out when the directions were
        learned, though they took part in the diffusion. None if all points have the same
        affinities.
    projection_ : NearIsometricProjection
        The map of the sketch (or None, likewise).
    time_ : float
        The time used.
    time_curve_ : TimeCurve or None
        What ``time="auto"`` measured; `heatsketch.plot.time_curve` draws it.
    diffusion_, epsilon_, diagnostics_, n_iter_, n_features_in_, feature_names_in_
        As in `HeatSketch`.

    Notes
    -----
    New points are mapped exactly as the training points: y(x) = Σ_j a(x, x_j) H_j, with the same H.
    Cost: that of a sketch of r columns, and of the projection, which is learned from at most 20,000
    points. The embedding keeps distances; t-SNE shows gaps between classes more clearly.

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
        n_sketch: int = 256,
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
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        if len(times) > 1:
            raise ValueError(f"time={self.time!r} has {len(times)} times; pass one, or 'auto'.")
        if not _is_auto(times):
            self._filter.check_time(times[0], whole=True)
        check_number(self.n_sketch, "n_sketch", low=k, high=MOST_COLUMNS, integer=True)
        check_number(self.share, "share", low=0, high=1, open_low=True)
        check_number(self.factor, "factor", low=1, open_low=True)

    def _factor(self, diffusion: Diffusion, times: list[Any]) -> list[Block]:
        rng = np.random.default_rng(seed_entropy(self.random_state))
        self.projection_: NearIsometricProjection | None = None
        self.distortion_: Distortion | None = None
        self.time_curve_: TimeCurve | None = None
        limit = diffusion.n - 1
        if self.n_components > limit:
            raise ValueError(
                f"n_components={self.n_components} needs at least {self.n_components + 1} distinct "
                f"points, got {diffusion.n}; pass n_components <= {limit}."
            )
        automatic = _is_auto(times)
        self.time_ = TIMES[0] if automatic else times[0]
        if diffusion.diagnostics["flat"]:  # all distances are zero
            return [Block(np.zeros((diffusion.n, self.n_components)), 0.0)]
        if automatic:
            block = self._at_chosen_time(diffusion, rng)
        else:
            block = next(self._blocks(diffusion, times, rng))
        seed = int(rng.integers(2**31))
        projection = NearIsometricProjection(self.n_components, random_state=seed)
        projection.fit(self._sketch(diffusion, block))
        self.projection_ = projection
        self.distortion_ = _between_inputs(projection.distortion_, diffusion.vertex)
        return [Block(block.values @ projection.components_.T, block.log_scale)]

    def _blocks(
        self, diffusion: Diffusion, times: Sequence[Any], rng: np.random.Generator
    ) -> Iterator[Block]:
        """Yield what the last product is applied to (n, r), for ascending times, in one pass."""
        A = diffusion.deflated()
        quotients = [make_filter(self.filter, t).quotient() for t in times]
        if diffusion.n <= SPECTRAL_LIMIT:
            lam, V = all_eigenpairs(A)
            for quotient in quotients:
                weights, log_scale = quotient.scaled(lam)
                order = np.argsort(-np.abs(weights), kind="stable")
                count = np.sum(np.abs(weights) > _NEGLIGIBLE_WEIGHT * np.abs(weights).max())
                kept = order[: max(self.n_components, count)]
                yield Block(V[:, kept] * weights[kept], log_scale)
            return
        G = random_block(diffusion.n, int(self.n_sketch), "gaussian", rng)
        block, done = Block(A.project(G) / np.sqrt(self.n_sketch), 0.0), 0
        for quotient in quotients:
            if quotient.products is None:
                yield sketch_blocks(A, [quotient], G)[0]
                continue
            more = apply([Power(quotient.products - done)], A, block.values)[0]
            block = Block(A.project(more.values), block.log_scale + more.log_scale)
            done = quotient.products
            yield block

    def _sketch(self, diffusion: Diffusion, block: Block) -> Array:
        """Return the rows (n, r) whose distances are to be kept, on the scale of the block."""
        H = with_root(block.values, diffusion.measure)
        return self._rows_of(diffusion.smooth(H), H.dtype)

    def _at_chosen_time(self, diffusion: Diffusion, rng: np.random.Generator) -> Block:
        """Try the times until k dimensions keep the wanted share of the distances."""
        order = rng.permutation(diffusion.n)
        seed, shares = int(rng.integers(2**31)), []
        best: tuple[float, int, Block] | None = None
        for t, block in zip(TIMES, self._blocks(diffusion, TIMES, rng), strict=True):
            S = self._sketch(diffusion, block)
            S = S[_distinct_sample(S, order, seed)]
            k = min(self.n_components, S.shape[1])
            quick = NearIsometricProjection(
                k,
                rank=max(2 * k, 32),
                n_init=2,
                max_iter=30,
                validation_fraction=0,
                random_state=seed,
            )
            kept = share_within(quick.fit_transform(S), S, self.factor)
            logger.info("time %d: %.0f %% within a factor %g", t, 100 * kept, self.factor)
            shares.append(kept)
            if best is None or kept > best[0]:
                best = kept, t, block
            if kept >= self.share - _SHARE_ERROR:
                break
        assert best is not None
        kept, self.time_, block = best
        tried = np.array(TIMES[: len(shares)])
        self.time_curve_ = TimeCurve(tried, np.array(shares), self.factor, self.share, self.time_)
        if kept < self.share - _SHARE_ERROR:
            warnings.warn(
                f"No time up to {TIMES[-1]} keeps {self.share:g} of the distances within a factor "
                f"{self.factor:g} in {self.n_components} dimensions; time {self.time_} keeps "
                f"{kept:.2f} of them. Pass a larger n_components, or a time.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return block


def _distinct_sample(S: Array, order: Array, seed: int) -> Array:
    """Return the first rows in `order` that differ, which is decided in one random direction.

    Ratios of equal rows, of duplicates in a dense affinity, would be rounding.
    """
    along = (S @ np.random.default_rng(seed).standard_normal(S.shape[1]))[order]
    cells = np.round((along - along.min()) * np.ldexp(1.0, EQUAL_BITS) / (np.ptp(along) or 1.0))
    _, first = np.unique(cells, return_index=True)
    return np.sort(order[np.sort(first)[:_CURVE_ROWS]])


def _between_inputs(distortion: Distortion, vertex: Array | None) -> Distortion:
    """Name the worst pairs by points of the input if duplicates share a vertex."""
    first = first_inputs(vertex)
    if first is None:
        return distortion
    worst = {name: first[pairs] for name, pairs in distortion.worst_pairs.items()}
    return distortion._replace(worst_pairs=worst)


def _is_auto(times: list[Any]) -> bool:
    return isinstance(times[0], str) and times[0] == "auto"
