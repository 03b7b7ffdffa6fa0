"""What all experiments share: their record, random numbers by purpose, tables, pictures."""

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# Six colours of Okabe and Ito, which the colour-blind can tell apart.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")


class Experiment(NamedTuple):
    """An experiment that `python -m papers NAME` runs.

    Attributes
    ----------
    title : str
        What it is about, in a few words.
    run : callable
        ``run(folder, seed)`` writes NAME.csv, and pictures, into a folder.
    minutes : float
        How long it takes on two cores, roughly.
    """

    title: str
    run: Callable[..., Any]
    minutes: float


def random(seed: int, *purpose: int) -> np.random.Generator:
    """Return a generator of random numbers for a purpose."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose))


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def figure_and_axes(width: float, height: float, shape: tuple[int, int] | None = None) -> Any:
    """Return a figure of a size in inches and its axes, one or an array of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    if shape is None:
        return figure, figure.add_subplot()
    return figure, figure.subplots(*shape, squeeze=False)


def save(figure: Any, title: str, path: Path, fontsize: float = 10) -> None:
    """Write a picture under its title."""
    figure.suptitle(title, fontsize=fontsize, x=0.01, ha="left")
    figure.savefig(path)
