"""Tables of numbers from files: `read_table`, blocks of rows, refinement of what was read.

Each format that can be read by blocks has a function `blocks`, which returns this record.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_finite, precision_of
from heatsketch._messages import name_rows
from heatsketch._random import data_hash
from heatsketch._words import did_you_mean
from heatsketch.estimators.table import TableEncoder
from heatsketch.io.files import check_budget, listed

Names = tuple[str, ...]

# Columns with these names, in upper or lower case, are not features even if they are numbers.
# pandas writes a row index to .csv under the empty name and to .parquet under the last one. A name
# that begins with "label_" is a label, too.
# Read again, that index is "Unnamed: 0" for pandas; R's row names are "rownames" or "...1".
ID_NAMES = ("id", "index", "_index", "", "__index_level_0__", "unnamed: 0", "rownames", "...1")
LABEL_NAMES = ("label", "labels", "target", "class")
# Columns with these names are labels if they hold few whole numbers, because features may have
# them, too.
_PERHAPS_LABELS = (
    *("outcome", "outcomes", "classes", "targets", "y", "cluster", "clusters", "leiden", "louvain"),
    *("species", "category", "group", "diagnosis", "survived"),
)

MISSING = ("error", "drop", "median")  # missing numbers; "keep" leaves them NaN
_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "semicolon": ";", "comma": ","}
_MAX_CATEGORIES = 50  # a text column with more distinct values is not used for colours
EXACT = 2.0**53  # from here on, float64 cannot tell neighbouring integers apart


@dataclass(frozen=True, eq=False)
class Table:
    """Points with names of the features, ids and labels.

    Attributes
    ----------
    values : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Points, float32 or float64; may be a read-only memory map.
    columns : tuple of str
        Names of the d features.
    extra : dict
        Ids and labels by name, each of shape (n_samples,), unchanged, in the order of the file.
    label : str or None
        The column of `extra` for colours.
    source : str
        Path, or name of a built-in data set.
    metadata : dict
        Record of how the values were made, empty if unknown.
    notes : tuple of str
        Choices and changes by reading: columns passed through, rows left out, gaps filled, columns
        standardised.
    learned : dict
        `refine.Learned`: medians, scales and an encoder for other rows of the same kind.
    mixed : dict or None
        Columns of all types while they are not encoded yet.
    passed_over : tuple of str
        Columns of `extra` that would be features if they were encoded.
    lists : tuple of str
        Columns of lists: first the one whose entries are the features, if there is one; the others
        are left out.
    names : dict
        Text and whole numbers without a repetition or gap that are no ids and labels, as in the
        file: they may name the points, and join them to another file that has them.

    See Also
    --------
    io.read_table : Read points, ids and labels from a file.
    io.write_table : Write an embedding with ids and labels.
    """

    values: Any
    columns: tuple[str, ...]
    extra: dict[str, Array]
    label: str | None
    source: str
    metadata: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    learned: dict[str, Any] = field(default_factory=dict)
    rows: Array | None = None  # their numbers in the source, where some were left out
    mixed: dict[str, Any] | None = None  # columns of all types, which are to be encoded
    passed_over: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    names: dict[str, Array] = field(default_factory=dict)

    def take(self, rows: Any) -> "Table":
        """Return the rows of a mask, a slice or an array of numbers."""
        extra = {name: column[rows] for name, column in self.extra.items()}
        names = {name: column[rows] for name, column in self.names.items()}
        numbers = None if self.rows is None else self.rows[rows]
        return replace(self, values=self.values[rows], extra=extra, rows=numbers, names=names)

    def named_extra(self, reserved: Container[str]) -> dict[str, Array]:
        """Return the ids and labels, renamed where the embedding has the same name."""
        named: dict[str, Array] = {}
        for name, column in self.extra.items():
            while name in reserved or name in named:
                name += "_input"
            named[name] = column
        return named


@dataclass(frozen=True)
class Reading:
    """The checked options of `read_table`; see there."""

    label: Any = ()
    ids: Any = ()
    key: str | None = None
    features: Any = ()
    exclude: Any = ()
    missing: str = "keep"
    standardize: bool = False
    sep: str | None = None
    decimal: str = "."
    header: bool | None = None
    encode: bool = False
    texts: Names = ()  # columns whose words are categories even if they look like numbers
    strict: bool = True  # a column that looks numeric and is not: an error, else text

    def __post_init__(self) -> None:
        """Raise for a value that is not allowed."""
        for option in ("label", "ids", "features", "exclude"):
            value = getattr(self, option)
            names = (value,) if isinstance(value, str) or not np.iterable(value) else tuple(value)
            if not all(isinstance(name, str) for name in names):
                raise TypeError(f"{option}={value!r}; pass the name of a column, or several.")
            object.__setattr__(self, option, tuple(dict.fromkeys(names)))  # each once
        for name in self.features:
            if name in self.exclude:
                given = f"features and exclude (--features and --exclude) both name {name!r}"
                raise ValueError(f"{given}; leave it out of one of them.")
        check_choice(self.missing, "missing", ("keep", *MISSING))
        check_choice(self.decimal, "decimal", (".", ","))
        for option in ("standardize", "header", "encode"):
            value = getattr(self, option)
            if not isinstance(value, bool | None):
                raise TypeError(f"{option}={value!r}; pass True or False.")
        if self.encode and self.standardize:
            given = "standardize and encode are both given (--standardize and --encode)"
            raise ValueError(f"{given}; leave out standardize, for encode also scales columns.")
        if self.sep is not None:
            sep = _SEPARATORS.get(self.sep, self.sep)
            if not isinstance(sep, str) or not re.fullmatch(r'[^"\r\n\x80-\U0010ffff]', sep):
                given = f"sep={self.sep!r} (--read sep={self.sep})"
                raise ValueError(f"{given} is not a separator; pass a character, 'tab' or 'space'.")
            object.__setattr__(self, "sep", sep)

    @property
    def others(self) -> Names:
        """The columns that the user declared as labels, ids or excluded."""
        return self.label + self.ids + self.exclude

    @property
    def fills_gaps(self) -> bool:
        """Whether cells that hold no number count as missing."""
        return self.missing in ("drop", "median")

    def choose_label(self, extra: dict[str, Array]) -> str | None:
        """Return the first column with the name of a label, else of text with few values.

        Text that differs from row to row, which may be names of the points, is the last choice.
        """
        names = [n for n in extra if n not in (*self.ids, *self.exclude) and not is_id(n)]
        if named := [name for name in names if is_label(name)]:
            return named[0]
        if coded := coded_labels({name: extra[name] for name in names}):
            return coded[0]
        texts = [name for name in names if extra[name].dtype.kind in "OU"]
        values = {name: len(set(extra[name].tolist())) for name in texts}
        few = [name for name in texts if values[name] <= _MAX_CATEGORIES]
        return min(few, key=lambda name: values[name] == len(extra[name]), default=None)

    def choose_array(self, shapes: dict[str, tuple[int, ...]], source: Any) -> str:
        """Return the array that holds the points: `key`, X, embedding or the only table."""
        if self.key is not None:
            check_names([self.key], shapes, source, "array")
            return self.key
        tables = [name for name, shape in shapes.items() if len(shape) == 2]
        named = [name for name in ("X", "embedding") if name in shapes]
        if not named and len(tables) != 1:
            contents = listed(tables or [f"{name} {shape}" for name, shape in shapes.items()])
            what = f"{contents}, none of them called X or embedding"
            raise ValueError(f"{source} holds {what}; choose one by key (--read key=NAME).")
        return (named or tables)[0]

    def refuse_key(self, source: Any) -> None:
        """Raise if a key is given, for a source with a single array."""
        if self.key is not None:
            given = f"key={self.key!r} (--read key={self.key})"
            raise ValueError(f"{source} is a single table; leave out {given}.")

    def as_record(self) -> dict[str, Any]:
        """Return the options that differ from the defaults, for `Reading(**record)`."""
        return {name: x for name, x in vars(self).items() if x != getattr(Reading, name)}


def is_id(name: str) -> bool:
    """Return whether a column of this name is an id."""
    return name.strip().lower() in ID_NAMES


def are_row_numbers(ids: list[str]) -> bool:
    """Return whether ids are the numbers of rows, from 0 or 1."""
    return ids in ([str(row) for row in range(k, k + len(ids))] for k in (0, 1))


def is_label(name: str) -> bool:
    """Return whether a column of this name is a label."""
    name = name.strip().lower()
    return name in LABEL_NAMES or name.startswith("label_")


def coded_labels(columns: dict[str, Array]) -> list[str]:
    """Return the columns (n,) of few whole numbers under names that labels often have.

    A column y beside x is a coordinate.
    """
    found = []
    for name, column in columns.items():
        if name.strip().lower() not in _PERHAPS_LABELS or column.dtype.kind not in "biuf":
            continue
        numbers = np.unique(column[column == column])
        few = len(numbers) <= min(_MAX_CATEGORIES, len(column) / 2)
        if few and (numbers == np.round(numbers)).all():
            found.append(name)
    return [name for name in found if not (name in ("y", "Y") and {*columns} & {"x", "X"})]


def default_names(values: Any) -> Names:
    """Return names x0, x1, … for features (n, d) that have none."""
    return tuple(f"x{j}" for j in range(values.shape[1]))


def entry_names(column: str, d: int) -> Names:
    """Return names for the d entries of the lists in a column: vector[0], vector[1], …"""
    return tuple(f"{column}[{j}]" for j in range(d))


def column_of_entries(names: Names) -> str:
    """Return the column of lists whose entries have these names, "" if there is none."""
    column = names[0].removesuffix("[0]") if names else ""
    return column if names == entry_names(column, len(names)) else ""


def column_with(entry: str, columns: Mapping[str, Any]) -> str | None:
    """Return the name of the first column (n,) that has an entry, as text; None without one."""
    return next((name for name, x in columns.items() if entry in map(str, x)), None)


def check_names(
    names: Iterable[str], known: Iterable[Any], source: Any, what: str = "column", most: int = 20
) -> None:
    """Raise for the first name that is not known; the message suggests a similar one.

    It lists `most` of the known ones.
    """
    known = dict.fromkeys(str(name) for name in known)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(
                f"{source} has no {what} {name!r}; choose from {listed(known, most)}{hint}"
            )


def refuse_repeated(names: Sequence[str], source: Any) -> None:
    """Raise if two columns have the same name."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        what = f"columns with the same name: {listed(repeated)}"
        raise ValueError(f"{source} has {what}; rename them.")


