"""The version of the package, stored in files of models and embeddings, and of libraries."""

__version__ = "0.1.0"

_LIBRARIES = (
    *("numpy", "scipy", "scikit-learn", "numba", "anndata", "dask", "h5py", "matplotlib"),
    *("openpyxl", "openTSNE", "pandas", "pyarrow", "torch", "zarr"),
)


def show_versions() -> None:
    """Print the versions on which results depend: of Python, libraries, BLAS and the machine.

    Add them to bug reports; `heatsketch --version --verbose` prints the same.

    See Also
    --------
    progress : Show progress bars of the library.

    Notes
    -----
    The cost is the import of NumPy and SciPy, a fraction of a second; nothing is computed.

    Examples
    --------
    >>> import heatsketch as hs
    >>> hs.show_versions()  # doctest: +ELLIPSIS
    heatsketch    ...
    """
    # Imported here, because every command imports this module and should start fast.
    import importlib.metadata
    import platform
    import sys

    import scipy.linalg  # noqa: F401  # has a BLAS of its own
    from threadpoolctl import threadpool_info

    from heatsketch._threads import single_threaded_blas

    lines = {
        "heatsketch": __version__,
        "python": f"{platform.python_version()}, {sys.executable}",
        "platform": platform.platform(),
    }
    for name in _LIBRARIES:
        try:
            lines[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            lines[name] = "missing"
    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    names = dict.fromkeys(f"{library['internal_api']} {library['version']}" for library in blas)
    with single_threaded_blas() as threads:
        lines |= {"BLAS": ", ".join(names) or "not recognised", "threads": str(threads)}
    for name, version in lines.items():
        print(f"{name:<13} {version}")
