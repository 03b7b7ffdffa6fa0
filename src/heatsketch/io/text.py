"""Tables in text: .csv, .tsv and .txt files, and .gz of them."""

import csv
import gzip
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from heatsketch._typing import Array
from heatsketch.io.blocks import Blocks
from heatsketch.io.columns import arrow_table, blocks_of, numbered, table_of
from heatsketch.io.files import blame, check_budget, need
from heatsketch.io.header import column_names, is_header
from heatsketch.io.reading import Reading
from heatsketch.io.table import Names, Table, refuse_key, refuse_repeated

STDIN = "-"
SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_UNEVEN = "give every row the same number of cells, or name the separator with sep (--read sep=C)"
_SEPARATORS = ("\t", ";", ",", "|")  # in this order: commas mark decimals, too
_SAMPLE_BYTES = 2**18
_SAMPLE_RECORDS = 100
_LEAST_LINES = 3
BLOCK_BYTES = 2**22  # that are read at a time
_MARK, _UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")  # at the beginning of a file


def read(path: Path, how: Reading) -> Table:
    """Read the numeric columns as features and keep the others."""
    refuse_key(how.key, path)
    layout, data = find_layout(contents(path), path, how)
    table = _parse(path, data, layout)
    blank = [name for name in table.column_names if _is_blank(table[name], name)]

    def place(row: int) -> str:
        return f"row {row} (line {_line_of(row, data, layout)} of the file)"

    return table_of(table.drop_columns(blank), how, path, place, is_text=True)


def blocks(path: Path, how: Reading) -> Blocks:
    """Return the points by blocks of text; ids and labels stay text."""
    refuse_key(how.key, path)
    pa, pacsv = need("pyarrow", path), need("pyarrow.csv", path)
    head = _head(path)
    is_utf16 = head[:2] in _UTF16
    layout, unpadded = find_layout(head, path, how) if not is_utf16 else (None, b"")
    if layout is None or unpadded is not head:
        raise ValueError(
            f"{path} is read whole, since it is UTF-16 or has blanks between or around cells; "
            "write it in UTF-8 with commas alone, or as .parquet."
        )
    refuse_repeated(layout.names, path)
    block = max(BLOCK_BYTES, 16 * max(map(len, head.splitlines())))

    def batches(start: int, included: Names = layout.names) -> Iterator[tuple[int, Any]]:
        with (
            blame(path, pa.ArrowException, OSError, do=_UNEVEN),
            pacsv.open_csv(str(path), **_options(layout, block, included)) as stream,
        ):
            yield from numbered(stream, 0)

    n = sum(batch.num_rows for _, batch in batches(0, layout.names[:1]))
    schema = pa.schema([(name, pa.string()) for name in layout.names])
    return blocks_of(batches, n, schema, how, path)


def _options(layout: "Layout", block: int, included: Names = ()) -> dict[str, Any]:
    """Return how Arrow reads the cells of all columns, or of some, as text."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    names, types = layout.names, dict.fromkeys(layout.names, pa.string())
    return {
        "read_options": pacsv.ReadOptions(
            column_names=names, skip_rows=layout.skip, use_threads=False, block_size=block
        ),
        "parse_options": pacsv.ParseOptions(delimiter=layout.sep, newlines_in_values=True),
        "convert_options": pacsv.ConvertOptions(column_types=types, include_columns=list(included)),
    }


def _head(path: Path) -> bytes:
    """Return the first lines of a file: at least three, and as many as a sample has room for."""
    lines: list[bytes] = []
    with (
        blame(path, OSError, EOFError, zlib.error),
        gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream,
    ):
        size = 0
        while (len(lines) < _LEAST_LINES or size < _SAMPLE_BYTES) and (line := stream.readline()):
            lines.append(line)
            size += len(line)
    return b"".join(lines).removeprefix(_MARK)


def read_cells(path: Path, how: Reading) -> Any:
    """Read all cells as text without blanks around it, into an Arrow table; also the first row."""
    refuse_key(how.key, path)
    layout, data = find_layout(contents(path), path, replace(how, header=False))
    table = _parse(path, data, layout)
    pc = need("pyarrow.compute", path)
    return table.from_arrays([pc.utf8_trim_whitespace(c) for c in table.columns], layout.names)


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write ids and labels, then the coordinates."""
    pacsv = need("pyarrow.csv", draft)
    suffixes = [suffix.lower() for suffix in draft.suffixes]
    options = pacsv.WriteOptions(delimiter="," if ".csv" in suffixes[-2:] else "\t")
    with draft.open("wb") as file:
        # Without name and date: equal content, equal bytes.
        packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if suffixes[-1] == ".gz" else file
        with packed as stream:
            pacsv.write_csv(arrow_table(embedding, names, table), stream, options)


def _parse(path: Path, data: bytes, layout: "Layout") -> Any:
    """Parse all cells as text, in one block."""
    pa, pacsv = need("pyarrow", path), need("pyarrow.csv", path)
    refuse_repeated(layout.names, path)
    block = min(max(len(data) + 1, 2**20), 2**31 - 1)
    with blame(path, pa.ArrowException, OSError, do=_UNEVEN):
        return pacsv.read_csv(pa.BufferReader(data), **_options(layout, block))


