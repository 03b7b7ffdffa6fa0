"""Text files: separators, headers and notations of numbers, column by column.

Text, sheets and Parquet files become Arrow tables; `table_of` turns these into points.
"""

import csv
import gzip
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BytesIO, StringIO, TextIOWrapper
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch import _threads
from heatsketch._arrays import Array, stacked_lists
from heatsketch._checks import is_counter
from heatsketch.estimators.table import TableEncoder
from heatsketch.io.files import PIPE, blame, check_archive, check_budget, listed, need, suffix_of
from heatsketch.io.table import (
    EXACT,
    Blocks,
    Learned,
    Names,
    Reading,
    Table,
    are_row_numbers,
    check_names,
    coded_labels,
    column_of_entries,
    encoding,
    entry_names,
    in_numbers,
    is_id,
    is_label,
    refuse_merged,
    refuse_repeated,
)

# Kinds of cells, with decimal points. Missing numbers are written as spreadsheets, R, Python
# and pandas do. Notation: decimal commas, groups of three digits, a currency, per cent, a
# typographic minus; dates and versions, which have several groups of other lengths, are text.
_GAPS = (
    *("", "na", "n/a", "#n/a", "#na", "#n/a n/a", "nan", "+nan", "-nan", "null", "none", "<na>"),
    *("nat", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
)
_SPACE = "['’_ \u00a0\u2009\u202f]"
_GROUPS = f"[0-9]{{1,3}}(?:(?:[.][0-9]{{3}})+|(?:,[0-9]{{3}})+|(?:{_SPACE}[0-9]{{3}})+)"
_BODY = f"(?:(?:{_GROUPS}|[0-9]+)(?:[.,][0-9]*)?|[.,][0-9]+)"
_CELL = re.compile(
    r"(?P<number>[-+]?(?:(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:e[-+]?[0-9]+)?|inf|infinity))|"
    "(?P<boolean>true|false)|"
    f"(?P<notation>[(]?[-+−–]? ?[$€£¥]? ?{_BODY}(?:e[-+−]?[0-9]+)?{_SPACE}?[%‰$€£¥]?[)]?)|"
    f"(?P<measured>[-+−–]?{_BODY} [a-zµμ°Ω%/²³]{{1,8}})",
    re.IGNORECASE,
)
_NOT_ONLY_NUMBERS = r"^[+-]?0[0-9]|^[+-]?[0-9]{17}|^\s*(?i:true|false)"  # 007, accounts, words
_PLAIN_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"  # prints the same text again
_PERHAPS = r"(?i)^\W*[0-9]|^\W*(inf|true|false)"  # how all of these but gaps begin
_CELL_BYTES = 120  # of a cell that is read to be encoded, beside its text
_BOOLEANS = {"true": "1", "false": "0"}
_NOT_A_NUMBER = (
    "the column looks numeric but this is not a number. Correct it; or count such cells as missing "
    "with missing='drop' or 'median' (--missing drop or median); or, if this is no feature, name "
    "it with exclude, ids or label (--exclude, --id, --label)"
)
_OR_CATEGORIES = "; or, if these are categories, pass encode=True (--encode)"
_ANOTHER_MARK = "if {0!r} marks decimals, pass decimal={0!r} (--read decimal={0}); "
_ANOTHER_NOTATION = (
    "write numbers with one mark for decimals, and without signs for thousands, currencies, per "
    "cent and units; if this is no feature, name it with exclude (--exclude)"
)

Place = Callable[[int], str]  # from the number of a row to the words for its place


def kind_of(cell: str, decimal: str = ".") -> str:
    """Return the kind: missing, number, boolean, notation (other than ours), measured or text."""
    if decimal == ",":
        cell = cell.translate(str.maketrans(".,", ",."))
    cell = cell.strip()
    found = _CELL.fullmatch(cell)
    return str(found.lastgroup) if found else "missing" if cell.lower() in _GAPS else "text"


def number_of(cell: str) -> float:
    """Return the value of a cell that is a number or a boolean."""
    word = cell.strip().lower()
    return float(_BOOLEANS.get(word, word.replace(",", ".")))


def numbers_in(column: Any, decimal: str) -> Array | None:
    """Return text as numbers (n,), NaN for gaps, if Arrow can read every cell; this is fast."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = column
    if decimal == ",":
        plain = pc.replace_substring(pc.replace_substring(column, ".", "x"), ",", ".")
    is_gap = pc.equal(plain, "")
    for _ in range(2):  # most tables have neither blanks around numbers nor words for gaps
        with suppress(pa.ArrowInvalid):
            found = pc.if_else(is_gap, None, plain).cast("float64").to_numpy(zero_copy_only=False)
            return None if np.isnan(found).all() else found
        plain = pc.ascii_trim_whitespace(plain)
        is_gap = pc.is_in(pc.ascii_lower(plain), pa.array(_GAPS))
    return None


def classified(column: Any, decimal: str) -> tuple[Array, list[str], Array, Array]:
    """Return numbers (n,), NaN for other cells, the different cells, their kinds, and codes (n,).

    The words true and false count as 1 and 0 if there are no other words. No cells are returned
    where Arrow reads all of them as numbers.
    """
    import pyarrow.compute as pc

    found = numbers_in(column, decimal)
    if found is not None:
        return found, [], np.empty(0, "U8"), np.empty(0, int)
    encoded = pc.utf8_trim_whitespace(column.fill_null("")).dictionary_encode()
    words, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    kinds = np.array([kind_of(word, decimal) for word in words], "U8")
    if {*kinds.tolist()} <= {"boolean", "missing"}:
        kinds[kinds == "boolean"] = "number"
    pairs = zip(words, kinds, strict=True)
    values = np.array([number_of(word) if kind == "number" else np.nan for word, kind in pairs])
    return values[codes], words, kinds, codes


def table_of(
    table: Any, how: Reading, path: Path, text_place: Place | None = None, *, first_row: int = 0
) -> Table:
    """Return the points of an Arrow table, with its other columns as ids and labels.

    Features are the requested columns, or else all numeric ones that are not ids, labels or
    excluded; a note names labels in numbers, and ids that count the rows. They are float32 if all
    columns are; gaps are NaN. With `text_place`, which names the places of rows, all cells are
    text, and ids and labels that are numbers become numbers.

    Raises
    ------
    ValueError
        If there is no feature, or a column looks numeric and is not; the message names the place.
    """
    import pyarrow as pa

    place = text_place or (lambda row: f"row {first_row + row}")
    vectors, width = _column_of_vectors(table.schema, how, path)
    check_names(how.exclude + (() if vectors else how.features), table.column_names, path)
    left_out = [f.name for f in table.schema if pa.types.is_nested(f.type) and f.name != vectors]
    without = [f"{name} ({table.schema.field(name).type})" for name in left_out]
    left = [f"{_LEFT_OUT} {listed(without)}, not one value a row"] if left_out else []
    table = table.drop_columns(left_out)
    if vectors:
        points = _table_of_vectors(table, vectors, width, how, path, place)
        return replace(points, lists=(vectors, *left_out), notes=(*points.notes, *left))
    names = table.column_names
    passed = [name for name in names if name in how.others or is_id(name) or is_label(name)]
    columns, extra, notes = {}, {}, [*left]
    mixed: dict[str, Any] = {}  # columns that are no numbers, to be encoded
    faults: dict[str, list[str]] = {}  # by what to do
    foreign = []
    for name in how.features or [name for name in names if name not in passed]:
        column = table[name].combine_chunks()
        try:
            is_text = name in how.texts
            found, note = (None, "") if is_text else _feature(column, name, how, place)
            if found is None and how.encode:
                mixed[name] = _without_gaps(column)
            elif found is not None:
                refuse_merged(name, found, column, place)
                columns[name] = found
                notes += [note] if note else []
            elif how.features and table.num_rows:
                what = f"column {name!r} holds nothing that is a number"
                remedy = "name features that are numbers, or pass encode=True (--encode)"
                raise ValueError(what, remedy)
        except ValueError as error:
            what, *do = error.args if type(error) is ValueError else [str(error)]
            faults.setdefault("; ".join(["", *do]), []).append(what.removesuffix("."))
            foreign += [name] if _ANOTHER_NOTATION in do else []
    if faults:
        said = " ".join(f"{listed(whats, 5)}{do}." for do, whats in faults.items())
        mark = "," if how.decimal == "." else "."
        helped = [name for name in (*columns, *foreign) if _may_have_mark(table[name], how, mark)]
        if {*columns} < {*helped}:  # it mends a column and spoils none
            hint = _ANOTHER_MARK.format(mark)
            said = said.replace(_ANOTHER_NOTATION, hint + _ANOTHER_NOTATION)
        raise ValueError(f"{path}: {said}")
    for found_in, what in _NO_FEATURES.items():
        aside = [] if how.features else found_in(columns)
        for name in aside if len(aside) < len(columns) else []:  # something is left
            del columns[name]
            notes.append(f"{name!r} is passed through as {what} {_UNLESS_NAMED}")
            passed.append(name)
    if not columns and not mixed:
        reason = f"no numeric column to use as a feature; its columns are {listed(names)}"
        reason += "" if how.encode else ", of which encode=True (--encode) makes numbers"
        reason += f"; {left[0]}" if left else ""
        reason = reason if table.num_rows else "no rows below its header; pass a table with some"
        raise ValueError(f"{path} has {reason}.")
    for name in [name for name in names if name not in columns and name not in mixed]:
        if text_place:  # a column that could have been a feature holds something else
            may_be_number = bool(how.features or name in passed)
            may_be_number = may_be_number and not (name in how.ids or is_id(name))
            extra[name] = _from_text(table[name].combine_chunks(), how.decimal, may_be_number)
        else:  # in chunks, because Arrow limits the size of one
            extra[name] = _typed(table[name])
    label = how.choose_label(extra)
    aside = [n for n in how.label if n in extra and (how.encode or extra[n].dtype.kind in "biuf")]
    notes += [f"{_ASIDE}: {listed(aside)}"] if aside else []
    if how.encode:
        every = columns | mixed
        used = {name: every[name] for name in how.features or names if name in every}
        nothing = np.empty((table.num_rows, 0))
        numbers = Table(
            nothing, tuple(used), extra, label, str(path), notes=tuple(notes), mixed=used
        )
        return replace(numbers, lists=tuple(left_out))
    values = np.stack([*columns.values()], axis=1)
    numbers = Table(values, tuple(columns), extra, label, str(path), notes=tuple(notes))
    others = [name for name in extra if name not in passed and extra[name].dtype.kind in "OU"]
    return replace(numbers, passed_over=tuple(others), lists=tuple(left_out))


def _column_of_vectors(schema: Any, how: Reading, path: Path) -> tuple[str, int]:
    """Return the column whose lists of numbers are the points, "" without one, and their size.

    It is the one that `features` names, by itself or by all its entries, which say the size; else
    the only one. In the file of a picture lists are the points only where they are named.
    """
    from pyarrow import types

    lists = [
        field.name
        for field in schema
        if types.is_list(field.type)
        or types.is_large_list(field.type)
        or types.is_fixed_size_list(field.type)
        if types.is_floating(field.type.value_type)
        or types.is_integer(field.type.value_type)
        or types.is_decimal(field.type.value_type)
    ]
    for name in lists:
        same = re.compile(rf"{re.escape(name)}\[[0-9]+\]")
        if clash := next(filter(same.fullmatch, schema.names), None):
            what = f"column {clash!r} has the name of an entry of the lists in column {name!r}"
            raise ValueError(f"{path}: {what}; rename one of the two.")
    asked, width = how.features, 0
    if asked and asked[0] not in schema.names:
        if lists and asked == tuple(f"x{j}" for j in range(len(asked))):
            what = f"{path} has no column 'x0'; if the features are those of an array"
            raise ValueError(f"{what}, write np.stack of its column {lists[0]!r} to a .npy file.")
        if column := column_of_entries(asked):
            if lists and column not in schema.names:
                what = f"{path} has no column {column!r} of lists; its lists are {listed(lists)}"
                raise ValueError(f"{what}: rename the one that holds the points to {column!r}.")
            check_names([column], schema.names, path)
            asked, width = (column,), len(asked)
            if column not in lists:
                what = f"{path}: column {column!r} holds {schema.field(column).type}"
                raise ValueError(f"{what}, not lists of {width} numbers; pass a file with these.")
    named = [name for name in asked if name in lists]
    free = [] if asked or not how.strict else [name for name in lists if name not in how.others]
    if len(free) > 1:
        do = f"name one by features={free[0]!r} (--features {free[0]})"
        raise ValueError(f"{path} has several columns of lists: {listed(free)}; {do}.")
    for name in asked:
        if name in schema.names and name not in lists and types.is_nested(schema.field(name).type):
            what = f"{path}: column {name!r} holds {schema.field(name).type}"
            raise ValueError(
                f"{what}, not numbers; name features that are numbers, or lists of them."
            )
    if len(named) and len(asked) > 1:
        do = "name it alone, or leave it out"
        raise ValueError(f"{path}: the lists of {named[0]!r} are points by themselves; {do}.")
    found = next(iter(named or free), "")
    if found and how.encode:
        what = f"{path}: column {found!r} holds lists, which are points, not one value a row"
        do = f"leave out encode=True (--encode), or pass exclude={found!r} (--exclude {found})"
        raise ValueError(f"{what}; {do}.")
    return found, width


def _table_of_vectors(
    table: Any, name: str, width: int, how: Reading, path: Path, place: Place
) -> Table:
    """Return the lists of a column as points, with the other columns as ids and labels."""
    column = table[name]
    values, others = stacked_lists(column, width)
    d = values.shape[1]
    if len(others):
        row = int(others[0])
        what = f"column {name!r} holds {len(column[row])} numbers in {place(row)}, not {d}"
        do = f"pass lists of one size, or exclude the column (--exclude {name})"
        raise ValueError(f"{path}: {what}; {do}.")
    if not d:
        what = "no numbers in its lists" if table.num_rows else "no rows"
        raise ValueError(f"{path} has {what}; pass a table with some.")
    if str(column.type.value_type) in ("int64", "uint64"):
        merged = np.flatnonzero((np.abs(values) >= EXACT).any(axis=1))
        if len(merged):
            what = f"column {name!r} holds integers in {place(int(merged[0]))}, which float64"
            raise ValueError(f"{path}: {what} does not tell from the next; store them as float64.")
    extra = {other: _typed(table[other]) for other in table.column_names if other != name}
    numbers = [
        other
        for other, x in extra.items()
        if x.dtype.kind in "biuf" and not (other in how.others or is_id(other) or is_label(other))
    ]
    note = f"{_VECTORS} {name!r}"
    if numbers:
        note += f"; the numbers beside them are passed through: {listed(numbers, 5)} (to embed "
        note += f"these: --exclude {name})"
    label = how.choose_label(extra)
    return Table(values, entry_names(name, d), extra, label, str(path), notes=(note,))


def _counters(columns: dict[str, Array]) -> list[str]:
    """Return the columns (n,) that count the rows."""
    return [name for name, column in columns.items() if is_counter(column)]


_NO_FEATURES: dict[Callable[[dict[str, Array]], list[str]], str] = {
    coded_labels: "labels, for it holds few whole numbers",
    _counters: "an id, for it holds whole numbers in equal steps, all different",
}
_ASIDE = "labels are no features"
_VECTORS, _LEFT_OUT = "points are the lists of", "left out:"
_UNLESS_NAMED = "(to embed it, name all features: --features)"


def _feature(column: Any, name: str, how: Reading, place: Place) -> tuple[Array | None, str]:
    """Return a column of numbers, or None if it is not numeric, and a note.

    Text is numeric if at least half of its cells, or of its different cells, are numbers, or if the
    column is requested. All other cells must then be gaps. Further cells are an error, unless they
    count as missing; numbers in another notation never do.
    """
    import pyarrow.compute as pc
    from pyarrow import types

    kind, asked = column.type, name in how.features and not how.encode
    if not (types.is_string(kind) or types.is_large_string(kind)):
        numeric_types = (types.is_floating, types.is_integer, types.is_decimal, types.is_boolean)
        if not any(holds(kind) for holds in numeric_types):
            return None, ""
        is_single = types.is_float32(kind) or types.is_float16(kind)
        column = column.cast("float32" if is_single else "float64", safe=False)
        return column.to_numpy(zero_copy_only=False), ""
    is_text = not asked and len(column) > 0 and kind_of(column[0].as_py() or "") == "text"
    if is_text and not pc.any(pc.match_substring_regex(column, _PERHAPS)).as_py():
        return None, ""
    found, words, kinds, codes = classified(column, how.decimal)
    filled, foreign, number = (kinds != "missing"), (kinds == "notation"), (kinds == "number")
    bad = filled & ~number
    if not bad.any():
        return (None if np.isnan(found).all() else found), ""
    if not how.strict:
        return None, ""

    def complaint(bad: Array, remedy: str) -> ValueError:
        rows, cell = np.flatnonzero(bad[codes]), words[bad.argmax()]
        where = place(int(rows[0])) + (f" ({len(rows)} such cells)" if len(rows) > 1 else "")
        return ValueError(f"column {name!r} holds {cell[:80]!r} in {where}", remedy)

    counts, numeric = np.bincount(codes), foreign | number
    half = 2 * counts @ numeric >= counts @ filled or 2 * numeric.sum() >= filled.sum()
    if not asked and not (half and numeric.any()):
        units = {word.rpartition(" ")[2] for word in np.array(words)[filled]}
        if len(units) == 1 and (kinds[filled] == "measured").all():
            raise complaint(filled, _ANOTHER_NOTATION)
        return None, ""
    if foreign.any():
        raise complaint(foreign, _ANOTHER_NOTATION)
    if not how.fills_gaps:
        raise complaint(bad, _NOT_A_NUMBER + ("" if how.encode else _OR_CATEGORIES))
    shown = listed([repr(words[i]) for i in np.flatnonzero(bad)], 3)
    return found, f"{counts[bad].sum()} cells of {name!r} count as missing: {shown}"


def _without_gaps(column: Any) -> Any:
    """Return a column whose words for gaps are gaps."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    words = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    return pc.if_else(pc.is_in(words, pa.array(_GAPS, column.type)), None, column)


def _may_have_mark(column: Any, how: Reading, mark: str) -> bool:
    """Return whether all that looks like a number in a column is one with this decimal mark."""
    words = [word for word in column.unique().to_pylist() if isinstance(word, str)]
    others = ("text", "missing", "boolean")
    return all(
        kind_of(word, mark) == "number"
        for word in words
        if kind_of(word, how.decimal) not in others
    )


def _from_text(column: Any, decimal: str, may_be_number: bool) -> Array:
    """Return integers if these print the same text, else floats if that is allowed, else text."""
    import pyarrow.compute as pc

    if pc.all(pc.match_substring_regex(column, _PLAIN_INTEGER)).as_py():
        return column.cast("int64").to_numpy()  # type: ignore[no-any-return]
    if may_be_number and not pc.any(pc.match_substring_regex(column, _NOT_ONLY_NUMBERS)).as_py():
        found = numbers_in(column, decimal)
        if found is not None:
            return found
    return np.array(column.to_pylist(), dtype=object)


def _typed(column: Any) -> Array:
    """Return an Arrow column as numbers if it is numeric, else as objects with None for gaps."""
    from pyarrow import types

    whole = types.is_integer(column.type) or types.is_boolean(column.type)
    if (whole and not column.null_count) or types.is_floating(column.type):
        return column.to_numpy()  # type: ignore[no-any-return]
    return np.array(column.to_pylist(), dtype=object)


def rows_from(batches: Iterable[Any], start: int) -> Iterator[Any]:
    """Yield Arrow batches without the first `start` rows."""
    for batch in batches:
        if start < batch.num_rows:
            yield batch.slice(start)
        start = max(0, start - batch.num_rows)


def blocks_of(
    batches: Callable[..., Iterator[Any]], n: int, schema: Any, how: Reading, path: Path
) -> Blocks:
    """Return points by blocks of Arrow batches; the first batch decides on the features.

    Their encoder, if one is wanted, is that of all rows, as of the whole table.
    """
    import pyarrow as pa

    head = pa.Table.from_batches([*islice(batches(0), 1)], schema)
    first = table_of(head, how, path)
    like_it = replace(how, features=first.columns, exclude=())
    of_choice = _ASIDE, _VECTORS, _LEFT_OUT
    notes = [n for n in first.notes if n.endswith(_UNLESS_NAMED) or n.startswith(of_choice)]
    learned: Learned = {}
    if how.encode:
        columns = first.columns
        each = n * (_CELL_BYTES + head.nbytes / max(1, head.num_rows * head.num_columns))
        size = max(1, int(_threads.available_memory() / 4 / max(1, each)))
        parts = (columns[at : at + size] for at in range(0, len(columns), size))
        with encoding(str(path)):
            encoder = TableEncoder._of_parts(map(partial(_whole, batches, like_it, path), parts))
        learned = {"columns": columns, "encoder": encoder}
        like_it = replace(like_it, texts=encoder._texts)
        first = in_numbers(table_of(head, like_it, path), learned)
        notes.append(first.notes[-1])

    def tables(start: int) -> Iterator[Table]:
        for batch in batches(start):
            rows = pa.Table.from_batches([batch])
            found = table_of(rows, like_it, path, first_row=start)
            found = in_numbers(found, learned) if learned else found
            yield replace(found, notes=(), learned=learned)
            start += batch.num_rows

    return Blocks(n, first.columns, first.values.dtype, str(path), tables, notes=tuple(notes))


def _whole(batches: Any, how: Reading, path: Path, names: Names) -> dict[str, Any]:
    """Return all rows of some of the columns that are to be encoded."""
    import pyarrow as pa

    rows = pa.Table.from_batches(list(batches(0, names)))
    found = table_of(rows, replace(how, features=names), path)
    return found.mixed or {}


def arrow_table(embedding: Array, names: Sequence[str], table: Table) -> Any:
    """Return an Arrow table of the ids and labels of a table, then the coordinates."""
    import pyarrow as pa

    return pa.table(table.named_extra(names) | dict(zip(names, embedding.T, strict=True)))


# The header

_Rows = list[list[str]]
_NAMES = (
    *("name", "names", "sample", "samples", "group", "country", "city", "species", "gene"),
    "subject",
)


def column_names(header: list[str], rows: Sequence[list[str]] = ()) -> Names:
    """Return names for all columns; rows one cell longer begin with a row name, as R writes."""
    if rows and all(len(cells) == len(header) + 1 for cells in rows):
        ends_empty = all(cells[-1] == "" for cells in rows)
        header = [*header, ""] if ends_empty else ["", *header]
    return tuple(name or (f"column {j + 1}" if j else "") for j, name in enumerate(header))


def names_of_columns(
    rows: _Rows, titles: list[str], how: Reading, path: Path
) -> tuple[Names, bool]:
    """Return names for all columns, and whether the first row holds them.

    If it does not, titles from elsewhere are the names, if there are any. Names that the user gave
    as options decide where they are in the first row.

    Raises
    ------
    ValueError
        If the first row may be a header or data.
    """
    named, header = {*how.features, *how.others}, how.header
    if header is None:
        header = (bool(named) and named <= {*rows[0]}) or is_header(rows, how.decimal)
        if header is None and not titles:
            raise question(rows[0], "data", path)
    if header:
        return column_names(rows[0], rows[1:]), True
    return column_names(titles or [f"x{j}" for j in range(len(rows[0]))]), False


def names_columns(cell: str) -> bool:
    """Return whether a text is a usual name of a column."""
    return is_id(cell) or is_label(cell) or cell.lower() in _NAMES


def is_header(rows: _Rows, decimal: str) -> bool | None:
    """Return whether the first row holds names, None if it may be either names or data.

    It does if it has no number, or a usual name beside numbers, or an empty cell above names or
    numbers of rows. It may if it has whole or increasing numbers beside another text or an empty
    cell, or numbers that differ from those below.
    """
    first, rest = rows[0], rows[1:]
    counted = first[first[0] == "" :]  # the index of a pandas frame has no name
    if counted == [str(j) for j in range(len(counted))] and (len(counted) > 2 or counted != first):
        return True
    if rest and all(len(cells) == len(first) + 1 for cells in rest):
        return True  # as R writes names of rows
    kinds = [kind_of(cell, decimal) for cell in first]
    is_text = [kind not in ("number", "missing") for kind in kinds]
    numbers = [j for j, kind in enumerate(kinds) if kind == "number"]
    texts = [j for j, cell in enumerate(first) if is_text[j] and re.search(r"\w", cell)]
    if not numbers:
        return True
    below = [[cells[j] for cells in rest if len(cells) > j] for j in range(len(first))]
    filled = [first[j] for j in numbers + texts]
    if len(set(filled)) < len(filled) or any(_is_alike(first[j], below[j]) for j in texts):
        return False
    corner = below[0] if not first[0] and all(below[0]) else []
    of_corner = {kind_of(cell, decimal) for cell in corner}
    if corner and (are_row_numbers(corner) or of_corner == {"text"}):
        return True
    if any(names_columns(first[j]) for j in texts):
        return True
    columns = [[cell for cell in below[j] if kind_of(cell, decimal) == "number"] for j in numbers]
    values = [number_of(first[j]) for j in numbers]
    are_names = all(map(float.is_integer, values)) or (len(values) > 2 and values == sorted(values))
    if (are_names and (texts or corner)) or _may_be_names([first[j] for j in numbers], columns):
        return None
    return False


def question(first: list[str], other: str, path: Path) -> ValueError:
    """Return the error that asks whether a first row is a header or something else."""
    shown = ", ".join(first[:6]) + (", …" if len(first) > 6 else "")
    do = "pass header=True (--read header=yes) or header=False (--read header=no)"
    return ValueError(f"the first row of {path} ({shown}) may be a header or {other}; {do}.")


def _is_alike(cell: str, column: list[str]) -> bool:
    """Return whether a text occurs below, or differs from one below in digits alone (p0, p1)."""
    forms = [re.sub(r"\d+", "9", text) for text in (cell, *column)]
    return cell in column or (forms[0] != cell and forms[0] in forms[1:])


def _may_be_names(cells: list[str], columns: _Rows) -> bool:
    """Return whether numbers have other steps, digits or scales than those below them."""
    if min(map(len, columns)) < 2:
        return False
    values, below = [*map(number_of, cells)], [[*map(number_of, column)] for column in columns]
    if _step(values) not in {None, *map(_step, zip(*below, strict=False))}:
        return True
    return all(map(_has_fewer_digits, cells, columns)) or all(map(_is_far, values, below))


def _step(values: Sequence[float]) -> float | None:
    """Return the step between three or more evenly spaced numbers, None if it is uneven or 0."""
    steps = {round(b - a, 9) for a, b in pairwise(values)}
    return steps.pop() or None if len(values) > 2 and len(steps) == 1 else None


def _has_fewer_digits(cell: str, column: list[str]) -> bool:
    """Return whether a number has fewer digits after the point than nearly all below it."""
    digits = [len(re.split("[eE]", re.sub("^[^.,]*[.,]?", "", c))[0]) for c in (cell, *column)]
    return sum(d > digits[0] for d in digits) >= 0.95 * len(column)


def _is_far(value: float, column: list[float]) -> bool:
    """Return whether a number has another scale than a column: beyond three times its range."""
    low, high = min(column), max(column)
    return not low - 3 * (high - low) <= value <= high + 3 * (high - low)


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
