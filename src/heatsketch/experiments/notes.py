"""The figures of *Linear and nonlinear dimensionality reduction*, drawn again."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from heatsketch._checks import check_choice, check_number, logger
from heatsketch.experiments import notes_diffusion, notes_graphs, notes_pictures
from heatsketch.experiments.notes_measures import NotesRow
from heatsketch.io.files import write_rows
from heatsketch.plot import check_picture


class NotesFigure(NamedTuple):
    """A figure: how it is made, and what it shows.

    Attributes
    ----------
    title : str
        Above the picture.
    run : function
        (seed, **sizes) -> (rows, panels).
    draw : function
        (panels, title, path).
    sizes : dict
        Parameters of `run`: numbers of points and the like.
    says : str
        What the notes say about it.
    seen : str
        What is seen here, with quantities of the rows in braces.
    """

    title: str
    run: Callable[..., tuple[list[NotesRow], Any]]
    draw: Callable[..., None]
    sizes: dict[str, Any]
    says: str
    seen: str

    def describe(self, rows: Sequence[NotesRow]) -> str:
        """Return what is seen, with the numbers of the rows."""
        return self.seen.format_map({row.quantity: row.value for row in rows})


_STRIP_TEXT = (
    "|Spearman| of the first coordinate with arc length "
    "{coordinate 1, |Spearman| with arc length:.2f}, of the second with height "
    "{coordinate 2, |Spearman| with height:.2f}."
)
_GRAPH_TEXT = (
    "{edges between windings:.0f} of {edges:.0f} edges join windings of the roll, and the median "
    "distance in the graph is {graph over strip distance, median:.2f} of that in the strip; "
)
_MAP_TEXT = (
    "t = {time (29) with lambda 4:.0f}; the three coordinates follow cos(m pi s / L) of the arc "
    "length s with correlations {coordinate 1, |correlation| with cos(1 pi s / L):.3f}, "
    "{coordinate 2, |correlation| with cos(2 pi s / L):.3f} and "
    "{coordinate 3, |correlation| with cos(3 pi s / L):.3f}. Of the first 60 eigenvectors "
    "number {eigenvector that follows height most:.0f} follows height most, with |Spearman| "
    "{its |Spearman| with height:.2f}."
)
_WINDING_TEXT = (
    "The map winds {diffusion map, winding number:.0f} time(s) around the origin, "
    "{diffusion map, share of steps forward:.0%} of its steps forward, the first two principal "
    "components {PCA, winding number:.0f} time(s), {PCA, share of steps forward:.0%} forward; "
)

_NOISY_ROLL: dict[str, Any] = {"points": 800, "noise": 0.8}
_QUASI_UNIFORM_ROLL: dict[str, Any] = {"points": 1060, "mesh": "uniform", "delta": 0.2}
_PICTURES = {"images": 200}

NOTES: dict[str, NotesFigure] = {
    "notes-1": NotesFigure(
        "Isomap of the roll",
        notes_graphs.isomap,
        notes_pictures.isomap,
        {"points": 1600, "noise": 0.0, "n_neighbors": 10},
        "The embedding unrolls the strip.",
        _GRAPH_TEXT + _STRIP_TEXT,
    ),
    "notes-2": NotesFigure(
        "Isomap of the noisy roll",
        notes_graphs.isomap,
        notes_pictures.isomap,
        _NOISY_ROLL | {"n_neighbors": 10},
        "Shortcuts through the graph spoil the distances: Isomap fails to recognise the strip.",
        _GRAPH_TEXT + _STRIP_TEXT,
    ),
    "notes-3": NotesFigure(
        "Locally linear embedding of two rolls",
        notes_graphs.locally_linear,
        notes_pictures.scatters,
        {"points": 2000, "n_neighbors": 12},
        "LLE embeds a roll (that of Roweis and Saul) into the plane.",
        "|Spearman| with arc length and height: of the roll of Roweis and Saul, a strip 90 x 21, "
        "{roll of Roweis and Saul, coordinate 1, |Spearman| with arc length:.2f} (coordinate 1) "
        "and {roll of Roweis and Saul, coordinate 2, |Spearman| with height:.2f} (coordinate 2); "
        "of that of the notes, 144.5 x 6, "
        "{roll of the notes, coordinate 1, |Spearman| with arc length:.2f} and "
        "{roll of the notes, coordinate 2, |Spearman| with height:.2f}.",
    ),
    "notes-4": NotesFigure(
        "t-SNE of the noisy roll at two perplexities",
        notes_graphs.t_sne_of_roll,
        notes_pictures.scatters,
        _NOISY_ROLL | {"perplexities": (30, 12), "exaggeration": 4.0},
        "t-SNE tries to split the points into clusters, into more at a lower perplexity.",
        "{perplexity 30, pieces:.0f} piece(s) at perplexity 30, {perplexity 12, pieces:.0f} at 12.",
    ),
    "notes-5": NotesFigure(
        "t-SNE of the MNIST test digits",
        notes_graphs.t_sne_of_digits,
        notes_pictures.digits,
        {"digits": 10_000, "perplexity": 30, "exaggeration": 4.0},
        "t-SNE successfully clusters the 10,000 digits.",
        "The 10 nearest others vote for the right digit in "
        "{10 neighbours right, embedding:.1%} of the cases ({10 neighbours right, pixels:.1%} in "
        "the pixels); 10-means agrees with the digits by an adjusted Rand index of "
        "{10-means against digits, embedding (adjusted Rand):.2f} "
        "({10-means against digits, pixels (adjusted Rand):.2f}).",
    ),
    "notes-6": NotesFigure(
        "Diffusion map of a quasi-uniform roll",
        notes_diffusion.roll,
        notes_pictures.roll,
        _QUASI_UNIFORM_ROLL | {"noise": 0.0, "epsilon": 0.7717928, "time": 147},
        "The roll has been mostly unrolled.",
        _MAP_TEXT,
    ),
    "notes-7": NotesFigure(
        "Diffusion map of the quasi-uniform roll with noise",
        notes_diffusion.roll,
        notes_pictures.roll,
        _QUASI_UNIFORM_ROLL | {"noise": 0.4, "epsilon": 0.6108029, "time": 300},
        "The same with noise of 0.4.",
        _MAP_TEXT,
    ),
    "notes-8": NotesFigure(
        "Diffusion map of the noisy roll of notes-2",
        notes_diffusion.roll,
        notes_pictures.roll,
        _NOISY_ROLL | {"mesh": "random", "delta": 0.2, "epsilon": 2.104531, "time": 1705},
        "The points that Isomap could not embed; diffusion distances are robust to noise.",
        _MAP_TEXT,
    ),
    "notes-9": NotesFigure(
        "Pacman",
        notes_diffusion.turning_pacman,
        notes_pictures.pictures,
        _PICTURES | {"size": 65, "components": 3, "delta": 0.5, "epsilon": 2335698.0, "time": 187},
        "PCA and the diffusion map both show a set of one dimension.",
        _WINDING_TEXT + "three of them hold {PCA, share of variance:.0%} of the variance.",
    ),
    "notes-10": NotesFigure(
        "A turned picture",
        notes_diffusion.turning_picture,
        notes_pictures.pictures,
        _PICTURES | {"size": 500, "components": 2, "delta": 0.2, "epsilon": 7.318159e7},
        "A double loop, as the picture turned by half a turn is nearer than those turned by 30° to "
        "150°.",
        _WINDING_TEXT + "half a turn apart d² is {half a turn over 30° to 150°, d²:.0%} of that of "
        "pictures 30° to 150° apart.",
    ),
}


def reproduce_notes(
    name: str, directory: str | Path, *, mnist: str | Path | None = None, seed: int = 0
) -> list[NotesRow]:
    """Draw a figure of *Linear and nonlinear dimensionality reduction*, and write its numbers.

    Returns quantities as computed here and as printed in the notes. Writes NAME.csv and NAME.png.

    Parameters
    ----------
    name : "notes-1" to "notes-10"
        Isomap of the roll, clean and noisy; LLE; t-SNE of the noisy roll and of MNIST; diffusion
        maps of three rolls, of Pacman and of a rotated picture.
    directory : path
        Where to write; made if it does not exist.
    mnist : folder or None, default None
        IDX files for "notes-5"; None downloads the digits from OpenML.
    seed : int >= 0, default 0

    Returns
    -------
    list of NotesRow
        The rows of the table.

    Raises
    ------
    ValueError
        If the name is unknown or the seed is out of range.
    ImportError
        If matplotlib is missing, or Pillow for "notes-10".

    Notes
    -----
    Some seconds each, "notes-5" and "notes-10" a minute or two, on one core.

    Examples
    --------
    >>> from heatsketch.experiments import reproduce_notes
    >>> rows = reproduce_notes("notes-9", "figures")  # doctest: +SKIP
    >>> {row.quantity: row.value for row in rows}["diffusion map, winding number"]  # doctest: +SKIP
    1.0
    """
    check_choice(name, "name", tuple(NOTES))
    seed = check_number(seed, "seed", low=0, integer=True)
    check_picture(None)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    figure = NOTES[name]
    data = {"folder": mnist} if name == "notes-5" else {}
    logger.info("%s: %s", name, figure.title)
    with threadpool_limits(1):  # sums depend on the number of threads
        rows, panels = figure.run(seed, **figure.sizes, **data)
    write_rows(directory / f"{name}.csv", NotesRow._fields, rows)
    figure.draw(panels, f"{name}: {figure.title}", directory / f"{name}.png")
    return rows
