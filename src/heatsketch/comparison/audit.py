"""Audit of a picture: where it can be believed, and how far points truly are from each other."""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from heatsketch._exceptions import warn
from heatsketch._typing import Array
from heatsketch._validation import check_number, check_parameters
from heatsketch.comparison.decisions import Groups, PlaceTests, decide, groups_of, tests_of
from heatsketch.comparison.gaps import NO_GAPS, Contrast, Gap, compare_gaps
from heatsketch.comparison.scores import Evidence, Scores, landmarks_of
from heatsketch.estimators import HeatSketch
from heatsketch.estimators._base import DiffusionEstimator
from heatsketch.layout.paths import is_measurable
from heatsketch.markov.diffusion import Diffusion
from heatsketch.metrics import Distortion, diffusion_distortion
from heatsketch.metrics.picture import (
    LEAST_JUDGED,
    PictureQuality,
    picture_quality,
    sampled_geodesics,
)
from heatsketch.operators.components import members_of
from heatsketch.operators.graph import is_graph
from heatsketch.uncertainty.intervals import Interval

NEIGHBORS = 15


@dataclass(eq=False, repr=False)
class Audit:
    """The result of `audit` of a picture of n points.

    Points in components of fewer than 50 points are not judged: NaN, and not dubious.

    Attributes
    ----------
    neighbors_kept : array (n,)
        Fraction of the `n_neighbors` points nearest by diffusion distance that are among the
        2 `n_neighbors` nearest in the picture.
    false_neighbors : array (n,)
        Fraction of the `n_neighbors` nearest in the picture that are not among the
        2 `n_neighbors` nearest by diffusion distance.
    order_kept : array (n,)
        Rank correlation of a point's distances in the picture with its diffusion distances.
    trust : array (n,), in [0, 1]
        How far the place of the point can be believed, by itself and by its group.
    dubious : array of bool (n,)
        Points whose place is no better than that of another point would be, by themselves.
    undecided : array of bool (n,)
        Points whose place may be right or such a place: both give scores like theirs, in components
        of fewer than 1,000 points above all.
    torn, merged : list of index arrays
        Groups of points whose true neighbours are far away in the picture; groups of points whose
        neighbours in the picture are far away in truth. The largest first.
    gaps : list of Gap
        A row for each pair of labels with points in one component, the nearest first; empty without
        labels.
    contrast : Contrast or None
        The comparison of two gaps in which the picture misleads most; None if it misleads in none.
    model : HeatSketch
        The sketch of the true distances; those of the rows of its `embedding_` estimate them.
    picture : array (n, c)
        The picture.
    gaps_not_judged : int
        Number of pairs of labels that have no points in the same component.
    """

    neighbors_kept: Array
    false_neighbors: Array
    order_kept: Array
    trust: Array
    dubious: Array
    undecided: Array
    torn: list[Array]
    merged: list[Array]
    gaps: list[Gap]
    contrast: Contrast | None
    model: HeatSketch
    picture: Array
    gaps_not_judged: int = 0

    _fit_times = (None,)  # a picture has no time

    def distance(self, i: Any, j: Any = None, *, level: float = 0.95) -> Interval:
        """Return diffusion distances of points with intervals, as `HeatSketch.distance` does.

        Raises
        ------
        ValueError, TypeError
            As `HeatSketch.distance`.
        """
        return self.model.distance(i, j, level=level)

    @cached_property
    def distortion(self) -> Distortion:
        """How the picture changes the diffusion distances: `within`, `log_L`, as `score` has it."""
        model = self.model
        return diffusion_distortion(
            self.picture,
            model._current_diffusion(),
            model._fit_times[0],
            filter=model._fitted_as.filter,
            rng=0,
        )

    @cached_property
    def _quality(self) -> PictureQuality | None:
        """How far the picture can be believed as a whole; None if no points are known."""
        diffusion = self.model._current_diffusion()
        if not is_measurable(diffusion):
            return None
        geodesics = sampled_geodesics(diffusion)
        return picture_quality(self.picture, diffusion, self.distortion, geodesics)

    def describe(self) -> str:
        """Describe in three lines how far the picture can be believed.

        Examples
        --------
        >>> import heatsketch as hs
        >>> X, angle = hs.datasets.circle(200, rng=0)
        >>> print(hs.audit(X, X, random_state=0).describe().partition(",")[0])
        0 of 200 points are dubious
        """
        others = np.count_nonzero(np.isnan(self.trust))
        lines = [
            f"{self.dubious.sum():,} of {len(self.trust) - others:,} points are dubious, the "
            f"median trust is {np.nanmedian(self.trust):.2f}; distances within a factor of 1.5: "
            f"{100 * self.distortion.within[1.5]:.0f} %.",
            f"Means over the points: {np.nanmean(self.neighbors_kept):.2f} of the true neighbours "
            f"are kept, {np.nanmean(self.false_neighbors):.2f} of the neighbours in the picture "
            f"are false, order of distances {np.nanmean(self.order_kept):.2f}.",
            f"Torn: {_sizes(self.torn)}. Merged: {_sizes(self.merged)}.",
        ]
        if self.undecided.any():
            lines[0] += (
                f" {self.undecided.sum():,} are undecided: right and random places score like "
                "theirs."
            )
        if others:
            small = f"components of fewer than {LEAST_JUDGED}"
            lines[0] += f" {others:,} points in {small} are not judged."
        if self.gaps:
            believed = sum(gap.believed for gap in self.gaps)
            lines[2] += f" {believed} of {len(self.gaps)} gaps between labels are in their place."
        if self.gaps_not_judged:
            apart = f"{self.gaps_not_judged} gaps between labels in different components"
            lines[2] += f" {apart} are not judged."
        if self.contrast is not None:
            lines[2] += f" {self.contrast.describe()}"
        return "\n".join(lines)


