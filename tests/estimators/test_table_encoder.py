"""Tables of mixed columns: each counts alike, whatever its type, and keeps what it was."""

import datetime
import pickle
import uuid
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import heatsketch as hs
from heatsketch._checks import is_missing
from problems.checks import estimator_checks

N = 240
ORDER = {"size": ["small", "medium", "large"]}


def table():
    """Return a dict of columns of all types, with gaps in some of them."""
    rng = np.random.default_rng(0)
    words = np.array(["red", "green", "blue"], object)[rng.choice(3, N, p=[0.6, 0.3, 0.1])]
    words[::17] = None
    number = rng.normal(3, 7, N)
    number[::11] = np.nan
    return {
        "number": number,
        "whole": rng.integers(0, 9, N),
        "yes": rng.random(N) < 0.2,
        "maybe": [None, True, False, True] * (N // 4),
        "word": words,
        "size": np.array(ORDER["size"], object)[rng.integers(0, 3, N)],
        "day": np.datetime64("2024-01-01", "ms") + rng.integers(0, 900, N).astype("m8[D]"),
        "written": [f"2020-02-{1 + i % 28:02d}" for i in range(N)],
        "wait": rng.integers(0, 50, N).astype("m8[h]").astype("m8[ms]"),
    }


COLUMNS = table()


DAYS = ["2024-01-01", "2024-01-02", "2024-05-05"]
VALUES = {  # columns of every type, in an order that is not the sorted one
    "numbers": [3.5, 1.0, 2.0],
    "whole numbers": [3, 1, 2],
    "ids": [2**60 + 2, 2**60, 2**60 + 1],
    "decimals": [Decimal("7.75"), Decimal("1.5"), Decimal("2.25")],
    "booleans": [True, False],
    "text": ["b", "c", "a"],
    "days in text": DAYS[::-1],
    "moments in text": [f"{day}T19:00:00Z" for day in DAYS[::-1]],
    "days": [datetime.date.fromisoformat(day) for day in DAYS[::-1]],
    "moments": [datetime.datetime.fromisoformat(day) for day in DAYS[::-1]],
    "spans": [datetime.timedelta(days) for days in (9, 1, 2)],
    "nanoseconds": np.array([9, 1, 2], "m8[ns]"),
    "times": [datetime.time(9), datetime.time(1), datetime.time(2)],
    "tuples": [(2, 1), (1, 3), (1, 2)],
    "objects": [uuid.UUID(int=3), uuid.UUID(int=1), uuid.UUID(int=2)],
    "bytes": [b"b", b"c", b"a"],
}


def blocks(encoder, Z):
    """Return the numbers of each column by name."""
    names = encoder.get_feature_names_out()
    own = {name: [str(n).partition("=")[0] == name for n in names] for name in encoder.columns_}
    return {name: Z[:, mask] for name, mask in own.items() if any(mask)}


@estimator_checks(hs.TableEncoder())
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_every_column_has_the_same_mean_squared_distance():
    encoder = hs.TableEncoder(ORDER)
    parts = blocks(encoder, encoder.fit_transform(COLUMNS))
    assert {*parts} == {*COLUMNS}
    for part in parts.values():
        rows = part[~np.isnan(part).any(axis=1)]
        assert np.mean(cdist(rows, rows, "sqeuclidean")) == pytest.approx(2, rel=1e-9)


def test_numbers_are_those_of_standard_scaler():
    X = np.random.default_rng(1).normal(2, 5, (30, 4))
    assert_allclose(hs.TableEncoder().fit_transform(X), StandardScaler().fit_transform(X))


def test_different_categories_are_equally_far_and_equal_ones_at_one_place():
    words = ["a"] * 30 + ["b"] * 20 + ["c"] * 10
    Z = hs.TableEncoder().fit_transform({"word": words})
    far = pdist(Z)
    assert_allclose(far[far > 0], far.max())
    assert len(np.unique(Z, axis=0)) == 3


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_comes_back(name):
    encoder = hs.TableEncoder(ORDER).fit(COLUMNS)
    found = encoder.inverse_transform(encoder.transform(COLUMNS))[name]
    want = COLUMNS[name]
    if name == "written":
        want = np.array(want, "datetime64[us]")
    if found.dtype == float:
        assert_allclose(found, np.asarray(want, float), rtol=1e-12)
    else:
        assert found.tolist() == np.asarray(want, found.dtype).tolist()


def test_ranks_are_monotone_and_come_back():
    prices = np.random.default_rng(0).pareto(1, 200)
    encoder = hs.TableEncoder({"price": "rank"}).fit({"price": prices})
    Z = encoder.transform({"price": prices})
    assert_array_equal(Z[:, 0].argsort(), prices.argsort())
    assert Z.max() < 2  # the largest one is no further than the last of even steps
    assert_allclose(encoder.inverse_transform(Z)["price"], prices, rtol=1e-9)


def test_missing_entries_stay_missing_and_shape_nothing():
    encoder = hs.TableEncoder(ORDER).fit(COLUMNS)
    parts = blocks(encoder, encoder.transform(COLUMNS))
    assert_array_equal(np.isnan(parts["number"][:, 0]), np.isnan(COLUMNS["number"]))
    assert_array_equal(np.isnan(parts["word"]).all(axis=1), [w is None for w in COLUMNS["word"]])
    there = ~np.isnan(COLUMNS["number"])
    alone = hs.TableEncoder().fit_transform({"number": COLUMNS["number"][there]})
    assert_array_equal(parts["number"][there], alone)


def test_rare_categories_are_pooled_and_names_left_out():
    words = ["a"] * 150 + ["b"] * 45 + [f"rare {i}" for i in range(5)]
    names = [f"person {i}" for i in range(200)]
    encoder = hs.TableEncoder().fit({"word": words, "name": names, "one": [1] * 200})
    assert encoder.get_feature_names_out().tolist() == ["word=a", "word=b", "word=(rare)"]
    rows = {"word": ["rare 0", "rare 3", "never seen"], "name": names[:3], "one": [1, 1, 1]}
    with pytest.warns(hs.ScaleWarning, match="rows 2.*'never seen'"):
        Z = encoder.transform(rows)
    assert len(np.unique(Z, axis=0)) == 1
    assert encoder.inverse_transform(Z)["word"].tolist() == [None] * 3
    said = encoder.describe()
    assert "5 rare ones pooled" in said
    assert "name: left out (200 different values, all rare)" in said
    assert "one: left out (constant)" in said


def test_a_new_category_without_a_pool_is_equally_far_from_all():
    encoder = hs.TableEncoder().fit({"word": ["a", "b", "c"] * 9})
    known = encoder.transform({"word": ["a", "b", "c"]})
    with pytest.warns(hs.ScaleWarning, match="column 'word' 'd' in 1 row"):
        new = encoder.transform({"word": ["d"]})
    assert_allclose(cdist(new, known), cdist(new, known)[0, 0])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_every_library_gives_the_same_numbers(library):
    frames = pytest.importorskip(library)
    make = frames.table if library == "pyarrow" else frames.DataFrame
    want = hs.TableEncoder(ORDER).fit_transform(COLUMNS)
    assert_allclose(hs.TableEncoder(ORDER).fit_transform(make(COLUMNS)), want, rtol=1e-12)


def frames():
    """Yield frames of three libraries with a column of each type that they have."""
    days = np.datetime64("2024-01-01", "us") + np.arange(36).astype("m8[D]")
    size, gap = ["lo", "hi", "mid", "hi"] * 9, ["lo", "hi", "mid", None] * 9
    plain = {
        "float": np.arange(36.0),
        "whole": np.arange(36) % 5,
        "yes": np.arange(36) % 2 == 0,
        "word": size,
        "gap": gap,
        "day": days,
        "wait": np.arange(36).astype("m8[s]").astype("m8[us]"),
    }
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    of_pandas = pd.DataFrame(plain).assign(
        small=np.arange(36, dtype="float32"),
        ordered=pd.Categorical(gap, ["lo", "mid", "hi", "never"], ordered=True),
        plain=pd.Categorical(gap, ["lo", "never", "mid", "hi"]),
        nullable=pd.array([1, 2, 3, None] * 9, dtype="Int64"),
        maybe=pd.array([True, None, False, True] * 9, dtype="boolean"),
        text=pd.array(gap, dtype="string"),
        zone=pd.date_range("2024-03-01", periods=36, tz="Europe/Berlin"),
    )
    of_polars = pl.DataFrame(plain).with_columns(
        pl.Series("date", days).cast(pl.Date),
        pl.Series("zone", days)
        .dt.replace_time_zone("Europe/Berlin")
        .cast(pl.Datetime("ms", "Europe/Berlin")),
        pl.Series("enum", gap, dtype=pl.Enum(["lo", "mid", "hi"])),
        pl.Series("cat", gap, dtype=pl.Categorical),
        pl.Series("nullable", [1, 2, None] * 12, dtype=pl.Int16),
        pl.Series("maybe", [True, None, False] * 12),
    )
    coded = pa.array(gap).dictionary_encode()
    of_arrow = pa.table(
        plain
        | {
            "coded": coded,
            "ordered": pa.DictionaryArray.from_arrays(
                pa.array([1, 0, 2, None] * 9, pa.int8()), ["lo", "mid", "hi"], ordered=True
            ),
            "date": pa.array(days).cast(pa.date32()),
            "nullable": pa.array([1, 2, None] * 12, pa.int16()),
            "zone": pa.array(days).cast(pa.timestamp("ms", "Europe/Berlin")),
        }
    )
    return {"pandas": of_pandas, "polars": of_polars, "pyarrow": of_arrow}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_comes_back_as_it_was(library, tmp_path):
    frame = frames()[library]
    encoder = hs.TableEncoder().fit(frame)
    hs.save_model(encoder, tmp_path / "encoder.model")
    for one in (encoder, hs.load_model(tmp_path / "encoder.model")):
        found = one.inverse_transform(one.transform(frame))
        assert type(found) is type(frame)
        if library == "pandas":
            pytest.importorskip("pandas").testing.assert_frame_equal(found, frame)
        elif library == "polars":
            pytest.importorskip("polars.testing").assert_frame_equal(found, frame)
        else:
            assert found.equals(frame)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_what_a_type_does_not_hold_has_another_one(library):
    """A row without entries, and one between others: whole numbers and days stay whole."""
    frame = frames()[library]
    encoder = hs.TableEncoder().fit(frame)
    Z = encoder.transform(frame)
    lost = encoder.inverse_transform(np.full((1, Z.shape[1]), np.nan))
    for name in encoder.columns_:
        value = lost[name].to_pylist() if library == "pyarrow" else list(lost[name])
        assert is_missing(value[0]), name
    between = encoder.inverse_transform(0.6 * Z[:1] + 0.4 * Z[2:3])
    types = "dtypes" if library == "pandas" else "schema"
    assert str(getattr(between, types)) == str(getattr(frame, types))


def test_dates_from_text_stay_dates_and_categories_that_were_left_out_are_gone():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"day": ["2024-01-01", "2024-01-02"] * 5, "one": 1, "x": range(10)})
    encoder = hs.TableEncoder().fit(frame)
    found = encoder.inverse_transform(encoder.transform(frame))
    assert list(found.columns) == ["day", "x"]
    assert (found["day"] == pd.to_datetime(frame["day"])).all()


