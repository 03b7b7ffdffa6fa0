"""Files are read back as they were written, hostile ones refused, old ones never half replaced."""

import errno
import gzip
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pyarrow import parquet

from heatsketch import io
from heatsketch.io import files
from problems.messy_tables import saved
from problems.tables import TEXT, table_of

TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir())


# Round trips

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
single = st.floats(allow_nan=False, allow_infinity=False, width=32)


@pytest.mark.parametrize("suffix", [s for s in io.SUFFIXES if s != ".h5ad"])
@pytest.mark.parametrize(("dtype", "numbers"), [(np.float64, finite), (np.float32, single)])
def test_embedding_survives_to_the_last_bit(tmp_path_factory, suffix, dtype, numbers):
    path = tmp_path_factory.mktemp("round") / f"t{suffix}"

    @settings(max_examples=12)
    @given(Y=arrays(dtype, (6, 2), elements=numbers))
    def check(Y):
        io.write_table(path, Y, ["u", "v"], table_of(6), force=True)
        back = io.read_table(path)
        np.testing.assert_array_equal(back.values.astype(dtype), Y)
        if suffix not in TEXT_SUFFIXES:
            assert back.values.dtype == dtype
        assert back.columns == (("x0", "x1") if suffix == ".npy" else ("u", "v"))

    check()


def read_back(path, table, Y=None, names=None):
    """Write a table, with its own values by default, and read it again."""
    Y, names = (table.values, table.columns) if Y is None else (Y, names)
    io.write_table(path, Y, names, table)
    return io.read_table(path)


@pytest.mark.parametrize("suffix", [".npz", *TEXT_SUFFIXES, ".CSV.GZ", ".parquet"])
def test_ids_and_labels_survive(tmp_path, suffix):
    """Under the name NAME_input if an array or coordinate of the output has their name."""
    cells = np.array(["a", None, *"bcdefgh"], object)  # the label comes before them
    words = dict.fromkeys(("-mark", "x", "embedding"), cells)
    table, taken = table_of(**words), "embedding" if suffix == ".npz" else "x"
    back = read_back(tmp_path / f"t{suffix}", table, -np.eye(9)[:, :2], ["x", "y"])
    if suffix.lower() in TEXT_SUFFIXES:
        content = (tmp_path / f"t{suffix}").read_bytes()
        content = gzip.decompress(content) if suffix.lower().endswith("gz") else content
        sep = b"," if "csv" in suffix.lower() else b"\t"
        assert content.splitlines()[0].count(sep) == 6
    np.testing.assert_array_equal(back.values, -np.eye(9)[:, :2])
    names = [f"{name}_input" if name == taken else name for name in words]
    assert list(back.extra) == ["id", "group", *names]
    assert back.extra["id"].tolist() == table.extra["id"].tolist()
    assert back.extra["group"].tolist() == list(TEXT)
    for name in names:
        assert back.extra[name].tolist() == ["a", None if suffix == ".parquet" else "", *"bcdefgh"]
    assert back.label == "group"


@given(
    words=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")),
        min_size=2,
        max_size=2,
    )
)
def test_any_text_survives_csv(tmp_path_factory, words):
    words = [f"w{word}" for word in words]
    table = io.Table(np.eye(2), ("a", "b"), {"name": np.array(words, object)}, None, "made up")
    back = read_back(tmp_path_factory.mktemp("text") / "t.csv", table)
    assert back.extra["name"].tolist() == words


def test_cells_that_spreadsheets_run_are_written_as_they_are(tmp_path):
    """SECURITY.md says so: another program compares ids."""
    words = np.array(["=1+1", "+1", "-x", "@SUM(A1)"], object)
    table = io.Table(np.eye(4), tuple("abcd"), {"id": words}, None, "made up")
    assert read_back(tmp_path / "t.csv", table).extra["id"].tolist() == words.tolist()
    assert (tmp_path / "t.csv").read_text().splitlines()[1].split(",")[0].strip('"') == "=1+1"


