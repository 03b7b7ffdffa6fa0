"""Run the trials of a figure, keep them, and write its table and picture."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Memory, Parallel, delayed

from papers.output import write_rows
from papers.sketching import drawings
from papers.sketching.figures import FIGURES, MDS_METHODS, MDS_TRIALS, Setting, methods_of
from papers.sketching.trials import Sample, run


class Row(NamedTuple):
    """log L of one method at one value of a figure's axis, over the trials.

    `value` is a dimension k or a power p. Mean, standard deviation and median are infinite or NaN
    where points coincide in an embedding.
    """

    method: str
    value: int
    trials: int
    mean: float
    std: float
    median: float


def run_figure(
    name: str,
    folder: Path,
    trials: int | None = None,
    seed: int = 0,
    jobs: int = -1,
    methods: Sequence[str] | None = None,
) -> list[Row]:
    """Write figure-NAME.csv and figure-NAME.png, and return the rows of the table.

    Parameters
    ----------
    name : str
        One of `FIGURES`.
    folder : Path
        Where to write. The trials of a setting are remembered in its folder "trials", also for
        other figures.
    trials : int, optional
        By default as many as in the paper. The two MDS methods are run in the first 10; a
        picture of embeddings has as many as in the paper.
    seed : int, default 0
        Trial number i has the same points in every run with the same seed.
    jobs : int, default -1
        Processes; -1 is one for each CPU. Results do not depend on it.
    methods : sequence of str, optional
        By default all of the figure. A trial of fewer methods is a trial of all with the others
        left out.
    """
    figure = replace(FIGURES[name], methods=methods_of(name, methods))
    n_trials = figure.trials if trials is None or figure.scatter else trials
    picture = folder / f"figure-{name}.png"
    if figure.scatter:
        samples = [Sample(figure.setting, seed, trial) for trial in range(n_trials)]
        values, p = (2,), figure.setting.powers[0]
        log_L = {m: np.array([[s.log_L(m, p, 2)] for s in samples]) for m in figure.methods}
        drawings.scatters(name, figure, samples, picture)
    else:
        same = [f.methods for f in FIGURES.values() if f.setting == figure.setting]
        all_methods = list(dict.fromkeys(method for group in same for method in group))
        remembered = Memory(folder / "trials", verbose=0).cache(run_trials, ignore=["jobs"])
        of_all = (figure.setting, all_methods, n_trials, seed, jobs)
        if methods is None or remembered.check_call_in_cache(*of_all):
            log_L = remembered(*of_all)
        else:
            log_L = remembered(figure.setting, list(figure.methods), n_trials, seed, jobs)
        values = figure.setting.values
    rows = [
        _row(method, value, column)
        for method in figure.methods
        for value, column in zip(values, log_L[method].T, strict=True)
    ]
    if not figure.scatter:
        drawings.curves(name, figure, rows, picture)
    header = ("method", figure.setting.axis, *Row._fields[2:])
    write_rows(folder / f"figure-{name}.csv", header, rows)
    return rows


def run_trials(
    setting: Setting, methods: list[str], trials: int, seed: int, jobs: int
) -> dict[str, np.ndarray]:
    """Return log L (trials, values) of each method."""
    counts = {m: min(trials, MDS_TRIALS) if m in MDS_METHODS else trials for m in methods}
    found = Parallel(n_jobs=jobs, verbose=1)(
        delayed(run)(setting, seed, trial, [m for m in methods if trial < counts[m]])
        for trial in range(trials)
    )
    return {m: np.array([trial[m] for trial in found if m in trial]) for m in methods}


def _row(method: str, value: int, log_L: np.ndarray) -> Row:
    with np.errstate(invalid="ignore"):  # infinities have no deviation
        std = float(np.std(log_L))
    return Row(method, value, len(log_L), float(np.mean(log_L)), std, float(np.median(log_L)))
