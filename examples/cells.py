"""Cells, in an AnnData object
===========================

Embed the 700 blood cells that ship inside scanpy, and name each by its neighbours.

Needs scanpy.
"""

import sys

import numpy as np

import heatsketch as hs

try:
    import scanpy as sc
except ImportError:
    sys.exit("cells.py needs scanpy: pip install scanpy")

adata = sc.datasets.pbmc68k_reduced()  # with X_pca, and neighbours by sc.pp.neighbors
hs.anndata.heat_sketch(adata)  # obsm["X_heat_sketch"] (700, 32)
hs.anndata.heat_embedding(adata)  # obsm["X_heat"] (700, 2)
hs.anndata.heat_embedding(adata, obsp="connectivities", filter="heat", key_added="heat_graph")

kind = adata.obs["bulk_labels"].cat.codes.to_numpy()
named = {
    key: hs.metrics.knn_accuracy(np.asarray(adata.obsm[key], dtype=float), kind, 10)
    for key in ("X_pca", "X_heat_sketch", "X_heat", "X_heat_graph", "X_umap")
}
print("named by their neighbours:", ", ".join(f"{key} {part:.1%}" for key, part in named.items()))
print(f"X_heat at time {adata.uns['heat']['time']}: {adata.uns['heat']['distortion']['words']}")
assert named["X_heat_sketch"] >= named["X_pca"]
assert named["X_heat"] >= named["X_umap"] - 0.02

figure = sc.pl.embedding(adata, "heat", color="bulk_labels", show=False, return_fig=True)
figure.savefig("cells.png", dpi=80, bbox_inches="tight")
# sphinx_gallery_thumbnail_path = "images/pages/cells-heat.png"