def as_float(values: Any, what: Any, path: Path | None = None) -> Any:
    """Return an array or sparse matrix as native float32 if it is that or float16, else as float64.

    Every index of a sparse one is checked before it is used. It becomes CSR, if the file at `path`
    is not much smaller.
    """
    values = values if sparse.issparse(values) else np.asarray(values)
    if values.ndim != 2:
        raise ValueError(f"{what} has shape {values.shape}; pass an array (points, features).")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{what} has dtype {values.dtype}; pass real numbers.")
    if not sparse.issparse(values):
        return np.asarray(values, dtype=precision_of(values))
    if path is not None:
        # A small file may claim any number of empty columns (csc: rows), without space in it.
        shape = f"its {values.shape[0]} × {values.shape[1]} matrix"
        check_budget(64 * sum(values.shape), path.stat().st_size, shape)
    if hasattr(values, "check_format"):
        values.check_format(full_check=True)
    # Entries of coo that repeat are added as floats, for small integers overflow.
    return sparse.csr_matrix(values.astype(precision_of(values), copy=False))


def refuse_merged(name: str, numbers: Array, cells: Any, place: Callable[[int], str]) -> None:
    """Raise for an integer among the cells that float64 (numbers) cannot tell from the next one."""
    for row in np.flatnonzero(np.abs(numbers) >= EXACT).tolist():
        if re.fullmatch(r"\s*[-+]?[0-9]+\s*", str(cells[row])):
            raise ValueError(
                f"column {name!r} holds {cells[row]} in {place(row)}, which float64 does not tell "
                f"from the next integer; an id? pass ids={name!r} (--id {name}), or exclude it "
                f"(--exclude {name})."
            )


