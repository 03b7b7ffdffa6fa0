"""Tables whose cells are text: .csv, .tsv and .txt files, and .gz of them; sheets of .xlsx."""

import csv
import gzip
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BytesIO, StringIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

from heatsketch._typing import Array
from heatsketch.io.blocks import Blocks
from heatsketch.io.columns import arrow_table, blocks_of, names_of_columns, rows_from, table_of
from heatsketch.io.files import PIPE, blame, check_archive, check_budget, need, suffix_of
from heatsketch.io.table import Names, Reading, Table, check_names, refuse_repeated

SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_UNEVEN = (
    "give every row the same number of cells, in UTF-8, or name the separator with sep "
    "(--read sep=C)"
)
_SEPARATORS = ("\t", ";", ",", "|")  # in this order, because commas also mark decimals
_SAMPLE_ROWS, _SAMPLE_SIZE = 100, 2**18  # rows and characters from which the layout is found
_LEAST_ROWS = 3  # however long they are
_GAP = re.compile(r"#N/?A *[,;\t|]", re.IGNORECASE)  # a missing number, not a comment
BLOCK_BYTES = 2**22  # read at a time
_MARK, _UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")  # at the beginning of a file


# The separator, the names of all columns, the number of lines before the first row of data.
_Layout = tuple[str, Names, int]


def read(path: Path, how: Reading) -> Table:
    """Read the numeric columns as features and keep the others."""
    table, place = read_cells(path, how)
    # Separators at the end of all lines make columns without a name and without data.
    for name in [name for name in table.column_names if re.fullmatch(r"|column \d+", name)]:
        words = table[name].unique().to_pylist()
        if words and not any(map(str.strip, words)):
            table = table.drop_columns([name])
    return table_of(table, how, path, place)


def read_cells(path: Path, how: Reading) -> tuple[Any, Callable[[int], str]]:
    """Read all cells as text into an Arrow table; return it, and a function that names places."""
    pa, is_sheet = need("pyarrow", path), suffix_of(path) == ".xlsx"
    data = _sheet(path, how) if is_sheet else _contents(path)
    data, layout = _layout(data, path, replace(how, sep="\t") if is_sheet else how)
    sep, names, skip = layout
    block = min(max(len(data) + 1, 2**20), 2**31 - 1)
    batches = _batches(path, pa.BufferReader(data), layout, block)
    table = pa.Table.from_batches([*batches], pa.schema(dict.fromkeys(names, pa.string())))

    def place(row: int) -> str:
        rows = _rows(_lines(data, skip), sep)
        with suppress(csv.Error):  # a very long cell
            line = skip + max(islice((line for line, cells in rows if cells), row + 1))
            return f"row {row} (line {line} of the {'sheet' if is_sheet else 'file'})"
        return f"row {row}"

    return table, place


def blocks(path: Path, how: Reading) -> Blocks:
    """Return the points by blocks of text; ids and labels stay text."""
    pa = need("pyarrow", path)
    with _opened(path) as stream:
        head = b"".join(stream.readlines(BLOCK_BYTES)).removeprefix(_MARK)
    data, layout = _layout(head, path, how)
    if data is not head:
        what = "is read whole, since it has blanks between or around cells"
        raise ValueError(f"{path} {what}; write it with commas alone, or as .parquet.")
    block = max(BLOCK_BYTES, 16 * max(map(len, head.splitlines())))
    batches = partial(_batches, path, str(path), layout, block)
    _, names, _ = layout
    n = sum(batch.num_rows for batch in batches(included=names[:1]))
    schema = pa.schema(dict.fromkeys(names, pa.string()))
    return blocks_of(batches, n, schema, how, path)


def _batches(
    path: Path, source: Any, layout: _Layout, block: int, start: int = 0, included: Names = ()
) -> Iterator[Any]:
    """Yield the cells of all columns, or of some, as text, from a row on."""
    pa, pacsv = need("pyarrow", path), need("pyarrow.csv", path)
    sep, names, skip = layout
    refuse_repeated(names, path)
    reading = pacsv.ReadOptions(
        column_names=names, skip_rows=skip, use_threads=False, block_size=block
    )
    parsing = pacsv.ParseOptions(delimiter=sep, newlines_in_values=True)
    types = dict.fromkeys(names, pa.string())
    conversion = pacsv.ConvertOptions(column_types=types, include_columns=list(included))
    with blame(path, _UNEVEN), pacsv.open_csv(source, reading, parsing, conversion) as stream:
        yield from rows_from(stream, start)


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write ids and labels, then the coordinates."""
    pa, pacsv, suffix = need("pyarrow", draft), need("pyarrow.csv", draft), suffix_of(draft)
    options = pacsv.WriteOptions(delimiter="," if suffix.startswith(".csv") else "\t")
    packing = "gzip" if suffix.endswith(".gz") else None  # without name and date of the file
    with pa.output_stream(draft, compression=packing) as stream:
        pacsv.write_csv(arrow_table(embedding, names, table), stream, options)


def _opened(path: Path) -> Any:
    return (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb")


def _contents(path: Path) -> bytes:
    """Return a text file, or standard input, as UTF-8; .gz is unpacked."""
    if str(path) == PIPE:
        data = sys.stdin.buffer.read()
    else:
        parts: list[bytes] = []
        with _opened(path) as stream:
            while part := stream.read(2**24):
                parts.append(part)
                check_budget(sum(map(len, parts)), path.stat().st_size, str(path))
        data = b"".join(parts)
    return data.decode("utf-16").encode() if data[:2] in _UTF16 else data.removeprefix(_MARK)


# Where the cells are


def _lines(data: bytes, start: int = 0) -> Iterator[str]:
    return islice(TextIOWrapper(BytesIO(data), "utf-8", newline=""), start, None)


def _rows(lines: Iterable[str], sep: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of lines up to the end of each row, and its cells, stripped of blanks.

    A blank as separator stands for any run of blanks.
    """
    if sep == " ":
        lines = (line.replace("\t", " ").strip() + "\n" for line in lines)
    reader = csv.reader(lines, delimiter=sep, skipinitialspace=sep != "\t")
    for cells in reader:
        yield reader.line_num, [cell.strip() for cell in cells]


