"""Tables of points in, tables of embeddings out: arrays, text, .parquet, .h5ad; in .xlsx, .zarr.

Sizes are checked before memory is allocated, and nothing is unpickled. Files are written under a
temporary name and renamed when complete.

One module per format (`numpy_files`, `text`, `parquet`, `anndata_files`) has its `read`, `write`
and `blocks`, where there are these; `formats` maps suffixes to modules. They share:

- `table`: the record, the options, the rules for columns, float arrays and CSR matrices
- `columns`: what a number is, and which columns of text, sheets and Parquet are features
- `header`: whether the first row holds names
- `refine`: gaps and scales
- `blocks`: points that are read by blocks of rows
- `files`: atomic writing, limits on size, errors
- `metadata`: how an embedding was made

`models` keeps fitted models, `edges` reads graphs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
del lazy_loader
