"""Columns of tables: what is a number, by one definition, and what becomes of each column.

Text, sheets and Parquet files become Arrow tables; `table_of` makes points of these.
"""

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.io.blocks import Blocks, stamp
from heatsketch.io.files import listed
from heatsketch.io.reading import Reading
from heatsketch.io.table import (
    EXACT,
    Names,
    Table,
    choose_label,
    is_id,
    is_label,
    merged_integer,
    named_extra,
    objects,
    refuse_repeated,
    require,
)

# A missing number, as spreadsheets, R, Python and pandas write it. These patterns are also those of
# Arrow, which knows no more than RE2.
MISSING = (
    r"^(|[nN][aA]|#?[nN]/[aA]|#NA|#N/A N/A|[-+]?[nN][aA][nN]|[nN][uU][lL][lL]|None|<NA>|NaT|"
    r"-?1[.]#(IND|QNAN))$"
)
NUMBER = r"^[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity))$"
_INTEGER = r"^\s*[+-]?[0-9]+\s*$"
_NOT_ONLY_NUMBERS = r"^[+-]?0[0-9]|^[+-]?[0-9]{17}|^\s*(?i:true|false)"  # 007, accounts, words
# Numbers in another notation: decimal commas, groups of three digits, a currency, per cent, a
# typographic minus. Dates and versions, which have several groups of other lengths, are not.
_SPACE = "['’_ \u00a0\u2009\u202f]"
_GROUPS = f"[0-9]{{1,3}}(([.][0-9]{{3}})+|(,[0-9]{{3}})+|({_SPACE}[0-9]{{3}})+)"
_BODY = f"(({_GROUPS}|[0-9]+)([.,][0-9]*)?|[.,][0-9]+)"
_OTHER_NOTATION = f"^[(]?[-+−–]? ?[$€£¥]? ?{_BODY}([eE][-+−]?[0-9]+)?{_SPACE}?[%‰$€£¥]?[)]?$"
_WITH_UNIT = f"^[-+−–]?{_BODY} [A-Za-zµμ°Ω%/²³]{{1,8}}$"

_NOT_A_NUMBER = (
    "the column looks numeric but this is not a number. Correct it; or count such cells as "
    "missing with missing='drop' or 'median' (--missing drop or median); or, if this is not a "
    "feature, name it with exclude, ids or label (--exclude, --id, --label)"
)

Place = Callable[[int], str]  # from the number of a row to words that say where it is


def is_number(cell: str, decimal: str = ".") -> bool:
    """Say whether a cell is a number with this decimal mark."""
    if decimal == ",":
        cell = cell.replace(".", "x").replace(",", ".")
    return re.match(NUMBER, cell) is not None


def is_missing(cell: str) -> bool:
    """Say whether a cell stands for a missing number."""
    return re.match(MISSING, cell) is not None


def table_of(
    table: Any,
    how: Reading,
    path: Path,
    place: Place,
    *,
    index: Names = (),
    is_text: bool = False,
    metadata: dict[str, Any] | None = None,
) -> Table:
    """Return the points of an Arrow table, with its other columns as ids and labels.

    Features are the columns asked for, or else those of numbers that are not said to be anything
    else. float32 if all are; gaps are NaN.

    Raises
    ------
    ValueError
        If there is no feature, or a column looks numeric and is not; the message names the place.
    """
    values, chosen, notes = features(table, how, path, place, index=index)
    extra = others(table, chosen, how, path, is_text=is_text)
    label = choose_label(extra, (*how.ids, *how.exclude, *index))
    found = Table(values, chosen, extra, label, str(path), metadata or {}, notes)
    warn_of_ids_and_labels(found, how)
    return found


def features(
    table: Any, how: Reading, path: Path, place: Place, *, index: Names = ()
) -> tuple[Array, Names, Names]:
    """Return the features (n, d), their names, and notes on cells that count as missing."""
    import pyarrow as pa

    names = table.column_names
    refuse_repeated(names, path)
    require(how.features + how.exclude, names, path)
    passed = {*how.others, *index}
    tried = how.features or [
        name for name in names if name not in passed and not is_id(name) and not is_label(name)
    ]
    columns, notes = {}, []
    for name in tried:
        try:
            column, note = _feature(table[name].combine_chunks(), name, how, place)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        if column is not None:
            columns[name] = column
            notes += [note] if note else []
    if not columns and not table.num_rows:
        raise ValueError(f"{path} has no rows below its header; pass a table with some.")
    if not columns:
        raise ValueError(
            f"{path} has no numeric column to use as a feature; its columns are {listed(names)}."
        )
    single = all(column.type == pa.float32() for column in columns.values())
    kind = pa.float32() if single else pa.float64()
    values = np.empty((table.num_rows, len(columns)), kind.to_pandas_dtype())
    for j, column in enumerate(columns.values()):
        values[:, j] = column.cast(kind, safe=False).to_numpy(zero_copy_only=False)
    return values, tuple(columns), tuple(notes)


