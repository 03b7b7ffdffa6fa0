"""Error bars: of sketched distances, of anything computed from a sketch, and of the data.

`intervals` says how far a sketched distance is from the true one, `resampling` draws the columns of
a sketch or the points of the data again, `pseudotimes` says how far points are from where something
starts, `discrepancy` how much two diffusions, or two samples, differ.
"""

from heatsketch.uncertainty.discrepancy import (
    Discrepancy,
    SampleDiscrepancy,
    diffusion_discrepancy,
    sample_discrepancy,
)
from heatsketch.uncertainty.intervals import (
    Interval,
    columns_for,
    distance_interval,
    secant_inner_products,
)
from heatsketch.uncertainty.resampling import (
    ResampledInterval,
    data_interval,
    neighbor_confidence,
    sketch_interval,
)

__all__ = [
    "Discrepancy",
    "Interval",
    "ResampledInterval",
    "SampleDiscrepancy",
    "columns_for",
    "data_interval",
    "diffusion_discrepancy",
    "distance_interval",
    "neighbor_confidence",
    "sample_discrepancy",
    "secant_inner_products",
    "sketch_interval",
]
