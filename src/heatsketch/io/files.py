"""Shared by all formats: atomic writing, limits on size, errors that name the file."""

import csv
import errno
import os
import re
import secrets
import stat
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from heatsketch._words import optional

# The extra of the package that installs a library; all others are in "io".
EXTRAS = {"openpyxl": "xlsx", "anndata": "anndata", "h5py": "anndata", "zarr": "anndata"}

# The advice where a file is damaged, or of another format than that of its suffix.
REMEDY = "save it again, or give it the suffix of its format"

DRAFT = ".heatsketch-"  # how the names of incomplete files begin
PIPE = "-"  # in place of a path: standard input or output

# How the system, HDF5 and NumPy say that there is no room to write.
_NO_ROOM = re.compile(r"No space left|quota exceed|File too large|errno = 28|requested and \d+ wr")
_FREE_BYTES = 2**30  # every file may unpack to this size
_MAX_UNPACKED_RATIO = 200  # to the size of the file, for larger contents


def suffix_of(path: str | Path) -> str:
    """Return the suffix of a path in lower case; that of a .gz file has two parts."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])


def write_atomically(
    path: str | Path, write: Callable[[Path], object], *, force: bool = False
) -> None:
    """Write a file so that at every moment it has either the old content or all of the new.

    Parameters
    ----------
    path : str or path
        The file; its folder must exist. A symbolic link is followed.
    write : callable
        Called with a temporary path, of the same suffix and in the same folder, to write to. The
        file is then flushed to disk and renamed; if `write` raises, it is removed.
    force : bool, default=False
        Replace the file if it exists; its permissions stay.

    Raises
    ------
    FileExistsError, FileNotFoundError, IsADirectoryError
        If the file exists and `force` is false, its folder does not, or it is a folder.
    OSError
        If there is no room for it, or the folder takes no files; the message names it.

    See Also
    --------
    io.write_table : Write an embedding with ids and labels.
    save_model : Write a fitted estimator to a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from heatsketch import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "note.txt")
    ...     io.write_atomically(path, lambda draft: draft.write_text("all of it"))
    ...     path.read_text()
    'all of it'
    """
    target = Path(path).resolve()
    check_target(path, force=force)
    draft = target.with_name(f"{DRAFT}{secrets.token_hex(6)}-{target.name[-40:]}")
    try:
        draft.touch(exist_ok=False)
        mode = stat.S_IMODE((target if target.exists() else draft).stat().st_mode)
        draft.chmod(mode | stat.S_IWUSR)
        write(draft)
        with draft.open("rb+") as stream:
            os.fsync(stream)
        check_target(path, force=force)
        draft.chmod(mode)
        draft.replace(target)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        is_full = _NO_ROOM.search(str(error))
        if not is_full and not (isinstance(error, OSError) and draft.name in str(error)):
            raise
        number = getattr(error, "errno", None) or (errno.ENOSPC if is_full else errno.EIO)
        do = "make room on the disk, and try again" if is_full else "choose another folder"
        reason = f"{path} could not be written ({os.strerror(number)})"
        raise OSError(number, f"{reason}; {do}.") from error
    if os.name == "posix":  # the name is on the disk when the folder is
        folder = os.open(target.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def write_rows(path: Path, rows: Iterable[Sequence[Any]], *, force: bool = False) -> None:
    """Write rows, the names of the columns first: commas in .csv and for "-", else tabs."""
    if str(path) == PIPE:
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
        return

    def write(draft: Path) -> None:
        with draft.open("w", encoding="utf-8", newline="") as stream:
            separator = "," if suffix_of(draft) == ".csv" else "\t"
            csv.writer(stream, delimiter=separator, lineterminator="\n").writerows(rows)

    write_atomically(path, write, force=force)


def check_target(
    path: str | Path, *, force: bool, source: str | Path = "", in_place: bool = False
) -> None:
    """Raise if a file may not be written: it is the source or a folder, has no folder, or exists.

    With `in_place` it must be the source, and a .h5ad file.
    """
    target, source = Path(path).resolve(), Path(source)
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {target.parent} does not exist; create it or choose another one."
        )
    is_source = target.exists() and source.exists() and target.samefile(source)
    if in_place and not (is_source and suffix_of(path) == ".h5ad"):
        raise ValueError(
            f"{path} is not the .h5ad file of the points; only that can be changed in place."
        )
    if is_source and not in_place:
        raise ValueError(f"{path} is also the input; choose another name.")
    if target.exists() and not (force or in_place):
        raise FileExistsError(
            f"{path} exists; pass force=True (--force) to replace it or choose another name."
        )


def check_budget(size: int, stored: int, what: str) -> None:
    """Refuse contents that need far more memory than the file takes on disk."""
    if size > max(_FREE_BYTES, _MAX_UNPACKED_RATIO * stored):
        sizes = f"{what} would unpack from {stored:,} to {size:,} bytes"
        raise ValueError(f"{sizes}; if that is intended, store it sparse or uncompressed.")


def check_archive(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse an archive whose members need far more memory than the file takes on disk."""
    check_budget(sum(i.file_size for i in archive.infolist()), path.stat().st_size, str(path))


def need(module: str, path: Path) -> Any:
    """Import an optional library that a format needs, or say how to install it."""
    package = module.partition(".")[0]
    return optional(module, f"{path.suffix} files need {package}", EXTRAS.get(package, "io"))


@contextmanager
def blame(path: Path, do: str = REMEDY) -> Iterator[None]:
    """Turn errors of a decoder on a damaged file into one line: file, reason, advice.

    `do` is the advice, "" if the errors contain it. Errors that name the file, or that are not
    about its contents, stay as they are.
    """
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        names_it = type(error) is ValueError and str(path) in str(error)
        if names_it or _NO_ROOM.search(str(error)):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        says = f"{reason.rstrip('. ')}; {do}." if do else reason
        raise ValueError(f"{path} cannot be read: {says}") from error


def listed(names: Iterable[Any], limit: int = 20) -> str:
    """Join names, at most the first `limit` of them: "a, b, c and 4 more"."""
    names = [str(name) or "''" for name in names]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) or "nothing") + more
