"""What a report of a fault should say: the versions and the machine that results depend on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys

from heatsketch._version import __version__

_ALWAYS = ("numpy", "scipy", "scikit-learn", "numba")


def show_versions() -> None:
    """Print the versions that results depend on: of Python, libraries, BLAS and the machine.

    For reports of faults; `heatsketch --version --verbose` prints the same. Of the optional
    libraries for users, those of the extra "all", it says which are missing.

    Notes
    -----
    Cost: NumPy and SciPy are imported, a fraction of a second; nothing is computed.

    Examples
    --------
    >>> import heatsketch as hs
    >>> hs.show_versions()  # doctest: +ELLIPSIS
    heatsketch    ...
    """
    for name, what in versions().items():
        print(f"{name:<13} {what}")


def versions() -> dict[str, str]:
    """Return the lines of `show_versions`, by their names."""
    python = f"{platform.python_version()} ({platform.python_implementation()}), {sys.executable}"
    lines = {"heatsketch": __version__, "python": python, "platform": platform.platform()}
    lines |= {name: _installed(name) or "missing" for name in _ALWAYS}
    lines |= _threads()
    found = {name: _installed(name) for name in _optional()}
    lines |= {name: version for name, version in found.items() if version is not None}
    missing = [name for name, version in found.items() if version is None]
    return lines | {"missing": ", ".join(missing) or "no optional library"}


def _installed(name: str) -> str | None:
    """Return the version of a library that is installed, without importing it."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _optional() -> list[str]:
    """Return the libraries that the extra "all" installs."""
    try:
        required = importlib.metadata.requires("heatsketch") or []
    except importlib.metadata.PackageNotFoundError:  # a folder of sources
        return []
    of_all = [line for line in required if re.search(r"extra == ['\"]all['\"]", line)]
    return sorted({re.split(r"[^\w.-]", line)[0] for line in of_all})


def _threads() -> dict[str, str]:
    """Describe BLAS and the number of threads, which compiled loops share with it."""
    import scipy.linalg  # noqa: F401  # has a BLAS of its own
    from threadpoolctl import threadpool_info

    from heatsketch._tiles import single_threaded_blas

    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    names = dict.fromkeys(
        f"{blas['internal_api']} {blas['version']} ({blas.get('architecture', 'unknown')})"
        for blas in found
    )
    with single_threaded_blas() as threads:
        count = f"{threads} of compiled loops, as of BLAS; {os.cpu_count()} processors"
    return {"BLAS": ", ".join(names) or "not recognised", "threads": count}
