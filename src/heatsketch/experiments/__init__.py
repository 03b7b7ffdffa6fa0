"""The experiments of the papers, run again.

`reproduce` runs a figure of *Sketching the heat kernel*, section 5; `FIGURES` has its data,
parameters and methods. A trial draws points and random matrices, embeds the points by every method
and measures log L, (32) of the paper. `reproduce_mgc` runs the two examples of *Diffusion
representation*, section 6, `reproduce_notes` the figures of *Linear and nonlinear dimensionality
reduction*.
"""

from heatsketch.experiments.figures import FIGURE_METHODS, FIGURES, MDS_TRIALS, Figure, Setting
from heatsketch.experiments.mgc import MGC, reproduce_mgc
from heatsketch.experiments.mgc_stationary import StationaryRow
from heatsketch.experiments.mgc_truncation import TruncationRow
from heatsketch.experiments.notes import NOTES, NotesFigure, reproduce_notes
from heatsketch.experiments.notes_measures import NotesRow
from heatsketch.experiments.run import reproduce
from heatsketch.experiments.summary import Row

__all__ = [
    "FIGURES",
    "FIGURE_METHODS",
    "MDS_TRIALS",
    "MGC",
    "NOTES",
    "Figure",
    "NotesFigure",
    "NotesRow",
    "Row",
    "Setting",
    "StationaryRow",
    "TruncationRow",
    "reproduce",
    "reproduce_mgc",
    "reproduce_notes",
]