def _is_blank(column: Any, name: str) -> bool:
    """Say whether a column has neither a name nor data: separators at the end of all lines."""
    if name and not re.fullmatch(r"column \d+", name):
        return False
    return len(column) > 0 and not any(str(cell).strip() for cell in column.unique())


# Where the cells are


@dataclass(frozen=True)
class Layout:
    """Where the cells of a table in text are."""

    sep: str
    names: Names  # of all columns
    skip: int  # lines before the first row of data


def contents(path: Path) -> bytes:
    """Return a text file, or standard input, as UTF-8; .gz is unpacked."""
    if str(path) == STDIN:
        data = _standard_input()
    elif path.suffix.lower() == ".gz":
        data = _unpacked(path)
    else:
        data = path.read_bytes()
    if data[:2] in _UTF16:
        return data.decode("utf-16").encode()
    return data.removeprefix(_MARK)


def _standard_input() -> bytes:
    try:
        return sys.stdin.buffer.read()
    except (AttributeError, ValueError, OSError) as error:  # there is none, or it is closed
        raise ValueError(
            "standard input is closed; pipe a table into it, or name a file in place of -."
        ) from error


def _unpacked(path: Path) -> bytes:
    held, stored, parts = 0, path.stat().st_size, []
    with blame(path, OSError, EOFError, zlib.error), gzip.open(path) as stream:
        while part := stream.read(2**22):
            held += len(part)
            check_budget(held, stored, str(path))
            parts.append(part)
    return b"".join(parts)


def find_layout(data: bytes, path: Path, how: Reading) -> tuple[Layout, bytes]:
    """Find the layout of a table; return with it the data, without blanks that pad cells."""
    sample, start, comment = _without_comments(_sample(data, path))
    sep = how.sep or _declared_separator(sample)
    if sep is not None and sample.lower().startswith(f"sep={sep}"):  # a line that Excel writes
        sample, start = sample.partition("\n")[2], start + 1
    sep = sep or _separator(sample, path)
    is_padded = (
        b'"' in data and re.search(rb'%b[ \t]+"(?!")' % re.escape(sep.encode()), data) is not None
    )
    if sep == " " or (is_padded and sep != "\t"):
        with blame(path, csv.Error, do="shorten the cell"):
            data = _unpadded(data.decode(), sep).encode()
            sample, comment = _unpadded(sample, sep), _unpadded(comment, sep)
        sep = "\t" if sep == " " else sep
    records = _records(sample, sep)
    if not records:
        raise ValueError(f"{path} is empty; pass a table with at least one row.")
    rows = [cells for _, cells in records]
    titles = next(csv.reader([comment.lstrip("# ")], delimiter=sep), [])
    titles = titles if 1 < len(titles) == len(rows[0]) else []
    named = {*how.features, *how.others}
    header = True if named and how.header is None and named <= set(rows[0]) else how.header
    if header is None:
        header = is_header(rows, how.decimal, path, untitled=not titles)
    if header:
        start += records[0][0]
        return Layout(sep, column_names(rows[0], rows[1:]), start), data
    names = column_names(titles, rows) if titles else tuple(f"x{j}" for j in range(len(rows[0])))
    return Layout(sep, names, start), data


def _line_of(row: int, data: bytes, layout: Layout) -> int:
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
    widths = {sep: _widths(text, sep) for sep in tried}
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
    if sep == " ":
        text, sep = _unpadded(text, sep), "\t"
    return [len(cells) for _, cells in _records(text, sep)]


def _records(text: str, sep: str) -> list[tuple[int, list[str]]]:
    """Return the first rows that are not empty, each with the number of lines up to its end."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=sep, skipinitialspace=sep != "\t")
    stripped = ((reader.line_num, [cell.strip() for cell in cells]) for cells in reader)
    found: list[tuple[int, list[str]]] = []
    with suppress(csv.Error):  # a very long cell
        found.extend(islice((row for row in stripped if any(row[1])), _SAMPLE_RECORDS))
    cut = len(text) >= _SAMPLE_BYTES and len(found) >= _LEAST_LINES  # perhaps within a quoted cell
    return found[:-1] if cut else found


def _unpadded(text: str, sep: str) -> str:
    """Return cells without blanks around them; one tab stands for runs of blanks that separate.

    Blanks before a quote would make it a part of the cell. Lines stay lines.
    """
    out = StringIO()
    lines: Iterable[str] = StringIO(text, newline="")
    if sep == " ":
        lines = (line.replace("\t", " ").strip() + "\n" for line in lines)
    writer = csv.writer(out, delimiter="\t" if sep == " " else sep, lineterminator="\n")
    for cells in csv.reader(lines, delimiter=sep, skipinitialspace=True):
        writer.writerow([cell.strip() for cell in cells])
    return out.getvalue()
