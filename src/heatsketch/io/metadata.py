"""The record of how an embedding was made: JSON in its file, or in a file of its own."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._random import data_hash
from heatsketch.io.files import write_atomically

__all__ = [
    "KEY",
    "Record",
    "data_hash",
    "decoded",
    "encoded",
    "plain",
    "read_metadata",
    "write_metadata",
]

KEY = "heatsketch"  # its name in files


@dataclass(frozen=True)
class Record:
    """What the metadata of an embedding say of how it was made; files may hold anything.

    If a model mapped the points, what it says of its fit counts where the file says nothing.
    """

    metadata: dict[str, Any]

    @property
    def model(self) -> "Record":
        """What the model says that mapped the points, nothing without one."""
        return Record(_mapping(self.metadata.get("model")))

    @property
    def made(self) -> dict[str, Any]:
        """What the model and the file say."""
        return self.model.metadata | self.metadata

    @property
    def reading(self) -> dict[str, Any]:
        """Options of reading the points; {} if they are not known."""
        return _mapping(self.made.get("reading"))

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the method, with the time that it chose; {} if they are not known."""
        given = _mapping(self.made.get("parameters"))
        return given and given | {"time": self.made.get("time", given.get("time"))}

    @property
    def columns(self) -> list[str]:
        """Names of the coordinates; [] if they are not known."""
        found = self.metadata.get("columns")
        return [*map(str, found)] if isinstance(found, list) else []

    @property
    def is_single(self) -> bool:
        """Whether the coordinates were float32, which text does not say."""
        return bool(self.metadata.get("dtype") == "float32")

    def may_be_of(self, data: str) -> bool:
        """Whether the points may be those with this hash: their own is the same, or not known."""
        return bool(self.metadata.get("data", data) == data)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def encoded(metadata: dict[str, Any]) -> str:
    """Return metadata as JSON."""
    return json.dumps(plain(metadata), ensure_ascii=False)


def decoded(text: Any) -> dict[str, Any]:
    """Return the metadata in a text, {} if it is none, because files may hold anything."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return _mapping(found)


def write_metadata(path: Path, metadata: dict[str, Any], *, force: bool = False) -> None:
    """Write metadata to a file of their own."""
    text = encoded(metadata)
    write_atomically(path, lambda draft: draft.write_text(text, "utf-8"), force=force)


def read_metadata(path: Path) -> dict[str, Any]:
    """Return the metadata that `write_metadata` wrote."""
    found = decoded(path.read_text("utf-8", errors="replace"))
    if not found:
        raise ValueError(f"{path} holds no metadata; pass a file that --metadata wrote.")
    return found


def plain(value: Any) -> Any:
    """Return a value as numbers, text, lists and dictionaries; None for NaN and infinities.

    JSON lacks NaN and infinities. Other objects become the name of their type.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return f"<{getattr(value, 'what', type(value).__name__)}>"