_TOLD = 30  # columns in a note
_FEW = 100  # entries that are looked at first

# Features, medians and scales of a table, for other rows of the same kind: "columns" (names of the
# features), "medians" (d,), which fill gaps if this was requested, "mean" and "scale" (d,) of
# columns that were standardised (sparse ones keep their mean: 0), and the "encoder" that makes the
# d numbers of columns of all types. Files of models hold it with the "suffix" of the source and the
# "options" of reading it.
Learned = dict[str, Any]


def refined(
    table: Table, how: Reading, given: Learned | None = None, *, first_row: int | None = None
) -> Table:
    """Return the table with the requested features, without gaps, and standardised, as requested.

    Medians, means and scales come from `given`, those of another table, if given. For a block of a
    larger table `first_row` is the number of its first row, and it may lose all rows.
    """
    learned = given or {}
    if "encoder" in table.learned:  # a block of encoded rows
        learned = learned | table.learned
    else:
        names = _names_in(table) if first_row is None else {}
        table = replace(_with_features(table, how), names=names)
        learned = learned | {"columns": table.columns}
        table = in_numbers(table, learned, first_row or 0) if how.encode else table
    values, is_sparse = table.values, sparse.issparse(table.values)
    if given is None and how.missing == "median" and not is_sparse:
        empty = np.flatnonzero(np.isnan(values).all(axis=0))
        if len(empty):
            what = f"column {table.columns[empty[0]]!r} of {table.source} holds no number"
            raise ValueError(f"{what}, so that there is no median; exclude it (--exclude).")
        encoder = learned.get("encoder")
        learned["medians"] = (
            np.nanmedian(values, axis=0) if encoder is None else encoder._middle(values)
        )
    if how.missing != "keep":
        n = values.shape[0]
        table = _without_gaps(table, how, learned.get("medians"), first_row or 0)
        values = table.values
        if not values.shape[0] and first_row is None:
            if not n:
                raise ValueError(f"{table.source} has no rows; pass a table with some.")
            what = f"every row of {table.source} has a gap"
            raise ValueError(f"{what}; pass missing='median' (--missing median).")
    if given is None and how.standardize:
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler(with_mean=not is_sparse).fit(_with_sorted_columns(values))
        learned |= {"mean": 0.0 if is_sparse else scaler.mean_, "scale": scaler.scale_}
    if "scale" in learned:  # constant columns become 0; sparse ones are not centred
        mean, scale = learned["mean"], learned["scale"]
        if is_sparse and np.any(mean):
            what = f"{table.source} is sparse, but its columns are to be centred as in the fit"
            raise ValueError(f"{what}; store it as a dense array.")
        scaled = values.multiply(1 / scale).tocsr() if is_sparse else (values - mean) / scale
        values = scaled.astype(values.dtype, copy=False)
        table = replace(table, values=values, notes=(*table.notes, "columns standardised"))
    return replace(table, learned=learned)


