"""Diffusion distances, and how well an embedding keeps distances, neighbourhoods and ranks."""

from heatsketch.metrics.distances import diffusion_distance
from heatsketch.metrics.distortions import (
    Distortion,
    diffusion_distortion,
    distortion,
    row_distortion,
)
from heatsketch.metrics.neighborhoods import Estimate, continuity, knn_accuracy, trustworthiness
from heatsketch.metrics.ranks import random_pairs, rank_correlation, stability
from heatsketch.metrics.shares import share_within
from heatsketch.spectral.sketch_laws import (
    DifferenceLaw,
    SketchErrorBound,
    sketch_difference,
    sketch_error_bound,
)

__all__ = [
    "DifferenceLaw",
    "Distortion",
    "Estimate",
    "SketchErrorBound",
    "continuity",
    "diffusion_distance",
    "diffusion_distortion",
    "distortion",
    "knn_accuracy",
    "random_pairs",
    "rank_correlation",
    "row_distortion",
    "share_within",
    "sketch_difference",
    "sketch_error_bound",
    "stability",
    "trustworthiness",
]
