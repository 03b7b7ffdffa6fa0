"""The folder beside an output in which a run keeps what it has done, until it is complete."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heatsketch.io.files import DRAFT, write_atomically
from heatsketch.io.metadata import encoded

_TOLD, _FITTED, _WHOLE, _TOKEN = "run.json", "fitted.json", "whole.json", "token.json"
_WARNED = "warned-"


@dataclass(frozen=True)
class State:
    """A folder: what the run is about, the model, then one file for each block that is mapped.

    Each of them appears complete or not at all, so that what is there says how far the run came.
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
        cls, output: Path, suffix: str, told: dict[str, Any], *, resume: bool | None, force: bool
    ) -> State:
        """Open the folder of an output, new or (with `resume`) that of the same run.

        `resume` is None for runs that cannot go on.

        Raises
        ------
        FileExistsError
            If it is there and neither `resume` nor `force` is true.
        ValueError
            If it is that of another run: the message says what differs.
        """
        state = cls.of(output, suffix)
        told = json.loads(encoded(told))
        if state.folder.exists():
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
                again = "force=True (--force) to begin again."
                on = "resume=True (--resume) to go on with it, or "
                raise FileExistsError(
                    f"{state.folder} holds a run that was not completed; pass "
                    f"{'' if resume is None else on}{again}"
                )
            state.remove()
        state.parts.mkdir(parents=True)
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

    @property
    def fitted(self) -> dict[str, Any] | None:
        """What is known of the fit, once the model is complete."""
        return self._read(_FITTED)

    def keep_fit(self, write_model: Callable[[Path], object], facts: dict[str, Any]) -> None:
        """Keep the model, and then what is known of it."""
        write_model(self.model)
        self._write(_FITTED, facts)

    def whole(self, suffix: str) -> Path:
        """Return the file of all blocks, before it becomes the output."""
        return self.folder / f"whole{suffix}"

    def keep_part(self, number: int, write: Callable[[Path], object]) -> None:
        """Keep a block; one that two workers map has the same bytes twice."""
        if self.run and self.token != self.run:
            raise FileNotFoundError(f"{self.folder} is no longer that of the run; begin again.")
        write_atomically(self.part(number), write, force=True)

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
        for file in self.folder.iterdir():
            if file.name != _TOLD:
                file.unlink()
        shutil.rmtree(self.folder)

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
