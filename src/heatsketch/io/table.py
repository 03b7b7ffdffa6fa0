"""The table that all formats read and write, the options of reading, the rules for columns."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch._validation import check_choice
from heatsketch._words import did_you_mean
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

    def take(self, rows: Any) -> "Table":
        """Return the rows of a mask, a slice or an array of numbers."""
        extra = {name: column[rows] for name, column in self.extra.items()}
        numbers = None if self.rows is None else self.rows[rows]
        return replace(self, values=self.values[rows], extra=extra, rows=numbers)

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


def float_type(dtype: Any) -> np.dtype:
    """Return float32 for float32 in any byte order, and float64 for all other types."""
    return np.dtype("f4" if np.dtype(dtype).newbyteorder("=") == np.float32 else "f8")


def as_float(values: Any, what: Any, path: Path | None = None) -> Any:
    """Return an array or sparse matrix as native float32 if it is float32, else as float64.

    Every index of a sparse one is checked before it is used. It becomes CSR, if the file at `path`
    is not much smaller.
    """
    values = values if sparse.issparse(values) else np.asarray(values)
    if values.ndim != 2:
        raise ValueError(f"{what} has shape {values.shape}; pass an array (points, features).")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{what} has dtype {values.dtype}; pass real numbers.")
    if not sparse.issparse(values):
        return np.asarray(values, dtype=float_type(values.dtype))
    if path is not None:
        # A small file may claim any number of empty columns (csc: rows), without space in it.
        shape = f"its {values.shape[0]} × {values.shape[1]} matrix"
        check_budget(64 * sum(values.shape), path.stat().st_size, shape)
    if hasattr(values, "check_format"):
        values.check_format(full_check=True)
    # Entries of coo that repeat are added as floats, for small integers overflow.
    return sparse.csr_matrix(values.astype(float_type(values.dtype), copy=False))


def refuse_merged(name: str, numbers: Array, cells: Any, place: Callable[[int], str]) -> None:
    """Raise for an integer among the cells that float64 (numbers) cannot tell from the next one."""
    for row in np.flatnonzero(np.abs(numbers) >= EXACT).tolist():
        if re.fullmatch(r"\s*[-+]?[0-9]+\s*", str(cells[row])):
            raise ValueError(
                f"column {name!r} holds {cells[row]} in {place(row)}, which float64 does not tell "
                f"from the next integer; an id? pass ids={name!r} (--id {name}), or exclude it "
                f"(--exclude {name})."
            )
