"""How many coordinates?
=====================

How many coordinates of a diffusion map? As many as explain nine tenths of its variance.

λ^2t of an eigenvector, divided by the sum over all of them, is the fraction of the squared
diffusion distances that it holds. It depends on the time: at small times digits take hundreds of
coordinates, later a few. The eigengap, with its uncertainty, is another answer.
"""

import heatsketch as hs

X, labels = hs.datasets.digits()
needed = {t: hs.DiffusionMap(0.9, t).fit(X).embedding_.shape[1] for t in (16, 64, 256)}
model = hs.DiffusionMap(20, 64).fit(X)
found, gap = model.explained_diffusion_variance(), model.eigengap()

print("coordinates for 90 %:", ", ".join(f"{k} at time {t}" for t, k in needed.items()))
print(f"20 coordinates at time 64 hold {found.describe()}")
print(f"largest gap after {gap.n_components}: {gap.gap:.4f}, certain: {gap.certain}")
assert needed[16] > needed[64] > needed[256] >= 1
assert found.cumulative[needed[64] - 1] >= 0.9 > found.cumulative[needed[64] - 2]

hs.plot.explained_variance(found, path="how_many_coordinates.png", share=0.9)
