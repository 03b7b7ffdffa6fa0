"""Read tables of points and write embeddings: .npy, .npz, text, .parquet, .h5ad.

Those of .arrow, .feather, .xlsx and .zarr are only read.

Sizes are checked before memory is allocated, and nothing is unpickled. Files are written under a
temporary name and renamed when complete.

One module per format (`numpy_files`, `text`, `parquet`, `anndata_files`) has its `read`, `write`
and `blocks`, as far as the format has them; `formats` maps suffixes to modules. They share:

- `table`: the record, the options, the rules for columns, float arrays and CSR matrices; labels,
  gaps and scales; points that are read by blocks of rows
- `text`: the definition of a number, the choice of features in text, sheets and Parquet, and the
  test whether the first row holds names
- `files`: atomic writing, limits on size, errors
- `metadata`: the record of how an embedding was made

`models` keeps fitted models, `edges` reads graphs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
del lazy_loader