def others(
    table: Any, chosen: Names, how: Reading, path: Path, *, is_text: bool = False
) -> dict[str, Array]:
    """Return the columns that are not features: numbers if they are, else objects."""
    extra = {}
    for name in [name for name in table.column_names if name not in set(chosen)]:
        if is_text:
            as_written = name in how.ids or is_id(name)
            extra[name] = _from_text(table[name].combine_chunks(), how.decimal, as_written)
        else:  # in chunks, of which none is beyond what Arrow's text holds
            extra[name] = _typed(table[name], f"{name} in {path}")
    return extra


def _feature(column: Any, name: str, how: Reading, place: Place) -> tuple[Any, str]:
    """Return a column of numbers and a note, or None in its place if it holds something else."""
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_floating(kind) or types.is_boolean(kind):
        return column, ""
    if types.is_integer(kind) or types.is_decimal(kind):
        _refuse_merged(column.cast(pa.float64(), safe=False), column, name, place)
        return column, ""
    if types.is_string(kind) or types.is_large_string(kind):
        found, text, is_numeric = _classified(column, how.decimal)
        if found is None:
            return _mostly_numbers(text, is_numeric, name, how, place)
        _refuse_merged(found, column, name, place)
        return found, ""
    if name in how.features:
        what = "nothing" if types.is_null(kind) else f"values of type {kind}"
        raise ValueError(f"column {name!r} holds {what}; name features that are numbers.")
    return None, ""


def numbers(column: Any, decimal: str) -> Any:
    """Return text as float64 with nulls for gaps; None unless all cells but gaps are numbers.

    Words true and false count as 1 and 0 if there are no others.
    """
    return _classified(column, decimal)[0]


def _classified(column: Any, decimal: str) -> tuple[Any, Any, Any]:
    """Return `numbers`, and if it is None the cells with null for gaps and which are numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if decimal == ".":  # Arrow reads a part of `NUMBER`, and of words for gaps NaN alone
        with suppress(pa.ArrowInvalid):
            found = pc.if_else(pc.equal(column, ""), None, column).cast(pa.float64())
            if not math.isnan(pc.sum(found).as_py() or 0) and found.null_count < len(found):
                return found, None, None
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    text = pc.if_else(pc.match_substring_regex(text, MISSING), None, text)
    plain = text if decimal == "." else pc.replace_substring(text, ",", ".")
    is_numeric = pc.match_substring_regex(plain, NUMBER)
    if decimal == ",":
        is_numeric = pc.and_not(is_numeric, pc.match_substring(text, "."))
    words = pc.utf8_lower(pc.drop_null(text))
    if not len(words):
        return None, text, is_numeric
    if pc.all(is_numeric).as_py():
        return _as_float(text, decimal), text, is_numeric
    if pc.all(pc.is_in(words, pa.array(["true", "false"]))).as_py():
        return pc.equal(pc.utf8_lower(text), "true").cast(pa.float64()), text, is_numeric
    return None, text, is_numeric


def _as_float(text: Any, decimal: str) -> Any:
    """Return cells that are numbers or null as float64; Arrow before 15 reads no plus."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(pc.replace_substring(text, decimal, "."), r"^\+", "").cast(
        "float64"
    )


