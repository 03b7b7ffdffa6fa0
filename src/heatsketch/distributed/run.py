"""The folder beside an output in which a run keeps its parts, and the joined output."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch.io import anndata_files, parquet
from heatsketch.io.files import DRAFT, blame, check_target, need, suffix_of, write_atomically
from heatsketch.io.formats import check_key
from heatsketch.io.metadata import decoded, encoded, plain, write_metadata

SUFFIXES = (".npy", ".parquet", ".h5ad", "")  # the last of a folder
_NAMED = 5  # rows that a warning names
Warned = tuple[str, str, list[int]]  # class of a warning, its problem, its rows
_AGAIN = "to begin again pass force=True (--force) without resume"
_OWN = (DRAFT, "part", "fitted.model", "whole.")  # prefixes of the names in the folder


class Run:
    """A folder: run.json, the model, and a part for each block that is mapped.

    Each file appears complete or not at all, so an existing part is done. In run.json, `about`
    holds the options that must be the same when the run resumes, `fitted` the facts of the fit,
    `warned` the warnings of blocks; `whole` is there once the parts are joined.
    """

    def __init__(self, output: Path) -> None:
        self.folder = output.absolute().with_name(f"{output.name}.partial")
        self.parts, self.model = self.folder / "parts", self.folder / "fitted.model"
        self.suffix = ".parquet" if suffix_of(output) == ".parquet" else ".npy"  # of the parts
        file = self.folder / "run.json"
        self.facts: dict[str, Any] = decoded(file.read_text("utf-8")) if file.exists() else {}

    def begin(self, about: dict[str, Any], *, resume: bool, force: bool) -> None:
        """Begin in an empty folder, or go on with the same run.

        Raises
        ------
        FileExistsError
            If the folder is there and neither `resume` nor `force` is true.
        ValueError
            If it is the folder of another run; the message names the difference.
        FileNotFoundError
            If the model of the run is lost.
        """
        about = plain(about)
        others = [path for path in self.folder.rglob("*") if not path.name.startswith(_OWN)]
        if self.facts and resume:
            before = self.facts["about"]
            differing = [
                f"{name} was {json.dumps(before.get(name))[:160]}, is {json.dumps(now)[:160]}"
                for name, now in (dict.fromkeys(before) | about).items()
                if before.get(name) != now
            ]
            if differing:
                other = f"{self.folder} holds another run: {'; '.join(differing)}"
                raise ValueError(f"{other}. Pass the same, or {_AGAIN}.")
            if "fitted" in self.facts and not self.model.exists():
                raise FileNotFoundError(
                    f"{self.model} is lost, without which the run cannot go on; {_AGAIN}."
                )
        elif self.facts and not force:
            raise FileExistsError(
                f"{self.folder} holds a run that was not completed; pass resume=True (--resume) to "
                f"go on with it, or {_AGAIN}."
            )
        elif not self.facts and others:
            raise FileExistsError(f"{self.folder} holds something else than a run; move it away.")
        else:
            self.remove()
            self.parts.mkdir(parents=True)
            self.facts = {}
            self.update(about=about, warned={})
        for draft in self.folder.rglob(f"{DRAFT}*"):
            draft.unlink()

    def update(self, **facts: Any) -> None:
        """Add facts to run.json."""
        self.facts |= plain(facts)
        write_metadata(self.folder / "run.json", self.facts, force=True)

    def part(self, number: int) -> Path:
        """Return the file of a block."""
        return self.parts / f"part-{number:06d}{self.suffix}"

    def warn(self, found: Iterable[Warned]) -> None:
        """Keep the warnings of a block: each problem once, with its first rows."""
        for kind, matter, rows in found:
            entry = self.facts["warned"].setdefault(matter, {"kind": kind, "count": 0, "first": []})
            entry["count"] += len(rows)
            entry["first"] = sorted(entry["first"] + rows)[:_NAMED]
            self.update()

    def remove(self) -> None:
        """Remove the folder, parts first: with run.json and the model left, a run can resume."""
        if self.folder.exists():
            shutil.rmtree(self.parts, ignore_errors=True)
            (self.folder / "run.json").unlink(missing_ok=True)
            shutil.rmtree(self.folder)


def check_output(output: Path, source: Path | None, key: str, missing: str, *, force: bool) -> None:
    """Raise if an output could not be written."""
    suffix = suffix_of(output)
    if suffix not in SUFFIXES:
        raise ValueError(f"{output} cannot be written by blocks; name a .npy, .parquet or folder.")
    if not suffix and output.exists():
        raise FileExistsError(f"{output} exists; name a folder that does not exist yet.")
    check_target(output, force=force, source=source or "")
    if suffix == ".h5ad":
        if source is None or suffix_of(source) != ".h5ad":
            raise ValueError(f"{output}: only a .h5ad source becomes one; name a .npy file.")
        if missing == "drop":
            raise ValueError(
                f"missing='drop' leaves out rows, but {output} is a copy of {source} with all of "
                "them; pass missing='median' (--missing median), or name a .npy file."
            )
        check_key(output, source, key, force=force)


def assemble(
    run: Run, output: Path, source: Path | None, key: str, metadata: dict[str, Any]
) -> None:
    """Join the parts in the folder of the run, then move the result to the output.

    One part at a time is in memory; for a .h5ad output they are first joined in a .npy file.
    """
    suffix, note = suffix_of(output), encoded(metadata)
    parts = sorted(run.parts.glob(f"part-*{run.suffix}"))
    whole, rows = run.folder / f"whole{suffix}" if suffix else run.parts, run.folder / "whole.rows"

    def write(draft: Path) -> None:
        if suffix == ".parquet":
            parquet.write_parts(draft, parts, note)
        elif suffix == ".npy" or source is None:
            _write_npy(draft, parts)
        else:
            _write_npy(rows, parts)
            Y = np.asarray(np.load(rows, mmap_mode="r"))  # not read yet
            anndata_files.write_copy(draft, Y, source, key, note, {})

    if "whole" not in run.facts:
        for part in parts:
            with blame(part, "delete it, and pass resume=True (--resume) to map its rows again"):
                _check_part(part)
        if suffix:
            write_atomically(whole, write, force=True)
        run.update(whole=True)
    if whole.exists():
        whole.replace(output)


def _check_part(part: Path) -> None:
    """Raise if a part is not complete."""
    if part.suffix == ".npy":
        np.load(part, mmap_mode="r")
    else:
        need("pyarrow.parquet", part).read_metadata(part)


def _write_npy(path: Path, parts: list[Path]) -> None:
    """Concatenate .npy files into one."""
    blocks = [np.load(part, mmap_mode="r") for part in parts]
    shape = sum(len(block) for block in blocks), blocks[0].shape[1]
    header = {"descr": np.lib.format.dtype_to_descr(blocks[0].dtype), "fortran_order": False}
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header | {"shape": shape})
        for part in parts:
            stream.write(np.load(part).data)
