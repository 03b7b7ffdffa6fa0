"""Learn the directions along which distances are kept best, and check them on rows left out."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._array import single_threaded_blas
from heatsketch._typing import Array
from heatsketch.isometry import pairs
from heatsketch.isometry.descent import COARSE, FINE, Problem, refine, search
from heatsketch.isometry.loss import LogDistortion

logger = logging.getLogger("heatsketch")

MOST_ROWS = 20_000  # a linear map has r k numbers: more rows to learn it from change little
SEARCH_ROWS = 500
CHECK_ROWS = 1_000
SEARCH_RANK = 256
MOST_RANK = 256
REFINED = 2  # maps that go through the refinement
_LEAST_SCALE = 1e-8  # of a direction, next to the largest: beyond, rounding decides


@dataclass(frozen=True, eq=False)
class Learned:
    """A linear map, and how it was found.

    Attributes
    ----------
    components : array (k, r)
        y = components · x.
    rank : int
        Leading principal directions of the input that it uses.
    held_out_log_L : float
        log L over pairs with points that a map of this rank was not fitted on; NaN if not looked.
        The rank was chosen on the same pairs.
    history : list of dict
        The refinement of the map: `beta`, `pairs`, `objective`, `iterations` of each stage.
    used : (i, j) of index arrays, or None
        The pairs it was refined on; None for all pairs.
    """

    components: Array
    rank: int
    held_out_log_L: float
    history: list[dict[str, Any]]
    used: tuple[Array, Array] | None = None


@single_threaded_blas()  # thousands of small products: threads cost more time than they save
def learn(
    F: Array,
    k: int,
    *,
    rank: int | None,
    n_init: int,
    max_iter: int,
    validation_fraction: float,
    rng: np.random.Generator,
) -> Learned:
    """Learn a map of the rows of F (n, r), which must differ, to k dimensions."""
    if k == F.shape[1]:  # whatever the scales of the directions
        return Learned(np.eye(k), k, math.nan, [])
    most = rank or max(MOST_RANK, 2 * k)
    basis = _Basis.of(F, most)
    if len(basis.weights) <= k < most:  # there are no more directions
        return _everything(basis, k)
    looked_at = min(len(F), CHECK_ROWS)
    n_held = min(round(validation_fraction * looked_at), looked_at - k - 2)
    if n_held >= 2:
        logger.info("learning %d directions of %d: how many hold on rows left out", k, F.shape[1])
        maps, R, held_out = _checked(F, most, rank is None, k, n_init, max_iter, n_held, rng)
        logger.info("learning %d directions: refinement", k)
    else:
        first = basis.cut(max(SEARCH_RANK, k))
        maps = [first.axes @ Q for Q in _found(F, first, k, n_init, max_iter, rng)]
        R, held_out = most, math.nan
    basis = basis.cut(R)
    maps = [*map(basis.express, maps), basis.leading(k)]
    if len(F) <= pairs.ALL_PAIRS_UP_TO:
        problem = basis.problem(F, pairs.all_pairs(F))
        Q = refine(problem, _best(problem, maps, max_iter), FINE, max_iter)
        used = None
    else:
        Q, problem, used = _refined_on_sample(F, basis, maps, max_iter, rng)
    return Learned((basis.axes @ Q).T, len(Q), held_out, problem.history, used)


def _everything(basis: _Basis, k: int) -> Learned:
    """Return the rotation to all principal directions there are, for there is nothing to choose."""
    rotation = (basis.axes * basis.weights).T  # (R, r)
    missing = np.zeros((k - len(rotation), rotation.shape[1]))
    return Learned(np.vstack([rotation, missing]), len(rotation), math.nan, [])


def some_rows(n: int, most: int, rng: np.random.Generator) -> Array:
    """Return the numbers of at most `most` random rows of n."""
    return rng.permutation(n)[:most] if n > most else np.arange(n)


@dataclass(frozen=True, eq=False)
class _Basis:
    """Principal directions, as far as they are more than rounding, scaled to half their whitening.

    Coordinates have the scale √σ: with σ itself the directions that keep small distances hardly
    count at first, and with 1 noise counts as much as anything.
    """

    axes: Array  # (r, R): coordinates are (x - mean) @ axes
    weights: Array  # (R,): coordinates · weights are principal components
    mean: Array  # (r,)

    @classmethod
    def of(cls, F: Array, most: int) -> _Basis:
        """Return at most `most` directions of the rows of F."""
        mean = F.mean(axis=0)
        centred = F - mean
        if len(F) > 4 * F.shape[1]:  # the same directions, cheaper
            centred = np.linalg.qr(centred, mode="r")
        _, scales, axes = np.linalg.svd(centred, full_matrices=False)
        used = min(most, int(np.sum(scales > _LEAST_SCALE * scales[0])))
        weights = np.sqrt(scales[:used] / math.sqrt(len(F)))
        return cls((axes[:used] / weights[:, None]).T, weights, mean)

    def cut(self, rank: int) -> _Basis:
        """Return the basis of the first `rank` directions."""
        return _Basis(self.axes[:, :rank], self.weights[:rank], self.mean)

    def express(self, W: Array) -> Array:
        """Write a linear map (r, k) in this basis, (R, k), as far as that is possible."""
        return self.weights[:, None] * ((self.axes * self.weights).T @ W)

    def leading(self, k: int) -> Array:
        """Return the principal components 1 to k in this basis."""
        return np.diag(self.weights)[:, :k]

    def problem(self, F: Array, loss: LogDistortion) -> Problem:
        """State the problem of mapping the rows of F."""
        return Problem((F - self.mean) @ self.axes, self.weights, loss)


def _found(
    F: Array, basis: _Basis, k: int, n_init: int, max_iter: int, rng: np.random.Generator
) -> list[Array]:
    """Search on some rows; return the maps, best over all rows given first."""
    rows = some_rows(len(F), SEARCH_ROWS, rng)
    few = basis.problem(F[rows], pairs.all_pairs(F[rows]))
    maps = search(few, k, n_init, max_iter, rng)
    judge = few
    if len(rows) < len(F) <= pairs.ALL_PAIRS_UP_TO:
        judge = basis.problem(F, pairs.all_pairs(F))
    return sorted(maps, key=judge.log_L)


def _checked(
    F: Array,
    most: int,
    choose: bool,
    k: int,
    n_init: int,
    max_iter: int,
    n_held: int,
    rng: np.random.Generator,
) -> tuple[list[Array], int, float]:
    """Choose the rank by J_β over pairs with rows left out of basis and fit.

    Returns maps (r, k), the one of this rank first, the rank, and log L over these pairs.
    """
    F = F[rng.permutation(len(F))[:CHECK_ROWS]]
    seen, unseen = pairs.all_pairs(F[n_held:]), LogDistortion(len(F), *_pairs_of_first(F, n_held))
    basis = _Basis.of(F[n_held:], most)
    if len(basis.weights) <= k:  # too few directions without the others to choose from
        return [], most, math.nan
    first = basis.cut(max(SEARCH_RANK, k))
    maps = _found(F[n_held:], first, k, n_init, max_iter, rng)
    found = []
    full = len(basis.weights)
    for R in _ranks(full, k) if choose else [full]:
        used = basis.cut(R)
        Q = refine(used.problem(F[n_held:], seen), _of_rank(maps[0], R), FINE, max_iter)
        judge = used.problem(F, unseen)
        found.append((judge.value(Q, COARSE[-1]), R, judge.log_L(Q), used.axes @ Q))
    _, R, held_out, W = min(found, key=lambda entry: entry[0])
    # All directions of these rows stand for all there are.
    return [W, *(first.axes @ Q for Q in maps)], most if full == R else R, held_out


def _ranks(full: int, k: int) -> list[int]:
    """Return full, full / 2, ..., not too near to k."""
    ranks = [full]
    while ranks[-1] // 2 >= max(2 * k, 16):
        ranks.append(ranks[-1] // 2)
    return ranks


def _of_rank(Q: Array, R: int) -> Array:
    """Cut a map to R directions, or let it have R."""
    return np.vstack([Q[:R], np.zeros((max(0, R - len(Q)), Q.shape[1]))])


def _pairs_of_first(F: Array, count: int) -> tuple[Array, Array]:
    """Return squared distances and starts of all pairs with one of the first `count` rows."""
    n = len(F)
    starts = np.concatenate([[0], np.cumsum(np.arange(n - 1, -1, -1))])
    starts[count:] = starts[count]
    return pdist(F, "sqeuclidean")[: starts[count]], starts


def _best(problem: Problem, maps: list[Array], max_iter: int) -> Array:
    """Return the map that is best, perhaps after a stage on the pairs of the problem."""
    maps = sorted(maps, key=problem.log_L)[:REFINED]
    moved = [problem.descend(Q, COARSE[-1], max_iter) for Q in maps]
    return min([*moved, maps[0]], key=problem.log_L)


def _refined_on_sample(
    F: Array, basis: _Basis, maps: list[Array], max_iter: int, rng: np.random.Generator
) -> tuple[Array, Problem, tuple[Array, Array]]:
    """Refine; between stages add the pairs that the map brings near each other."""
    chosen = pairs.PairList(F)
    chosen.add(pairs.random_codes(len(F), rng))
    chosen.add(pairs.near_codes(F, rng))
    problem = basis.problem(F, chosen.loss())
    Q = _best(problem, maps, max_iter)
    for beta in FINE:
        chosen.add(pairs.active_codes(problem.Z @ Q))
        problem = replace(problem, loss=chosen.loss())
        Q = problem.descend(Q, beta, max_iter)
    i, j = np.divmod(chosen.codes, len(F))
    return Q, problem, (i, j)