def _mostly_numbers(
    text: Any, is_numeric: Any, name: str, how: Reading, place: Place
) -> tuple[Any, str]:
    """Return a text column with other cells as missing, and a note; None if the column is text.

    A column in which at least half of the cells, or of the different cells, are numbers must hold
    nothing else but gaps. A column that is asked for must, too.

    Raises
    ------
    ValueError
        If it holds other cells, unless they count as missing; numbers in other notation never do.
    """
    import pyarrow.compute as pc

    if not how.strict:
        return None, ""
    if name in how.features and text.null_count == len(text):
        raise ValueError(f"column {name!r} holds nothing; name features that are numbers.")
    other = pc.match_substring_regex(text, _OTHER_NOTATION)
    if name not in how.features and not _are_half(pc.or_(is_numeric, other), text):
        measured = pc.match_substring_regex(text, _WITH_UNIT)
        units = pc.unique(pc.replace_substring_regex(pc.drop_null(text), "^.* ", ""))
        if len(units) == 1 and pc.all(measured).as_py():
            raise _complaint(text, measured, name, place, _about_notation(text, measured, how))
        return None, ""
    bad = pc.and_(pc.invert(is_numeric), pc.is_valid(text))
    other = pc.and_(bad, other)
    if pc.any(other).as_py():
        raise _complaint(text, other, name, place, _about_notation(text, other, how))
    if not how.fills_gaps:
        raise _complaint(text, bad, name, place, _NOT_A_NUMBER)
    found = _as_float(pc.if_else(is_numeric, text, None), how.decimal)
    _refuse_merged(found, text, name, place)
    cells = pc.unique(pc.filter(text, bad)).to_pylist()
    shown = ", ".join(map(repr, cells[:3])) + (", …" if len(cells) > 3 else "")
    return found, f"{pc.sum(bad).as_py()} cells of {name!r} count as missing: {shown}"


def _are_half(chosen: Any, text: Any) -> bool:
    """Say whether the chosen cells are at least half of the cells, or of the different ones."""
    import pyarrow.compute as pc

    some, filled = pc.filter(text, chosen), pc.drop_null(text)
    if not len(some):
        return False
    return 2 * len(some) >= len(filled) or 2 * len(pc.unique(some)) >= len(pc.unique(filled))


