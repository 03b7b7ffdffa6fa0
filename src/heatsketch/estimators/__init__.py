"""Estimators in the manner of scikit-learn."""

from heatsketch.estimators.embedding import HeatEmbedding
from heatsketch.estimators.heat import HeatSketch
from heatsketch.estimators.isometry import NearIsometricProjection
from heatsketch.estimators.mixture import MixtureDiffusion
from heatsketch.estimators.spectral import DiffusionMap

__all__ = [
    "DiffusionMap",
    "HeatEmbedding",
    "HeatSketch",
    "MixtureDiffusion",
    "NearIsometricProjection",
]
