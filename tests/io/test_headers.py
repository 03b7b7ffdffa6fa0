"""A first row of numbers is data or a question: never a point that nobody wanted."""

import numpy as np
import pytest

from heatsketch import io
from heatsketch.io.text import is_header
from problems.messy_tables import saved

ROWS = 40
RNG = np.random.default_rng(0)


def table(first, cells, ids=None):
    """Return a text with a first row above cells (n, d), which ids may begin."""
    lines = [",".join(first)]
    for j, row in enumerate(cells):
        lines.append(",".join([*([] if ids is None else [ids(j)]), *row]))
    return "\n".join(lines) + "\n"


def spectra(d, low=0.0, high=1.0, digits=4):
    return [[f"{x:.{digits}f}" for x in row] for row in RNG.uniform(low, high, (ROWS, d))]


def counts(d, high=5000):
    return [[str(x) for x in row] for row in RNG.integers(100, high, (ROWS, d))]


def names(j):
    return ["Norway", "Chile", "South Africa", "Japan"][j % 4] + " abcdefghij"[j // 4]


@pytest.mark.parametrize(("name", "ids"), [("name", "id{:03d}".format), ("Country", names)])
@pytest.mark.parametrize("years", [["2021", "2020"], ["0", "1"], ["1990", "2000", "2005"]])
@pytest.mark.parametrize("make", [spectra, counts])
def test_years_beside_a_usual_name_are_a_header(tmp_path, name, ids, years, make):
    read = io.read_table(saved(tmp_path, table([name, *years], make(len(years)), ids)))
    assert read.columns == tuple(years)
    assert len(read.values) == ROWS


def test_numbers_of_columns_as_pandas_counts_are_a_header(tmp_path):
    for first, ids in ((["0", "1", "2"], None), (["", "0", "1"], str)):
        cells = counts(3)[:1] if ids is None else counts(2)
        read = io.read_table(saved(tmp_path, table(first, cells, ids)))
        assert read.columns == tuple(filter(None, first))
        assert len(read.values) == len(cells)


@pytest.mark.parametrize("ids", [names, str, lambda j: str(j + 1)])
def test_an_empty_cell_above_names_or_numbers_of_rows_is_a_header(tmp_path, ids):
    """As pandas writes a frame with years or wavelengths as columns."""
    read = io.read_table(saved(tmp_path, table(["", "1990", "2000"], counts(2), ids)))
    assert (read.columns, len(read.values)) == (("1990", "2000"), ROWS)


def test_a_first_row_that_is_one_cell_shorter_is_a_header(tmp_path):
    """As R writes names of rows: nothing stands above them."""
    lines = table(["400", "450"], [[f"s{j}", *row] for j, row in enumerate(spectra(2))])
    read = io.read_table(saved(tmp_path, lines))
    assert (read.columns, len(read.values)) == (("400", "450"), ROWS)


QUESTIONS = {
    "wavelengths": (["400", "450", "500"], spectra(3)),
    "wavelengths with fractions": (["400.5", "401.0", "401.5", "402.0"], spectra(4)),
    "wavelengths in uneven steps": (["400", "410", "450", "555"], spectra(4)),
    "two wavelengths of another scale": (["400", "450"], counts(2, 120)),
    "years": ([str(year) for year in range(2000, 2010)], counts(10)),
    "years backwards": ([str(year) for year in range(2010, 2000, -1)], spectra(10, 0, 100)),
    "doses": (["0.5", "1.5", "2.5", "3.5"], spectra(4)),
    "three years in the range of counts": (["2019", "2020", "2021"], counts(3)),
    "a few rows": (["400", "450", "500"], spectra(3)[:3]),
    "whole numbers above fractions": (["1", "0", "7"], spectra(3, 0, 10)),
    "beside a word": (["Norway", "0.25", "0.75"], spectra(2), "{}ia".format),
    "years beside a word": (["region", "2021", "2020"], counts(2), names),
    "times beside a word": (["gene_a", "0.13", "0.25", "0.77"], spectra(3, digits=2), names),
    "above some numbers of rows": (["", "1990", "2000"], counts(2), lambda j: str(3 * j)),
}


@pytest.mark.parametrize("case", QUESTIONS)
def test_numbers_that_may_be_either_are_asked_about(tmp_path, case):
    first, cells, *_ = QUESTIONS[case]
    path = saved(tmp_path, table(*QUESTIONS[case]))
    with pytest.raises(ValueError, match=r"may be a header or data; .*header=yes.*header=no"):
        io.read_table(path)
    known = io.read_table(path, header=True)
    assert (known.columns, len(known.values)) == (tuple(first[-len(cells[0]) :]), len(cells))
    assert len(io.read_table(path, header=False).values) == len(cells) + 1


def test_names_that_are_asked_for_make_a_header(tmp_path):
    path = saved(tmp_path, table(["0.5", "1.5"], spectra(2, 0, 3)))
    assert io.read_table(path, exclude="0.5").columns == ("1.5",)
    assert io.read_table(path, features=["1.5", "0.5"]).columns == ("1.5", "0.5")


DATA = {
    "like those below": spectra(3),
    "with a point first, then more digits": [["0", "0"], *spectra(2)],
    "counts": counts(4),
    "even steps in all rows": [[str(7 * j % 40 + k) for k in (0, 3, 6)] for j in range(ROWS)],
    "columns in order in all rows": [sorted(row) for row in spectra(6)],
    "two rows": [["1", "2"], ["3", "4"]],
    "one column": [["-1e-3"], ["2"]],
    "gaps first": [["1", "", "nan"], ["3", "4", "5"]],
    "a gap in the corner": [["", "2.5", "1"], ["1.5", "3.5", "2"], ["2.25", "2", "2.5"]],
    "scientific": [[f"{float(x):.18e}" for x in row] for row in spectra(2)],
}


@pytest.mark.parametrize("case", DATA)
def test_rows_alike_are_data(tmp_path, case):
    rows = DATA[case]
    read = io.read_table(saved(tmp_path, table(rows[0], rows[1:])))
    expected = [[float(cell or "nan") for cell in row] for row in rows]
    np.testing.assert_array_equal(read.values, expected)


def test_rows_of_named_points_are_data(tmp_path):
    for ids in (str, "p{}".format, "sample {:03d}".format, names, lambda j: "to" + j * "o"):
        rows = [[ids(j), *row] for j, row in enumerate(spectra(2))]
        read = io.read_table(saved(tmp_path, table(rows[0], rows[1:])))
        assert len(read.values) == ROWS


def test_tables_without_header_are_seldom_asked_about():
    """Of 300 random tables none is read with a header; at most one in twenty is asked about."""
    asked = 0
    for _ in range(300):
        d = int(RNG.integers(1, 9))
        kind = RNG.integers(3)
        values = RNG.normal(size=(30, d)) if kind else RNG.poisson(20, (30, d))
        rows = [[f"{x:.3f}" if kind == 1 else str(x) for x in row] for row in values]
        found = is_header(rows, ".")
        assert not found
        asked += found is None
    assert asked <= 15
