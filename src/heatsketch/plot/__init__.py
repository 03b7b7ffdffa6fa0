"""Pictures: embeddings, alone or side by side, and curves; pyplot's global state is not used.

Functions draw a picture and write it to a file; displays are scikit-learn's kind of object, made by
`from_estimator` and drawn on any axes by `.plot(ax=)`.
"""

from heatsketch.plot.clouds import density, space
from heatsketch.plot.curves import ksum_curve, time_curve
from heatsketch.plot.displays import (
    DistortionDisplay,
    EmbeddingDisplay,
    KsumDisplay,
    ScalesDisplay,
    SpectrumDisplay,
)
from heatsketch.plot.explanations import explained_variance, scales
from heatsketch.plot.figures import SUFFIXES, check_picture, new_figure, save
from heatsketch.plot.labels import MAX_CATEGORIES, OKABE_ITO, categories
from heatsketch.plot.panels import panels
from heatsketch.plot.scatter import scatter

__all__ = [
    "MAX_CATEGORIES",
    "OKABE_ITO",
    "SUFFIXES",
    "DistortionDisplay",
    "EmbeddingDisplay",
    "KsumDisplay",
    "ScalesDisplay",
    "SpectrumDisplay",
    "categories",
    "check_picture",
    "density",
    "explained_variance",
    "ksum_curve",
    "new_figure",
    "panels",
    "save",
    "scales",
    "scatter",
    "space",
    "time_curve",
]
