"""The result of a comparison: a row for each method, and the embeddings."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch._typing import Array
from heatsketch.io.files import write_atomically, write_rows
from heatsketch.plot import check_picture, panels

FILES = ("comparison.csv", "comparison.png", "embeddings.npz")


class Row(NamedTuple):
    """The measures of a method; NaN where one does not apply.

    Attributes
    ----------
    method : str
    seconds : float
        The time of one fit, without the search for neighbours where these are shared.
    peak_bytes : float
        Largest memory of the process during the fit, less that before.
    trustworthiness, continuity : float
        Of 10 nearest neighbours (Venna and Kaski 2001): 1 where no neighbour is false, or lost.
    log_L_diffusion, log_L_geodesic : float
        log L, (32) of *Sketching the heat kernel*, over pairs of the sample: the logarithm of the
        largest over the smallest dilation of a distance.
    spearman, spearman_diffusion, spearman_geodesic : float
        Rank correlation of embedded distances with Euclidean, diffusion and geodesic ones.
    knn_accuracy : float
        Fraction of points whose 10 nearest neighbours in the embedding have their label by
        majority.
    stability : float
        Rank correlation of embedded distances between runs with other seeds.
    error : str
        Why the method failed, or "".
    """

    method: str
    seconds: float = math.nan
    peak_bytes: float = math.nan
    trustworthiness: float = math.nan
    continuity: float = math.nan
    log_L_diffusion: float = math.nan
    log_L_geodesic: float = math.nan
    spearman: float = math.nan
    spearman_diffusion: float = math.nan
    spearman_geodesic: float = math.nan
    knn_accuracy: float = math.nan
    stability: float = math.nan
    error: str = ""


_HEADINGS = {  # of the columns of the printed table
    "seconds": "seconds",
    "peak_bytes": "GB",
    "trustworthiness": "trust",
    "continuity": "contin",
    "log_L_diffusion": "logL dif",
    "log_L_geodesic": "logL geo",
    "spearman": "rho",
    "spearman_diffusion": "rho dif",
    "spearman_geodesic": "rho geo",
    "knn_accuracy": "kNN",
    "stability": "stable",
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """A row and an embedding for each method; `print` shows the rows as a table.

    Attributes
    ----------
    rows : list of Row
    embeddings : dict of arrays (n, k)
        Those of the methods that did not fail.
    labels : array (n,) or None
    facts : dict
        Numbers of points, features, neighbours, sampled points and runs, diffusion time, seconds.
    """

    rows: list[Row]
    embeddings: dict[str, Array]
    labels: Any
    facts: dict[str, Any]

    def __str__(self) -> str:
        """Return the table as text, with an explanation of its columns."""
        width = max(len(row.method) for row in self.rows)
        lines = [" " * width + "".join(f" {heading:>8}" for heading in _HEADINGS.values())]
        for row in self.rows:
            values = row._asdict() | {"peak_bytes": row.peak_bytes / 1e9}
            texts = [f"{values[name]:.3f}".replace("nan", "-") for name in _HEADINGS]
            cells = row.error or " ".join(f"{text:>8}" for text in texts)
            lines.append(f"{row.method:<{width}} {cells}")
        return "\n".join([*lines, "", self.describe()])

    def describe(self) -> str:
        """Explain the columns in a few lines."""
        facts = self.facts
        chosen = ", as heat-embedding chooses" if facts["time_is_chosen"] else ""
        return (
            f"{facts['points']:,} points, {facts['features']:,} features; "
            f"{facts['n_neighbors']} neighbours, found once in {facts['neighbor_seconds']:.1f} s\n"
            "trust, contin: trustworthiness and continuity of 10 neighbours\n"
            "logL: worst over best dilation of diffusion "
            f"(time {facts['time']:g}{chosen}) and geodesic distances, as a logarithm, "
            f"{facts['sample']:,} points\n"
            "rho: rank correlation with Euclidean, diffusion and geodesic distances\n"
            "kNN: accuracy of 10 neighbours, leave one out; stable: rank correlation between seeds"
        )

    def plot(self, path: str | Path | None = None, *, whole: bool = False) -> Any:
        """Draw a panel for each method, if `whole` with far points at their places.

        Raises
        ------
        ImportError, OSError
            matplotlib is missing; the file cannot be written.
        """
        notes = {}
        for row in self.rows:
            note = f"{row.seconds:.1f} s, trust {row.trustworthiness:.3f}"
            if not math.isnan(row.knn_accuracy):
                note += f", kNN {row.knn_accuracy:.3f}"
            notes[row.method] = note
        return panels(self.embeddings, self.labels, notes, path=path, whole=whole)

    def write(self, directory: str | Path, *, whole: bool = False) -> None:
        """Write comparison.csv, comparison.png and embeddings.npz into a folder, made if missing.

        If every method failed, only the table is written, and the picture and embeddings of an
        earlier comparison are removed.

        Raises
        ------
        ImportError
            matplotlib is missing.
        """
        check_picture(None)
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        table, drawing, arrays = (directory / name for name in FILES)
        write_rows(table, [Row._fields, *self.rows], force=True)
        if not self.embeddings:
            drawing.unlink(missing_ok=True)
            arrays.unlink(missing_ok=True)
            return
        write_atomically(
            arrays,
            lambda draft: np.savez_compressed(draft, allow_pickle=False, **self.embeddings),
            force=True,
        )
        self.plot(drawing, whole=whole)