def _names_in(table: Table) -> dict[str, Array]:
    """Return the features that may name the points: text and whole numbers that never repeat."""
    columns, values = table.mixed, table.values
    if columns is None:
        if sparse.issparse(values) or table.columns == default_names(values):
            return {}
        columns = dict(zip(table.columns, values.T, strict=True))
    found = {}
    for name, column in columns.items():
        # Most columns repeat one of their first entries.
        if _distinct(column[:_FEW]) is not None and (entries := _distinct(column)) is not None:
            found[name] = entries
    return found


def _distinct(column: Any) -> Array | None:
    """Return entries of a column, text or whole numbers; None if one is missing or repeats."""
    if isinstance(column, np.ndarray):
        entries = whole_numbers(column)
        may_name = entries.dtype.kind == "i"
    else:  # of Arrow
        entries = np.array(column.to_pylist(), dtype=object)
        may_name = all(isinstance(entry, str) for entry in entries)
    return entries if may_name and len({*entries}) == len(entries) else None


def whole_numbers(column: Array) -> Array:
    """Return numbers (n,) as integers if they are."""
    exact = np.isfinite(column) & (np.abs(column) < EXACT)
    is_whole = exact.all() and (column == np.round(column)).all()
    return column.astype(np.int64) if is_whole else column


