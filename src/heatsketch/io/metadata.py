"""How an embedding was made, as JSON: inside the file, or beside a format that has no place."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._array import data_hash
from heatsketch.io.files import write_atomically

__all__ = ["KEY", "data_hash", "decoded", "encoded", "read_beside", "write_beside"]

KEY = "heatsketch"  # under which files hold it
_MOST_CHARACTERS = 2**20  # of text that is looked at


def encoded(metadata: dict[str, Any]) -> str:
    """Return metadata as JSON; what JSON has no form for is described by its repr."""
    return json.dumps(metadata, default=_plain, ensure_ascii=False)


def decoded(text: Any) -> dict[str, Any]:
    """Return the metadata in a text; empty if it is not metadata, since no file is trusted."""
    if not isinstance(text, str) or len(text) > _MOST_CHARACTERS:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_beside(path: Path, metadata: dict[str, Any]) -> None:
    """Write metadata to PATH.json, with the hash of the file that they are about."""
    text = encoded(metadata | {"file": _hash_of_file(path)})
    write_atomically(_beside(path), lambda draft: draft.write_text(text, "utf-8"), force=True)


def read_beside(path: Path) -> dict[str, Any]:
    """Return the metadata in PATH.json; empty if there are none about this file."""
    note = _beside(path)
    if not note.is_file() or note.stat().st_size > _MOST_CHARACTERS:
        return {}
    found = decoded(note.read_text("utf-8", errors="replace"))
    about = found.pop("file", None)
    return found if about is not None and about == _hash_of_file(path) else {}


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _hash_of_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else repr(value)