def test_an_array_comes_back_as_an_array():
    whole = np.random.default_rng(0).integers(0, 9, (30, 3))
    encoder = hs.TableEncoder().fit(whole)
    found = encoder.inverse_transform(encoder.transform(whole))
    assert_array_equal(found, whole)
    assert found.dtype == whole.dtype
    whole[:, 1] = 4  # left out
    encoder = hs.TableEncoder().fit(whole)
    found = encoder.inverse_transform(encoder.transform(whole))
    assert_array_equal(found, np.where([True, False, True], whole, np.nan))
    mixed = np.array([["a", 1.5], ["b", 2.5], ["a", 3.5], ["b", 4.5]], object)
    encoder = hs.TableEncoder().fit(mixed)
    assert_array_equal(encoder.inverse_transform(encoder.transform(mixed)), mixed)


def test_types_of_pandas_say_what_columns_are():
    pd = pytest.importorskip("pandas")
    values = ["lo", "hi", "mid", None] * 9
    frame = pd.DataFrame(
        {
            "ordered": pd.Categorical(values, ["lo", "mid", "hi"], ordered=True),
            "plain": pd.Categorical(values),
            "whole": pd.array([1, 2, 3, None] * 9, dtype="Int64"),
            "zone": pd.date_range("2024-03-01", periods=36, tz="Europe/Berlin"),
        }
    )
    encoder = hs.TableEncoder().fit(frame)
    kinds = {name: column.kind for name, column in encoder.columns_.items()}
    assert kinds == {"ordered": "ordered", "plain": "category", "whole": "number", "zone": "date"}
    Z = encoder.transform(frame)
    assert Z[0, 0] < Z[2, 0] < Z[1, 0]
    assert list(encoder.feature_names_in_) == list(frame.columns)
    made = encoder.set_output(transform="pandas").transform(frame)
    assert list(made.columns) == list(encoder.get_feature_names_out())
    with pytest.raises(ValueError, match="feature names"):
        encoder.transform(frame.rename(columns={"zone": "other"}))


