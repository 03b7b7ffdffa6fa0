"""A map that keeps distances
==========================

A torus with one short circle in three dimensions: learned directions keep all its distances.

In three dimensions eigenvectors lose the short circle and random directions lose some pairs by
chance. `HeatEmbedding` with ``objective="worst"`` minimises the largest change of a distance.
"""

import numpy as np
from scipy.spatial.distance import pdist

import heatsketch as hs
from heatsketch import plot

X, uv = hs.datasets.stretched_torus(500, rng=0)
common = {"time": 10, "affinity": "dense", "epsilon": 0.3, "random_state": 0}
learned = hs.HeatEmbedding(3, objective="worst", filter="power", **common)
methods = (hs.DiffusionMap(3, **common), hs.HeatSketch(3, **common), learned)

# Diffusion distances, computed exactly, which all three methods should keep.
D = hs.diffusion_distance(hs.diffusion(X, affinity="dense", epsilon=0.3), time=10)
log_L = {}
figure = plot.new_figure(10.0, 3.4)
for ax, method in zip(figure.subplots(1, 3, sharey=True), methods, strict=True):
    Y = method.fit_transform(X)
    found = hs.distortion(Y, D)
    name = type(method).__name__
    log_L[name] = found.log_L
    print(f"{name:14} log L = {found.log_L:.2f}: {found.describe()}")
    ax.semilogy(D[::50], pdist(Y)[::50] / np.median(pdist(Y) / D), ".", markersize=2)
    ax.set(title=name, xlabel="diffusion distance")

assert log_L["HeatEmbedding"] < 0.5 * min(log_L["DiffusionMap"], log_L["HeatSketch"])

plot.save(figure, "near_isometric.png")
