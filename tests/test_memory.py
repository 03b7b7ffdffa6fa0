"""Memory: what is available, what is refused, and what is not copied."""

import tracemalloc

import numpy as np
import pytest

from heatsketch import _budget, io
from heatsketch._checks import check_points
from problems.clouds import cloud


def peak_of(work):
    """Return the bytes that NumPy allocates at the peak of a call, beyond what there was."""
    work()  # imports
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def test_what_is_not_available_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(_budget, "available", lambda: 1e9)
    _budget.require(1e9, "All distances", "use landmarks.")
    with pytest.raises(MemoryError, match=r"All distances take about 8,000.0 GB, but only 1.0 GB"):
        _budget.require(8e12, "All distances", "use landmarks.")


def test_memory_of_the_machine_is_what_linux_calls_available(tmp_path):
    path = tmp_path / "meminfo"
    path.write_text("MemTotal:  4000 kB\nMemFree:  100 kB\nMemAvailable:  2500 kB\n")
    assert _budget._of_machine(path) == 2500 * 1024
    assert _budget._of_machine(tmp_path / "none") > 2**20  # all there is
    assert 2**20 < _budget.available() < np.inf or _budget.available() == np.inf


VERSIONS = {
    "2": ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    "1": (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
}


@pytest.mark.parametrize("names", VERSIONS.values(), ids=VERSIONS)
def test_a_container_leaves_its_limit_less_what_it_holds(tmp_path, names):
    (tmp_path / "memory").mkdir()
    limit, used, statistics, files = names
    (tmp_path / limit).write_text("5000\n")
    (tmp_path / used).write_text("2000\n")
    (tmp_path / statistics).write_text(f"anon 1200\n{files} 700\nactive_file 100\n")
    assert _budget._of_group(tmp_path) == 5000 - 2000 + 700
    (tmp_path / limit).write_text("max\n")
    assert _budget._of_group(tmp_path) == np.inf
    assert _budget._of_group(tmp_path / "none") == np.inf


# A mapped file


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_mapped_file_is_read_and_checked_without_a_copy(tmp_path, dtype):
    X = cloud(50_000, 20, dtype=dtype)
    np.save(tmp_path / "X.npy", X)
    peak, values = peak_of(lambda: check_points(io.read_table(tmp_path / "X.npy").values))
    assert peak < 0.2 * X.nbytes
    assert values.dtype == dtype
    np.testing.assert_array_equal(values, X)
