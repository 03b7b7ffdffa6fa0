"""The file of a model: a zip archive of arrays, a JSON header that lists them, and its digest."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch._version import __version__
from heatsketch.io.files import DAMAGE, blame, check_budget, write_atomically
from heatsketch.io.npy import claimed_size
from heatsketch.io.npz import read_member

FORMAT = 2
FIRST_FORMAT = 1  # whose header has no digest
_HEADER, _DIGEST = "header.json", "header.sha256"
_MAX_HEADER_BYTES = 2**24
_MAX_DEFLATED_BYTES = 2**28  # of an array, so that no archive unpacks to much more than it takes
_ZEROS = 0.45  # share of zeros from which deflating an array is worth the time
_WHAT_TO_DO = "pass a file that save_model (or --save-model) wrote, or write it again"
KINDS = "biufUS"  # of numbers and text: nothing that only pickle can read

Header = dict[str, Any]


def write(path: str | Path, header: Header, arrays: Sequence[Array], *, force: bool) -> None:
    """Write header and arrays: equal content, equal bytes."""

    def write_draft(draft: Path) -> None:
        with zipfile.ZipFile(draft, "w") as archive:
            listed = [_write_array(archive, i, array) for i, array in enumerate(arrays)]
            about = {"format": FORMAT, "heatsketch": __version__}
            text = json.dumps({**about, **header, "arrays": listed}).encode()
            if len(text) > _MAX_HEADER_BYTES:
                raise ValueError(
                    f"The header of the file would take {len(text):,} bytes, of which most are "
                    "names of features; shorten them, or pass an array without names."
                )
            archive.writestr(_deflated(_HEADER), text)
            archive.writestr(zipfile.ZipInfo(_DIGEST), hashlib.sha256(text).hexdigest())

    write_atomically(path, write_draft, force=force)


@contextmanager
def opened(path: str | Path) -> Iterator[tuple[Header, Callable[[Any], Array]]]:
    """Open a model; yield its header, checked, and what reads an array by number or name.

    Errors on the way become one ValueError that names the file.
    """
    path = Path(path)
    errors = (*DAMAGE, ValueError, IndexError, AttributeError, ArithmeticError)
    blamed = blame(path, *errors, do=_WHAT_TO_DO)
    with path.open("rb") as stream, blamed, zipfile.ZipFile(stream) as archive:
        check_budget(sum(i.file_size for i in archive.infolist()), path.stat().st_size, str(path))
        header = _read_header(archive, path)
        if header["format"] == FIRST_FORMAT:
            yield header, lambda name: read_member(archive, name, path)
            return
        wanted = {_HEADER, _DIGEST, *(_name(i) for i in range(len(header["arrays"])))}
        if set(archive.namelist()) != wanted:
            raise ValueError(
                f"{path} lacks arrays, or has others than its header lists; {_WHAT_TO_DO}."
            )
        yield header, lambda i: _read_array(archive, i, header["arrays"][i], path)


class _Hashed:
    """A stream that hashes what passes through it."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.digest = stream, hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return int(self.stream.write(data))

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.stream.read(size)
        self.digest.update(data)
        return data


def _name(i: int) -> str:
    return f"arrays/{i}.npy"


def _deflated(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _write_array(archive: zipfile.ZipFile, i: int, array: Array) -> dict[str, Any]:
    """Write an array, and return what the header says of it."""
    zeros = array.size - np.count_nonzero(array) if array.nbytes <= _MAX_DEFLATED_BYTES else 0
    sparse = zeros > _ZEROS * array.size
    info = _deflated(_name(i)) if sparse else zipfile.ZipInfo(_name(i))
    with archive.open(info, "w", force_zip64=True) as stream:
        hashed = _Hashed(stream)
        np.lib.format.write_array(hashed, array, allow_pickle=False)
    about = {"shape": list(array.shape), "dtype": array.dtype.str}
    return about | {"sha256": hashed.digest.hexdigest()}


def _read_array(archive: zipfile.ZipFile, i: int, about: dict[str, Any], path: Path) -> Array:
    """Read an array of the shape, type and digest that the header says."""
    member, what = archive.getinfo(_name(i)), f"array {i} in {path}"
    with archive.open(member) as stream:
        size = claimed_size(stream, what)
    if size != member.file_size:
        raise ValueError(
            f"{what} claims {size:,} bytes but holds {member.file_size:,}; {_WHAT_TO_DO}."
        )
    with archive.open(member) as stream:
        hashed = _Hashed(stream)
        array = np.lib.format.read_array(hashed, allow_pickle=False)
    said = list(array.shape), array.dtype.str, hashed.digest.hexdigest()
    if said != (about["shape"], about["dtype"], about["sha256"]) or array.dtype.kind not in KINDS:
        raise ValueError(f"{what} is not the one that was saved; {_WHAT_TO_DO}.")
    return array


def _read_header(archive: zipfile.ZipFile, path: Path) -> Header:
    if _HEADER not in archive.namelist() or archive.getinfo(_HEADER).file_size > _MAX_HEADER_BYTES:
        raise ValueError(f"{path} does not hold a model; pass a file that save_model wrote.")
    text = archive.read(_HEADER)
    try:
        header: Header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} has a damaged header: {error}; {_WHAT_TO_DO}.") from error
    found = header.get("format") if isinstance(header, dict) else None
    if type(found) is not int or found < FIRST_FORMAT:
        raise ValueError(f"{path} does not hold a model; pass a file that save_model wrote.")
    if found > FORMAT:
        maker = header.get("heatsketch", "a later version")
        raise ValueError(
            f"{path} has format {found}, of heatsketch {maker}, but heatsketch {__version__} reads "
            f"formats up to {FORMAT}; update heatsketch."
        )
    if found == FORMAT and archive.read(_DIGEST).decode() != hashlib.sha256(text).hexdigest():
        raise ValueError(f"{path} has a damaged header: its digest is another one; {_WHAT_TO_DO}.")
    return header
