"""Text and Parquet by blocks of rows: the rows of the whole table."""

import csv
import gzip
import tracemalloc
from io import StringIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from heatsketch import io
from heatsketch.io.formats import open_blocks
from heatsketch.io.table import Reading, joined
from problems.messy_tables import saved
from problems.messy_tables import text as messy

N = 5000
RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(N, 3)).round(4)
KIND = [f'{"ab"[j % 2]}, "{j}"' for j in range(N)]
CELLS = [[f"{j:05d}", *VALUES[j].tolist(), KIND[j]] for j in range(N)]
CELLS[77][2] = ""


def rows(sep=","):
    out = StringIO()
    writer = csv.writer(out, delimiter=sep, lineterminator="\n")
    writer.writerows([["id", "x", "y", "z", "kind"], *CELLS])
    return out.getvalue()


@pytest.fixture
def small_blocks(limits):
    limits(block_bytes=2**14)


CONTENT = {
    "t.csv": rows().encode(),
    "semicolons.csv": rows(";").encode(),
    "mark.csv": b"\xef\xbb\xbf" + rows().encode(),
    "comments.csv": b"# made today\n# in cm\n" + rows().encode(),
    "Windows.csv": rows().replace("\n", "\r\n").encode(),
    "t.tsv": rows("\t").encode(),
    "t.txt": rows("|").encode(),
    "t.csv.gz": gzip.compress(rows().encode()),
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", [*CONTENT, "t.parquet"])
@pytest.mark.parametrize("start", [0, 1, 4321])
def test_blocks_are_the_rows_of_the_whole_table(tmp_path, name, start):
    if name == "t.parquet":
        path = tmp_path / name
        columns = {"id": [f"{j:05d}" for j in range(N)], "kind": KIND}
        columns |= dict(zip("xyz", VALUES.T, strict=True))
        pa.parquet.write_table(pa.table(columns), path, row_group_size=1700)
    else:
        path = saved(tmp_path, CONTENT[name], name)
    whole, found = io.read_table(path), open_blocks(path, Reading())
    assert (found.n, found.columns, found.dtype) == (N, ("x", "y", "z"), np.float64)
    assert len(list(found.read(0))) > 5
    tables = list(found.tables(400, start))
    assert {len(table.values) for table in tables[:-1]} <= {400}
    table = joined(tables)
    np.testing.assert_array_equal(table.values, whole.values[start:])
    assert list(table.extra) == ["id", "kind"]
    for column in ("id", "kind"):
        assert table.extra[column].tolist() == whole.extra[column][start:].tolist()


def test_a_folder_of_text_is_read_part_after_part(tmp_path):
    lines = rows().splitlines(keepends=True)
    for part, at in enumerate(range(1, N + 1, 1000)):
        (tmp_path / f"part-{part}.csv").write_text(lines[0] + "".join(lines[at : at + 1000]))
    found = open_blocks(tmp_path, Reading(exclude="y"))
    assert (found.n, found.columns) == (N, ("x", "z"))
    expected = VALUES[:, [0, 2]]
    np.testing.assert_array_equal(joined(list(found.tables(999))).values, expected)


@pytest.mark.usefixtures("small_blocks")
def test_a_bad_cell_in_a_later_block_is_named_with_its_row(tmp_path):
    lines = rows().splitlines(keepends=True)
    lines[4001] = lines[4001].replace("\n", "").replace(str(VALUES[4000, 0]), "n.d.") + "\n"
    found = open_blocks(saved(tmp_path, "".join(lines)), Reading())
    with pytest.raises(ValueError, match=r"column 'x' holds 'n\.d\.' in row 4000"):
        list(found.read(0))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (messy().encode("utf-16"), "save it as UTF-8"),
        (messy(sep="   "), "is read whole, since"),
        (messy(sep=', "').replace("\n", '"\n'), "is read whole, since"),
    ],
)
def test_text_that_must_be_rewritten_is_not_read_by_blocks(tmp_path, content, words):
    with pytest.raises(ValueError, match=words):
        open_blocks(saved(tmp_path, content, "t.txt"), Reading())


def test_text_takes_the_memory_of_its_blocks(tmp_path, limits):
    """8 MB of text, of which 64 kB are read at a time: at most a third."""
    limits(block_bytes=2**16)
    path = tmp_path / "t.csv"
    lines = rows().splitlines(keepends=True)
    path.write_text(lines[0] + "".join(lines[1:]) * 40)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    peak, count = 0, 0
    for table in open_blocks(path, Reading()).tables(1024):
        count += len(table.values)
        peak = max(peak, pa.total_allocated_bytes() - before)
    python = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 40 * N
    assert max(peak, python) < path.stat().st_size / 3
