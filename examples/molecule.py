"""A molecule with two wells
=========================

Find the slow motion of a molecule, and its two states, in a simulation that nobody has labelled.

"""

import numpy as np
from scipy.stats import spearmanr

import heatsketch as hs
from heatsketch import plot

# %%
# A short chain of atoms, simplified: one angle s moves in a potential with two wells,
# U(s) = 3 (s² - 1)², at temperature 1, and the positions of 8 atoms depend on s along a bent curve,
# with fast vibrations on top. 2,000 frames of Langevin dynamics, from 40 simulations that start in
# either well.

rng = np.random.default_rng(0)
STEP, BETWEEN = 0.002, 100  # of the simulation; steps between frames
s = np.where(np.arange(40) % 2 == 0, -1.0, 1.0)
frames = []
for step in range(50 * BETWEEN):
    force = -12 * s * (s**2 - 1)
    s = s + STEP * force + np.sqrt(2 * STEP) * rng.normal(size=40)
    if step % BETWEEN == 0:
        frames.append(s)
slow = np.concatenate(frames)  # (2000,)
curve = np.column_stack([np.sin(slow), np.cos(2 * slow), 0.5 * slow**2])
atoms = np.linalg.qr(rng.normal(size=(24, 3)))[0]  # where the curve lies in 24 coordinates
X = curve @ atoms.T + 0.03 * rng.normal(size=(2000, 24))

# %%
# The first coordinate of a diffusion map is the slowest motion of a walk between near frames: the
# passage of the barrier. It orders the frames as the hidden angle does, and its sign is the well.
# With `alpha=0.5` the walk is that of Langevin dynamics whose stationary density is that of the
# frames.

model = hs.DiffusionMap(2, affinity="variable", alpha=0.5, time=1).fit(X)
first = model.embedding_[:, 0]
order = abs(spearmanr(first, slow).statistic)
sure = np.abs(slow) > 0.5
same = np.mean(np.sign(first[sure]) == np.sign(slow[sure]))
right = max(same, 1 - same)
print(f"order along the slow motion: {order:.3f}; well by the sign of a coordinate: {right:.1%}")

assert order > 0.99
assert right > 0.99

# %%
# The second coordinate is a function of the first, as cos 2x is of cos x: it says nothing new. What
# is drawn is a bent line with two dense ends.

plot.scatter(model.embedding_, slow, title="two wells and the way between", path="molecule.png")
