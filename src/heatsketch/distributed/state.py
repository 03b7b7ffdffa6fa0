"""The folder beside an output in which a run keeps what it has done, until it is complete."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._version import __version__
from heatsketch.io.blocks import Blocks
from heatsketch.io.files import DRAFT, write_atomically
from heatsketch.io.metadata import encoded
from heatsketch.io.reading import Reading

_TOLD, _SEARCHED, _FITTED = "run.json", "searched.json", "fitted.json"
_WHOLE, _TOKEN = "whole.json", "token.json"
_WARNED = "warned-"


@dataclass(frozen=True)
class State:
    """A folder: what the run is about, the model, then one file for each block that is mapped.

    Of a run of the whole graph it has no model, but the neighbours of each tile. Each file appears
    complete or not at all, so that what is there says how far the run came.
    """

    folder: Path
    suffix: str = ""  # of the blocks
    run: str = ""  # in a worker, which run it works for: another may begin in the folder

    @classmethod
    def of(cls, output: Path, suffix: str = "") -> State:
        """Return the folder of an output, which may not exist."""
        return cls(output.with_name(f"{output.name}.partial"), suffix)

    @classmethod
    def begin(
        cls, output: Path, suffix: str, told: dict[str, Any], *, resume: bool, force: bool
    ) -> State:
        """Open the folder of an output, new or (with `resume`) that of the same run.

        Raises
        ------
        FileExistsError
            If it is there and neither `resume` nor `force` is true.
        ValueError
            If it is that of another run: the message says what differs.
        """
        state = cls.of(output, suffix)
        told = json.loads(encoded(told))
        if state._has_files():
            known = state._read(_TOLD)
            if known is None:
                raise FileExistsError(
                    f"{state.folder} is needed for what a run has done, but holds something else; "
                    "move it away."
                )
            if resume:
                _refuse_other(known, told, state.folder)
                for draft in state.folder.rglob(f"{DRAFT}*"):
                    draft.unlink()
                return state
            if not force:
                raise FileExistsError(
                    f"{state.folder} holds a run that was not completed; pass resume=True "
                    "(--resume) to go on with it, or force=True (--force) to begin again."
                )
            state.remove()
        state.parts.mkdir(parents=True, exist_ok=True)
        state._write(_TOLD, told)
        return state

    @property
    def model(self) -> Path:
        """The file of the model."""
        return self.folder / "fitted.model"

    def part(self, number: int) -> Path:
        """Return the file of a block."""
        return self.parts / f"part-{number:06d}{self.suffix}"

    @property
    def parts(self) -> Path:
        """The folder of the blocks."""
        return self.folder / "parts"

    def missing(self, count: int) -> list[int]:
        """Return the numbers of the blocks, of so many, that are not kept yet."""
        return [number for number in range(count) if not self.part(number).exists()]

    def tile(self, number: int) -> Path:
        """Return the file of the neighbours of a tile."""
        return self.folder / f"tile-{number:06d}.npz"

    @property
    def searched(self) -> dict[str, Any] | None:
        """What is known of the tiles, once the neighbours of all are complete."""
        return self._read(_SEARCHED)

    def keep_searched(self, facts: dict[str, Any]) -> None:
        """Keep what is known of the tiles, each of which is kept."""
        self._write(_SEARCHED, facts)

    @property
    def fitted(self) -> dict[str, Any] | None:
        """What is known of the fit, once it is complete."""
        return self._read(_FITTED)

    def keep_fitted(self, facts: dict[str, Any]) -> None:
        """Keep what is known of the fit, after the model, if there is one."""
        self._write(_FITTED, facts)

    @property
    def goes_on(self) -> bool:
        """Whether there is something that a run can go on with."""
        return self.searched is not None or self.fitted is not None

    @contextmanager
    def removed_if_of_no_use(self) -> Iterator[None]:
        """Remove the folder if the block raises before there is something to go on with."""
        try:
            yield
        except BaseException:
            if not self.goes_on:
                self.remove()
            raise

    def whole(self, suffix: str) -> Path:
        """Return the file of all blocks, before it becomes the output."""
        return self.folder / f"whole{suffix}"

    def keep_part(self, number: int, write: Callable[[Path], object]) -> None:
        """Keep a block."""
        self.keep(self.part(number), write)

    def keep(self, path: Path, write: Callable[[Path], object]) -> None:
        """Keep a file, of which a worker writes those of its run alone.

        One that two workers write has the same bytes twice.
        """
        if self.run and self.token != self.run:
            raise FileNotFoundError(f"{self.folder} is no longer that of the run; begin again.")
        try:
            write_atomically(path, write, force=True)
        except OSError as error:
            if self.goes_on:
                kept = f"(what is complete is kept in {self.folder}, and resume=True (--resume) "
                error.add_note(f"{kept}goes on with it)")
            raise

    @property
    def token(self) -> str | None:
        """What workers find here if they see this folder, of this run."""
        return (self._read(_TOKEN) or {}).get("token")

    def keep_token(self, token: str) -> None:
        """Let workers find this."""
        self._write(_TOKEN, {"token": token})

    def keep_warned(self, number: int, warned: list[dict[str, Any]]) -> None:
        """Keep what is to be warned of a block, before the block, so that it is known later."""
        if warned:
            self._write(f"{_WARNED}{number:06d}.json", {"warned": warned})

    @property
    def warned(self) -> Iterator[dict[str, Any]]:
        """What is to be warned of all blocks."""
        for file in sorted(self.folder.glob(f"{_WARNED}*.json")):
            yield from (self._read(file.name) or {}).get("warned", ())

    @property
    def is_whole(self) -> bool:
        """Whether an output that exists is that of this run."""
        return self._read(_WHOLE) is not None

    def tell_whole(self) -> None:
        """Note that the output appears now."""
        self._write(_WHOLE, {})

    def remove(self) -> None:
        """Remove the folder; what it is about goes last."""
        shutil.rmtree(self.parts, ignore_errors=True)
        for file in sorted(self.folder.iterdir(), key=lambda path: path.suffix == ".json"):
            if file.name != _TOLD:
                file.unlink()
        shutil.rmtree(self.folder)

    def _has_files(self) -> bool:
        """Say whether the folder holds anything; it does not if a run ended as it began."""
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return any(not path.name.startswith(DRAFT) for path in files)

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads((self.folder / name).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _write(self, name: str, facts: dict[str, Any]) -> None:
        text = encoded(facts)
        path = self.folder / name
        write_atomically(path, lambda draft: draft.write_text(text, "utf-8"), force=True)


def told_of(points: Blocks, estimator: Any, how: Reading, **options: Any) -> dict[str, Any]:
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


def check_unchanged(points: Blocks, told: dict[str, Any]) -> None:
    """Raise if a source is no longer what it was when a run began."""
    if points.stamp() != told["content"]["stamp"]:
        raise ValueError(f"{points.source} changed while it was read; begin again with force=True.")


def _refuse_other(known: dict[str, Any], told: dict[str, Any], folder: Path) -> None:
    """Raise if a run is about something else, or made otherwise."""
    differing = [
        f"{name} was {_short(known.get(name))}, is {_short(told.get(name))}"
        for name in dict.fromkeys([*known, *told])
        if known.get(name) != told.get(name)
    ]
    if differing:
        raise ValueError(
            f"{folder} holds another run: {'; '.join(differing)}. Pass what was passed then, or "
            "begin again with force=True (--force)."
        )


def _short(value: Any, most: int = 160) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[:most]}…"
