"""Handwritten digits
==================

Embed handwritten digits, classify them by their neighbours, and draw them.
"""

import numpy as np
from sklearn.neighbors import NearestNeighbors

import heatsketch as hs


def neighbour_accuracy(F, label):
    """Return the fraction of points with the label that most of their 10 neighbours have."""
    neighbours = NearestNeighbors(n_neighbors=10).fit(F).kneighbors(return_distance=False)
    votes = (label[neighbours][:, :, None] == np.arange(10)).sum(axis=1)  # (n, 10)
    return np.mean(votes.argmax(axis=1) == label)


# %%
# To compute with: a sketch. It has half as many columns as there are pixels, all random, and its
# neighbours name the digits at least as well. Diffusion along the graph of nearest neighbours
# moves each digit towards similar ones.

X, label = hs.datasets.digits()  # (1797, 64) grey values
S = hs.HeatSketch(random_state=0).fit_transform(X)  # (1797, 32)
pixels, sketch = neighbour_accuracy(X, label), neighbour_accuracy(S, label)
print(f"10 nearest neighbours name {pixels:.1%} of the digits by pixels, {sketch:.1%} by sketch")
assert sketch >= pixels

# %%
# To look at: a heat embedding, and what it says of itself.

embedding = hs.HeatEmbedding(random_state=0).fit(X)
print(embedding.quality_.describe())
assert neighbour_accuracy(embedding.embedding_, label) > 0.95
hs.plot.scatter(embedding.embedding_, label, path="digits.png")
