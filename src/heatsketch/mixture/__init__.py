"""Diffusion from a Gaussian mixture in closed form.

`kernel` holds `MixtureKernel`, its densities, distances and gradients; `parameters` checks what it
is given; `overlaps` the inner products it is made of; `lowrank` its affinities as a product. `maps`
is what feature maps share, `series` those by monomials and Hermite functions, `pivoted` the compact
one (`cholesky` its algorithm), `bounds` what a series leaves out; `steps` the diffusion at later
times.
"""

from heatsketch.mixture.bounds import BallMaximum, PaperBounds, largest_in_ball
from heatsketch.mixture.kernel import MixtureKernel
from heatsketch.mixture.maps import FeatureMap
from heatsketch.mixture.pivoted import CholeskyMap
from heatsketch.mixture.series import HermiteMap, TaylorMap

__all__ = [
    "BallMaximum",
    "CholeskyMap",
    "FeatureMap",
    "HermiteMap",
    "MixtureKernel",
    "PaperBounds",
    "TaylorMap",
    "largest_in_ball",
]