def _with_sorted_columns(values: Any) -> Any:
    """Return points with each column sorted, so that sums do not depend on the order of rows."""
    if not sparse.issparse(values):
        return np.sort(values, axis=0)
    columns = values.tocsc(copy=True)
    columns.sum_duplicates()
    place = np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))
    columns.data = columns.data[np.lexsort((columns.data, place))]
    return columns


def _with_features(table: Table, how: Reading) -> Table:
    """Return the table with the requested features."""
    vectors = column_of_entries(how.features)
    if vectors and table.columns == default_names(table.values):
        what = f"{table.source} has no names of columns, but the features are entries of lists"
        raise ValueError(f"{what}; write lists in a column {vectors!r} of a .parquet file.")
    check_names(how.features, [*table.columns, *table.lists], table.source)
    check_names(how.exclude, [*table.columns, *table.extra, *table.lists], table.source)
    columns = how.features or tuple(name for name in table.columns if name not in how.exclude)
    if not columns:
        raise ValueError(f"all columns of {table.source} are excluded; leave one as a feature.")
    # Readers of named columns have chosen already.
    if columns == table.columns or columns == table.lists[:1]:
        return table
    position = {name: j for j, name in enumerate(table.columns)}
    values = table.values[:, [position[name] for name in columns]]
    return replace(table, values=values, columns=columns)


@contextmanager
def encoding(source: str, first_row: int = 0) -> Iterator[None]:
    """Name the file in errors of the encoder; rows of a block are counted from `first_row` on."""
    try:
        yield
    except (TypeError, ValueError) as error:
        where = f"{source}, from row {first_row} on" if first_row else source
        raise ValueError(f"{where}: {error}") from error


def in_numbers(table: Table, learned: Learned, first_row: int = 0) -> Table:
    """Return the table with the numbers that columns of all types become, by the encoder learned.

    If there is none, the table makes one, which is put there.
    """
    columns = table.mixed
    if columns is None:
        if sparse.issparse(table.values):
            what = f"{table.source} is sparse; leave out encode=True (--encode)"
            raise ValueError(f"{what}, or store it as a dense array.")
        columns = dict(zip(table.columns, table.values.T, strict=True))
    with encoding(table.source, first_row):
        if "encoder" not in learned:
            learned["encoder"] = TableEncoder().fit(columns)
        encoder = learned["encoder"]
        values = encoder.transform(columns)
    names = tuple(encoder.get_feature_names_out())
    told = {n: one for n, one in encoder.columns_.items() if one.why}
    without = [f"{n} ({one.why})" for n, one in told.items() if one.kind == "left out"]
    note = f"{len(names)} features of {len(columns) - len(without)} columns"
    note += f"; left out: {listed(without, _TOLD)}" if without else ""
    odd = [f"{n} ({one.why})" for n, one in told.items() if one.kind != "left out"]
    note += f"; categories: {listed(odd, _TOLD)}" if odd else ""
    return replace(table, values=values, columns=names, notes=(*table.notes, note), mixed=None)


