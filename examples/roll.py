"""A roll, by four methods
=======================

Embed a rolled-up strip, 144.5 long and 6 wide, by four methods, and see what each keeps.

Isomap unrolls it. The first coordinate of a diffusion map is the slowest vibration of a strip with
free ends, cos(πs/L) of the arc length s. PCA sees a spiral.
`print(result)` shows the table of all measures.
"""

import numpy as np
from scipy.stats import spearmanr

import heatsketch as hs

X, flat = hs.datasets.swiss_roll(1600, mesh="uniform", rng=0)
arc = flat[:, 0]
result = hs.compare(X, ["isomap", "diffusion-map", "lle", "pca"], labels=arc, seeds=1)

order = {name: abs(spearmanr(Y[:, 0], arc).statistic) for name, Y in result.embeddings.items()}
vibration = np.cos(np.pi * arc / arc.max())
likeness = abs(np.corrcoef(result.embeddings["diffusion-map"][:, 0], vibration)[0, 1])
print(f"Isomap's order along the strip: {order['isomap']:.4f}, PCA's: {order['pca']:.2f}")
print(f"diffusion map and cos(πs/L): correlation {likeness:.4f}")
assert order["isomap"] > 0.999 > 0.9 > order["pca"]
assert likeness > 0.99

result.plot("roll.png")
