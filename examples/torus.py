"""A torus in few dimensions
=========================

A torus with one short circle: the diffusion map loses it, the heat sketch does not.

The points are (cos u, sin u, 3.5 cos v, 3.5 sin v). Heat is slow along the long circle v, so the
first eigenvectors are cos v, sin v, cos 2v, sin 2v, …, and cos u comes late: with few of them,
points at opposite sides of the short circle coincide. Every column of a sketch mixes all
eigenvectors.
"""

from scipy.spatial.distance import pdist

import heatsketch as hs
from heatsketch import plot

X, uv = hs.datasets.stretched_torus(500, rng=0)
common = {"time": 10, "affinity": "dense", "epsilon": 0.3}

# log L: how far the ratio of embedded to diffusion distance ranges over all pairs (0: not at all).
D = hs.diffusion_distance(hs.diffusion(X, affinity="dense", epsilon=0.3), time=10)
for k in (6, 7):
    by_map = hs.DiffusionMap(k, **common).fit_transform(X)
    by_sketch = hs.HeatSketch(k, random_state=0, **common).fit_transform(X)
    map_log_L = hs.distortion(by_map, D).log_L
    sketch_log_L = hs.distortion(by_sketch, D).log_L
    print(f"{k} coordinates: log L = {map_log_L:.2f} by eigenvectors, {sketch_log_L:.2f} by sketch")

    # Pairs that differ in u alone are at a distance, yet the eigenvectors of v cannot tell them
    # apart; the sketch shrinks no pair that much.
    assert map_log_L > sketch_log_L

# The last pair of maps: distances beside exact ones. Pairs on the axis have come together.
figure = plot.new_figure(8.0, 3.6)
maps = {"diffusion map, 7 coordinates": by_map, "heat sketch, 7 columns": by_sketch}
for ax, (name, Y) in zip(figure.subplots(1, 2), maps.items(), strict=True):
    ax.semilogy(D[::50], pdist(Y)[::50], ".", markersize=2)
    ax.set(title=name, xlabel="diffusion distance", ylabel="distance of coordinates")
plot.save(figure, "torus.png")
