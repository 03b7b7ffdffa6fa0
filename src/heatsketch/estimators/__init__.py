"""Estimators in the manner of scikit-learn."""

from heatsketch.estimators.diffusion_map import DiffusionMap
from heatsketch.estimators.heat_embedding import HeatEmbedding
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.estimators.mixture_diffusion import MixtureDiffusion
from heatsketch.estimators.near_isometric import NearIsometricProjection

__all__ = [
    "DiffusionMap",
    "HeatEmbedding",
    "HeatSketch",
    "MixtureDiffusion",
    "NearIsometricProjection",
]