# Sources


def test_builtin_name_means_the_set_and_a_dot_means_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert io.read_table("digits").values.shape == (1797, 64)
    with pytest.raises(IsADirectoryError, match="is a folder; pass a file"):
        io.read_table("./digits")


def test_unreadable_source_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing.csv does not exist.*swiss_roll"):
        io.read_table(tmp_path / "missing.csv")


def test_key_is_refused_where_there_is_nothing_to_choose(tmp_path):
    for source in ("digits", saved(tmp_path, "a\n1\n")):
        with pytest.raises(ValueError, match="key='X'"):
            io.read_table(source, key="X")


def test_a_packed_file_is_refused_before_it_fills_the_memory(tmp_path, limits):
    limits(unpacked_bytes=2**20)
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((2**10, 2**10)))
    parquet.write_table(pa.table({"a": np.zeros(10**6)}), tmp_path / "t.parquet")
    for name in ("t.npz", "t.parquet"):
        with pytest.raises(ValueError, match="would unpack"):
            io.read_table(tmp_path / name)


# Refusals before anything is written


@pytest.mark.parametrize("suffix", io.SUFFIXES)
def test_existing_file_is_kept_without_force(tmp_path, suffix):
    path = saved(tmp_path, "old", f"t{suffix}")
    table = table_of(2)
    with pytest.raises(FileExistsError, match=r"exists; pass force=True \(--force\)"):
        io.write_table(path, np.eye(2), ["u", "v"], table)
    assert path.read_text() == "old"
    io.write_table(path, np.eye(2), ["u", "v"], table, force=True)
    assert path.read_bytes() != b"old"
    assert leftovers(tmp_path) == [path.name]


def test_input_is_never_replaced(tmp_path):
    path = saved(tmp_path, "a,b\n1,2\n3,4\n")
    (tmp_path / "alias.csv").symlink_to(path)
    table = io.read_table(path)
    for name in ("t.csv", "alias.csv"):
        with pytest.raises(ValueError, match="is also the input"):
            io.write_table(tmp_path / name, np.eye(2), ["u", "v"], table, force=True)
    assert path.read_text() == "a,b\n1,2\n3,4\n"


@pytest.mark.parametrize(
    ("Y", "names", "words"),
    [
        (np.array([[1.0], [np.nan]]), ["u"], "NaN or infinite"),
        (np.array([[-np.inf], [1.0]]), ["u"], "NaN or infinite"),
        (np.eye(3), ["u", "v", "w"], "3 rows but made up has 2 points"),
        (np.eye(2), ["u"], "pass 2 different names"),
        (np.eye(2), ["u", "u"], "pass 2 different names"),
        (np.zeros(2), ["u"], "shape"),
        (np.array([["a"], ["b"]]), ["u"], "dtype"),
    ],
)
def test_embedding_that_does_not_fit_is_refused(tmp_path, Y, names, words):
    with pytest.raises(ValueError, match=words):
        io.write_table(tmp_path / "t.csv", Y, names, table_of(2))
    assert leftovers(tmp_path) == []


