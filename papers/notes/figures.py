"""The figures of *Linear and nonlinear dimensionality reduction*, drawn again, and one more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from papers.notes import crowding, diffusion, graphs
from papers.notes.measures import Drawn, NotesRow
from papers.output import write_rows


class NotesFigure(NamedTuple):
    """A figure: its title, what makes its rows and draws it, with which sizes, and how long."""

    title: str
    run: Callable[..., Drawn]
    sizes: dict[str, Any]
    minutes: float


NOISY_ROLL: dict[str, Any] = {"points": 800, "noise": 0.8}
NOISY_MESH = {"noise": 0.4, "epsilon": 0.6108029, "time": 300}
NOTES_8 = NOISY_ROLL | {"mesh": "random", "epsilon": 2.104531, "time": 1705}

NOTES: dict[str, NotesFigure] = {
    "notes-1": NotesFigure("Isomap of the roll", graphs.isomap, {}, 0.2),
    "notes-2": NotesFigure("Isomap of the noisy roll", graphs.isomap, NOISY_ROLL, 0.1),
    "notes-3": NotesFigure("Locally linear embedding of two rolls", graphs.locally_linear, {}, 0.1),
    "notes-4": NotesFigure(
        "t-SNE of the noisy roll at two perplexities", graphs.t_sne_of_roll, NOISY_ROLL, 0.3
    ),
    "notes-5": NotesFigure("t-SNE of the MNIST test digits", graphs.t_sne_of_digits, {}, 4.5),
    "notes-6": NotesFigure("Diffusion map of a quasi-uniform roll", diffusion.roll, {}, 0.2),
    "notes-7": NotesFigure(
        "Diffusion map of the quasi-uniform roll with noise", diffusion.roll, NOISY_MESH, 0.2
    ),
    "notes-8": NotesFigure(
        "Diffusion map of the noisy roll of notes-2", diffusion.roll, NOTES_8, 0.2
    ),
    "notes-9": NotesFigure("Pacman", diffusion.turning_pacman, {}, 0.1),
    "notes-10": NotesFigure("A turned picture", diffusion.turning_picture, {}, 0.7),
    "notes-crowding": NotesFigure(
        "Four methods on the same MNIST test digits", crowding.digits_by_four_methods, {}, 1.2
    ),
}
OF_DIGITS = ("notes-5", "notes-crowding")


def run_notes(name: str, folder: Path, mnist: Path | None = None, seed: int = 0) -> list[NotesRow]:
    """Write NAME.csv, quantities as computed here and as printed in the notes, and NAME.png.

    Those of digits read MNIST from the IDX files of a folder, or download it from OpenML.
    """
    figure = NOTES[name]
    data = {"folder": mnist} if name in OF_DIGITS else {}
    with threadpool_limits(1):  # sums depend on the number of threads
        rows, draw = figure.run(seed, **figure.sizes, **data)
    write_rows(folder / f"{name}.csv", NotesRow._fields, rows)
    draw(f"{name}: {figure.title}", folder / f"{name}.png")
    return rows