def test_dates_in_any_form_are_the_same():
    days = [datetime.date(2024, 1, 1 + i) for i in range(20)]
    forms = (days, [str(day) for day in days], np.array(days, "datetime64[D]"))
    found = [hs.TableEncoder().fit_transform({"day": form}) for form in forms]
    for Z in found[1:]:
        assert_array_equal(Z, found[0])


@pytest.mark.parametrize("name", VALUES)
def test_values_of_every_type_are_categories(name):
    """All categories are equally far, in an order evenly apart; and the values come back."""
    values = VALUES[name]
    rows = np.repeat(np.arange(len(values)), [3, 4, 5][: len(values)])
    column = values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]
    alone = hs.TableEncoder({"x": "category"}).fit({"x": column})
    places = alone.transform({"x": column})
    assert_array_equal(cdist(places, places) > 0, rows[:, None] != rows)
    assert len(np.unique(pdist(places).round(9))) == 2
    ordered = hs.TableEncoder({"x": list(values)}).fit({"x": column})
    steps = ordered.transform({"x": column})[:, 0]
    assert_allclose(steps, (rows - rows.mean()) / rows.std())
    gap = {"x": [None]} if not isinstance(values, np.ndarray) else {"x": np.array(["NaT"], "m8")}
    for encoder in (alone, ordered):
        found = encoder.inverse_transform(encoder.transform({"x": column}))["x"]
        is_date = found.dtype.kind == "M" and name.startswith("days")
        assert found.tolist() == (
            np.asarray(column, found.dtype).tolist() if is_date else list(column)
        )
        assert np.isnan(encoder.transform(gap)).all()


