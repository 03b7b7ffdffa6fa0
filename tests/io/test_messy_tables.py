"""Tables as spreadsheets, R and people write them give the numbers, or an error that says where."""

import gzip
import io as streams
import itertools
import re
import sys
import zipfile

import numpy as np
import pytest

from heatsketch import io
from problems.messy_tables import KIND, X, cells, saved, text

pytest.importorskip("pyarrow")


def changed(value, row=5, column=1):
    rows = cells()
    rows[row][column] = value
    return rows


quoted = [[f'"{cell}"' for cell in row] for row in cells(",")]

SAME = {
    "semicolons": text(sep=";"),
    "tabs": text(sep="\t"),
    "bars": text(sep="|"),
    "Windows": text(end="\r\n"),
    "old Mac": text(end="\r"),
    "empty lines": text(end="\n\n"),
    "UTF-8 with mark": "\ufeff" + text(),
    "UTF-16": text().encode("utf-16"),
    "comments": "# made by a machine, today\n# in cm\n" + text(),
    "Excel names the separator": "sep=;\n" + text(sep=";"),
    "separator after all": text().replace("\n", ",\n"),
    "separator after the rows": text().replace("a\n", "a,\n").replace("b\n", "b,\n"),
    "spaces around": text(sep=" , "),
    "plus signs": text([[f"+{c}" if c[0] != "-" else c for c in row] for row in cells()]),
    "R with names": text(front=lambda j: f'"r{j}"'),
    "R with an unnamed column": text(header=('""', '"x"', "y", "z"), front=str),
    "pandas read an index": text(header=("Unnamed: 0", "x", "y", "z"), front=str),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_the_same_numbers_in_another_layout(tmp_path, case):
    table = io.read_table(saved(tmp_path, SAME[case]))
    np.testing.assert_array_equal(table.values, X)
    assert table.columns == ("x", "y", "z")
    assert [kind.strip() for kind in table.extra["kind"]] == KIND


@pytest.mark.parametrize("name", ["t.txt", "t.csv.gz", "t.tsv.gz", "T.TXT.GZ"])
@pytest.mark.parametrize("sep", [",", ";", "\t"])
def test_other_suffixes_of_text(tmp_path, name, sep):
    content = text(sep=sep).encode()
    path = saved(tmp_path, gzip.compress(content) if name.lower().endswith("z") else content, name)
    np.testing.assert_array_equal(io.read_table(path).values, X)


@pytest.mark.parametrize("blank", [" ", "   ", "  \t "])
def test_blanks_separate_in_txt_and_where_they_are_named(tmp_path, blank):
    content = text(sep=blank, front=lambda j: f'"row {j}"')
    for name, options in (("t.txt", {}), ("t.csv", {"sep": "space"})):
        table = io.read_table(saved(tmp_path, content, name), **options)
        np.testing.assert_array_equal(table.values, X)
        assert table.extra[""][4].strip() == "row 4"


def test_very_wide_and_very_long_rows(tmp_path):
    names = [f"{'gene' * 30}{j}" for j in range(3000)]  # the header is longer than a sample
    content = ";".join(names) + "\n" + ("1;" * 2999 + "2\n") * 3
    table = io.read_table(saved(tmp_path, content))
    assert table.values.shape == (3, 3000)
    assert table.columns == tuple(names)
    note = '"' + "one; line\n" * 30_000 + '"'
    table = io.read_table(saved(tmp_path, f"a;note;b\n1;x;2\n3;{note};4\n5;{note};6\n"))
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize("sep", [";", "\t"])
def test_a_row_of_another_length_is_named_for_any_separator(tmp_path, sep):
    content = text(sep=sep) + sep.join("12") + "\n"
    with pytest.raises(ValueError, match="Row #32: Expected 4 columns, got 2"):
        io.read_table(saved(tmp_path, content))
    with pytest.raises(ValueError, match="Expected 1 columns, got 2"):  # no cell to leave out
        io.read_table(saved(tmp_path, "x\n1\n2\n3\n4,5\n"), missing="drop")


def test_a_packed_file_is_refused_before_it_fills_the_memory(tmp_path, limits):
    limits(unpacked_bytes=2**20)
    path = saved(tmp_path, gzip.compress(b"x\n" + b"1\n" * 2**21), "t.csv.gz")
    with pytest.raises(ValueError, match="would unpack"):
        io.read_table(path)
    for content in (b"not gzip", gzip.compress(text().encode())[:-20]):
        with pytest.raises(ValueError, match=r"u\.csv\.gz cannot be read"):
            io.read_table(saved(tmp_path, content, "u.csv.gz"))


def test_standard_input_is_text(monkeypatch):
    content = streams.TextIOWrapper(streams.BytesIO(text(sep=";").encode()))
    monkeypatch.setattr(sys, "stdin", content)
    np.testing.assert_array_equal(io.read_table("-").values, X)


# Decimal commas


@pytest.mark.parametrize(
    "content", [text(cells(","), sep=";"), text(quoted), text(quoted, sep="\t")]
)
def test_decimal_commas_are_read_if_said_and_refused_if_not(tmp_path, content):
    path = saved(tmp_path, content)
    np.testing.assert_array_equal(io.read_table(path, decimal=",").values, X)
    value = cells(",")[0][0]
    words = (
        rf"column 'x' holds '{value}' in row 0 \(line 2 of the file\) \(30 such cells\).*decimal=,"
    )
    with pytest.raises(ValueError, match=words):
        io.read_table(path)


def test_one_column_with_decimal_commas_is_not_lost(tmp_path):
    rows = cells()
    for row in rows:
        row[1] = '"' + row[1].replace(".", ",") + '"'
    path = saved(tmp_path, text(rows))
    for missing in ("keep", "error", "drop", "median"):  # numbers are not missing
        with pytest.raises(ValueError, match="column 'y' holds"):
            io.read_table(path, missing=missing)
    with pytest.raises(ValueError, match="column 'x' holds"):
        io.read_table(path, decimal=",")
    assert io.read_table(path, exclude="y").columns == ("x", "z")


@pytest.mark.parametrize(
    "cells",
    [
        ["184 cm", "190 cm", "171 cm"],
        ["1.234,5", "2.345,5", "3.456,5"],
        ["1,5", "2.5", "3,5"],
        ["5 %", "6 %", "7 %"],
    ],
)
def test_no_decimal_mark_is_hinted_at_that_does_not_help(tmp_path, cells):
    path = saved(tmp_path, "a;b\n" + "".join(f"{k};{cell}\n" for k, cell in enumerate(cells)))
    for mark in ".,":
        with pytest.raises(ValueError, match=r"column 'b' holds.*write numbers") as caught:
            io.read_table(path, decimal=mark)
        assert "decimal=" not in str(caught.value)


def test_columns_with_different_marks_are_no_reason_for_either(tmp_path):
    path = saved(tmp_path, "a;b;c\n1,5;1.5;1\n2,5;2.5;2\n")
    for mark, name in ((".", "a"), (",", "b")):
        with pytest.raises(ValueError, match=f"column '{name}' holds") as caught:
            io.read_table(path, decimal=mark)
        assert "decimal=" not in str(caught.value)


def test_a_mark_that_mends_one_of_two_columns_is_hinted_at(tmp_path):
    path = saved(tmp_path, "a;b;c\n1,5;184 cm;1\n2,5;190 cm;2\n")
    with pytest.raises(ValueError, match=r"column 'a' holds .*, column 'b' holds .*decimal=','"):
        io.read_table(path)
    with pytest.raises(ValueError, match="column 'b' holds") as caught:
        io.read_table(path, decimal=",")
    assert "column 'a'" not in str(caught.value)
    assert "decimal=" not in str(caught.value)


def test_all_bad_columns_are_named_at_once(tmp_path):
    """Up to five, by what is to be done: all that a user mends before the next try."""
    commas = text(cells(","), sep=";")
    with pytest.raises(ValueError, match=r"column 'x' .*, column 'y' .*, column 'z' .*decimal=,"):
        io.read_table(saved(tmp_path, commas))
    mixed = "a,b,c,d,e\n1,2 kg,?,1,9223372036854775807\n2,3 kg,5,n.d.,1\n3,4 kg,6,7,2\n"
    with pytest.raises(ValueError, match="column 'b' holds") as caught:
        io.read_table(saved(tmp_path, mixed))
    said = str(caught.value)
    assert all(f"column {name!r} holds" in said for name in "bcde")
    assert "in row 0 (line 2 of the file), column 'd' holds 'n.d.' in row 1" in said
    assert ".." not in said
    many = ",".join(f"c{k}" for k in range(7)) + "\n" + 3 * (",".join(7 * ["5 %"]) + "\n")
    with pytest.raises(ValueError, match=r"column 'c4' holds .* and 2 more; write numbers"):
        io.read_table(saved(tmp_path, many))


OTHER_NOTATION = ['"1,234.5"', "1'234.5", "1 234", "12 %", "12%", "€5", "5,0 €", "−1.5", "(1.5)"]


@pytest.mark.parametrize("value", OTHER_NOTATION)
def test_numbers_in_another_notation_are_refused_with_their_place(tmp_path, value):
    path = saved(tmp_path, text(changed(value), sep=";" if value == "5,0 €" else ","))
    for missing in ("keep", "drop"):
        with pytest.raises(
            ValueError, match=r"column 'y' holds .* in row 5 \(line 7 of the file\)"
        ):
            io.read_table(path, missing=missing)


@pytest.mark.parametrize("unit", ["kg", "°C", "mg/l"])
def test_numbers_with_one_unit_are_not_lost(tmp_path, unit):
    rows = [[row[0], f"{row[1]} {unit}", row[2]] for row in cells()]
    with pytest.raises(ValueError, match=rf"column 'y' holds '.* {unit}' in row 0.*units"):
        io.read_table(saved(tmp_path, text(rows)))
    rows[3][1] = "3 others"
    assert io.read_table(saved(tmp_path, text(rows))).columns == ("x", "z")


@pytest.mark.parametrize("value", ["01.02.2024", "1.2.3", "10-12", "A17", "e5", "12:30"])
def test_dates_codes_and_ranges_are_text(tmp_path, value):
    rows = [[row[0], f"{value}" if j % 2 else value[::-1], row[2]] for j, row in enumerate(cells())]
    table = io.read_table(saved(tmp_path, text(rows)))
    assert table.columns == ("x", "z")
    assert table.extra["y"][1] == value


# Cells that are not numbers


@pytest.mark.parametrize("value", ["n.d.", "?", "-", "<0.1", "x", "#DIV/0!"])
def test_a_bad_cell_is_named_and_the_options_settle_it(tmp_path, value):
    path = saved(tmp_path, text(changed(value)))
    place = (
        rf"t\.csv: column 'y' holds '{value.replace('?', '[?]')}' in row 5 \(line 7 of the file\)"
    )
    for missing in ("keep", "error"):
        with pytest.raises(ValueError, match=f"{place}.*--missing.*--exclude"):
            io.read_table(path, missing=missing)
    dropped = io.read_table(path, missing="drop")
    np.testing.assert_array_equal(dropped.values, np.delete(X, 5, axis=0))
    assert dropped.extra["kind"].tolist() == KIND[:5] + KIND[6:]
    assert any(repr(value) in note for note in dropped.notes)
    filled = io.read_table(path, missing="median").values
    expected = X.copy()
    expected[5, 1] = np.median(np.delete(X[:, 1], 5))
    np.testing.assert_array_equal(filled, expected)
    passed = io.read_table(path, exclude="y")
    assert passed.columns == ("x", "z")
    assert passed.extra["y"][5] == value
    for option in ("label", "ids"):
        assert io.read_table(path, **{option: "y"}).columns == ("x", "z")


def test_cells_that_repeat_do_not_hide_the_numbers(tmp_path):
    rows = cells()
    for j in range(0, 30, 3):
        rows[j][1] = rows[j + 1][1] = "below limit"  # most cells, but few of the different ones
    with pytest.raises(ValueError, match="column 'y' holds 'below limit' in row 0"):
        io.read_table(saved(tmp_path, text(rows)))


def test_text_with_a_few_numbers_is_text(tmp_path):
    rows = [[row[0], "7" if j == 3 else f"w{j}", row[2]] for j, row in enumerate(cells())]
    assert io.read_table(saved(tmp_path, text(rows))).columns == ("x", "z")


def test_the_line_counts_quoted_and_empty_lines(tmp_path):
    content = '# a\n\nname,y\n"two\nlines",1\n\nb,2\nc,x\nd,4\n'
    with pytest.raises(ValueError, match=r"holds 'x' in row 2 \(line 8 of the file\)"):
        io.read_table(saved(tmp_path, content))


@pytest.mark.parametrize("value", ["", " ", "NA", "nan", "None", "<NA>", "null", "#N/A"])
@pytest.mark.parametrize("column", [0, 1])
def test_gaps_are_gaps(tmp_path, value, column):
    path = saved(tmp_path, text(changed(value, column=column)))
    expected = X.copy()
    expected[5, column] = np.nan
    np.testing.assert_array_equal(io.read_table(path).values, expected)
    with pytest.raises(ValueError, match=f"NaN.*row 5, column '{'xyz'[column]}'.*--missing"):
        io.read_table(path, missing="error")
    assert len(io.read_table(path, missing="drop").values) == 29


def test_gaps_that_leave_nothing_are_refused(tmp_path):
    path = saved(tmp_path, "a,b\n1,\n,2\n")
    with pytest.raises(ValueError, match="every row of"):
        io.read_table(path, missing="drop")
    np.testing.assert_array_equal(io.read_table(path, missing="median").values, [[1, 2], [1, 2]])
    path = saved(tmp_path, "a,b\n1,2\n3,4\n,\n")  # spreadsheets end so
    with pytest.raises(ValueError, match=r"row\(s\) 2 .* hold no number.*missing='drop'"):
        io.read_table(path, missing="median")
    np.testing.assert_array_equal(io.read_table(path, missing="drop").values, [[1, 2], [3, 4]])
    path = saved(tmp_path, "a,b\n1,NA\n2,NA\n")
    with pytest.raises(ValueError, match=r"column 'b'.*holds nothing"):
        io.read_table(path, features=["a", "b"])


def test_gaps_in_arrays(tmp_path):
    values = X.astype(np.float32)
    values[[3, 7], [0, 1]] = np.nan
    np.save(tmp_path / "t.npy", values)
    with pytest.raises(ValueError, match="row 3, column 'x0'"):
        io.read_table(tmp_path / "t.npy", missing="error")
    kept = io.read_table(tmp_path / "t.npy", missing="drop")
    np.testing.assert_array_equal(kept.values, np.delete(values, [3, 7], axis=0))
    assert "3, 7" in kept.notes[0]
    filled = io.read_table(tmp_path / "t.npy", missing="median").values
    assert filled.dtype == np.float32
    assert filled[3, 0] == np.float32(np.nanmedian(values[:, 0]))
    values[0, 0] = np.inf
    np.save(tmp_path / "t.npy", values)
    with pytest.raises(ValueError, match=r"infinity.*row 0, column 'x0'"):
        io.read_table(tmp_path / "t.npy", missing="drop")


# The header


@pytest.mark.parametrize("front", [None, lambda j: f"p{j}"])
def test_a_file_without_header_keeps_its_first_row(tmp_path, front):
    path = saved(tmp_path, text(header=None, front=front))
    np.testing.assert_array_equal(io.read_table(path).values, X)
    np.testing.assert_array_equal(io.read_table(path, header=False).values, X)
    assert len(io.read_table(path, header=True).values) == 29


def test_a_first_row_that_may_be_either_is_asked_about(tmp_path):
    path = saved(tmp_path, "Paris,1.5,2.5,3.5\nRome,2,1,2\nOslo,4,3,2\n")
    with pytest.raises(ValueError, match=r"may be a header or data.*header=yes.*header=no"):
        io.read_table(path)
    assert io.read_table(path, header=False).values.shape == (3, 3)
    assert io.read_table(path, header=True).columns == ("1.5", "2.5", "3.5")


@pytest.mark.parametrize("order", list(itertools.permutations(["1.5", "7", "0.25"])))
def test_a_bad_cell_in_the_first_row_is_not_a_name(tmp_path, order):
    first = ",".join([order[0], "n.d.", *order[1:]])
    with pytest.raises(ValueError, match=r"n\.d\."):
        io.read_table(saved(tmp_path, f"{first}\n1,2,3,4\n5,6,7,8\n4,5,6,7\n"))


def test_years_are_names_above_numbers_and_categories(tmp_path):
    rows = "".join(f"{'ab'[j % 2]},{j}.5,{j * j},7\n" for j in range(12))
    table = io.read_table(saved(tmp_path, "group,1990,1991,1992\n" + rows))
    assert table.columns == ("1990", "1991", "1992")
    assert len(table.values) == 12


def test_names_after_a_comment_sign(tmp_path):
    path = tmp_path / "t.csv"
    np.savetxt(path, X, delimiter=",", header="x,y,z")
    table = io.read_table(path)
    assert table.columns == ("x", "y", "z")
    np.testing.assert_allclose(table.values, X)


def test_empty_names_with_data_are_kept_and_without_are_not(tmp_path):
    table = io.read_table(saved(tmp_path, "a,,,\n1,2,,\n3,4,,\n"))
    assert table.columns == ("a", "column 2")
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])
    assert table.extra == {}


