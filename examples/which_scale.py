"""Which scale?
============

Which diffusion time? How many directions are left at each, and what dimension do they have?

A torus of 3,000 random points: at small times there are as many directions as points, at large
ones two circles, then nothing. In between the heat trace falls like t^(-d/2) with d = 2, and a
picture shows where `time="auto"` settles. The time it chose, passed back, gives the same embedding.
"""

import numpy as np

import heatsketch as hs

u, v = np.random.default_rng(0).uniform(0, 2 * np.pi, size=(2, 3000))
X = np.column_stack([np.cos(u), np.sin(u), np.cos(v), np.sin(v)])
model = hs.HeatEmbedding(4, random_state=0).fit(X)
again = hs.HeatEmbedding(4, model.time_, random_state=0).fit(X)
trace = hs.heat_trace(model.diffusion_, [16, 32, 64, 128], rng=0)

print("spectral dimension", ", ".join(f"{d:.2f}" for d in trace.dimension), "(a torus has 2)")
print(f"time {model.time_:g}: {model.explained_diffusion_variance().describe()}")
assert np.abs(trace.dimension - 2).max() < 0.4
assert np.allclose(again.embedding_, model.embedding_)

hs.plot.scales(model, path="which_scale.png")