def test_unwritable_places_are_named(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    arguments = np.eye(2), ["u", "v"], table_of(2)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        io.write_table(tmp_path / "folder.csv", *arguments)
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        io.write_table(tmp_path / "nowhere" / "t.csv", *arguments)
    with pytest.raises(ValueError, match=r"no known suffix; choose from \.npy"):
        io.write_table(tmp_path / "t.xlsx", *arguments)
    for key in ("obsm/", "a/b"):
        with pytest.raises(ValueError, match="key="):
            io.write_table(tmp_path / "t.h5ad", *arguments, key=key)


# Atomic writing


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), SystemExit(1)])
@pytest.mark.parametrize("old", [None, "old"])
def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, error, old):
    path = tmp_path / "t.txt"
    if old is not None:
        path.write_text(old)

    def half(draft):
        draft.write_text("half")
        raise error

    with pytest.raises(type(error)):
        io.write_atomically(path, half, force=True)
    assert leftovers(tmp_path) == ([] if old is None else ["t.txt"])
    assert old is None or path.read_text() == old


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OSError(errno.EFBIG, "File too large"),
        OSError("1000 requested and 12 written"),  # as NumPy says it, without a number
        RuntimeError("Can't decrement id ref count (file write failed: errno = 28, error message"),
    ],
)
def test_a_full_disk_is_named_with_the_file(error, tmp_path):
    """And not the file that is copied, as one that is damaged."""

    def fail(draft):
        with files.blame(tmp_path / "source.h5ad"):
            raise error

    with pytest.raises(OSError, match=r"t\.txt could not be written \(.*make room on") as caught:
        io.write_atomically(tmp_path / "t.txt", fail)
    assert "source" not in str(caught.value)
    assert caught.value.errno == (getattr(error, "errno", None) or errno.ENOSPC)
    assert leftovers(tmp_path) == []


def test_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "t.txt"
    with pytest.raises(FileExistsError, match="exists"):
        io.write_atomically(path, lambda draft: path.write_text("theirs"))
    assert path.read_text() == "theirs"
    assert leftovers(tmp_path) == ["t.txt"]


def test_link_is_followed_and_permissions_are_ordinary(tmp_path):
    (tmp_path / "deep").mkdir()
    real = saved(tmp_path / "deep", "old", "real.txt")
    (tmp_path / "link.txt").symlink_to(real)
    io.write_atomically(tmp_path / "link.txt", lambda draft: draft.write_text("new"), force=True)
    assert (tmp_path / "link.txt").is_symlink()
    assert real.read_text() == "new"
    plain = saved(tmp_path, "plain", "plain.txt")
    assert real.stat().st_mode == plain.stat().st_mode


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such permissions")
@pytest.mark.parametrize("suffix", [*io.SUFFIXES, ".h5ad of the input"])
@pytest.mark.parametrize("mode", [0o600, 0o440, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, suffix, mode):
    path, table = tmp_path / f"t{suffix.split()[0]}", table_of(2)
    io.write_table(path, np.eye(2), ["u", "v"], table)
    path.chmod(mode)
    in_place = suffix not in io.SUFFIXES
    table = replace(table, extra={}, label=None, source=str(path)) if in_place else table
    io.write_table(path, np.eye(2), ["u", "v"], table, key="X", force=True, in_place=in_place)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such permissions")
def test_nobody_else_reads_a_private_file_while_it_is_written(tmp_path):
    path, modes = saved(tmp_path, "old", "t.txt"), []
    path.chmod(0o600)
    io.write_atomically(path, lambda draft: modes.append(draft.stat().st_mode), force=True)
    assert [stat.S_IMODE(mode) for mode in modes] == [0o600]


@pytest.mark.parametrize("fails", ["touch", "open", "replace"])
def test_an_error_names_the_file_and_not_the_draft(tmp_path, fails, monkeypatch):
    def refuse(draft, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(draft))

    path = tmp_path / "t.txt"
    monkeypatch.setattr(Path, fails, refuse)
    with pytest.raises(PermissionError, match=r"t\.txt could not be written \(.*another") as caught:
        io.write_atomically(path, lambda draft: None)
    assert files.DRAFT not in str(caught.value)
    assert leftovers(tmp_path) == []


def test_killed_process_leaves_the_old_file(tmp_path):
    path = saved(tmp_path, "old", "t.txt")
    program = """if True:
        import sys, time
        from heatsketch import io
        def write(draft):
            draft.write_text("half")
            print("started", flush=True)
            time.sleep(60)
        io.write_atomically(sys.argv[1], write, force=True)
    """
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"started\n"
        child.kill()
    assert child.returncode != 0
    assert path.read_text() == "old"
