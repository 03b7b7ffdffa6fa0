"""From a table of mixed columns to numbers whose Euclidean distances make sense."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from heatsketch._state import at_once
from heatsketch._typing import Array
from heatsketch._validation import check_choice, check_number, read_array
from heatsketch._words import did_you_mean
from heatsketch.estimators.table_columns import (
    KINDS,
    Column,
    columns_of,
    fitted_column,
    read_column,
)
from heatsketch.estimators.table_frames import Frame

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
    - "date": the same of the time. Dates, and text in which all is dates such as 2024-03-01.
    - "ordered": the same of its place in the order. Ordered categories of pandas and Arrow, and
      columns for which `columns` has an order.
    - "category": a number for each category, 1 / √(1 - Σ p²) in the own one and 0 in the others,
      where p are the shares of the categories. All different categories are equally far. Text, and
      categories without order. Rare categories share one number. A new category counts as rare, or
      has 0 everywhere.
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
    Categories are encoded by scikit-learn's `OneHotEncoder` and `OrdinalEncoder`. The cost is one
    pass over the table.

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
            infinity or with objects; parameters out of range, or that name no column.
        """
        table = self._read(X, reset=True)
        self._frame = Frame.of(X, table)
        self._fit_parts([table], self._asked(table))
        return self

    def _fit_parts(self, parts: Iterable[Mapping[Any, Any]], asked: Mapping[Any, Any]) -> None:
        """Choose what columns become that come in parts: dicts of whole columns."""
        least, found = check_number(self.min_frequency, "min_frequency", low=0), {}
        for part in parts:
            n = len(next(iter(part.values())))
            count = max(2, math.ceil(least if least >= 1 else least * n))
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
        table = self._read(X, reset=False)
        blocks = [
            column.numbers(*read_column(table[name], name, as_text=column.dtype == "O")[:2])
            for name, column in self.columns_.items()
            if column.kind != "left out"
        ]
        return np.hstack(blocks)

    def inverse_transform(self, X: Any) -> Any:
        """Return the table of rows of numbers, each value the nearest that there is.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features_out)
            Numbers as `transform` returns them, or between them, such as means.

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
        X = check_array(X, dtype=float, ensure_all_finite="allow-nan")
        width = len(self.get_feature_names_out())
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
        return np.array([n for column in self.columns_.values() for n in column.names], object)

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
            elif not np.iterable(kind) or len(set(kind)) < max(2, len(list(kind))):
                raise ValueError(
                    f"columns[{name!r}]={kind!r}; pass a kind, or two or more different categories "
                    "in their order."
                )
        return dict(asked)

    def _read(self, X: Any, reset: bool) -> dict[Any, Any]:
        """Return the columns by name; with `reset` the encoder gets their number and names."""
        if isinstance(X, Mapping) and not sparse.issparse(X):  # one of SciPy's formats is a dict
            table = columns_of(X)
            if reset:
                self.n_features_in_ = len(table)
                self._set_names(list(table))
            else:
                missing = [name for name in self.columns_ if name not in table]
                if missing:
                    raise ValueError(f"X has no column {missing[0]!r}, which the fit had; pass it.")
        else:
            is_frame = hasattr(X, "columns") or hasattr(X, "column_names")
            table = columns_of(X) if is_frame else _columns_of_array(X)
            validate_data(
                self,
                X if is_frame else np.empty((1, len(table))),
                reset=reset,
                skip_check_array=True,
            )
        if not table:
            raise ValueError("X has 0 feature(s); pass a table with columns.")
        n = len(next(iter(table.values())))
        if n < 1 + reset:
            raise ValueError(f"X has n_samples={n} rows; pass at least {1 + reset}.")
        return table

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


def _columns_of_array(X: Any) -> dict[str, Any]:
    """Return the columns of an array (n, d) under the names x0, x1, ..."""
    if not sparse.issparse(X):
        form = read_array(X, "X")
        if isinstance(X, list | tuple) and form.dtype.kind in "US":
            X = read_array(X, "X", dtype=object)  # NumPy makes text of numbers beside text
    X = check_array(X, dtype=None, ensure_all_finite=False)
    return {f"x{j}": column for j, column in enumerate(X.T)}
