"""Pictures: embeddings, alone or side by side, and curves; pyplot's global state is not used.

Each function draws on the axes it is given, or on a new figure, and returns the figure.
"""

from heatsketch.plot.curves import (
    biplot,
    distortion_histogram,
    explained_variance,
    ksum_curve,
    scales,
    time_curve,
)
from heatsketch.plot.pictures import (
    OKABE_ITO,
    categories,
    check_picture,
    density,
    new_figure,
    panels,
    save,
    scatter,
    space,
)

__all__ = [
    "OKABE_ITO",
    "biplot",
    "categories",
    "check_picture",
    "density",
    "distortion_histogram",
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
