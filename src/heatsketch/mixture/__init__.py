"""Diffusion from a Gaussian mixture in closed form.

`components` prepares a checked mixture once and computes its densities, `overlaps` their inner
products, `transition_distances` their distances. `mixture_kernel` has the public class,
`MixtureKernel`. `cholesky_map` has the base of feature maps and the compact one; `series` those by
series, with the problem in their bounds, and random projections. `fitting` fits mixtures to points,
by default in whitened coordinates, and has the diffusion at later times; `marginal` fits those with
missing entries.
"""

from heatsketch.mixture.cholesky_map import CholeskyMap
from heatsketch.mixture.fitting import Whitening
from heatsketch.mixture.mixture_kernel import MixtureKernel
from heatsketch.mixture.series import HermiteMap, TaylorMap, TensorSketch

__all__ = [
    "CholeskyMap",
    "HermiteMap",
    "MixtureKernel",
    "TaylorMap",
    "TensorSketch",
    "Whitening",
]