def in_units_of_source(table: Table) -> Any:
    """Return the values (n, d) as they were before they were standardised or encoded."""
    if "encoder" in table.learned:
        return table.learned["encoder"]._in_units(table.values)
    if "scale" not in table.learned or sparse.issparse(table.values):
        return table.values
    return table.values * table.learned["scale"] + table.learned["mean"]


def with_label(table: Table, how: Reading) -> Table:
    """Return the table with the label that the user named; raise if an id or label is no column."""
    lost = [name for name in how.label + how.ids if name not in table.extra]
    for name in lost:
        if name not in table.columns and Path(name).is_file():
            what = f"{name} is a file, but labels and ids are columns of {table.source}"
            do = "write its entries to a column, or in Python pass them to hs.report as labels"
            raise ValueError(f"{what}; {do}.")
    check_names(lost, [*table.extra, *table.columns], table.source, "id or label column")
    if lost:
        what = f"column {lost[0]!r} of {table.source} is a feature, and no id or label"
        raise ValueError(f"{what}; choose from {listed(table.extra)}.")
    return replace(table, label=how.label[0]) if how.label else table


def rows_with_gaps(values: Any) -> Array:
    """Return for each row whether a number is missing, (n,)."""
    return np.asarray((values != values).sum(axis=1)).ravel() > 0  # NaN differs from itself


def note_of_gaps(missing: str, rows: Array, n: int, count: int | None = None) -> str:
    """Return a note about gaps in `rows` of n, which are all such rows or the first of `count`."""
    count = len(rows) if count is None else count
    where = name_rows(rows, count=count)
    if missing == "drop":
        return f"{count} of {n} rows left out, for they have gaps: {where}"
    return f"gaps filled with medians in {count} of {n} rows: {where}"


def _without_gaps(table: Table, how: Reading, medians: Array | None, first_row: int) -> Table:
    """Leave out the rows with gaps, fill them with medians, or raise for the first gap."""
    values, source = table.values, table.source
    gaps = rows_with_gaps(values) if how.fills_gaps else np.zeros(values.shape[0], dtype=bool)
    finite = values
    if gaps.any():  # infinities are refused
        finite = values.copy()
        numbers = finite.data if sparse.issparse(values) else finite
        numbers[np.isnan(numbers)] = 0
    remedy = (
        "for gaps pass missing='keep' (--missing keep), so that the nearest rows fill them, or "
        "median or drop"
    )
    is_dense = not sparse.issparse(values)
    if is_dense and np.isnan(np.max(finite, initial=0.0)) and np.isnan(finite).all(axis=1).any():
        remedy = "a row without any number has no place; pass missing='drop' (--missing drop)"
    if not table.lists or table.columns != entry_names(table.lists[0], len(table.columns)):
        remedy += "; or exclude it (--exclude)"
    if table.passed_over:
        others = f"columns of other types are passed over ({listed(table.passed_over, 5)})"
        remedy += f"; {others}, which encode=True (--encode) makes features of"
    check_finite(finite, f"from {source}", table.columns, remedy, first_row)
    if not gaps.any():
        return table
    note = note_of_gaps(how.missing, np.flatnonzero(gaps), len(gaps))
    table = replace(table, notes=(*table.notes, note))
    if how.missing == "drop":
        return replace(table.take(~gaps), rows=np.flatnonzero(~gaps))
    if sparse.issparse(values):
        raise ValueError(f"{source} is sparse and has gaps; pass missing='drop' (--missing drop).")
    if medians is None:
        what = f"{source} has gaps, but the model has no medians to fill them"
        raise ValueError(f"{what}; pass --missing drop, or make the model with --missing median.")
    empty = first_row + np.flatnonzero(np.isnan(values).all(axis=1))
    if len(empty):
        what = f"row(s) {name_rows(empty)} of {source} hold no number at all"
        raise ValueError(f"{what}; delete them, or pass missing='drop' (--missing drop).")
    filled = np.where(np.isnan(values), medians, values).astype(values.dtype)
    return replace(table, values=filled)


