"""Diffusion from a Gaussian mixture in closed form.

`components` prepares a checked mixture once and computes its densities, `overlaps` their inner
products, `transition_distances` their distances. `mixture_kernel` has the public class,
`MixtureKernel`. `cholesky_map` is the compact feature map (`cholesky` its algorithm) and `steps`
the diffusion at later times. `fitting` fits mixtures to points, by default in the coordinates of
`whitening`.
"""

from heatsketch.mixture.cholesky_map import CholeskyMap
from heatsketch.mixture.mixture_kernel import MixtureKernel
from heatsketch.mixture.whitening import Whitening

__all__ = ["CholeskyMap", "MixtureKernel", "Whitening"]
