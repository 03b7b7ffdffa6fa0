"""Diffusion from a Gaussian mixture in closed form.

`parameters` checks a mixture, `components` prepares it once, `given` is a mixture with both, and
`overlaps` has its inner products;
`densities`, `distances` and `gradients` are functions of the prepared components, `lowrank` makes
the affinities of points a product of low rank, and `kernel` has the public class, `MixtureKernel`.
`maps` is what all feature maps share, `series` has the maps by monomials and Hermite functions,
`bounds` their errors, `pivoted` the compact map (`cholesky` its algorithm); `steps` is the
diffusion at later times, `fitting` fits mixtures to points, and `whitening` makes the coordinates
in which it does so by default.
"""

from heatsketch.mixture.bounds import BallMaximum, PaperBounds, largest_in_ball
from heatsketch.mixture.kernel import MixtureKernel
from heatsketch.mixture.maps import FeatureMap
from heatsketch.mixture.pivoted import CholeskyMap
from heatsketch.mixture.series import HermiteMap, TaylorMap
from heatsketch.mixture.whitening import Whitening

__all__ = [
    "BallMaximum",
    "CholeskyMap",
    "FeatureMap",
    "HermiteMap",
    "MixtureKernel",
    "PaperBounds",
    "TaylorMap",
    "Whitening",
    "largest_in_ball",
]
