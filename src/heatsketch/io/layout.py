"""The layout of a table in text: its encoding, separator, comments, header and row names."""

import csv
import gzip
import sys
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from itertools import islice, pairwise
from pathlib import Path

from heatsketch.io.files import blame, check_budget
from heatsketch.io.reading import Reading
from heatsketch.io.table import Names, is_id

STDIN = "-"
_SEPARATORS = (
    "\t",
    ";",
    ",",
    "|",
)  # in the order in which they are tried: commas mark decimals, too
_SAMPLE_BYTES = 2**18
_SAMPLE_RECORDS = 100
_LEAST_LINES = 3


@dataclass(frozen=True)
class Layout:
    """Where the cells of a table in text are."""

    sep: str
    names: Names  # of all columns
    skip: int  # lines before the first row of data


def contents(path: Path) -> bytes:
    """Return a text file, or standard input, as UTF-8; .gz is unpacked."""
    if str(path) == STDIN:
        data = sys.stdin.buffer.read()
    elif path.suffix.lower() == ".gz":
        data = _unpacked(path)
    else:
        data = path.read_bytes()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16").encode()
    return data.removeprefix(b"\xef\xbb\xbf")


def _unpacked(path: Path) -> bytes:
    held, stored, parts = 0, path.stat().st_size, []
    with blame(path, OSError, EOFError, zlib.error), gzip.open(path) as stream:
        while part := stream.read(2**22):
            held += len(part)
            check_budget(held, stored, str(path))
            parts.append(part)
    return b"".join(parts)


def find_layout(data: bytes, path: Path, how: Reading) -> tuple[Layout, bytes]:
    """Find the layout of a table; return with it the data, with one tab for any run of blanks."""
    sample, start, comment = _without_comments(_sample(data, path))
    sep = how.sep or _declared_separator(sample)
    if sep is not None and sample.lower().startswith(f"sep={sep}"):  # a line that Excel writes
        sample, start = sample.partition("\n")[2], start + 1
    sep = sep or _separator(sample, path)
    if sep == " ":
        data, sample, sep = _tabbed(data.decode()).encode(), _tabbed(sample), "\t"
        comment = _tabbed(comment)
    records = _records(sample, sep)
    if not records:
        raise ValueError(f"{path} is empty; pass a table with at least one row.")
    rows = [cells for _, cells in records]
    titles = next(csv.reader([comment.lstrip("# ")], delimiter=sep), [])
    titles = titles if 1 < len(titles) == len(rows[0]) else []
    header = how.header
    if header is None:
        header = is_header(rows, how.decimal, path, untitled=not titles)
    if header:
        start += records[0][0]
        return Layout(sep, column_names(rows[0], rows[1:]), start), data
    names = column_names(titles, rows) if titles else tuple(f"x{j}" for j in range(len(rows[0])))
    return Layout(sep, names, start), data


def line_of(row: int, data: bytes, layout: Layout) -> int:
    """Return the line of the file, the first being 1, on which a row of data ends."""
    text = StringIO(data.decode(errors="replace"), newline="")
    for _ in range(layout.skip):
        text.readline()
    reader = csv.reader(text, delimiter=layout.sep)
    with suppress(csv.Error):  # a very long cell: the line before it
        next(islice(filter(None, reader), row, None))
    return layout.skip + reader.line_num


def _sample(data: bytes, path: Path) -> str:
    """Return the first lines: at least three, and as many as the sample has room for."""
    end = lines = 0
    while end < len(data) and (lines < _LEAST_LINES or end < _SAMPLE_BYTES):
        end = data.find(b"\n", end) + 1 or len(data)
        lines += 1
    try:
        text = data[:end].decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} cannot be read: {error}; save it as UTF-8 (in Excel: CSV UTF-8)."
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _without_comments(text: str) -> tuple[str, int, str]:
    """Return the text after leading lines that begin with #, their number, and the last one."""
    lines, comment = 0, ""
    while text.startswith("#"):
        comment, _, text = text.partition("\n")
        lines += 1
    return text, lines, comment


def _declared_separator(text: str) -> str | None:
    line = text.partition("\n")[0].strip('"')
    return line[4] if len(line) == 5 and line.lower().startswith("sep=") else None


