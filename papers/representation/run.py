"""Run the two examples of *Diffusion representation*, section 6."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from papers.output import Experiment, write_rows
from papers.representation import drawings
from papers.representation.components import run_components
from papers.representation.printed import PrintedRow, printed_example
from papers.representation.rivals import run_rivals
from papers.representation.segmentation import run_segmentation
from papers.representation.stationary import StationaryRow, stationary_example
from papers.representation.truncation import TruncationRow, truncation_example


def run_example(name: str, folder: Path, seed: int = 0, **sizes: Any) -> Sequence[Any]:
    """Write the table and the pictures of an example, and return the rows of the table.

    Example I is the stationary density of a mixture fitted to two flat squares, Example II the
    error of distances from series truncated at orders 1 to 14; it raises if an error is above its
    bound. "mgc-2-printed" is Example II with every formula as printed. A minute or less each.
    """
    with threadpool_limits(1):  # the sums of k-means depend on the order of its threads
        if name == "mgc-1":
            rows, panels = stationary_example(seed, **sizes)
            write_rows(folder / "mgc-1.csv", StationaryRow._fields, rows)
            drawings.stationary(rows[0], panels, folder / "mgc-1.png")
            return rows
        if name == "mgc-2-printed":
            printed, counted = printed_example(seed, **sizes)
            write_rows(folder / f"{name}.csv", PrintedRow._fields, printed)
            drawings.printed_histograms(counted, folder / f"{name}-6.2.png")
            drawings.printed_surfaces(printed, folder / f"{name}-6.3.png")
            return printed
        found, counted = truncation_example(seed, **sizes)
    write_rows(folder / "mgc-2.csv", TruncationRow._fields, found)
    drawings.histograms(found, counted, folder / "mgc-2-histograms.png")
    drawings.bounds(found, folder / "mgc-2-bounds.png")
    return found


EXAMPLES: dict[str, Experiment] = {
    "mgc-1": Experiment("Example I: a stationary density", partial(run_example, "mgc-1"), 0.5),
    "mgc-2": Experiment("Example II: truncated series", partial(run_example, "mgc-2"), 1),
    "mgc-2-printed": Experiment(
        "Example II with every formula as printed", partial(run_example, "mgc-2-printed"), 1.5
    ),
    "mgc-components": Experiment("errors against the number of components", run_components, 1),
    "mgc-rivals": Experiment("other maps at equal length", run_rivals, 2),
    "mgc-image": Experiment("segments of an image", run_segmentation, 1.5),
}
