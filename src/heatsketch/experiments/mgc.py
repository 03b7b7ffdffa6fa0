"""The two experiments of *Diffusion representation*, section 6, run again."""

from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from heatsketch._checks import check_choice, check_number
from heatsketch.experiments import mgc_pictures
from heatsketch.experiments.mgc_stationary import StationaryRow, stationary_example
from heatsketch.experiments.mgc_truncation import TruncationRow, truncation_example
from heatsketch.io.files import write_rows
from heatsketch.plot import check_picture

SIZES: dict[str, dict[str, Any]] = {
    "mgc-1": {"points": (500, 2000, 8000), "draws": 5, "max_components": 16, "grid": 48},
    "mgc-2": {
        "points": 3000,
        "pairs": 20_000,
        "max_components": 8,
        "log2_epsilons": tuple(range(-5, 6)),
        "orders": 14,
    },
}
MGC = tuple(SIZES)


def reproduce_mgc(
    name: str, directory: str | Path, *, seed: int = 0
) -> list[StationaryRow] | list[TruncationRow]:
    """Run an example of *Diffusion representation*, section 6; write its table and pictures.

    Returns the rows of the table. Writes mgc-1.csv and mgc-1.png, or mgc-2.csv,
    mgc-2-histograms.png, mgc-2-bounds.png and mgc-2-printed.png.

    Parameters
    ----------
    name : "mgc-1" or "mgc-2"
        Example I, the stationary density of a mixture fitted to two flat squares; or Example II,
        the error of distances from series truncated at orders 1 to 14.
    directory : path
        Where to write; made if it does not exist.
    seed : int >= 0, default 0

    Returns
    -------
    list of StationaryRow or list of TruncationRow
        The rows of the table, of Example I or of Example II.

    Raises
    ------
    ValueError
        If the name is unknown or the seed is out of range.
    ImportError
        If matplotlib is missing.
    CertificateError
        If an error of Example II is above its bound.

    Notes
    -----
    Half a minute each, on one core.
    """
    check_choice(name, "name", MGC)
    seed = check_number(seed, "seed", low=0, integer=True)
    check_picture(None)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):  # the sums of k-means depend on the order of its threads
        return (_run_first if name == "mgc-1" else _run_second)(directory, seed)


def _run_first(directory: Path, seed: int) -> list[StationaryRow]:
    rows, panels = stationary_example(seed, **SIZES["mgc-1"])
    write_rows(directory / "mgc-1.csv", StationaryRow._fields, rows)
    mgc_pictures.stationary(rows[0], panels, directory / "mgc-1.png")
    return rows


def _run_second(directory: Path, seed: int) -> list[TruncationRow]:
    rows, columns = truncation_example(seed, **SIZES["mgc-2"])
    write_rows(directory / "mgc-2.csv", TruncationRow._fields, rows)
    mgc_pictures.histograms(rows, columns, directory / "mgc-2-histograms.png")
    mgc_pictures.bounds(rows, directory / "mgc-2-bounds.png")
    mgc_pictures.printed(rows, directory / "mgc-2-printed.png")
    return rows
