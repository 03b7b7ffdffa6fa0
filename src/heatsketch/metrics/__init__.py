"""Diffusion distances, and how well an embedding keeps distances, neighbourhoods and ranks."""

from heatsketch.metrics.distances import diffusion_distance
from heatsketch.metrics.distortions import (
    Distortion,
    diffusion_distortion,
    distortion,
    row_distortion,
)
from heatsketch.metrics.neighborhoods import (
    Estimate,
    continuity,
    knn_accuracy,
    random_pairs,
    rank_correlation,
    stability,
    trustworthiness,
)
from heatsketch.metrics.picture import PictureQuality

__all__ = [
    "Distortion",
    "Estimate",
    "PictureQuality",
    "continuity",
    "diffusion_distance",
    "diffusion_distortion",
    "distortion",
    "knn_accuracy",
    "random_pairs",
    "rank_correlation",
    "row_distortion",
    "stability",
    "trustworthiness",
]
