"""A circle, and the error of a sketch
===================================

Sketch the diffusion on a circle, and compare with the exact diffusion distances."""

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import chi2

import heatsketch as hs
from heatsketch import plot

X, angle = hs.datasets.circle(300, rng=0)

# Random coordinates, k = 256 of them: no eigenvector is computed.
k = 256
model = hs.HeatSketch(k, time=8, affinity="dense", epsilon=0.25, random_state=0)
Y = model.fit_transform(X)  # (300, 256)

# Their distances approximate |row_i(P^8) - row_j(P^8)|, weighted by the stationary measure.
D = hs.diffusion_distance(model.diffusion_, time=8)
error = np.abs((pdist(Y) / D) ** 2 - 1)

# For one pair, k |y_i - y_j|² / D² is chi-square with k degrees of freedom: standard deviation
# √(2/k) of the squared distance.
one_sigma = np.sqrt(2 / k)
print(f"{len(D):,} squared distances, one standard deviation is {one_sigma:.1%}")
print(f"relative errors: typical {np.median(error):.1%}, worst {error.max():.1%}")

# The pairs are not independent (a few slow directions determine all of them), so that even the
# worst error is within a few standard deviations.
assert error.max() < 5 * one_sigma

# A new point: its row depends only on the point itself and the training points.
between = np.array([[np.cos(0.3), np.sin(0.3)]])
nearest = np.argmin(np.linalg.norm(Y - model.transform(between), axis=1))
print(f"the new point at angle 0.300 lands next to the one at {angle[nearest]:.3f}")

# One pair in 1,280 sketches of 8 columns each: the ratio follows the chi-square density.
many = hs.HeatSketch(1280 * 8, time=8, affinity="dense", epsilon=0.25, random_state=1)
H = many.fit_transform(X)
exact = hs.diffusion_distance(model.diffusion_, 8, pairs=([0], [75]))[0]
ratio = len(H[0]) * np.sum((H[0] - H[75]).reshape(1280, 8) ** 2, axis=1) / exact**2
assert abs(ratio.mean() - 8) < 5 * 4 / np.sqrt(1280)  # chi-square: mean 8, deviation 4

figure = plot.new_figure(6.0, 3.6)
ax = figure.subplots()
ax.hist(ratio, bins=40, density=True, color="0.8", label="1,280 sketches")
grid = np.linspace(0, 30, 200)
ax.plot(grid, chi2(8).pdf(grid), label="chi-square, 8 degrees of freedom")
ax.set_xlabel("8 |y_i - y_j|² / D²")
ax.legend(frameon=False)
plot.save(figure, "circle.png")