def test_kinds_are_changed_by_name():
    codes = {"code": [1, 2, 3] * 20, "x": np.arange(60.0)}
    encoder = hs.TableEncoder({"code": "category", "x": "left out"}).fit(codes)
    assert encoder.get_feature_names_out().tolist() == ["code=1", "code=2", "code=3"]
    assert encoder.inverse_transform(encoder.transform(codes))["code"].tolist() == codes["code"]


def test_copies_say_the_same(tmp_path):
    encoder = hs.TableEncoder(ORDER, min_frequency=0.05).fit(COLUMNS)
    hs.save_model(encoder, tmp_path / "encoder.model")
    want = encoder.transform(COLUMNS)
    copies = pickle.loads(pickle.dumps(encoder)), hs.load_model(tmp_path / "encoder.model")
    for copy in copies:
        assert_array_equal(copy.transform(COLUMNS), want)
        assert copy.describe() == encoder.describe()
    with pytest.raises(NotFittedError):
        clone(encoder).transform(COLUMNS)


def test_spans_in_objects_and_below_a_microsecond_are_spans():
    days, short = np.arange(1, 41), np.arange(1, 41).astype("m8[ns]")
    want = StandardScaler().fit_transform(days[:, None].astype(float))
    for spans in ([datetime.timedelta(int(day)) for day in days], short):
        encoder = hs.TableEncoder().fit({"x": spans})
        assert_allclose(encoder.transform({"x": spans}), want, rtol=1e-12)
        assert encoder.inverse_transform(want)["x"].tolist() == np.asarray(spans).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "2013-12-{:02d}T19:00:00Z",
        "2013-12-{:02d} 20:00:00+01:00",
        "2013-12-{:02d}T18:00:00.000000000-0100",
        " 2013-12-{:02d} 19:00",
    ],
)
def test_dates_in_text_may_have_a_zone(text):
    days = range(1, 31)
    encoder = hs.TableEncoder().fit({"x": [text.format(day) for day in days]})
    found = encoder.inverse_transform(encoder.transform({"x": [text.format(5)]}))["x"]
    assert found.tolist() == [datetime.datetime(2013, 12, 5, 19)]


