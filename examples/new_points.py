"""New points from a small file
============================

Fit a model to half of the digits, map the other half, and compare distances with closed form.

The model is a Gaussian mixture and some pivots in a small file. The error of the coordinates of
each new point is known, and bounds the error of every distance.
"""

import tempfile
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA

import heatsketch as hs
from heatsketch import plot

X, label = hs.datasets.digits()
X = PCA(10, random_state=0).fit_transform(X)  # (1797, 10)
old, new = X[::2], X[1::2]

model = hs.MixtureDiffusion(epsilon="median", mixture=10, tolerance=0.05, random_state=0).fit(old)
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "digits.model")
    hs.save_model(model, file)
    size = file.stat().st_size
    Y = hs.load_model(file).transform(new)

exact = np.sqrt(model.kernel_.squared_distance(new, new))[np.triu_indices(len(new), 1)]
missing = model.distance_error(new)
typical = model.diagnostics_["typical_distance"]
off = np.abs(pdist(Y) - exact)
allowed = (missing[:, None] + missing)[np.triu_indices(len(new), 1)]
print(f"{Y.shape[1]} coordinates, a model of {size / 1024:.0f} kB")
print(
    f"error of distances: {off.max() / typical:.2%} at most, {off.mean() / typical:.3%} on average"
)
assert (off <= allowed + 1e-12 * typical).all()
assert off.max() < 0.05 * typical

figure = plot.new_figure(5.0, 4.5)
ax = figure.subplots()
ax.plot(exact[::100], pdist(Y)[::100], ".", markersize=2)
ax.axline((0, 0), slope=1, color="0.6", zorder=0)
ax.set(xlabel="distance in closed form", ylabel="distance of the coordinates", aspect="equal")
plot.save(figure, "new_points.png")