def test_a_table_without_rows_says_so(tmp_path):
    with pytest.raises(ValueError, match="has no rows below its header"):
        io.read_table(saved(tmp_path, "a,b\n"))
    with pytest.raises(ValueError, match="has no rows below its header"):
        io.read_table(saved(tmp_path, "a,b\n"), features=["a", "b"])


# Spreadsheets and zarr


def test_formulas_that_were_never_computed_are_refused(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["x", "y", "twice"])
    for row, (x, y, _) in enumerate(X.tolist(), start=2):
        book.active.append([x, y, f"=A{row}*2"])
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match=r"the formula =A2\*2 without a value in C2; open it in"):
        io.read_table(tmp_path / "t.xlsx")


def test_formulas_with_values_are_read_even_where_the_value_is_no_text(tmp_path):
    """A spreadsheet program stores the value of each formula beside it."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["x", "y", "note"], [0.5, 0.25, "=1"], [1.5, 0.75, "=1"], [2.5, 0.5, "=1"]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    sheet = files["xl/worksheets/sheet1.xml"].decode()
    for row, value in ((2, "few"), (3, ""), (4, "few")):
        cell = rf'<c r="C{row}"[^>]*><f>1</f><v ?/?>(</v>)?</c>'
        stored = f'<c r="C{row}" t="str"><f>1</f><v>{value}</v></c>'
        sheet, count = re.subn(cell, stored, sheet)
        assert count == 1
    files["xl/worksheets/sheet1.xml"] = sheet.encode()
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    table = io.read_table(tmp_path / "t.xlsx")
    assert table.columns == ("x", "y")
    assert table.extra["note"].tolist() == ["few", "", "few"]


def test_a_sheet_is_read_by_the_same_rules(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append([])
    book.active.append(["x", "y", "z", "kind"])
    for row, kind in zip(X.tolist(), KIND, strict=True):
        book.active.append([*row, kind])
    other = book.create_sheet("bare")
    for row in X.tolist():
        other.append(row)
    book.save(tmp_path / "t.xlsx")
    table = io.read_table(tmp_path / "t.xlsx")
    np.testing.assert_array_equal(table.values, X)
    assert (table.columns, table.label) == (("x", "y", "z"), "kind")
    assert table.extra["kind"].tolist() == KIND
    np.testing.assert_array_equal(io.read_table(tmp_path / "t.xlsx", key="bare").values, X)
    with pytest.raises(ValueError, match=r"no sheet 'Bare'.*did you mean 'bare'"):
        io.read_table(tmp_path / "t.xlsx", key="Bare")
    book.worksheets[0]["B8"] = "1,5"
    book.worksheets[0]["C9"] = None
    book.save(tmp_path / "u.xlsx")
    with pytest.raises(
        ValueError, match=r"column 'y' holds '1,5' in row 5 \(line 8 of the sheet\)"
    ):
        io.read_table(tmp_path / "u.xlsx")
    assert np.isnan(io.read_table(tmp_path / "u.xlsx", exclude="y").values[6, 1])
    (tmp_path / "v.xlsx").write_text("no sheet")
    with pytest.raises(ValueError, match=r"v\.xlsx cannot be read"):
        io.read_table(tmp_path / "v.xlsx")


def test_zarr_arrays_and_groups(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.save_array(str(tmp_path / "a.zarr"), X)
    np.testing.assert_array_equal(io.read_table(tmp_path / "a.zarr").values, X)
    zarr.save_group(str(tmp_path / "g.zarr"), first=X, second=2 * X)
    with pytest.raises(ValueError, match=r"first, second.*--read key"):
        io.read_table(tmp_path / "g.zarr")
    np.testing.assert_array_equal(io.read_table(tmp_path / "g.zarr", key="second").values, 2 * X)
    (tmp_path / "e.zarr").mkdir()
    with pytest.raises(ValueError, match=r"e\.zarr cannot be read"):
        io.read_table(tmp_path / "e.zarr")
    note = tmp_path / "a.zarr" / "zarr.json"
    note.write_text(note.read_text().replace("{", '{"x": "pickle",', 1))
    with pytest.raises(ValueError, match="pickled"):
        io.read_table(tmp_path / "a.zarr")


@pytest.mark.filterwarnings("ignore:Writing zarr v2")
def test_zarr_of_anndata_reads_as_h5ad(tmp_path):
    anndata = pytest.importorskip("anndata")
    pytest.importorskip("zarr")
    pd = pytest.importorskip("pandas")
    obs = pd.DataFrame(
        {"depth": X[:, 0], "type": pd.Categorical(KIND)},
        index=pd.Index([f"c{j}" for j in range(30)], name="cell"),
    )
    data = anndata.AnnData(X.copy(), obs=obs, var=pd.DataFrame(index=["g1", "g2", "g3"]))
    data.obsm["X_pca"] = X[:, :2].copy()
    data.write_h5ad(tmp_path / "t.h5ad")
    data.write_zarr(tmp_path / "t.zarr")
    for key in (None, "X_pca"):
        first, second = (
            io.read_table(tmp_path / f"t.{form}", key=key) for form in ("h5ad", "zarr")
        )
        np.testing.assert_array_equal(first.values, second.values)
        assert (first.columns, first.label) == (second.columns, second.label)
        assert list(first.extra) == list(second.extra)
        for name in first.extra:
            assert first.extra[name].tolist() == second.extra[name].tolist()
    with pytest.raises(ValueError, match="did you mean 'obsm/X_pca'"):
        io.read_table(tmp_path / "t.zarr", key="obsm/X_pac")
