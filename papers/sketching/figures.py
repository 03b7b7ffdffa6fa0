"""The figures of the paper: data, parameters, methods, numbers of trials."""

from collections.abc import Sequence
from dataclasses import dataclass

SKETCH_METHODS = ("GPS", "GPB", "GPSBS", "GPSBB")
PAPER_METHODS = ("DMS", "DMB", *SKETCH_METHODS)
MDS_METHODS = ("CMDS", "SMACOF")
FIGURE_METHODS = (*PAPER_METHODS, "ours", *MDS_METHODS)

MDS_TRIALS = 10  # SMACOF takes up to half a second for each embedding of 500 points


@dataclass(frozen=True)
class Setting:
    """Data and parameters of trials, which several figures may show.

    Attributes
    ----------
    name : str
        Part of the name of the file of results.
    number : int
        Part of the seed of every trial, so that settings have different points.
    points : str
        Set of `heatsketch.datasets.DATASETS`.
    n : int
        Points drawn for a trial.
    epsilon : float
        Bandwidth of exp(-|x - y|² / ε), in squared units of the data.
    powers : tuple of int
        Powers p of the normalised kernel, one if there are several sizes.
    sizes : tuple of int
        Dimensions k of the embeddings, one if there are several powers.
    distance : str
        Log L compares with D^(p) of the own kernel, or "euclidean".
    """

    name: str
    number: int
    points: str
    n: int
    epsilon: float
    powers: tuple[int, ...]
    sizes: tuple[int, ...]
    distance: str = "diffusion"

    @property
    def axis(self) -> str:
        """Return the name of what varies: "k" or "p"."""
        return "k" if len(self.powers) == 1 else "p"

    @property
    def values(self) -> tuple[int, ...]:
        """Return the values of what varies, one for each log L of a trial."""
        return self.sizes if self.axis == "k" else self.powers


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Attributes
    ----------
    title : str
        Above the picture.
    setting : Setting
        Data and parameters.
    methods : tuple of str
        Shown, in this order.
    trials : int
        The number in the paper; for a scatter, the number of samples shown.
    minutes : float
        How long all trials take on two cores, roughly.
    scatter : bool
        Draw embeddings in the plane instead of log L.
    outliers : bool
        Whether a scatter shows the two outliers.
    """

    title: str
    setting: Setting
    methods: tuple[str, ...]
    trials: int
    minutes: float
    scatter: bool = False
    outliers: bool = True


POWERS = tuple(2**j for j in range(1, 11))
DIMENSIONS = tuple(range(21))

CIRCLE = Setting("circle", 0, "circle", 300, 0.25, (8,), DIMENSIONS[2:9])
TORUS = Setting("torus", 1, "stretched_torus", 500, 0.3, (10,), DIMENSIONS[2:13])
KLEIN = Setting("klein", 2, "klein_bottle", 500, 2.0, (4,), DIMENSIONS[3:])
OUTLIERS = Setting("outliers", 3, "circle_with_outliers", 200, 0.5, (4,), DIMENSIONS[2:6])
CLOUDS = Setting("clouds", 4, "gaussian_clouds", 300, 20.0, (1,), DIMENSIONS[2:13], "euclidean")
TORUS_POWERS = Setting("torus-powers", 5, "stretched_torus", 500, 0.3, POWERS, (8,), "euclidean")
CIRCLE_POWERS = Setting("circle-powers", 6, "circle", 300, 0.25, POWERS[:8], (2,), "euclidean")

OUTLIERS_TITLE = "circle with two outliers, embedded in the plane"
SEEN = ("GPS", "ours")
COMPARED = ("DMS", "ours")
SKETCHES = (*SKETCH_METHODS, "ours")
NO_MDS = (*PAPER_METHODS, "ours")

FIGURES: dict[str, Figure] = {
    "1a": Figure("circle", CIRCLE, FIGURE_METHODS, 200, 18),
    "1b": Figure("three samples of the circle in the plane", CIRCLE, SEEN, 3, 0.5, scatter=True),
    "2a": Figure("torus S¹ × 3.5 S¹", TORUS, FIGURE_METHODS, 100, 50),
    "2b": Figure("Klein bottle", KLEIN, FIGURE_METHODS, 100, 130),
    "3a": Figure("circle with two outliers", OUTLIERS, FIGURE_METHODS, 100, 12),
    "3b": Figure(OUTLIERS_TITLE, OUTLIERS, COMPARED, 1, 0.2, scatter=True),
    "3c": Figure(f"{OUTLIERS_TITLE}; outliers left out", OUTLIERS, COMPARED, 1, 0.2, True, False),
    "4": Figure(f"three samples of the {OUTLIERS_TITLE}", OUTLIERS, SEEN, 3, 0.5, scatter=True),
    "5a": Figure("Klein bottle, sketches", KLEIN, SKETCHES, 100, 130),
    "5b": Figure("Gaussian clouds, sketches, |x - y|", CLOUDS, SKETCHES, 100, 55),
    "6a": Figure("torus S¹ × 3.5 S¹, k = 8, |x - y|", TORUS_POWERS, NO_MDS, 100, 35),
    "6b": Figure("circle, k = 2, |x - y|", CIRCLE_POWERS, NO_MDS, 100, 11),
}


def methods_of(name: str, asked: Sequence[str] | None) -> tuple[str, ...]:
    """Return the methods of a figure, or those of them that are asked for, in its order.

    Raises
    ------
    ValueError
        A method that there is not, or that the figure does not have.
    """
    shown = FIGURES[name].methods
    if asked is None:
        return shown
    for method in asked:
        if method not in FIGURE_METHODS:
            raise ValueError(f"no method {method!r}; there are {', '.join(FIGURE_METHODS)}.")
        if method not in shown:
            raise ValueError(f"figure {name} does not have {method}, but {', '.join(shown)}.")
    return tuple(method for method in shown if method in asked)