def _refuse_merged(found: Any, column: Any, name: str, place: Place) -> None:
    """Raise for an integer so large that float64 cannot tell it from the next one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.min_max(found)
    if max(-(ends["min"].as_py() or 0), ends["max"].as_py() or 0) < EXACT:
        return
    large = pc.greater_equal(pc.abs(found), EXACT)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        large = pc.and_(large, pc.match_substring_regex(column, _INTEGER))
    row = pc.index(large, True).as_py()
    if row >= 0:
        raise ValueError(merged_integer(name, column[row].as_py(), f" in {place(row)}"))


def _complaint(text: Any, bad: Any, name: str, place: Place, remedy: str) -> ValueError:
    """Return the error about the first of the bad cells."""
    import pyarrow.compute as pc

    row, count = pc.index(bad, True).as_py(), pc.sum(bad).as_py()
    more = f" ({count} such cells)" if count > 1 else ""
    cell = text[row].as_py()[:80]
    return ValueError(f"column {name!r} holds {cell!r} in {place(row)}{more}; {remedy}.")


def _about_notation(text: Any, bad: Any, how: Reading) -> str:
    import pyarrow.compute as pc

    cell = text[pc.index(bad, True).as_py()].as_py()
    if cell.count(",") == 1 and "." not in cell and how.decimal == "." and cell[-1].isdigit():
        return (
            "if commas mark decimals, pass decimal=',' (--read decimal=,); if they separate "
            "thousands, "
            "remove them; if this is not a feature, name it with exclude (--exclude)"
        )
    return (
        f"write numbers with {how.decimal!r} for decimals and without signs for thousands, "
        "currencies, per cent or units, or pass exclude (--exclude) if this is not a feature"
    )


def _from_text(column: Any, decimal: str, as_written: bool) -> Array:
    """Return integers if they have the same text, else floats, or the text as written."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with suppress(pa.ArrowInvalid):
        integers = column.cast(pa.int64())
        if integers.cast(pa.string()).equals(column):
            return integers.to_numpy()  # type: ignore[no-any-return]
    found = None if as_written else numbers(column, decimal)
    if found is None or pc.any(pc.match_substring_regex(column, _NOT_ONLY_NUMBERS)).as_py():
        return objects(column.to_pylist())
    return found.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _typed(column: Any, what: str) -> Array:
    """Return an Arrow column as numbers if it holds some, else as objects with None for gaps."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_nested(column.type):
        raise ValueError(f"{what} has type {column.type}; store it in several columns or drop it.")
    whole = types.is_integer(column.type) or types.is_boolean(column.type)
    if (whole and not column.null_count) or types.is_floating(column.type):
        return column.to_numpy()  # type: ignore[no-any-return]
    return objects(column.to_pylist())


Batches = Callable[[int], Iterator[tuple[int, Any]]]  # from a row on, each with its first row


def numbered(batches: Iterable[Any], at: int = 0) -> Iterator[tuple[int, Any]]:
    """Yield Arrow batches that are not empty with the numbers of their first rows."""
    for batch in batches:
        if batch.num_rows:
            yield at, batch
        at += batch.num_rows


def blocks_of(
    batches: Batches, n: int, schema: Any, how: Reading, path: Path, *, index: Names = ()
) -> Blocks:
    """Return points by Arrow batches; the first batch decides which columns are features."""
    import pyarrow as pa

    first = [batch for _, batch in islice(batches(0), 1)]
    head = pa.Table.from_batches(first, schema)
    values, chosen, _ = features(head, how, path, "row {}".format, index=index)
    warn_of_ids_and_labels(Table(values, chosen, {}, None, str(path)), how)
    known = replace(how, features=chosen, exclude=())

    def tables(start: int) -> Iterator[Table]:
        for at, batch in batches(start):
            if at + batch.num_rows <= start:
                continue
            skipped = max(0, start - at)
            part, row = pa.Table.from_batches([batch.slice(skipped)]), at + skipped
            values, _, _ = features(part, known, path, partial(_later_row, row))
            yield Table(values, chosen, others(part, chosen, known, path), None, str(path))

    return Blocks(n, chosen, values.dtype, str(path), lambda: stamp(path), tables)


def _later_row(first: int, row: int) -> str:
    return f"row {first + row}"


def arrow_table(embedding: Array, names: Sequence[str], table: Table) -> Any:
    """Return the ids and labels of a table, and after them the coordinates, as an Arrow table."""
    import pyarrow as pa

    columns = {}
    for name, column in named_extra(table, names).items():
        try:
            columns[name] = pa.array(column.tolist() if column.dtype.hasobject else column)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # items of several types
            columns[name] = pa.array([None if item is None else str(item) for item in column])
    return pa.table(columns | {name: pa.array(embedding[:, j]) for j, name in enumerate(names)})


# Features that may be something else

_LOOKED_AT = 2000  # rows
_FEWEST_ROWS = 10  # in fewer, numbers follow each other by chance
_FEW_VALUES = 20
_LIKE_ID = re.compile(r"[\W_](id|ID|Id)$|[a-z](ID|Id)$")  # patient_id, patientId
_LIKE_LABEL = re.compile(
    r"(^|[\W_])(labels?|targets?|class|classes|outcomes?|clusters?|response|diagnosis|survived|"
    r"species)($|[\W_])",
    re.IGNORECASE,
)
_PERHAPS_LABEL = ("y", "group", "category", "type")  # if they hold few values; y may be a place


def warn_of_ids_and_labels(table: Table, how: Reading) -> None:
    """Warn of features that look like ids or labels, unless the features are asked for."""
    if how.features or not how.strict or len(table.values) < _FEWEST_ROWS:
        return
    columns = dict(zip(table.columns, table.values.T, strict=True))
    ids = [name for name, column in columns.items() if _looks_like_id(name, column)]
    few = {name for name, column in columns.items() if _has_few_values(column)}
    if 2 * len(few) > len(columns):  # such are the data: counts, answers, pixels
        few = {name for name in few if name.lower() in _PERHAPS_LABEL}
    labels = [name for name in columns if name in few or _LIKE_LABEL.search(name)]
    found = {
        ("ids", "ids (--id)"): ids,
        ("labels", "label (--label)"): [name for name in labels if name not in ids],
    }
    for (kind, option), names in found.items():
        if names:
            warnings.warn(
                f"{table.source}: the features {listed(map(repr, names), 5)} may be {kind}; if "
                f"so, name them with {option}, or exclude (--exclude); if not, with features "
                "(--features).",
                stacklevel=6,
            )


def _looks_like_id(name: str, column: Array) -> bool:
    """Say whether a column counts the rows, or has the name of an id and no number twice."""
    steps = np.diff(column[:_LOOKED_AT])
    counts = steps[0] != 0 and (steps == steps[0]).all()
    if not (counts or _LIKE_ID.search(name)) or not (column == np.floor(column)).all():
        return False
    return bool(counts or len(np.unique(column)) == len(column))


def _has_few_values(column: Array) -> bool:
    """Say whether a column holds two or some more whole numbers, each many times."""
    seen = column[:_LOOKED_AT]
    seen = seen[~np.isnan(seen)]
    values = np.unique(seen)
    few = 2 <= len(values) <= min(_FEW_VALUES, len(seen) // 5)
    return few and bool((values == np.floor(values)).all())
