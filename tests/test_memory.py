"""Memory: what is available, what is refused, and what is not copied."""

import tracemalloc

import numpy as np
import pytest

from heatsketch import _threads, io
from heatsketch._checks import check_points
from problems.clouds import cloud


def test_what_is_not_available_is_refused_with_what_to_do(limits):
    limits(available=lambda: 1e9)
    _threads.require_memory(1e9, "All distances", "use landmarks.")
    with pytest.raises(MemoryError, match=r"All distances take about 8e\+03 GB, but only 1 GB is"):
        _threads.require_memory(8e12, "All distances", "use landmarks.")


def test_available_is_what_linux_says_and_a_container_leaves(tmp_path):
    assert _threads.available_memory(tmp_path) > 2**20  # all there is
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    lines = "MemTotal:  4000 kB\nMemFree:  100 kB\nMemAvailable:  2500 kB\nHugePages_Total:  0\n"
    (tmp_path / "proc/meminfo").write_text(lines)
    assert _threads.available_memory(tmp_path) == 2500 * 1024
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("2000\n")
    (group / "memory.stat").write_text("anon 1200\ninactive_file 700\nactive_file 100\n")
    assert _threads.available_memory(tmp_path) == 2500 * 1024
    (group / "memory.max").write_text("5000\n")
    assert _threads.available_memory(tmp_path) == 5000 - 2000 + 700


# A mapped file


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_mapped_file_is_read_and_checked_without_a_copy(tmp_path, dtype):
    X = cloud(50_000, 20, dtype=dtype)
    np.save(tmp_path / "X.npy", X)
    check_points(io.read_table(tmp_path / "X.npy").values)  # imports
    tracemalloc.start()
    values = check_points(io.read_table(tmp_path / "X.npy").values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * X.nbytes
    assert values.dtype == dtype
    np.testing.assert_array_equal(values, X)
