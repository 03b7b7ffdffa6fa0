"""Tables of points in, tables of embeddings out: arrays, text, .parquet, .h5ad; in .xlsx, .zarr.

No file is trusted: sizes are checked before memory is allocated, nothing is unpickled, and a .h5ad
file that refers to other files is refused. Files are written under a temporary name and renamed
when complete.

One module per format (`npy`, `npz`, `text`, `parquet`, `h5ad`; `xlsx`, `zarr`) has its `read` and
its `write`; `formats` maps suffixes to modules. They share `table`, the record and the rules for
its columns; `reading`, the options; `layout`, where the cells of a text are; `numerals`, which
texts are numbers; `arrow`, the columns of text and Parquet tables; `refine`, gaps and scales;
`values`, float arrays and CSR matrices; `files`, atomic writing, limits on size, errors;
`metadata`, how an embedding was made. `model` keeps fitted models.
"""

from heatsketch.io.files import write_atomically
from heatsketch.io.formats import SUFFIXES, read_table, write_table
from heatsketch.io.metadata import data_hash
from heatsketch.io.model import load_model, save_model
from heatsketch.io.table import ID_NAMES, LABEL_NAMES, Table

__all__ = [
    "ID_NAMES",
    "LABEL_NAMES",
    "SUFFIXES",
    "Table",
    "data_hash",
    "load_model",
    "read_table",
    "save_model",
    "write_atomically",
    "write_table",
]
