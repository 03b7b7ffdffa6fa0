"""Diffusion from a Gaussian mixture in closed form.

`components` checks a mixture and prepares it once; its densities are there, `overlaps` has their
inner products and `distances` what follows from these. `kernel` has the public class,
`MixtureKernel`. `cholesky_map` is the compact feature map (`cholesky` its algorithm), `steps` the
diffusion at later times, `fitting` fits mixtures to points, and `whitening` makes the coordinates
in which it does so by default.
"""

from heatsketch.mixture.cholesky_map import CholeskyMap
from heatsketch.mixture.kernel import MixtureKernel
from heatsketch.mixture.whitening import Whitening

__all__ = ["CholeskyMap", "MixtureKernel", "Whitening"]