def audit(
    X: Any,
    Y: Any,
    *,
    labels: Any = None,
    n_components: int = 64,
    time: Any = 8,
    n_neighbors: int = NEIGHBORS,
    random_state: Any = None,
    **parameters: Any,
) -> Audit:
    """Audit a picture: say for each point how far its place can be believed.

    The picture is compared with the diffusion distances of the data, added up over the times t,
    ..., 64 t - 1 (`Accumulated`). A sketch of k columns gives each of them with a relative error of
    √(1/(2k)). Nothing diffuses between components, so each is judged by itself.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), graph or fitted estimator
        Points; a symmetric affinity or graph with ``affinity="precomputed"``, or any graph that
        `heatsketch.graph` reads; or an estimator with a `diffusion_`. A fitted `HeatSketch` of one
        time is used as it was fitted, with its own filter and time.
    Y : array-like of shape (n_samples, n_coordinates)
        The picture of the same rows, made by any method; usually c is 2 or 3.
    labels : array-like of shape (n_samples,), default=None
        Groups, at most 60 different ones; the gaps between them are compared. None, NaN, infinity,
        the NA of pandas, masked entries and empty text are missing labels.
    n_components : int, default=64
        Number of columns k of the sketch.
    time : int >= 1, default=8
        The time t from which distances are added up.
    n_neighbors : int, default=15
        Size of a neighbourhood; at most a fiftieth of the points of a component (2 for fewer than
        150), so that a random place is seldom near the right one.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the sketch, the landmarks and the permutations.
    **parameters
        Other parameters of `HeatSketch`, such as `metric` and `affinity`.

    Returns
    -------
    Audit
        Arrays of shape (n_samples,): `trust`, `dubious`, `neighbors_kept`, `false_neighbors`,
        `order_kept`. Groups of points: `torn`, `merged`. With labels: `gaps`, `contrast`.
        `describe()` summarises it in three lines, `distance(i, j)` gives true distances with
        intervals.

    Raises
    ------
    ValueError, TypeError
        Y is not a finite table with a row for each point; more than 60 labels, or only one; no
        component of 50 points; an estimator without a diffusion; invalid points or parameters.

    See Also
    --------
    report : Show an embedding in one page of HTML.
    metrics.trustworthiness : Measure whether neighbours in an embedding are true.
    metrics.diffusion_distortion : Measure how an embedding changes diffusion distances.

    Notes
    -----
    `trust` is the mean of four scores between 0 and 1, weighted by 1 / spread: the median absolute
    deviation of the score from its median over the points, at least 0.05. So a score that is alike
    almost everywhere tells most where it is not. The mean is multiplied by a number for each
    component that makes its median that of (near + far) / 2, which says how good the picture is as
    a whole. Two scores are of the point alone, and near counts half:

    - near: the mean of `neighbors_kept` and 1 - `false_neighbors`;
    - far: `order_kept`, at least 0, times exp(-e), e the mean of |log D/f(d)| over landmarks, where
      f is the increasing function that best gives distances D from those in the picture d.

    Two find groups that moved as a whole and keep their own neighbours:

    - true: 1 - 2 r, at least 0; r says how far in truth the neighbours in the picture are. It is
      the mean of the fraction of landmarks that are nearer in truth than such a neighbour, from 0
      at the nearest 5 % to 1 at the farthest;
    - whole: 1 - the fraction of true neighbours that are beyond the nearest 5 % in the picture, in
      the mean over the point and its 2 `n_neighbors` true neighbours: one step of a walk.

    Means of near and far weight points by the fourth power of their own mean, in six rounds, so
    that a group in a wrong place does not make the others doubtful.

    `dubious` comes from a test for each point by the mean of its near and far scores. The null
    hypothesis: the place of the point is drawn from the places of all points of its component, all
    else fixed. Its distribution comes from permutations of the points. Points whose scores it does
    not explain are believed, by the procedure of Benjamini and Hochberg [1]_. p-values of points
    that are near each other depend on each other positively, for which the procedure is valid
    [2]_: at most 5 % of the believed points, in the mean, have a place that is drawn so. In trials
    with 100 to 900 points this held while up to half of the places were drawn. The null
    distribution is estimated from the picture itself, so where 80 or 90 % of the places were drawn
    it was up to 14 % of the believed points with 600 points, and up to 27 % with 200.

    A point that is not believed need not be wrong: with few points a right place is no better than
    many others. p-values of drawn places are uniform, and those of right places of n distinct
    points seldom exceed a = 50/n (at least .05, at most ½). So the drawn places are counted by the
    p-values above a, over 1 - a [3]_. The points with the largest p-values are dubious, as many as
    are at least half of them drawn by this count; the others are `undecided`. Of rotated copies of
    points of two or three columns at most .06 % were dubious in the mean, with 50 to 1,000 points
    in a component. Of single points that are drawn, six in ten were found with 100 points, three
    quarters with 200. A group that is moved as a whole is not random: it has little trust, and need
    not be dubious.

    A point is torn if a third of its true neighbours are farther in the picture than 5 % of all
    points, and merged if a third of its neighbours in the picture are so far in truth.

    The cost is that of the sketch, two neighbour searches (in k and c features), and distances to
    400 landmarks (fewer beyond 30,000 points). Memory is 14 bytes for each distance to a landmark.

    References
    ----------
    .. [1] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate: a practical and
       powerful approach to multiple testing", Journal of the Royal Statistical Society B 57 (1995),
       289-300.
    .. [2] Y. Benjamini and D. Yekutieli, "The control of the false discovery rate in multiple
       testing under dependency", Annals of Statistics 29 (2001), 1165-1188.
    .. [3] J. D. Storey, "A direct approach to false discovery rates", Journal of the Royal
       Statistical Society B 64 (2002), 479-498.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(300, rng=0)
    >>> wrong = X.copy()
    >>> wrong[:3] = -wrong[:3]
    >>> hs.audit(X, wrong, random_state=0).dubious.nonzero()[0]
    array([0, 1, 2])
    """
    check_parameters("audit", parameters, audit, HeatSketch)
    n_neighbors = check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    model = _sketch_of(X, n_components, time, random_state, parameters)
    F, Y = model.embedding_, _checked_picture(X, Y, len(model.embedding_))
    rng = _generator_of(random_state)
    # Nothing diffuses between components: each is judged by itself.
    components = members_of(model._current_diffusion().component_of)
    judged = _large_enough(components, len(F))
    each = [_judge(points, F, Y, n_neighbors, rng) for points in judged]
    scores, tests, groups = zip(*each, strict=True)
    shown = Scores.from_components(len(F), judged, scores)
    decisions = decide(len(F), judged, tests)
    torn, merged = (
        sorted(chain(*found), key=len, reverse=True) for found in zip(*groups, strict=True)
    )
    gaps = NO_GAPS if labels is None else compare_gaps(F, Y, labels, components)
    return Audit(
        neighbors_kept=shown.neighbors_kept,
        false_neighbors=shown.false_neighbors,
        order_kept=shown.order_kept,
        trust=shown.trust,
        dubious=decisions.dubious,
        undecided=decisions.undecided,
        torn=torn,
        merged=merged,
        gaps=gaps.each,
        contrast=gaps.contrast,
        model=model,
        picture=Y,
        gaps_not_judged=gaps.not_judged,
    )