def _separator(text: str, path: Path) -> str:
    """Return the separator that gives all rows the same number of cells; the header may lack one.

    Of several the first counts: where semicolons agree, commas mark decimals. If none does so, the
    one that does for most rows, so that the others are found when all are read.
    """
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    tried = _SEPARATORS if suffix in ("csv", "tsv") else (*_SEPARATORS, " ")
    widths = {sep: _widths(_tabbed(text) if sep == " " else text, sep) for sep in tried}
    for missing in (0, 1):
        for sep, found in widths.items():
            if found and len(set(found[1:])) < 2 and found[0] + missing == found[-1] > 1:
                return sep
    default = "\t" if suffix == "tsv" else ","
    most = {sep: Counter(w for w in found if w > 1) for sep, found in widths.items()}
    agreeing = {sep: max(counts.values(), default=0) for sep, counts in most.items()}
    return max((default, *tried), key=lambda sep: agreeing[sep])


def _widths(text: str, sep: str) -> list[int]:
    """Return the number of cells of the first rows."""
    return [len(cells) for _, cells in _records(text, "\t" if sep == " " else sep)]


def _records(text: str, sep: str) -> list[tuple[int, list[str]]]:
    """Return the first rows that are not empty, each with the number of lines up to its end."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=sep)
    stripped = ((reader.line_num, [cell.strip() for cell in cells]) for cells in reader)
    found: list[tuple[int, list[str]]] = []
    with suppress(csv.Error):  # a very long cell
        found.extend(islice((row for row in stripped if any(row[1])), _SAMPLE_RECORDS))
    cut = len(text) >= _SAMPLE_BYTES and len(found) >= _LEAST_LINES  # perhaps within a quoted cell
    return found[:-1] if cut else found


def _tabbed(text: str) -> str:
    """Put one tab in place of every run of blanks outside quotes; lines stay lines."""
    out = StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    for line in text.splitlines():
        cells = line.replace("\t", " ").strip()
        writer.writerows(csv.reader([cells], delimiter=" ", skipinitialspace=True))
        if not cells:
            out.write("\n")
    return out.getvalue()


def column_names(header: list[str], rows: list[list[str]]) -> Names:
    """Return names for all columns; rows that are one cell longer begin with a name, as R's do."""
    if rows and all(len(cells) == len(header) + 1 for cells in rows):
        ends_empty = all(cells[-1] == "" for cells in rows)
        header = [*header, ""] if ends_empty else ["", *header]
    return tuple(name or (f"column {j + 1}" if j else "") for j, name in enumerate(header))


def is_header(rows: list[list[str]], decimal: str, path: Path, *, untitled: bool = True) -> bool:
    """Say whether the first row holds names: if it has no number, or text above numbers.

    Raises
    ------
    ValueError
        If it may be either: numbers that increase, as years do, beside text above other text.
    """
    first, rest = rows[0], rows[1:]
    numbered = first[1:] if first[0] == "" else first  # the index of a pandas frame has no name
    if numbered == [str(j) for j in range(len(numbered))] and (len(numbered) > 2 or first[0] == ""):
        return True
    filled = {j: cell for j, cell in enumerate(first) if cell and cell.lower() not in _NO_NAMES}
    numbers = [float(c.replace(decimal, ".")) for c in filled.values() if is_number(c, decimal)]
    if not numbers or not filled:
        return True
    texts = {j: cell for j, cell in filled.items() if not is_number(cell, decimal)}
    if not texts:
        return False
    if _recurs(texts, rest) or any(b <= a for a, b in pairwise(numbers)):
        return False
    above = any(_is_numeric(j, rest, decimal) or _repeats(j, rest) for j in texts)
    if (above or is_id(first[0])) and all(number.is_integer() for number in numbers):
        return True
    if not untitled:
        return False
    raise ValueError(
        f"the first row of {path} has text ({', '.join(texts.values())}) beside numbers, so that "
        "it may be a header or data; pass header=True (--header) or header=False (--no-header)."
    )


_NO_NAMES = ("na", "nan", "n/a", "null", "none", "?", "-")


def _recurs(texts: dict[int, str], rows: list[list[str]]) -> bool:
    """Say whether a text of the first row stands below it once more."""
    return any(cells[j : j + 1] == [text] for j, text in texts.items() for cells in rows)


def _is_numeric(j: int, rows: list[list[str]], decimal: str) -> bool:
    cells = [row[j] for row in rows if len(row) > j and row[j]]
    return bool(cells) and all(is_number(cell, decimal) for cell in cells)


def _repeats(j: int, rows: list[list[str]]) -> bool:
    """Say whether a column holds categories, among which the text above would be expected again."""
    cells = [row[j] for row in rows if len(row) > j]
    return len(cells) >= 10 and 2 * len(set(cells)) <= len(cells)


def is_number(cell: str, decimal: str = ".") -> bool:
    """Say whether a cell is a number with this decimal mark."""
    if "_" in cell or (decimal == "," and "." in cell):
        return False
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return True
