"""The table of a figure: mean, standard deviation and median of log L for each method."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heatsketch.experiments.figures import MDS_METHODS, MDS_TRIALS, Figure
from heatsketch.experiments.store import Results
from heatsketch.io.files import write_rows

STATISTICS = ("trials", "mean", "std", "median")


@dataclass(frozen=True)
class Row:
    """log L of one method at one point of a figure's axis.

    Attributes
    ----------
    figure : str
    method : str
    axis : {"k", "p"}
        What the figure varies: the dimension or the power.
    value : int
        Value of k or p.
    trials : int
        Number of trials.
    mean, std, median : float
        Of log L over the trials; infinite where points coincide in an embedding.
    """

    figure: str
    method: str
    axis: str
    value: int
    trials: int
    mean: float
    std: float
    median: float


def trials_of(method: str, trials: int) -> int:
    """Return how many of the trials a method is run in."""
    return min(trials, MDS_TRIALS) if method in MDS_METHODS else trials


def summarise(name: str, figure: Figure, results: Results, trials: int) -> list[Row]:
    """Make the table of a figure from those of its first `trials` trials that are finished."""
    rows = []
    for method in figure.methods:
        found = [results.get((method, trial)) for trial in range(trials_of(method, trials))]
        log_L = np.array([values for values in found if values is not None])
        if len(log_L):
            for value, column in zip(figure.setting.values, log_L.T, strict=True):
                if value == 2 or not figure.scatter:  # a scatter shows k = 2 only
                    rows.append(_row(name, figure, method, value, column))
    return rows


def _row(name: str, figure: Figure, method: str, value: int, log_L: np.ndarray) -> Row:
    mean, median = float(np.mean(log_L)), float(np.median(log_L))
    with np.errstate(invalid="ignore"):  # infinities have no deviation
        std = float(np.std(log_L))
    return Row(name, method, figure.setting.axis, value, len(log_L), mean, std, median)


def write_csv(path: Path, axis: str, rows: Sequence[Row]) -> None:
    """Write the table of a figure."""
    cells = [[r.method, r.value, *(getattr(r, name) for name in STATISTICS)] for r in rows]
    write_rows(path, ["method", axis, *STATISTICS], cells)
