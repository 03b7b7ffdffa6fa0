"""The experiments of *Sketching the heat kernel*, section 5, run again.

`reproduce` runs a figure; `FIGURES` says what each figure is made of. A trial draws points and
random matrices, embeds the points by every method and measures log L, (32) of the paper.
"""

from heatsketch.experiments.figures import FIGURES, MDS_TRIALS, METHODS, Figure, Setting
from heatsketch.experiments.run import reproduce
from heatsketch.experiments.summary import Row

__all__ = ["FIGURES", "MDS_TRIALS", "METHODS", "Figure", "Row", "Setting", "reproduce"]