BLOCK_BYTES = 2**24  # read at a time


@dataclass(frozen=True, eq=False)
class Blocks:
    """A source of points; at most a few blocks of it are in memory."""

    n: int
    columns: Names
    dtype: np.dtype  # float32 or float64
    source: str
    read: Callable[[int], Iterator[Table]]  # tables of any sizes from a row on
    stored: int | None = None  # entries of all rows, if they are sparse
    notes: tuple[str, ...] = ()  # on the choice of features
    stamp: Callable[[], dict[str, Any]] = dict  # differs if the source has changed; JSON

    def tables(self, rows: int, start: int = 0) -> Iterator[Table]:
        """Yield tables of `rows` rows, the last of fewer, from the row `start` on."""
        pieces: list[Table] = []
        wanted = rows  # to complete a table
        for table in self.read(start):
            at, n = 0, table.values.shape[0]
            while at < n:
                pieces.append(table.take(slice(at, at + wanted)))
                at, wanted = at + wanted, max(0, wanted - (n - at))
                if not wanted:
                    yield joined(pieces)
                    pieces, wanted = [], rows
        if pieces:
            yield joined(pieces)


def of_array(X: Any) -> Blocks:
    """Return by blocks an array (n, d) that has slices, as in NumPy, zarr, h5py or dask."""
    n, d = X.shape
    block_rows, columns = rows_in(BLOCK_BYTES, d), default_names(X)

    def tables(start: int) -> Iterator[Table]:
        for at in range(start, n, block_rows):
            yield Table(as_float(X[at : at + block_rows], "X"), columns, {}, None, "X")

    def stamp() -> dict[str, Any]:
        rows = (0, (n - 1) // 2, n - 1)  # no other slice is read
        hashes = [data_hash(as_float(X[row : row + 1], "X")) for row in rows]
        return {"shape": [int(n), int(d)], "dtype": str(X.dtype), "sha256": hashes}

    return Blocks(n, columns, precision_of(X), "X", tables, stamp=stamp)


def of_parts(parts: list[Blocks], folder: Path) -> Blocks:
    """Return the points of several sources, one after the other."""
    first = parts[0]
    for part in parts:
        if (part.columns, part.dtype) != (first.columns, first.dtype):
            raise ValueError(
                f"{part.source} has {len(part.columns)} features of {part.dtype} but "
                f"{first.source} has {len(first.columns)} of {first.dtype}, or others by name; "
                "write all parts alike."
            )

    def tables(start: int) -> Iterator[Table]:
        for part in parts:
            if start < part.n:
                yield from part.read(start)
            start = max(0, start - part.n)

    def stamps() -> dict[str, Any]:
        return {Path(part.source).name: part.stamp() for part in parts}

    n = sum(part.n for part in parts)
    facts = first.columns, first.dtype, str(folder)
    return Blocks(n, *facts, tables, stamp=stamps, notes=first.notes)


def rows_in(size: int, d: int) -> int:
    """Return how many rows of d numbers take `size` bytes."""
    return max(1, size // (8 * max(1, d)))


def stamp(path: Path) -> dict[str, Any]:
    """Return the number of files and a hash of their names, sizes and times of change."""
    files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
    facts = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    return {"files": len(files), "sha256": hashlib.sha256(repr(facts).encode()).hexdigest()}


def joined(tables: list[Table]) -> Table:
    """Return the rows of several tables, one after the other."""
    if len(tables) == 1:
        return tables[0]
    extra = {name: np.concatenate([t.extra[name] for t in tables]) for name in tables[0].extra}
    values = [table.values for table in tables]
    whole = sparse.vstack(values, "csr") if sparse.issparse(values[0]) else np.concatenate(values)
    return replace(tables[0], values=whole, extra=extra)
