"""Tables of points in, tables of embeddings out: arrays, text, .parquet, .h5ad; in .xlsx, .zarr.

No file is trusted: sizes are checked before memory is allocated, nothing is unpickled, a .h5ad
file that refers to other files is refused, and HDF5 runs in a child process, which it may crash.
Files are written under a temporary name and renamed when complete.

One module per format (`npy`, `npz`, `text`, `parquet`, `h5ad`; `xlsx`, `zarr`) has its `read` and
its `write`; `formats` maps suffixes to modules. They share `table`, the record and the rules for
its columns; `reading`, the options; `layout`, where the cells of a text are; `numerals`, which
texts are numbers; `arrow`, the columns of text and Parquet tables; `refine`, gaps and scales;
`values`, float arrays and CSR matrices; `files`, atomic writing, limits on size, errors; `child`,
the process that may die, and `hdf5`, arrays read in it; `metadata`, how an embedding was made.
`models` keeps fitted models, `edges` reads graphs. `sources` opens points that are read by
`blocks`, and `obs` decodes the frames of AnnData, in HDF5 and zarr, whole or by rows.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heatsketch.io.edges import read_graph
    from heatsketch.io.files import write_atomically
    from heatsketch.io.formats import SUFFIXES, read_table, write_table
    from heatsketch.io.metadata import data_hash
    from heatsketch.io.models import load_model, save_model
    from heatsketch.io.table import ID_NAMES, LABEL_NAMES, Table

_HOMES = {
    "edges": ("read_graph",),
    "files": ("write_atomically",),
    "formats": ("SUFFIXES", "read_table", "write_table"),
    "metadata": ("data_hash",),
    "models": ("load_model", "save_model"),
    "table": ("ID_NAMES", "LABEL_NAMES", "Table"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ID_NAMES",
    "LABEL_NAMES",
    "SUFFIXES",
    "Table",
    "data_hash",
    "load_model",
    "read_graph",
    "read_table",
    "save_model",
    "write_atomically",
    "write_table",
]


def __getattr__(name: str) -> Any:
    """Import a public name, or a module, when it is first used: child processes start quickly."""
    if name in _HOME_OF:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in _HOMES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
