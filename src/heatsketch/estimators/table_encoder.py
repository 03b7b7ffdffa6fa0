"""From a table of mixed columns to numbers whose Euclidean distances make sense."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from heatsketch._state import at_once
from heatsketch._typing import Array
from heatsketch._validation import check_choice, check_number
from heatsketch._words import did_you_mean
from heatsketch.estimators.table_columns import KINDS, Column, fitted_column
from heatsketch.estimators.table_frames import Frame, read_table

_MOST_SHOWN = 5  # names in a message


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table of mixed columns as numbers whose Euclidean distances make sense.

    Each column counts alike, whatever its type: the mean squared distance of two rows in it is 2.
    So the squared distance of two rows is a sum over columns, as in Gower's coefficient [1]_, but
    every method for points can use it. A column becomes

    - "number": (x - mean) / standard deviation. Numbers, and spans of time.
    - "rank": the same of its place among the values of the fit. For numbers of which few are very
      large, such as prices; only where `columns` says so.
    - "boolean": the same of 0 and 1.
    - "date": the same of the time in UTC. Dates, and text in which all is dates such as 2024-03-01
      or 2024-03-01T19:00:00+01:00.
    - "ordered": the same of its place in the order. Ordered categories of pandas and Arrow, and
      columns for which `columns` has an order, or says so: then in the order that pandas and an
      Enum of polars declare, else sorted.
    - "category": a number for each category, 1 / √(1 - Σ p²) in the own one and 0 in the others,
      where p are the shares of the categories. All different categories are equally far. Text,
      other objects that compare, and categories without order. Rare categories share one number.
      A new category counts as rare, or has 0 everywhere.
    - "left out": columns without a value, with a single one, and names, whose values are all rare.

    Missing entries (NaN, None, NaT, NA, empty text) stay NaN, in all numbers of their column.
    Shares, means and deviations are those of the entries that are there.

    Parameters
    ----------
    columns : dict or None, default=None
        What columns become, by name (for an array x0, x1, ...), if not what their type says: a
        kind, or a list of categories in their order.
    min_frequency : float or int, default=0.01
        Categories with fewer rows are pooled: a fraction of the rows, or from 1 on their number.
        A category with a single row is always rare.

    Attributes
    ----------
    columns_ : dict
        For each column what it became: `kind`, `describe()`, `categories`, `mean`, `scale`.
    n_features_in_ : int
        Number of columns seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns. Defined only if X has names that are all strings.

    See Also
    --------
    HeatEmbedding : Embed data in few dimensions that keep diffusion distances.
    io.read_table : Read points from a file; ``encode=True`` reads columns of all types this way.

    Notes
    -----
    narwhals reads frames and columns. The cost is one pass over the table.

    References
    ----------
    .. [1] J. C. Gower, "A general coefficient of similarity and some of its properties",
       Biometrics 27 (1971), 857-871.

    Examples
    --------
    >>> import heatsketch as hs
    >>> table = {"size": [1.0, 2.0, 4.0, None], "colour": ["red", "red", "blue", "blue"]}
    >>> encoder = hs.TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'colour=blue', 'colour=red']
    >>> encoder.transform(table).round(2).tolist()[0]
    [-1.07, 0.0, 1.41]
    >>> print(encoder.describe())
    size: number; colour: 2 categories (blue, red)
    """

    columns: Any = None
    _: KW_ONLY
    min_frequency: float | int = 0.01

    @at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose what each column becomes.

        Parameters
        ----------
        X : data frame, Arrow table, dict or array-like of shape (n_samples, n_columns)
            The table: of pandas, polars or Arrow, a dict of columns, or an array.
        y : ignored
            Present for the interface of scikit-learn.

        Returns
        -------
        self
            The fitted encoder.

        Raises
        ------
        ValueError, TypeError
            Not a table, or no column with two different values; a column of several types, with
            infinity or with objects; dates that microseconds do not hold; parameters out of range,
            or that name no column, or ask for a kind that a column is not.
        """
        table, kind = self._read(X, reset=True)
        self._frame = Frame.of(kind, table)
        self._fit_parts([table], self._asked(table))
        return self

    def _fit_parts(self, parts: Iterable[Mapping[Any, Any]], asked: Mapping[Any, Any]) -> None:
        """Choose what columns become that come in parts: dicts of whole columns."""
        least, found = check_number(self.min_frequency, "min_frequency", low=0), {}
        for part in parts:
            n = len(next(iter(part.values())))
            count = max(2, math.ceil(least if least >= 1 else round(least * n, 9)))
            for name, column in part.items():
                found[name] = fitted_column(name, column, asked.get(name), count)
        if {column.kind for column in found.values()} == {"left out"}:
            reasons = [f"{name}: {column.why}" for name, column in found.items()][:_MOST_SHOWN]
            raise ValueError(
                f"X has no column with two different values that count ({'; '.join(reasons)}); "
                "pass more rows, or a smaller min_frequency."
            )
        self.columns_: dict[Any, Column] = found

    @classmethod
    def _of_parts(cls, parts: Iterable[Mapping[Any, Any]]) -> Self:
        """Return an encoder fitted to a dict of columns that comes in parts, to save memory."""
        encoder = cls()
        encoder._frame = Frame("dict")
        encoder._fit_parts(parts, {})
        encoder.n_features_in_ = len(encoder.columns_)
        encoder._set_names(list(encoder.columns_))
        return encoder

    def transform(self, X: Any) -> Array:
        """Encode rows, old or new; the numbers of a row depend on that row alone.

        Parameters
        ----------
        X : data frame, Arrow table, dict or array-like of shape (n_new_samples, n_columns)
            A table with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_new_samples, n_features_out)
            The numbers, NaN for missing entries.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; other columns, or a column of another type; a category that is not in the
            order of an ordered column.
        """
        check_is_fitted(self)
        table, _ = self._read(X, reset=False)
        columns = self.columns_.items()
        blocks = [column.read(table[name]) for name, column in columns if column.kind != "left out"]
        return np.hstack(blocks)

    def inverse_transform(self, X: Any) -> Any:
        """Return the table of rows of numbers, each value the nearest that there is.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features_out)
            Numbers as `transform` returns them, or between them, such as means. The columns of a
            frame with the names of `get_feature_names_out` may be in any order.

        Returns
        -------
        data frame, Arrow table, dict or ndarray
            A table of the kind of the fit (of a frame of another library than pandas, polars and
            Arrow a dict of arrays), whose columns have the types that they had. A column keeps
            another type where its own does not hold missing entries, and dates that were read from
            text stay dates. Missing is also a category that was rare. Columns that were left out
            have no inverse: a frame lacks them, and an array has missing entries there.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; not a table of numbers of as many columns as `transform` returns.
        """
        check_is_fitted(self)
        names = [*self.get_feature_names_out()]
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame) and sorted(map(str, frame.columns)) == sorted(names):
            X = frame.select(*names).to_numpy()  # in any order
        X = check_array(X, dtype=float, ensure_all_finite="allow-nan")
        width = len(names)
        if X.shape[1] != width:
            raise ValueError(
                f"X has {X.shape[1]} columns, but {width} are expected; pass numbers as transform "
                "returns them."
            )
        pairs = zip(self.columns_.items(), self._blocks(X), strict=True)
        found = {name: column.values(x) for (name, column), x in pairs if column.kind != "left out"}
        return self._frame.made(found, list(self.columns_))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the numbers: that of the column, or column=category.

        Parameters
        ----------
        input_features : array-like of str, default=None
            The names of the columns, which are known; others are an error.

        Returns
        -------
        ndarray of shape (n_features_out,)
            The names.

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; names that are not those of the fit.
        """
        check_is_fitted(self)
        names = [str(name) for name in self.columns_]
        if input_features is not None and list(input_features) != names:
            raise ValueError(
                f"input_features is not equal to feature_names_in_: {names[:_MOST_SHOWN]}; leave "
                "it out."
            )
        found = [name for column in self.columns_.values() for name in column.names]
        used = Counter(found)
        for place, name in enumerate(found):
            number = 1
            while used[found[place]] > 1:  # a=b of the column a, and a column a=b
                used[found[place]] -= 1
                number += 1
                found[place] = f"{name} ({number})"
                used[found[place]] += 1
        return np.array(found, object)

    def describe(self) -> str:
        """Say in a line what each column became.

        Returns
        -------
        str
            Columns and kinds.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        check_is_fitted(self)
        return "; ".join(f"{name}: {one.describe()}" for name, one in self.columns_.items())

    @property
    def _texts(self) -> tuple[Any, ...]:
        """The columns that hold text."""
        return tuple(name for name, column in self.columns_.items() if column.dtype == "O")

    def _middle(self, numbers: Array) -> Array:
        """Return the median, or the most frequent category, of each column, as numbers."""
        parts = [(c, x) for c, x in zip(self.columns_.values(), self._blocks(numbers), strict=True)]
        return np.concatenate([c.middle(x) for c, x in parts if c.kind != "left out"])

    def _blocks(self, numbers: Array) -> list[Array]:
        """Return the numbers of each column."""
        ends = np.cumsum([len(column.names) for column in self.columns_.values()])
        return np.split(numbers, ends[:-1], axis=1)

    def _asked(self, table: dict[Any, Any]) -> dict[Any, Any]:
        """Return what the user asks columns to become, checked."""
        asked = {} if self.columns is None else self.columns
        if not isinstance(asked, Mapping):
            raise TypeError(
                f"columns={asked!r} is of type {type(asked).__name__}; pass a dict such as "
                "{'size': ['S', 'M', 'L'], 'code': 'category'}."
            )
        for name, kind in asked.items():
            if name not in table:
                hint = did_you_mean(name, [*map(str, table)])
                raise ValueError(
                    f"columns names {name!r}, which X does not have; pass names of columns{hint}"
                )
            if isinstance(kind, str):
                check_choice(kind, f"columns[{name!r}]", KINDS)
            elif not (isinstance(kind, Sequence) or hasattr(kind, "__array__")) or len(kind) < 2:
                raise ValueError(
                    f"columns[{name!r}]={kind!r}; pass a kind, or two or more different categories "
                    "in their order."
                )
        return dict(asked)

    def _read(self, X: Any, reset: bool) -> tuple[dict[Any, Any], str]:
        """Return the columns by name, and what X is; with `reset` the encoder gets the names."""
        table, kind = read_table(X)
        shown = ", ".join(map(str, [*table][:_MOST_SHOWN]))
        if not table:
            raise ValueError("X has 0 feature(s); pass a table with columns.")
        if not reset and (kind == "array") != (self._frame.library == "array"):
            fitted = ", ".join(map(str, [*self.columns_][:_MOST_SHOWN]))
            raise ValueError(
                f"X is an array, but the fit had a table with the columns {fitted}; pass a table."
                if kind == "array"
                else f"X is a table with the columns {shown}, but the fit had an array; pass an "
                "array, such as X.to_numpy()."
            )
        if kind == "dict":
            if reset:
                self.n_features_in_ = len(table)
                self._set_names(list(table))
        else:
            given = np.empty((1, len(table))) if kind == "array" else X
            validate_data(self, given, reset=reset, skip_check_array=True)
        missing = [] if reset else [name for name in self.columns_ if name not in table]
        if missing:
            raise ValueError(
                f"X has no column {missing[0]!r}, which the fit had, but {shown}; pass it."
            )
        n = len(next(iter(table.values())))
        if n < 1 + reset:
            raise ValueError(f"X has n_samples={n} rows; pass at least {1 + reset}.")
        return table, kind

    def _set_names(self, names: list[Any]) -> None:
        if all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        """Describe the encoder to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
