"""Which cells come first?
=======================

Which cells come first? Pseudotime from a root, on a tree of cells whose time is known.

One stem and two branches in 20 dimensions, 3,000 cells. `pseudotime` is the distance from the first
cell, summed over all steps of the diffusion from the eighth on: it follows the branches to their
ends, where the distance at time 8 alone stops early. Each value has an error bar, for the sketch
that stands for all but 32 directions.
"""

import numpy as np
from scipy.stats import spearmanr

import heatsketch as hs
from heatsketch import plot

rng = np.random.default_rng(0)
ends = np.linalg.qr(rng.normal(size=(20, 3)))[0].T  # directions of the stem and the branches
branch, place = rng.integers(0, 3, 3000), rng.uniform(size=(3000, 1))
branch[0], place[0] = 0, 0.0  # the first cell
start = np.where(branch[:, None] == 0, 0.0, ends[0])
X = start + place * ends[branch] + 0.04 * rng.normal(size=(3000, 20))
true = (branch > 0) + place[:, 0]

model = hs.HeatSketch(random_state=0).fit(X)
late, near = model.pseudotime(0), model.distance(0).value
by_time, by_distance = (spearmanr(x, true).statistic for x in (late.value, near))
print(f"order of the cells: {by_time:.3f} by pseudotime, {by_distance:.3f} by distance at time 8")
print(f"error bars of ± {np.max(late.high - late.low) / 2:.0e} at most")

assert by_time > 0.98 > by_distance
assert late.value[0] == 0.0
assert late.value.max() == 1.0

Y = hs.HeatEmbedding(random_state=0).fit_transform(X)
figure = plot.new_figure(11.0, 4.4)
left, right = figure.subplots(1, 2)
points = left.scatter(*Y.T, c=late.value, s=5, cmap="viridis")
left.plot(*Y[0], "*", color="black", markersize=14)
left.set_title("the cells in two dimensions, the first one a star", loc="left", fontsize=10)
left.set_aspect("equal")
figure.colorbar(points, ax=left, label="pseudotime")
right.plot(true, near / near.max(), ".", markersize=2, color="0.7", label="distance at time 8")
for b, name in enumerate(("stem", "branch one", "branch two")):
    here, colour = branch == b, plot.OKABE_ITO[b]
    right.plot(true[here], late.value[here], ".", markersize=3, color=colour, label=name)
right.set_xlabel("true time")
right.set_ylabel("pseudotime")
right.legend(frameon=False, markerscale=3)
plot.save(figure, "which_cells_come_first.png")