@pytest.mark.parametrize("text", ["{}/12/2013", "{}.12.2013", "Dec {}, 2013", "{} Dec 2013 10:00"])
def test_dates_in_another_notation_are_named(text):
    names = [text.format(day) for day in range(1, 31)]
    for column in (names, names[:2] * 15):  # names, and categories
        said = hs.TableEncoder().fit({"x": column, "y": range(30)}).describe()
        assert "looks like dates, day or month first?" in said
    assert "dates" not in hs.TableEncoder().fit({"x": ["1.2.3", "1.10.0"] * 9}).describe()


def test_names_of_numbers_are_all_different():
    for encoder, table in (
        (hs.TableEncoder(), {"a": ["b", "c"] * 5, "a=b": range(10)}),
        (hs.TableEncoder(min_frequency=3), {"a": ["(rare)"] * 5 + ["b"] * 5 + ["c", "d"]}),
        (hs.TableEncoder(), {1: range(9), "1": range(9), "1 (2)": range(9)}),
    ):
        Z = encoder.fit_transform(table)
        names = encoder.get_feature_names_out()
        assert len({*names}) == Z.shape[1]
        assert len(encoder.inverse_transform(Z)) == len(table)


def test_a_gap_beside_rare_categories_and_a_row_of_zeros_are_missing():
    words = ["a"] * 150 + ["b"] * 149 + ["rare1", "rare2", None]
    encoder = hs.TableEncoder().fit({"word": words})
    found = encoder.inverse_transform(encoder.transform({"word": words}))["word"]
    assert found.tolist() == words[:299] + [None] * 3
    assert encoder.inverse_transform(np.zeros((1, 3)))["word"].tolist() == [None]


def test_a_table_and_an_array_are_two_inputs():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": np.arange(9.0), "b": list("xyz") * 3})
    with pytest.raises(ValueError, match="X is an array, but the fit had a table with the columns"):
        hs.TableEncoder().fit(frame).transform(frame.to_numpy())
    encoder = hs.TableEncoder().fit(frame.to_numpy())
    for table in (frame, {"x0": [1.0], "x1": ["x"]}):
        with pytest.raises(ValueError, match="but the fit had an array"):
            encoder.transform(table)
    numbered = frame.set_axis([0, 1], axis=1)
    with pytest.raises(ValueError, match="no column 1, which the fit had"):
        hs.TableEncoder().fit(numbered).transform(numbered.set_axis([0, 7], axis=1))


def test_types_of_arrow_and_polars_come_back():
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    money, words = [Decimal("1.50"), Decimal("2.25"), None], ["lo", "hi", None]
    of_polars = pl.DataFrame({"x": pl.Series(money * 9, dtype=pl.Decimal(10, 2))})
    encoder = hs.TableEncoder().fit(of_polars)
    assert encoder.inverse_transform(encoder.transform(of_polars)).equals(of_polars)
    coded = pa.dictionary(pa.int32(), pa.string())
    for values, kind in (
        (money, pd.ArrowDtype(pa.decimal128(10, 2))),
        (words, pd.ArrowDtype(coded)),
        (words, "string[pyarrow]"),
    ):
        frame = pd.DataFrame({"x": pd.Series(values * 9, dtype=kind)})
        encoder = hs.TableEncoder().fit(frame)
        found = encoder.inverse_transform(encoder.transform(frame))
        pd.testing.assert_frame_equal(found, frame)


