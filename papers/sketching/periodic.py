"""Even points of circles and flat tori, where all of a sketch of the heat kernel has a closed form.

On n even points of a circle of radius r, Algorithms 1 and 2 give the same matrix, with eigenvalues
λ_m = I_m(2r²/ε) / I_0(2r²/ε) for cos mθ and sin mθ, as far as n points tell these apart; on a grid
of a torus it is the product of two of them. Columns of √n A^p G are then realizations of a
stationary Gaussian process with the covariance C(τ) = Σ λ_m^2p cos mτ over all whole m, of which
every derivative is known. Coordinates are arc lengths.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ive

import heatsketch as hs
from papers.sketching import figures


class Circles(NamedTuple):
    """Even points on a product of circles, and the sketch of their heat kernel.

    Attributes
    ----------
    name : str
        In tables.
    shape : tuple of int
        Number of points on each circle.
    radii : tuple of float
        Radius of each circle.
    epsilon : float
        Bandwidth of exp(-|x - y|² / ε).
    power : int
        p of A^p G.
    """

    name: str
    shape: tuple[int, ...]
    radii: tuple[float, ...]
    epsilon: float
    power: int

    @property
    def size(self) -> int:
        """Return the number of points."""
        return int(np.prod(self.shape))

    @property
    def dimension(self) -> int:
        """Return the number of circles."""
        return len(self.shape)


EVEN_CIRCLE = Circles("circle", (300,), (1.0,), figures.CIRCLE.epsilon, figures.CIRCLE.powers[0])
EVEN_TORUS = Circles("torus", (24, 60), (1.0, 3.5), figures.TORUS.epsilon, figures.TORUS.powers[0])


def kernel(circles: Circles) -> np.ndarray:
    """Return A (n, n) of Algorithm 1; points of the last circle follow each other."""
    angles = [2 * np.pi * np.arange(n) / n for n in circles.shape]
    planes = []
    for angle, radius in zip(np.meshgrid(*angles, indexing="ij"), circles.radii, strict=True):
        planes += [radius * np.cos(angle.ravel()), radius * np.sin(angle.ravel())]
    return hs.symmetric_normalize(hs.gaussian_affinity(np.column_stack(planes), circles.epsilon))


def realizations(circles: Circles, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Draw f (n, columns), independent columns with the covariance C: a sketch times √(kn)."""
    filter = hs.Power(circles.power)
    F = hs.sketch(kernel(circles), filter, n_components=columns, deflate=False, rng=rng)
    return np.sqrt(columns * circles.size) * F


def derivative(F: np.ndarray, circles: Circles, *orders: int) -> np.ndarray:
    """Differentiate functions of the points (n, ...) along the circles, exactly if they are smooth.

    `orders` has the order of the derivative for each circle. The Fourier series of the columns is
    differentiated; all its terms have to be below half the number of points of a circle.
    """
    axes = tuple(range(circles.dimension))
    series = np.fft.fftn(F.reshape(*circles.shape, -1), axes=axes)
    for axis, (n, radius, order) in enumerate(
        zip(circles.shape, circles.radii, orders, strict=True)
    ):
        factors = (1j * np.fft.fftfreq(n, 1 / n) / radius) ** order
        series *= factors.reshape(-1, *[1] * (circles.dimension - axis))
    return np.fft.ifftn(series, axes=axes).real.reshape(F.shape)


def covariance(
    circles: Circles, lags: Sequence[np.ndarray | float], orders: Any = None
) -> np.ndarray:
    """Return C, or a derivative of it, at lags: angles on each circle, arrays of one shape.

    C(τ) = E f(x) f(x + τ), so that E ∂_a f(x) ∂_b f(x + τ) = -∂_a ∂_b C(τ).
    """
    orders = [0] * circles.dimension if orders is None else orders
    product: np.ndarray | float = 1.0
    for n, radius, lag, order in zip(circles.shape, circles.radii, lags, orders, strict=True):
        m = np.arange(n // 2)
        wave = np.cos(np.multiply.outer(lag, m) + order * np.pi / 2)
        terms = np.where(m, 2.0, 1.0) * eigenvalues(m, radius, circles) ** (2 * circles.power)
        product = product * (wave @ (terms * (m / radius) ** order))
    return np.asarray(product)


def eigenvalues(m: np.ndarray, radius: float, circles: Circles) -> np.ndarray:
    """Return λ_m = I_m(2r²/ε) / I_0(2r²/ε) of one circle."""
    argument = 2 * radius**2 / circles.epsilon
    return ive(m, argument) / ive(0, argument)


def grid_lags(circles: Circles) -> list[np.ndarray]:
    """Return the angles from the first point to every point (n,), one array for each circle."""
    angles = [2 * np.pi * np.arange(n) / n for n in circles.shape]
    return [angle.ravel() for angle in np.meshgrid(*angles, indexing="ij")]
