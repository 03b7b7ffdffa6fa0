"""The figures of the paper: data, parameters, methods, numbers of trials."""

from dataclasses import dataclass

SKETCH_METHODS = ("GPS", "GPB", "GPSBS", "GPSBB")
PAPER_METHODS = ("DMS", "DMB", *SKETCH_METHODS)
OUR_METHODS = ("ours",)
MDS_METHODS = ("CMDS", "SMACOF")
FIGURE_METHODS = (*PAPER_METHODS, *OUR_METHODS, *MDS_METHODS)

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
    scatter : bool
        Draw embeddings in the plane instead of log L.
    outliers : bool
        Whether a scatter shows the two outliers.
    """

    title: str
    setting: Setting
    methods: tuple[str, ...]
    trials: int
    scatter: bool = False
    outliers: bool = True


def _doubling(largest: int) -> tuple[int, ...]:
    return tuple(2**j for j in range(1, largest.bit_length()))


def _up_to(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


CIRCLE = Setting("circle", 0, "circle", 300, 0.25, (8,), _up_to(2, 8))
TORUS = Setting("torus", 1, "stretched_torus", 500, 0.3, (10,), _up_to(2, 12))
KLEIN = Setting("klein", 2, "klein_bottle", 500, 2.0, (4,), _up_to(3, 20))
OUTLIERS = Setting("outliers", 3, "circle_with_outliers", 200, 0.5, (4,), _up_to(2, 5))
CLOUDS = Setting("clouds", 4, "gaussian_clouds", 300, 20.0, (1,), _up_to(2, 12), "euclidean")
TORUS_POWERS = Setting(
    "torus-powers", 5, "stretched_torus", 500, 0.3, _doubling(1024), (8,), "euclidean"
)
CIRCLE_POWERS = Setting("circle-powers", 6, "circle", 300, 0.25, _doubling(256), (2,), "euclidean")

_OUTLIERS_TITLE = "circle with two outliers, embedded in the plane"

FIGURES: dict[str, Figure] = {
    "1a": Figure("circle", CIRCLE, FIGURE_METHODS, 200),
    "1b": Figure("circle, embedded in the plane", CIRCLE, ("GPS", "ours"), 1, scatter=True),
    "2a": Figure("torus S¹ × 3.5 S¹", TORUS, FIGURE_METHODS, 100),
    "2b": Figure("Klein bottle", KLEIN, FIGURE_METHODS, 100),
    "3a": Figure("circle with two outliers", OUTLIERS, FIGURE_METHODS, 100),
    "3b": Figure(_OUTLIERS_TITLE, OUTLIERS, ("DMS", "ours"), 1, scatter=True),
    "3c": Figure(
        f"{_OUTLIERS_TITLE}; outliers left out",
        OUTLIERS,
        ("DMS", "ours"),
        1,
        scatter=True,
        outliers=False,
    ),
    "4": Figure(
        f"three samples of the {_OUTLIERS_TITLE}", OUTLIERS, ("GPS", "ours"), 3, scatter=True
    ),
    "5a": Figure("Klein bottle, sketches", KLEIN, (*SKETCH_METHODS, "ours"), 100),
    "5b": Figure("Gaussian clouds, sketches, |x - y|", CLOUDS, (*SKETCH_METHODS, "ours"), 100),
    "6a": Figure("torus S¹ × 3.5 S¹, k = 8, |x - y|", TORUS_POWERS, (*PAPER_METHODS, "ours"), 100),
    "6b": Figure("circle, k = 2, |x - y|", CIRCLE_POWERS, (*PAPER_METHODS, "ours"), 100),
}
