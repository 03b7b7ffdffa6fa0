"""Diffusion from a Gaussian mixture in closed form.

`components` checks a mixture and prepares it once, `overlaps` has its inner products; `densities`
and `distances` are functions of the prepared components, and `kernel` has the public class,
`MixtureKernel`. `cholesky_map` is the compact feature map (`cholesky` its algorithm), `steps` the
diffusion at later times, `fitting` fits mixtures to points, and `whitening` makes the coordinates
in which it does so by default.
"""

from heatsketch.mixture.cholesky_map import CholeskyMap
from heatsketch.mixture.kernel import MixtureKernel
from heatsketch.mixture.whitening import Whitening

__all__ = ["CholeskyMap", "MixtureKernel", "Whitening"]
