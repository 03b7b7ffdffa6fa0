"""How a source is read: which columns are features, what becomes of gaps, how text is written."""

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from heatsketch._checks import check_choice
from heatsketch.io.table import Names

MISSING = ("error", "drop", "median")  # what is done about missing numbers; "keep" leaves them NaN
TEXT_OPTIONS = ("sep", "decimal", "header")
_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "semicolon": ";", "comma": ","}


@dataclass(frozen=True)
class Reading:
    """The options of `read_table`, checked; see there."""

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
    strict: bool = True  # whether a column that looks numeric and is not is an error, or text

    def __post_init__(self) -> None:
        """Raise for a value that no option has, and for a column with two purposes."""
        for name in ("label", "ids", "features", "exclude"):
            object.__setattr__(self, name, _as_names(getattr(self, name), name))
        check_choice(self.missing, "missing", ("keep", *MISSING))
        check_choice(self.decimal, "decimal", (".", ","))
        for name in ("standardize", "header"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (name == "header" and value is None):
                raise TypeError(f"{name}={value!r}; pass True or False.")
        if self.key is not None and not isinstance(self.key, str):
            raise TypeError(f"key={self.key!r}; pass the name of an array.")
        if self.sep is not None:
            object.__setattr__(self, "sep", _as_separator(self.sep))
        twice = sorted(set(self.features) & set(self.others))
        if twice:
            raise ValueError(
                f"column {twice[0]!r} is named as a feature and as a label, an id or excluded; "
                "name it once."
            )

    @property
    def others(self) -> Names:
        """The columns that are said not to be features."""
        return self.label + self.ids + self.exclude

    @property
    def fills_gaps(self) -> bool:
        """Whether cells that hold no number count as missing."""
        return self.missing in ("drop", "median")

    def refuse_text_options(self, source: Any) -> None:
        """Raise if there are options for text that the source, which is not text, cannot follow."""
        for field in fields(self):
            if field.name in TEXT_OPTIONS and getattr(self, field.name) != field.default:
                raise ValueError(
                    f"{field.name}={getattr(self, field.name)!r} (--{field.name}) is for tables in "
                    f"text, but {source} is not one; leave it out."
                )

    def as_record(self) -> dict[str, Any]:
        """Return the options that are not the default ones, for `Reading(**record)`."""
        default = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != default[name]}


def _as_names(names: Any, option: str) -> Names:
    found = (names,) if isinstance(names, str) else tuple(names) if np.iterable(names) else None
    if found is None or not all(isinstance(name, str) for name in found):
        raise TypeError(f"{option}={names!r}; pass the name of a column, or a list of names.")
    return found


def _as_separator(sep: Any) -> str:
    found = _SEPARATORS.get(sep, sep) if isinstance(sep, str) else ""
    if len(found) != 1 or found in '"\r\n' or ord(found) > 127:
        raise ValueError(
            f"sep={sep!r} (--read sep={sep}) is not a separator; pass one character, 'tab' or "
            "'space'."
        )
    return str(found)
