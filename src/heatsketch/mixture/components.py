"""The components of a mixture, prepared once for all closed forms."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from heatsketch._checks import check_points
from heatsketch._tiles import filled
from heatsketch._typing import Array
from heatsketch.mixture.overlaps import Mixtures, Overlaps

CHUNK_NUMBERS = 2**21  # of a chunk of row-by-row work: 16 MB
_LARGEST_LOG_DENSITY = 690.0  # float64 holds densities of this size and of its inverse


@dataclass(frozen=True, eq=False)
class Components:
    """The components of a mixture, in units of √(ε/2) from the mean of the mixture.

    The matrices S_j, C_j and D_j of `MixtureKernel` have the eigenvectors of Σ_j; stored are their
    eigenvalues. Densities without the unit are those in these lengths: `density_unit` times them
    is in units of the data.
    """

    epsilon: float  # in squared units of the data
    unit: float  # √(ε/2), in units of the data
    centre: Array  # (m,), mean of the mixture in units of the data
    weights: Array  # (K,), a_j > 0
    means: Array  # (K, m), θ_j
    axes: Array  # (K, m, m), eigenvectors in columns
    variances: Array  # (K, m), eigenvalues of S_j
    gains: Array  # (K, m), of C_j
    spreads: Array  # (K, m), of D_j

    @classmethod
    def of(
        cls, weights: Array, means: Array, covariances: Array, epsilon: float, time: int
    ) -> Self:
        """Prepare checked weights (K,), means (K, m) and covariances (K, m, m).

        Raises ValueError where float64 cannot hold the densities.
        """
        unit = np.sqrt(epsilon / 2)
        centre = weights @ means
        lam, axes = np.linalg.eigh(covariances / (epsilon / 2))
        lam = np.maximum(lam, 0.0)  # (K, m), of Σ
        variances = 1 + lam
        # D = S - C S C is written so that nothing cancels.
        with np.errstate(divide="ignore", over="ignore"):
            log_gain = -np.log1p(1 / lam)
        gains = np.exp(time * log_gain)
        spreads = 1 + gains if time == 1 else variances * -np.expm1(2 * time * log_gain)
        log_peaks = -0.5 * np.log(4 * np.pi * unit**2 * spreads).sum(axis=1)
        if not (np.isfinite(log_peaks).all() and np.abs(log_peaks).max() < _LARGEST_LOG_DENSITY):
            raise ValueError(
                f"Densities of this mixture at epsilon={epsilon:g} in {means.shape[1]} dimensions "
                f"are of size e^{log_peaks.max():.0f}, beyond float64; rescale the data (X * s "
                "with epsilon * s²)."
            )
        return cls(
            epsilon=epsilon,
            unit=unit,
            centre=centre,
            weights=weights,
            means=(means - centre) / unit,
            axes=axes,
            variances=variances,
            gains=gains,
            spreads=spreads,
        )

    @property
    def n_components(self) -> int:
        """Number K of components."""
        return len(self.weights)

    @property
    def n_features(self) -> int:
        """Number m of features of a point."""
        return self.means.shape[1]

    @property
    def log_unit(self) -> float:
        """The logarithm of the unit of densities."""
        return float(-self.n_features * np.log(self.unit))

    @property
    def density_unit(self) -> float:
        """The unit of densities."""
        return float(np.exp(self.log_unit))

    def matrices(self, eigenvalues: Array) -> Array:
        """Return the matrices (K, m, m) of eigenvalues (K, m)."""
        return np.einsum("kab,kb,kcb->kac", self.axes, eigenvalues, self.axes)

    def whitening(self, j: int, variances: Array) -> Array:
        """Return W (m, m): x W has covariance I if x has the variances (K, m) of component j."""
        return self.axes[j] / np.sqrt(variances[j])

    @cached_property
    def gain_matrices(self) -> Array:
        """C_j, (K, m, m)."""
        return self.matrices(self.gains)

    @cached_property
    def spread_matrices(self) -> Array:
        """D_j, (K, m, m)."""
        return self.matrices(self.spreads)

    @cached_property
    def overlaps(self) -> Overlaps:
        """Inner products of transition densities."""
        return Overlaps.of(self.spread_matrices, self.spread_matrices)

    @cached_property
    def stationary(self) -> Mixtures:
        """The stationary density, as a mixture in one row."""
        return Mixtures(self.weights[None], self.means[None])

    @cached_property
    def overlaps_with_stationary(self) -> Overlaps:
        """Inner products of transition densities with the stationary density."""
        return Overlaps.of(self.spread_matrices, self.matrices(self.variances))

    @cached_property
    def stationary_norm(self) -> float:
        """|ν|², without the unit."""
        S = self.matrices(self.variances)
        return float(Overlaps.of(S, S).norms(self.stationary)[0])

    def local(self, x: Array) -> Array:
        """Return points in units of √(ε/2) from the centre."""
        return (x - self.centre) / self.unit

    def in_data_units(self, y: Array) -> Array:
        """Return points from their local coordinates."""
        return self.centre + self.unit * y

    def checked(self, x: Any, name: str = "x") -> Array:
        """Return points (n, m) in float64, or raise if they are not points of this mixture."""
        x = check_points(x, name, min_rows=1, accept_sparse=False).astype(np.float64, copy=False)
        if x.shape[1] != self.n_features:
            raise ValueError(
                f"{name} has {x.shape[1]} columns, but the mixture has {self.n_features} features; "
                "pass points with the same features."
            )
        return x

    def by_tiles(self, work: Callable[[slice], Array], n: int, *shape: int) -> Array:
        """Return an array (n, *shape) filled row tile by row tile, in parallel."""
        width = self.n_components * (self.n_features + 1) + sum(shape)
        return filled(work, (n, *shape), max(16, min(1024, CHUNK_NUMBERS // width)))
