"""Estimators in the manner of scikit-learn."""

from heatsketch.estimators.heat import HeatSketch
from heatsketch.estimators.spectral import DiffusionMap

__all__ = ["DiffusionMap", "HeatSketch"]
