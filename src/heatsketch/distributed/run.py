"""The folder beside an output in which a run keeps what it has done, until it is complete."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._version import __version__
from heatsketch.io.blocks import Blocks
from heatsketch.io.files import DRAFT, write_atomically
from heatsketch.io.metadata import encoded
from heatsketch.io.reading import Reading

_NAMED = 5  # rows that a warning names
_OWN = (DRAFT, "part", "fitted.model", "whole.")  # with which names in the folder begin


class Run:
    """A folder: run.json, the model, and a part for each block that is mapped.

    Each file appears complete or not at all, so that a part that is there is done. Of run.json,
    `about` says what must be the same when the run goes on, `fitted` what is known of the fit,
    `warned` what blocks warn of, and `whole` that the parts are put together.
    """

    def __init__(self, output: Path, suffix: str = "") -> None:
        self.folder = output.absolute().with_name(f"{output.name}.partial")
        self.parts, self.model = self.folder / "parts", self.folder / "fitted.model"
        self.suffix = suffix  # of the parts
        self.facts: dict[str, Any] = {}
        try:
            self.facts = json.loads((self.folder / "run.json").read_text("utf-8"))
        except (OSError, ValueError):
            return

    def begin(self, about: dict[str, Any], *, resume: bool, force: bool) -> None:
        """Begin in an empty folder, or go on with the same run.

        Raises
        ------
        FileExistsError
            If the folder is there and neither `resume` nor `force` is true.
        ValueError
            If it is that of another run: the message says what differs.
        """
        about = json.loads(encoded(about))
        others = [path for path in self.folder.rglob("*") if not path.name.startswith(_OWN)]
        if self.facts and resume:
            _refuse_other(self.facts["about"], about, self.folder)
        elif self.facts and not force:
            raise FileExistsError(
                f"{self.folder} holds a run that was not completed; pass resume=True (--resume) to "
                "go on with it, or force=True (--force) to begin again."
            )
        elif not self.facts and others:
            raise FileExistsError(
                f"{self.folder} is needed for what a run has done, but holds something else; move "
                "it away."
            )
        else:
            self.remove()
            self.parts.mkdir(parents=True)
            self.facts = {}
            self.update(about=about, warned=[])
        for draft in self.folder.rglob(f"{DRAFT}*"):
            draft.unlink()

    def update(self, **facts: Any) -> None:
        """Add facts to run.json."""
        self.facts |= json.loads(encoded(facts))
        text = encoded(self.facts)
        path = self.folder / "run.json"
        write_atomically(path, lambda draft: draft.write_text(text, "utf-8"), force=True)

    def part(self, number: int) -> Path:
        """Return the file of a block."""
        return self.parts / f"part-{number:06d}{self.suffix}"

    def missing(self, count: int) -> list[int]:
        """Return the numbers of the blocks, of so many, that are not mapped yet."""
        return [number for number in range(count) if not self.part(number).exists()]

    def keep_part(self, number: int, write: Callable[[Path], object]) -> None:
        """Keep a block; one that two workers write has the same bytes twice."""
        write_atomically(self.part(number), write, force=True)

    def warn(self, found: Iterable[dict[str, Any]]) -> None:
        """Keep what a block warns of: once each matter, with the first rows that it is about."""
        warned = self.facts["warned"]
        for one in found:
            same = [w for w in warned if (w["kind"], w["matter"]) == (one["kind"], one["matter"])]
            if same:
                same[0]["count"] += one["count"]
                same[0]["first"] = sorted(same[0]["first"] + one["first"])[:_NAMED]
            else:
                warned.append(one | {"first": one["first"][:_NAMED]})
        self.update()

    def remove(self) -> None:
        """Remove the folder; as long as run.json and the model are there, a run goes on."""
        if self.folder.exists():
            shutil.rmtree(self.parts, ignore_errors=True)
            (self.folder / "run.json").unlink(missing_ok=True)
            shutil.rmtree(self.folder)


def about(points: Blocks, estimator: Any, how: Reading, **options: Any) -> dict[str, Any]:
    """Return what a run is about: what must be the same when it goes on."""
    plain = (type(None), bool, int, float, str, list, tuple, np.generic)
    parameters = {
        name: value if isinstance(value, plain) else f"<{type(value).__name__}>"
        for name, value in estimator.get_params(deep=False).items()
    }
    return {
        "heatsketch": __version__,
        "input": points.source,
        "content": {"rows": points.n, "columns": points.columns, "stamp": points.stamp()},
        "method": type(estimator).__name__,
        **parameters,
        **options,
        "reading": how.as_record(),
    }


def _refuse_other(known: dict[str, Any], found: dict[str, Any], folder: Path) -> None:
    """Raise if a run is about something else, or made otherwise."""
    differing = [
        f"{name} was {_short(known.get(name))}, is {_short(found.get(name))}"
        for name in dict.fromkeys([*known, *found])
        if known.get(name) != found.get(name)
    ]
    if differing:
        raise ValueError(
            f"{folder} holds another run: {'; '.join(differing)}. Pass what was passed then, or "
            "begin again with force=True (--force)."
        )


def _short(value: Any, most: int = 160) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[:most]}…"
