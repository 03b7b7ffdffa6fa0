"""Files, models and commands that are refused; messages name the file by its whole path."""

import contextlib
import io as streams
import json
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import heatsketch as hs
from bad_inputs.cases import Case, Refused
from bad_inputs.inputs import X
from heatsketch import io
from heatsketch.cli import main
from heatsketch.distributed import embed


def in_folder(act: Callable[[Path], Any]) -> Callable[[], Any]:
    """Return a call of a function that is given an empty folder."""

    def call() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            return act(Path(folder))

    return call


def command(*words: str) -> None:
    """Run a command; what it says where it fails is the error."""
    said, printed = streams.StringIO(), streams.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
        code = main(list(map(str, words)))
    if code:
        raise ValueError(said.getvalue().removeprefix("heatsketch: ").removeprefix("error: "))


def text(content: str, name: str = "t.csv", **options: Any) -> Callable[[], Any]:
    """Return a call that reads a table in text."""

    def act(folder: Path) -> Any:
        (folder / name).write_text(content, encoding="utf-8")
        return io.read_table(folder / name, **options)

    return in_folder(act)


def table(folder: Path, points: Any = X) -> Path:
    np.save(folder / "points.npy", points)
    return folder / "points.npy"


def sheet_without_rows(folder: Path) -> Any:
    import openpyxl

    openpyxl.Workbook().save(folder / "t.xlsx")
    return io.read_table(folder / "t.xlsx")


def sparse_with_a_gap(folder: Path) -> Any:
    sparse.save_npz(folder / "t.npz", sparse.csr_matrix([[1.0, 0], [np.nan, 2], [0, 3]]))
    return io.read_table(folder / "t.npz", missing="median")


def comparison_in_a_file(folder: Path) -> None:
    (folder / "out").write_text("")
    command("compare", table(folder), "-o", folder / "out")


def folder_that_is_there(folder: Path) -> Any:
    (folder / "out").mkdir()
    return embed(table(folder), folder / "out", hs.HeatSketch(2))


def another_folder_of_state(folder: Path) -> Any:
    (folder / "out.npy.partial").mkdir()
    (folder / "out.npy.partial" / "notes.txt").write_text("of another program")
    return embed(table(folder), folder / "out.npy", hs.HeatSketch(2))


def archive_of(folder: Path) -> Path:
    np.savez(folder / "points.npz", X=X)
    return folder / "points.npz"


def changed_while_read(folder: Path) -> Any:
    path = table(folder)

    class Meddler(logging.Handler):
        """Writes to the file as soon as the library says what it does."""

        def emit(self, record: logging.LogRecord) -> None:
            np.save(path, np.r_[X, X])

    logger, meddler = logging.getLogger("heatsketch"), Meddler()
    level = logger.level
    logger.addHandler(meddler)
    logger.setLevel(logging.INFO)
    try:
        return embed(path, folder / "out.npy", hs.HeatSketch(2))
    finally:
        logger.removeHandler(meddler)
        logger.setLevel(level)


def transform_of_a_map_alone(folder: Path) -> None:
    hs.save_model(hs.classical.SNE(2, perplexity=5, random_state=0).fit(X[:20]), folder / "a.model")
    command("transform", folder / "a.model", table(folder), "-o", folder / "out.npy")


def later_format(folder: Path) -> Any:
    import zipfile

    path = folder / "a.model"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "header.json", json.dumps({"format": 99, "facts": {"heatsketch": "9.1.0"}})
        )
    return hs.load_model(path)


def not_a_model(folder: Path) -> Any:
    return hs.load_model(table(folder))


def fitted_without_medians(folder: Path) -> None:
    model, out = folder / "a.model", folder / "out.npy"
    command("embed", table(folder), "--method", "pca", "-o", out, "--save-model", model)
    new = table(folder, [[np.nan, 1, 2, 3]])
    command("transform", model, new, "-o", out, "--force", "--missing", "median")


TABLES = {
    "empty": Case("an empty file", text(""), Refused("t.csv is empty")),
    "empty sheet": Case(
        "a sheet without rows",
        in_folder(sheet_without_rows),
        Refused("t.xlsx is empty; pass a table with at least one row"),
    ),
    "comma": Case("a decimal comma", text('a,b\n"1,5",2\n"2,5",3\n'), Refused("'1,5'", "row 0")),
    "words": Case(
        "a word in a column of numbers",
        text("a,b\n1,2\n3,n.d.\n4,5\n6,7\n"),
        Refused("'n.d.'", "row 1"),
    ),
    "no number": Case(
        "a column without a number, and missing='median'",
        in_folder(lambda folder: io.read_table(table(folder, [[1, np.nan]] * 5), missing="median")),
        Refused("column 'x1' of", "holds no number, so that there is no median"),
    ),
    "gaps": Case(
        "a gap in every row, and missing='drop'",
        text("a,b\n1,\n,3\n4,\n", missing="drop"),
        Refused("every row of", "has a gap", "missing='median'"),
    ),
    "sparse gaps": Case(
        "gaps in sparse points, and missing='median'",
        in_folder(sparse_with_a_gap),
        Refused("is sparse and has gaps; pass missing='drop'"),
    ),
    "excluded": Case(
        "all columns of an array excluded",
        in_folder(lambda folder: io.read_table(table(folder), exclude=("x0", "x1", "x2", "x3"))),
        Refused("all columns", "are excluded; leave one as a feature"),
    ),
}

MODELS = {
    "no model": Case("a file of something else", in_folder(not_a_model), Refused("points.npy")),
    "later": Case(
        "a file of another format",
        in_folder(later_format),
        Refused("a.model has format 99, of heatsketch 9.1.0", "use that version"),
    ),
    "no rule": Case(
        "`heatsketch transform` with a model that has no rule for new points",
        in_folder(transform_of_a_map_alone),
        Refused("holds a SNE, which has no rule for new points"),
    ),
    "medians": Case(
        "new rows with gaps, and no medians from the fit",
        in_folder(fitted_without_medians),
        Refused("has gaps, but the model was not fitted with medians", "--missing drop"),
    ),
}

OUTPUTS = {
    "file": Case(
        "`heatsketch compare` into a file",
        in_folder(comparison_in_a_file),
        Refused("out is a file; name a folder"),
    ),
    "folder": Case(
        "parts of an embedding into a folder that exists",
        in_folder(folder_that_is_there),
        Refused("out exists; name a folder that does not exist yet", error=FileExistsError),
    ),
    "state": Case(
        "the folder of what a run has done holds something else",
        in_folder(another_folder_of_state),
        Refused("holds something else; move it away", error=FileExistsError),
    ),
    "changed": Case(
        "points that change while they are read",
        in_folder(changed_while_read),
        Refused("points.npy changed while it was read; begin again with force=True"),
    ),
    "missing": Case(
        "points by blocks from a file that does not exist",
        lambda: embed("nowhere.npy", "out.npy", hs.HeatSketch(2)),
        Refused("nowhere.npy does not exist", error=FileNotFoundError),
    ),
    "whole": Case(
        "points by blocks from a format that is read whole",
        in_folder(lambda folder: embed(archive_of(folder), folder / "o.npy", hs.HeatSketch(2))),
        Refused("points.npz is not read by blocks; pass"),
    ),
    "edges": Case(
        "`heatsketch embed --graph` without a file",
        lambda: command("embed", "nowhere.csv", "--graph", "-o", "out.csv"),
        Refused("nowhere.csv does not exist"),
    ),
}