@pytest.mark.parametrize(
    ("columns", "X", "kind", "says"),
    [
        ({"y": "category"}, {"x": [1, 2]}, ValueError, "names 'y'"),
        ({"x": "nominal"}, {"x": [1, 2]}, ValueError, "'category'"),
        ({"x": ["a"]}, {"x": ["a", "b"]}, ValueError, "two or more different"),
        ("category", {"x": [1, 2]}, TypeError, "dict"),
        ({"x": ["a", "b"]}, {"x": ["a", "c"]}, ValueError, "'c', which is not among"),
        ({"x": "number"}, {"x": ["a", "b"]}, ValueError, "'category' or the order"),
        (None, {"x": [1, "b", 2]}, TypeError, "several types"),
        (None, {"x": [[1], [2]]}, (TypeError, ValueError), "Column 'x'"),
        (None, {"x": [{}, {}]}, TypeError, "holds a dict"),
        (None, {"x": [1.0, np.inf]}, ValueError, "infinity"),
        (None, {"x": [1, 1], "y": ["a", "b"]}, ValueError, "two different values"),
        (None, {"x": [1, 2], "y": [1]}, ValueError, "lengths"),
        (None, {"x": 1, "y": [1, 2]}, TypeError, "'x' is of type int; pass one value for each row"),
        (None, {"x": np.array([1, np.inf, 2], object)}, ValueError, "'x' holds inf"),
        (None, {"x": 2**60 + np.arange(9)}, ValueError, "'x' holds values beyond 2"),
        (None, {"x": [2**70, 2**70 + 1]}, ValueError, "'x' holds values beyond 2"),
        (None, {"x": np.arange(9) * 1e300}, ValueError, "'x' has numbers from 0 to 8e.300, whose"),
        (None, {"x": np.arange(9) * 1e-300}, ValueError, "'x' has numbers from 0 to 8e-300, whose"),
        (None, {"x": ["2024-01-01", "2024-02-30"]}, ValueError, "'x' holds '2024-02-30' in row 1"),
        (None, {"x": [(1, [2]), (2, [3])]}, TypeError, "'x' holds a tuple of 2 entries"),
        (None, {"x": [Decimal("sNaN"), Decimal(1)]}, TypeError, "'x' holds a Decimal"),
        (None, {"x": [np.arange(9.0)] * 2}, TypeError, r"9 entries.*np\.stack"),
        ({"x": [["a"], ["b"]]}, {"x": ["a", "b"]}, TypeError, "'x' holds a list"),
        ({"x": {"a", "b"}}, {"x": ["a", "b"]}, ValueError, "categories in their order"),
        ({"x": iter("ab")}, {"x": ["a", "b"]}, ValueError, "categories in their order"),
        ({"x": ["a", "b", "a"]}, {"x": ["a", "b"]}, ValueError, "each of its categories once"),
        ({"x": ["1", "2"]}, {"x": [1, 2]}, ValueError, "holds numbers, such as 1; pass each"),
        (
            {"x": "date"},
            {"x": [20240101, 20240201]},
            ValueError,
            "such as 20240101; pass dates such",
        ),
        ({"x": "date"}, {"x": np.arange(3).astype("m8[s]")}, ValueError, "holds spans of time"),
        ({"x": "boolean"}, {"x": [0, 1, 7]}, ValueError, "holds numbers, such as 7; pass 'number'"),
        ({"x": "boolean"}, {"x": DAYS}, ValueError, "holds dates"),
        ({"x": "rank"}, {"x": [2**60, 2**60 + 1, 5]}, ValueError, "'x' holds values beyond 2"),
        (
            None,
            {"x": [Decimal(10**20), Decimal(10**20 + 1)]},
            ValueError,
            "'x' holds values beyond 2",
        ),
        (None, {"x": np.array([10**6, 2], "M8[Y]")}, ValueError, "too large for microseconds"),
        (None, {"x": np.array([10**14, 2], "M8[s]")}, ValueError, "too large for microseconds"),
        (None, {"x": np.array([2 * 10**8, 2], "m8[D]")}, ValueError, "too large for microseconds"),
        (None, {"x": np.array([1, 2], "m8[ps]")}, ValueError, "finer than nanoseconds"),
        (
            None,
            {"x": ["0001-01-01T00:00+05:00", "2024-01-01"]},
            ValueError,
            "05:00' in row 0, which",
        ),
        (None, {"x": [1]}, ValueError, "n_samples=1"),
        (None, {}, ValueError, "0 feature"),
    ],
)
def test_errors_say_what_to_do(columns, X, kind, says):
    with pytest.raises(kind, match=says):
        hs.TableEncoder(columns).fit(X)


def test_new_rows_have_the_types_of_the_fit():
    encoder = hs.TableEncoder().fit({"x": [1.0, 2.0], "day": ["2024-01-01", "2024-01-02"]})
    words = hs.TableEncoder().fit({"x": ["a", "a", "2024-01-01", "2024-01-01"]})
    assert_array_equal(words.transform({"x": ["2024-01-01"]}) > 0, [[True, False]])
    with pytest.raises(ValueError, match="held text"):
        words.transform({"x": [1.0]})
    with pytest.raises(ValueError, match="held numbers"):
        encoder.transform({"x": ["a"], "day": ["2024-01-01"]})
    with pytest.raises(ValueError, match="held dates"):
        encoder.transform({"x": [1.0], "day": [3]})
    with pytest.raises(ValueError, match="held dates in the fit, but holds 'monday' now"):
        encoder.transform({"x": [1.0, 2.0], "day": ["2024-01-01", "monday"]})
    with pytest.raises(ValueError, match="no column 'day'"):
        encoder.transform({"x": [1.0]})
    with pytest.raises(ValueError, match="2 are expected"):
        encoder.inverse_transform(np.ones((2, 3)))


