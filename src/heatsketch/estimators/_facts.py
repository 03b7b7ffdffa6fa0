"""What a fitted diffusion says of itself: what its coordinates hold, how late points are."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heatsketch._array import seed_entropy
from heatsketch._checks import check_level, check_number
from heatsketch._typing import Array
from heatsketch.estimators._embedder import Embedder
from heatsketch.markov.diffusion import Diffusion
from heatsketch.operators import Deflated
from heatsketch.spectral.explained import N_PROBES, ExplainedVariance, explained_variance
from heatsketch.spectral.filters import FILTERS, times_of
from heatsketch.uncertainty.distances import Interval
from heatsketch.uncertainty.pseudotimes import pseudotime


class DiffusionFacts(Embedder):
    """Abstract base: questions to a diffusion, and to what its last product is applied to."""

    diffusion_: Diffusion
    embedding_: Array
    filter: str
    random_state: Any
    time: Any
    _H: Array

    def explained_diffusion_variance(
        self, level: float = 0.95, *, index: int = 0, n_probes: int = N_PROBES
    ) -> ExplainedVariance:
        """Say how much of the diffusion the coordinates hold, with intervals.

        The share of tr f(A)², without the trivial direction, in the span of the first 1, 2, ..., k
        coordinates: of eigenvectors Σ λ_m^2t / tr A^2t, as the explained variance of a PCA. With
        the heat filter f is e^{-t(1-λ)} - e^{-t}. It is the operator A of `diffusion_`, before
        the last step of a neighbour graph is made one-sided. A `HeatSketch` holds what its random
        columns span, though its distances are right on average whatever that is; components side
        by side count each by itself.

        Parameters
        ----------
        level : float, default 0.95
            Probability of the intervals. Up to 2,048 points the whole is computed; beyond, what
            the coordinates leave out is estimated by random columns, always the same ones.
        index : int, default 0
            Of several times, which one.
        n_probes : int >= 2, default 64
            Number of random columns; fewer are faster, and the intervals wider.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; a level that is not between 0 and 1; an index that is not of a time;
            fewer than 2 columns.

        Notes
        -----
        Cost: t products with k columns, or √(70 t) for large t; and all eigenvalues of up to 2,048
        points (which a `HeatEmbedding` knows); beyond, twice as many products with `n_probes`
        columns. Nothing of it is computed by `fit`.
        """
        check_is_fitted(self)
        level = check_level(level)
        times = times_of(getattr(self, "time_", self.time))
        index = check_number(index, "index", low=0, high=len(times) - 1, integer=True)
        width = self.embedding_.shape[1] // len(times)
        A, labels = self._compared()
        H = self._H[:, index * width : (index + 1) * width]
        f = self._filter.of_coordinates(times[index])
        given: dict[str, Any] = {"values": getattr(self, "eigenvalues_", None), "labels": labels}
        given["everything"] = getattr(self, "_all_eigenvalues", None)
        given["n_probes"] = check_number(n_probes, "n_probes", low=2, integer=True)
        return explained_variance(A, f, A @ A.asarray(H), level, **given)

    @property
    def explained_diffusion_variance_ratio_(self) -> Array:
        """Share of the diffusion variance that each coordinate adds, (k,) or (k · times,)."""
        check_is_fitted(self)
        known: Array | None = self.__dict__.get("_explained_ratio")
        if known is None:
            count = len(times_of(getattr(self, "time_", self.time)))
            found = [self.explained_diffusion_variance(index=i).ratio for i in range(count)]
            self._explained_ratio = known = np.concatenate(found)
        return known

    def _compared(self) -> tuple[Deflated, Array | None]:
        """Return A without what distances do not see, and components mapped by themselves."""
        return self.diffusion_.deflated(), None

    def pseudotime(self, root: Any, *, time: Any = 8, level: float = 0.95) -> Interval:
        """Say how late each point is, from 0 at a root to 1 at the farthest, with intervals.

        The pseudotime of x is the distance between the root and x, of rows of Σ_s M A^(s-1) over
        all steps s from `time` on, which weighs a direction by λ^time / (1 - λ), divided by its
        largest value. So it follows long branches, where the diffusion distance of one time stops
        at points that walks of this length do not reach, and like that of *Diffusion pseudotime*
        (Haghverdi et al. 2016), which is time 1, needs no choice of a scale. It is a property of
        `diffusion_` and `filter` alone: neither the time nor the coordinates of the model enter.

        Parameters
        ----------
        root : int, array of int, or mask (n,)
            Where time starts: a point of the training data, or several, the start of a walk being
            any of them with the same probability; then the nearest value is not exactly 0. For
            origins far from each other take the least of one call for each.
        time : float, default 8
            Steps that are left out: as in `HeatSketch`. Fewer keep more of the noise, more of them
            the largest branches only.
        level : float, default 0.95
            Probability of each interval.

        Returns
        -------
        Interval
            `value`, `low`, `high` (n,); infinite in components of the graph without the root, as in
            scanpy's ``dpt_pseudotime``.

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; points of several components, or none; an index or a time out of range.
        TypeError
            `root` holds something else.

        Notes
        -----
        Up to 2,048 points from all eigenpairs: intervals are points. Beyond, 32 eigenpairs and a
        sketch of 32 Gaussian columns of the others, of which alone the interval speaks, by the
        exact law of chi-square: value² is unbiased, low and high are those of `HeatSketch.distance`
        for this part. The largest value, which is the unit, counts as known. It is not the error of
        the data, which `data_interval` is about. Cost: these eigenpairs, and a series of some
        √(110 / (1 - λ)) products with 32 columns, λ the 33rd eigenvalue.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> late = hs.DiffusionMap().fit(X).pseudotime(0)
        >>> float(late.value[0]), float(late.value[99]), bool((np.diff(late.value) > 0).all())
        (0.0, 1.0, True)
        """
        check_is_fitted(self)
        seed = np.random.default_rng(seed_entropy(self.random_state))
        given: dict[str, Any] = {"filter": self.filter, "level": level, "rng": seed}
        return pseudotime(self.diffusion_, root, time, **given)

    @property
    def _filter(self) -> Any:
        """The class of the filter."""
        return FILTERS[self.filter]
