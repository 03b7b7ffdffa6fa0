"""Diffusion from a Gaussian mixture in closed form.

`components` prepares a checked mixture once and computes its densities, `overlaps` their inner
products, `transition_distances` their distances. `mixture_kernel` has the public class,
`MixtureKernel`. `feature_map` has the bases of feature maps: `cholesky_map` is the compact one
(`cholesky` its algorithm), `taylor_map` and `hermite_map` are those by series (`series_map` their
base, `trust_region` the problem in their bounds), `tensor_sketch` random projections. `steps` is
the diffusion at later times. `fitting` fits mixtures to points, by default in the coordinates of
`whitening`, and `marginal` those with missing entries.
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
