"""Gaps in sources that are read by blocks: as in a whole table, learned of a sample."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import heatsketch as hs
from heatsketch import io
from heatsketch.distributed import drawn, embed
from problems.clusters import SKETCH, warned_of

N, SAMPLE, ROWS = 900, 250, 64
OPTIONS = {"fit_points": SAMPLE, "block_rows": ROWS}
pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")


def points():
    """A roll with gaps in a tenth of the rows, and in all rows of one block."""
    rng = np.random.default_rng(4)
    X = hs.datasets.swiss_roll(N, rng=4)[0].astype(np.float32)
    X[rng.random(N) < 0.1, 1] = np.nan
    X[2 * ROWS : 3 * ROWS, 2] = np.nan
    return X


X = points()
GAPS = np.flatnonzero(np.isnan(X).any(axis=1))


def filled(X):
    """Put the medians of the sample in place of gaps."""
    medians = np.nanmedian(X[drawn(N, SAMPLE, 0)[0]], axis=0)
    return np.where(np.isnan(X), medians, X).astype(np.float32)


@pytest.mark.parametrize("missing", ["median", "drop"])
@pytest.mark.parametrize("name", ["o.npy", "o.parquet", "o"])
def test_gaps_are_filled_by_medians_of_the_sample_or_their_rows_dropped(name, missing, tmp_path):
    drops = missing == "drop"
    values, sample = filled(X), drawn(N, SAMPLE, 0)[0]
    rows = np.setdiff1d(np.arange(N), GAPS) if drops else np.arange(N)
    fitted = np.setdiff1d(sample, GAPS) if drops else sample
    np.save(tmp_path / "x.npy", X)
    done = embed(tmp_path / "x.npy", tmp_path / name, SKETCH, missing=missing, **OPTIONS)
    assert (done.n, done.fit_points, done.n_written) == (N, len(fitted), len(rows))
    if done.output.is_dir():
        Y = np.concatenate([np.load(part) for part in sorted(done.output.iterdir())])
    else:
        table = io.read_table(done.output, ids="row" if drops and name == "o.parquet" else ())
        Y = table.values
        assert table.extra.get("row", rows).tolist() == rows.tolist()
    expected = hs.HeatSketch(3, random_state=0).fit(values[fitted]).transform(values[rows])
    assert Y.dtype == np.float32
    assert np.array_equal(Y, expected)
    (note,) = done.notes
    words = {
        "median": f"gaps filled with medians of the sample in {len(GAPS)} of {N} rows",
        "drop": f"{len(GAPS)} of {N} rows left out, for they have gaps",
    }
    rows = f"{', '.join(map(str, GAPS[:5]))} and {len(GAPS) - 5} more"
    assert note == f"{words[missing]}: {rows}"


@pytest.mark.parametrize("where", ["sample", "held out", "neither"])
def test_a_row_without_direction_has_its_number_in_the_source(tmp_path, limits, where):
    limits(held_out=100)
    rows, _, held_out = drawn(N, SAMPLE, 0)
    others = np.setdiff1d(np.arange(ROWS, N), np.r_[rows, held_out])
    row = int({"sample": rows, "held out": held_out, "neither": others}[where][-1])
    values = np.random.default_rng(0).normal(size=(N, 4))
    values[row - 1, 0] = np.nan  # left out, so that rows move up
    values[row] = 0.0
    with pytest.raises(ValueError, match=rf"row\(s\) {row} of X hold only zeros"):
        embed(
            values, tmp_path / "o.npy", hs.HeatSketch(3, metric="cosine"), missing="drop", **OPTIONS
        )


@pytest.mark.parametrize("estimator", [SKETCH, hs.MixtureDiffusion(2, random_state=0)])
def test_gaps_that_are_kept_are_mapped_alike_in_blocks_of_any_size(estimator, tmp_path):
    """To the bit in a neighbour graph; products of matrices round otherwise beside other rows."""
    values, given = X.astype(float), {"missing": "keep", "fit_points": SAMPLE}
    done = [
        embed(values, tmp_path / f"{rows}.npy", estimator, block_rows=rows, **given)
        for rows in (N, 101)
    ]
    whole, cut = (np.load(one.output) for one in done)
    tolerance = 0 if estimator is SKETCH else 1e-12 * np.abs(whole).max()
    assert np.abs(cut - whole).max() <= tolerance


def test_the_discrepancy_with_dropped_rows_is_that_of_a_source_without_them(tmp_path, limits):
    """Rows beyond the sample and the held-out ones are all that is lost: nothing else changes."""
    limits(held_out=100)
    rows, _, held_out = drawn(N, SAMPLE, 0)
    whole = hs.datasets.swiss_roll(N, rng=4)[0]
    other = np.setdiff1d(np.arange(N), np.r_[rows, held_out])
    spoiled = whole.copy()
    spoiled[other] = np.nan
    found = [
        embed(values, tmp_path / name, SKETCH, missing=missing, **OPTIONS).discrepancy
        for name, values, missing in (("a", whole, "error"), ("b", spoiled, "drop"))
    ]
    assert found[0] == found[1] > 0


@pytest.mark.parametrize(
    ("missing", "value", "words"),
    [
        ("error", np.nan, "NaN.* first in row 133, column 'x1'"),
        ("drop", np.inf, "infinity.* first in row 700, column 'x0'"),
        ("median", np.inf, "infinity.* first in row 700, column 'x0'"),
        ("median", np.nan, r"row\(s\) 700 of .* hold no number"),
        ("keep", np.inf, "infinity.* first in row 700, column 'x0'"),
        ("keep", np.nan, r"row\(s\) 700 of .* hold no number"),
    ],
)
def test_what_cannot_be_mended_is_named_by_its_row(missing, value, words, tmp_path):
    values = hs.datasets.swiss_roll(N, rng=4)[0]
    values[133, 1] = np.nan
    values[700] = value
    with pytest.raises(ValueError, match=words):
        embed(values, tmp_path / "o.npy", SKETCH, missing=missing, **OPTIONS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["drop", "median"])
def test_a_run_with_gaps_goes_on_to_the_same_bytes_notes_and_warnings(missing, tmp_path, stop):
    """Of far points it warns once, with the rows of the blocks before, counted in the source."""
    values, sample = X.copy(), drawn(N, SAMPLE, 0)[0]
    far = np.setdiff1d(np.arange(30, N), np.r_[sample, GAPS])[::60]
    values[far] += 1e6
    np.save(tmp_path / "x.npy", values)
    given = {"estimator": SKETCH, "missing": missing, **OPTIONS}
    with pytest.warns(hs.ScaleWarning) as caught:
        whole = embed(tmp_path / "x.npy", tmp_path / "whole.npy", **given)
    warned_of(caught, far)
    stop(8)
    with pytest.raises(InterruptedError):
        embed(tmp_path / "x.npy", tmp_path / "o.npy", **given)
    with pytest.warns(hs.ScaleWarning) as caught:
        done = embed(tmp_path / "x.npy", tmp_path / "o.npy", resume=True, **given)
    warned_of(caught, far)
    assert done.output.read_bytes() == whole.output.read_bytes()
    assert done.notes == whole.notes


def test_columns_with_text_for_gaps_are_filled_like_a_whole_table(tmp_path):
    """Cells that are not numbers count as missing, in blocks as in the whole."""
    values = hs.datasets.swiss_roll(N, rng=4)[0]
    text = [f"{v:.17g}" for v in values[:, 1]]
    text[5] = text[850] = "n/a"
    columns = {"row": np.arange(N) + 7, "a": values[:, 0], "b": text, "c": values[:, 2]}
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=100)
    source, given = tmp_path / "x.parquet", {"ids": "row", "missing": "drop"}
    whole = io.read_table(source, **given)
    assert whole.values.shape == (N - 2, 3)
    done = embed(source, tmp_path / "o.parquet", SKETCH, **OPTIONS, **given)
    table = io.read_table(done.output, ids=("row", "row_in_source"))
    assert np.array_equal(table.values, done.estimator.transform(whole.values))
    assert np.array_equal(table.extra["row"], whole.extra["row"])
    assert np.array_equal(table.extra["row_in_source"] + 7, whole.extra["row"])
