"""Tables of points in, tables of embeddings out: arrays, text, .parquet, .h5ad; in .xlsx, .zarr.

Sizes are checked before memory is allocated, and nothing is unpickled. Files are written under a
temporary name and renamed when complete.

One module per format (`numpy_files`, `text`, `parquet`, `xlsx`, `anndata_files`) has its `read` and
its `write`; `formats` maps suffixes to modules. They share `table`, the record and the rules for
its columns; `reading`, the options; `columns`, what is a number and what becomes of each column of
text, sheets and Parquet; `header`, whether the first row holds names; `refine`, gaps and scales;
`values`, float arrays and CSR matrices; `files`, atomic writing, limits on size, errors;
`metadata`, how an embedding was made. `models` keeps fitted models, `edges` reads graphs. `sources`
opens points that are read by `blocks`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
del lazy_loader
