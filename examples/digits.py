"""Handwritten digits
==================

Embed handwritten digits, classify them by their neighbours, and draw them.

Run `python digits.py [picture.png]`.
"""

import sys

import numpy as np
from sklearn.neighbors import NearestNeighbors

import heatsketch as hs
from heatsketch import plot


def neighbour_accuracy(F, label):
    """Return the share of points with the label that most of their 10 neighbours have."""
    neighbours = NearestNeighbors(n_neighbors=10).fit(F).kneighbors(return_distance=False)
    votes = (label[neighbours][:, :, None] == np.arange(10)).sum(axis=1)  # (n, 10)
    return np.mean(votes.argmax(axis=1) == label)


X, label = hs.datasets.digits()  # (1797, 64) grey values
Y = hs.HeatSketch(random_state=0).fit_transform(X)  # (1797, 32)

pixels, sketch = neighbour_accuracy(X, label), neighbour_accuracy(Y, label)
print(f"10 nearest neighbours name {pixels:.1%} of the digits by pixels, {sketch:.1%} by sketch")

# Half as many columns, all random, are no worse than the pixels: diffusion along the graph of
# nearest neighbours moves each digit towards similar ones.
assert sketch >= pixels

path = sys.argv[1] if len(sys.argv) > 1 else "digits.png"
try:
    plot.scatter(Y, label, title="Digits, heat sketch", path=path)
    print(f"picture: {path}")
except ImportError as error:
    print(f"no picture: {error}")
