"""Pictures: embeddings, alone or side by side, and curves; pyplot's global state is not used."""

from heatsketch.plot.curves import ksum_curve, time_curve
from heatsketch.plot.explanations import explained_variance, scales
from heatsketch.plot.figures import SUFFIXES, check_picture, new_figure, save
from heatsketch.plot.labels import MAX_CATEGORIES, OKABE_ITO, categories
from heatsketch.plot.panels import panels
from heatsketch.plot.scatter import scatter

__all__ = [
    "MAX_CATEGORIES",
    "OKABE_ITO",
    "SUFFIXES",
    "categories",
    "check_picture",
    "explained_variance",
    "ksum_curve",
    "new_figure",
    "panels",
    "save",
    "scales",
    "scatter",
    "time_curve",
]