def _first_rows(lines: Iterable[str], sep: str) -> list[tuple[int, list[str]]]:
    """Return the first rows that are not empty."""
    found, size = [], 0
    with suppress(csv.Error):  # a very long cell
        for line, cells in _rows(lines, sep):
            found += [(line, cells)] if any(cells) else []
            size += sum(map(len, cells))
            if len(found) >= (_SAMPLE_ROWS if size < _SAMPLE_SIZE else _LEAST_ROWS):
                break
    return found


def _layout(data: bytes, path: Path, how: Reading) -> tuple[bytes, _Layout]:
    """Return the data, without blanks that pad cells, and their layout."""
    start, line, comment = 0, "", ""
    with blame(path, "save it as UTF-8 (in Excel: CSV UTF-8)"):
        for line in _lines(data):
            if not line.startswith("#") or _GAP.match(line):
                break
            start, comment = start + 1, line
        excel = re.match(r'"?sep=([^\r\n])"?\s*$', line, re.IGNORECASE)  # a line that Excel writes
        sep = how.sep or (excel[1] if excel else None)
        start += bool(excel and excel[1] == sep)
        sep = sep or _separator(partial(_lines, data, start), path)
        records = _first_rows(_lines(data, start), sep)
    if not records:
        raise ValueError(f"{path} is empty; pass a table with at least one row.")
    rows = [cells for _, cells in records]
    titles = next((cells for _, cells in _rows([comment.lstrip("# ")], sep)), [])
    titles = titles if 1 < len(titles) == len(rows[0]) else []
    names, has_header = names_of_columns(rows, titles, how, path)
    start += records[0][0] if has_header else 0
    before_quotes = rb'%b[ \t]+"(?!")' % re.escape(sep.encode())
    if sep == " " or (sep != "\t" and b'"' in data and re.search(before_quotes, data)):
        # Blanks before a quote would make it a part of the cell. Lines stay lines.
        out, rewritten = StringIO("\n" * start), _rows(_lines(data, start), sep)
        out.seek(start)
        sep = "\t" if sep == " " else sep
        csv.writer(out, delimiter=sep, lineterminator="\n").writerows(row for _, row in rewritten)
        data = out.getvalue().encode()
    return data, (sep, names, start)


def _separator(lines: Callable[[], Iterable[str]], path: Path) -> str:
    """Return the separator that gives most rows the same number of cells; the header may lack one.

    Among several the first counts, because commas mark decimals where semicolons separate cells.
    """

    def agreeing(sep: str) -> float:
        first, *below = [len(cells) for _, cells in _first_rows(lines(), sep)] or [0]
        width, count = Counter(below or [first]).most_common(1)[0]
        agreed = count + (first == width) + (first == width - 1) / 2
        return agreed if width > 1 else (sep == usual) / 2  # of one column

    usual = "\t" if suffix_of(path).startswith(".tsv") else ","
    has_blanks = not suffix_of(path).startswith((".csv", ".tsv"))
    return max((*_SEPARATORS, " ") if has_blanks else _SEPARATORS, key=agreeing)


# Sheets


def _sheet(path: Path, how: Reading) -> bytes:
    """Return a sheet as text with tabs between its cells; empty rows are empty lines."""
    openpyxl = need("openpyxl", path)
    with zipfile.ZipFile(path) as archive:
        check_archive(archive, path)
    book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    titles = [sheet.title for sheet in book.worksheets]
    check_names([how.key] if how.key is not None else [], titles, path, "sheet")
    title = how.key or titles[0]
    out, has_blanks = StringIO(), False
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    for row in book[title].iter_rows(values_only=True):
        cells = [str(x).replace(".", how.decimal) if isinstance(x, float) else x for x in row]
        writer.writerow([] if {*cells} <= {None, ""} else cells)
        has_blanks |= None in cells
    if has_blanks:
        formulas = openpyxl.load_workbook(path, read_only=True, keep_links=False)
        _refuse_uncomputed(formulas[title], book[title], path)
        formulas.close()
    book.close()
    return out.getvalue().encode()


def _refuse_uncomputed(formulas: Any, values: Any, path: Path) -> None:
    """Raise for a formula whose value no program has stored: its cell would be read as blank."""
    for row, computed in zip(formulas.iter_rows(), values.iter_rows(), strict=True):
        for cell, found in zip(row, computed, strict=True):
            # A formula whose value is empty text has the type of text.
            if cell.data_type == "f" and found.value is None and found.data_type == "n":
                what = f"the formula {str(cell.value)[:80]} without a value in {cell.coordinate}"
                do = "open it in a spreadsheet program and save it, so that values are stored."
                raise ValueError(f"{path} has {what}; {do}")