def _judge(
    points: Array, F: Array, Y: Array, n_neighbors: int, rng: np.random.Generator
) -> tuple[Scores, PlaceTests, Groups]:
    """Judge the points of a component by themselves."""
    k = min(n_neighbors, max(2, len(points) // 50))
    landmarks = landmarks_of(len(points), rng)
    evidence = Evidence.from_points(F[points], Y[points], k, landmarks)
    believed = evidence.believed()
    scores = evidence.scores(believed.placement)
    return scores, tests_of(evidence, believed, rng), groups_of(evidence, points)


def _generator_of(random_state: Any) -> np.random.Generator:
    """Return the generator of the landmarks and the permutations."""
    seed = random_state
    if not isinstance(seed, np.random.Generator):
        seed = check_random_state(seed).randint(2**31)
    return np.random.default_rng(seed)


_PICTURE = 3  # most columns of a table that may be a picture


def _checked_picture(X: Any, Y: Any, n: int) -> Array:
    """Return the picture (n, c) of the points X, centred, or raise."""
    Y = check_array(Y, dtype=np.float64, input_name="Y")
    if len(Y) != n:
        raise ValueError(f"Y has {len(Y)} rows but X has {n} points; pass a row for each point.")
    columns = X.shape[1] if getattr(X, "ndim", 0) == 2 else n
    if columns <= _PICTURE < Y.shape[1]:
        warn(
            UserWarning,
            f"X has {columns} columns and Y has {Y.shape[1]}: is X the picture, and Y the data? "
            "Then pass audit(Y, X).",
        )
    return Y - Y.mean(axis=0)


def _large_enough(components: list[Array], n: int) -> list[Array]:
    """Return the components of a picture that can be judged, or raise if there are none."""
    judged = [points for points in components if len(points) >= LEAST_JUDGED]
    if not judged:
        raise ValueError(
            f"The largest component has {max(map(len, components))} of {n} points, too few to "
            f"judge a picture; pass data with a component of at least {LEAST_JUDGED}."
        )
    return judged


def _sketch_of(X: Any, k: int, time: Any, random_state: Any, parameters: Any) -> HeatSketch:
    """Return a sketch whose distances are the true ones."""
    if isinstance(X, HeatSketch):
        X._current_diffusion()  # that of these points, or raises
        if len(X._fit_times) > 1:
            raise ValueError("X is a HeatSketch of several times; fit one with a single time.")
        return X._as_fitted()
    options = {"filter": "accumulated", "random_state": random_state} | parameters
    if isinstance(X, DiffusionEstimator):
        X = X._current_diffusion()
    if isinstance(X, Diffusion):
        options |= {"affinity": "precomputed", "normalization": X.normalization}
    elif is_graph(X):
        options["affinity"] = "precomputed"
    if np.size(time) > 1:
        raise ValueError(f"time={time!r} has {np.size(time)} times; pass one.")
    return HeatSketch(k, time, **options).fit(X)


def _sizes(groups: list[Array]) -> str:
    more = ", …" if len(groups) > 3 else ""
    sizes = ", ".join(f"{len(group):,}" for group in groups[:3])
    return f"{len(groups)} group(s) of {sizes}{more} points" if groups else "none"