@pytest.mark.parametrize("values", [[2.0**53, 2.0**53 + 2], [0.3, 0.1 + 0.2], [1e15, 1e15 + 0.125]])
def test_numbers_whose_mean_is_rounded_count_like_others(values):
    Z = hs.TableEncoder().fit_transform({"x": values * 10})
    assert_allclose(cdist(Z, Z, "sqeuclidean").mean(), 2)


@pytest.mark.parametrize("share", [0.07, 0.14, 0.28, 0.29, 0.55, 0.57])
def test_a_category_with_the_least_share_is_not_rare(share):
    rare = round(share * 100)
    words = ["a"] * (100 - rare) + ["b"] * rare
    column = hs.TableEncoder(min_frequency=share).fit({"x": words}).columns_["x"]
    assert "b" not in column.rare


@pytest.mark.parametrize("dtype", ["i1", "u1", "u8", "f2"])
@pytest.mark.parametrize("library", ["numpy", "pandas"])
def test_numbers_outside_of_a_type_are_no_others_in_it(dtype, library):
    values = np.array([0, 100] * 5, dtype)[:, None]
    table = (
        pytest.importorskip("pandas").DataFrame({"x": values[:, 0]})
        if library == "pandas"
        else values
    )
    encoder = hs.TableEncoder().fit(table)
    places = [[-3.0], [0.0], [1e4], [1e20]]  # mean 50, deviation 50
    found = np.asarray(encoder.inverse_transform(places), float)[:, 0]
    assert_allclose(found, 50 + 50 * np.ravel(places))
    most = hs.TableEncoder().fit(np.array([[0], [2**64 - 1]], "u8"))
    assert_allclose(most.inverse_transform([[-1.0], [1.0]]).astype(float), [[0], [2.0**64]])


def test_a_frame_of_numbers_is_read_by_its_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": np.arange(9.0), "b": list("xyz") * 3})
    encoder = hs.TableEncoder().set_output(transform="pandas").fit(frame)
    reversed_ = encoder.transform(frame).iloc[:, ::-1]
    pd.testing.assert_frame_equal(encoder.inverse_transform(reversed_), frame)


def test_what_is_missing_does_not_decide_on_the_unit():
    pd = pytest.importorskip("pandas")
    days = pd.Series(pd.Categorical(pd.to_datetime([*DAYS, None] * 9)))
    for _ in range(5):  # what is in new memory differs
        np.full(len(days), 1234567, "M8[ns]")
        names = hs.TableEncoder().fit(pd.DataFrame({"x": days})).get_feature_names_out()
        assert names.tolist() == [f"x={day}" for day in DAYS]


def test_spans_of_pandas_in_objects_keep_nanoseconds():
    pd = pytest.importorskip("pandas")
    spans = [pd.Timedelta(300 * i, "ns") for i in range(1, 9)]
    want = StandardScaler().fit_transform(np.arange(8.0)[:, None])
    assert_allclose(hs.TableEncoder().fit_transform({"x": spans}), want)


def test_a_span_between_categories_is_none_of_them():
    encoder = hs.TableEncoder({"x": "category"}).fit({"x": np.array([1, 2, 3] * 3, "m8[us]")})
    with pytest.warns(hs.ScaleWarning, match="rows 0"):
        Z = encoder.transform({"x": np.array([1500, 2000], "m8[ns]")})
    assert_array_equal(Z > 0, [[False, False, False], [False, True, False]])


def test_declared_categories_that_are_asked_to_be_ordered_keep_their_order():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    words = ["lo", "mid", "hi"]
    frames = (
        pd.DataFrame({"x": pd.Categorical(words * 3, words)}),
        pl.DataFrame({"x": pl.Series(words * 3, dtype=pl.Enum(words))}),
    )
    for frame in frames:
        encoder = hs.TableEncoder({"x": "ordered"}).fit(frame)
        assert encoder.columns_["x"].categories.tolist() == words
        assert hs.TableEncoder().fit(frame).columns_["x"].kind == "category"


