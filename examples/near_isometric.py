"""A map that keeps distances
==========================

A torus with one short circle in three dimensions: learned directions keep all its distances.

In three dimensions eigenvectors lose the short circle and random directions lose some pairs by
chance. `HeatEmbedding` with ``objective="worst"`` minimises the largest change of a distance.
"""

import heatsketch as hs

X, uv = hs.datasets.stretched_torus(500, rng=0)
common = {"time": 10, "affinity": "dense", "epsilon": 0.3, "random_state": 0}
learned = hs.HeatEmbedding(3, objective="worst", filter="power", **common)
methods = (hs.DiffusionMap(3, **common), hs.HeatSketch(3, **common), learned)

# Diffusion distances, computed exactly, which all three methods should keep.
D = hs.diffusion_distance(hs.diffusion(X, affinity="dense", epsilon=0.3), time=10)
log_L = {}
for method in methods:
    found = hs.distortion(method.fit_transform(X), D)
    name = type(method).__name__
    log_L[name] = found.log_L
    print(f"{name:14} log L = {found.log_L:.2f}: {found.describe()}")

assert log_L["HeatEmbedding"] < 0.5 * min(log_L["DiffusionMap"], log_L["HeatSketch"])