def test_declared_categories_of_days_are_in_a_notation_that_is_read():
    pd = pytest.importorskip("pandas")
    for days, is_said in ((DAYS, False), (["31/12/2013", "30/12/2013"], True)):
        frame = pd.DataFrame({"x": pd.Categorical(days * 9)})
        assert ("looks like dates" in hs.TableEncoder().fit(frame).describe()) == is_said


def test_types_without_functions_in_their_library_are_read():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    numbers, words = [1, 2, None, 5] * 5, ["a", "b", None, "b"] * 5
    for values, frame in (
        (numbers, pl.DataFrame({"x": pl.Series(numbers, dtype=pl.Int128)})),
        (words, pa.table({"x": pa.array(words, pa.string_view())})),
    ):
        encoder = hs.TableEncoder().fit(frame)
        Z = encoder.transform(frame)
        assert_array_equal(Z, hs.TableEncoder().fit_transform({"x": values}))
        assert encoder.inverse_transform(Z).equals(frame)


def test_tuples_are_stored(tmp_path):
    table = {"x": [(1, 2), (1, 3)] * 4}
    encoder = hs.TableEncoder().fit(table)
    hs.save_model(encoder, tmp_path / "tuples.model")
    again = hs.load_model(tmp_path / "tuples.model")
    assert again.inverse_transform(again.transform(table))["x"].tolist() == table["x"]


def test_a_rank_of_spans_says_that_it_is_one():
    spans = np.arange(9).astype("m8[h]")
    assert hs.TableEncoder({"x": "rank"}).fit({"x": spans}).describe() == "x: rank"
    assert hs.TableEncoder().fit({"x": spans}).describe() == "x: span of time"


ASKED = {**ORDER, "whole": "rank", "wait": "category"}


@pytest.mark.parametrize("by_parts", [False, True])
def test_the_order_of_rows_changes_no_bit(by_parts):
    p = np.random.default_rng(3).permutation(N)
    permuted = {name: np.asarray(column)[p] for name, column in COLUMNS.items()}

    def fitted(table):
        if by_parts:
            return hs.TableEncoder._of_parts({name: x} for name, x in table.items())
        return hs.TableEncoder(ASKED).fit(table)

    one, other = fitted(COLUMNS), fitted(permuted)
    Z = one.transform(COLUMNS)
    assert_array_equal(other.transform(permuted), Z[p])
    assert_array_equal(other._middle(Z[p]), one._middle(Z))


def test_new_categories_are_named_once_with_their_rows():
    encoder = hs.TableEncoder().fit({"word": list("aab") * 9, "size": list("xyz") * 9})
    new = {"word": ["a", "q", None, "q", "r"], "size": ["w", "x", "y", "z", ""]}
    with pytest.warns(hs.ScaleWarning) as found:
        encoder.transform(new)
    (warning,) = found
    assert warning.message.about[0].tolist() == [0, 1, 3, 4]
    text = str(warning.message)
    assert "column 'word' 'q', 'r' in 3 row(s); column 'size' 'w' in 1 row(s)" in text


def test_text_that_looks_numeric_is_named():
    ages = [*map(str, range(20, 60)), "?", "-", "unknown", "?"]
    with pytest.warns(UserWarning, match=r"'age' holds '\?' in row 40 \(4 such cells\).*looks num"):
        hs.TableEncoder(min_frequency=1).fit({"age": ages, "x": range(len(ages))})


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["1", "2", "3"] * 9, None),  # codes
        (["1", "a", "b"] * 9, None),
        (["1", "2", "?"] * 9, "category"),
        (["1", "2", ""] * 9, None),
    ],
)
def test_text_that_holds_numbers_alone_or_few_or_is_declared_is_not_named(column, kind, recwarn):
    hs.TableEncoder(kind and {"code": kind}).fit({"code": column})
    assert not recwarn


def test_a_single_category_beside_rare_ones_is_no_plural():
    encoder = hs.TableEncoder(min_frequency=5).fit({"word": ["a"] * 20 + list("bc")})
    assert encoder.describe() == "word: 1 category (a; 2 rare ones pooled)"
