"""What changed, and where?
========================

What changed between two measurements of the same points, and where? Nothing is aligned.

Points of a square are measured twice; the second time those in a small disc have an error. The
discrepancy of the two diffusions is found with its error bar, point by point, and the disc is seen.
Diffusion maps, which must be aligned first (Procrustes), move everywhere: an eigenvector belongs to
the whole square.
"""

import numpy as np
from scipy.spatial import procrustes

import heatsketch as hs
from heatsketch import plot

rng = np.random.default_rng(0)
X = np.column_stack([rng.uniform(0, 2, (1500, 2)), np.zeros(1500)])
disc = np.linalg.norm(X - [1.5, 1.2, 0], axis=1) < 0.3
again = X + np.outer(disc * rng.normal(size=1500), [0, 0, 0.05])

before, after = hs.diffusion(X), hs.diffusion(again)
found = hs.diffusion_discrepancy(before, after, time=4, rng=0)
exact = hs.diffusion_discrepancy(before, after, time=4, n_components=1500).value


def moved(k):
    """Return how far each point moves between diffusion maps of k coordinates, aligned."""
    model = hs.DiffusionMap(k, 4, affinity="precomputed", random_state=0)
    first, second, _ = procrustes(model.fit_transform(before), model.fit_transform(after))
    return np.linalg.norm(first - second, axis=1)


def inside(change):
    """Return the fraction of the squared change in the disc, which has 6 % of the points."""
    return np.sum(change[disc] ** 2) / np.sum(change**2)


maps = {k: moved(k) for k in (2, 10)}
print(f"{found.describe()}; exactly {exact:.3f}")
print(f"in the disc: {inside(found.per_point):.0%} of it, of the change of aligned diffusion maps")
print(", ".join(f"{inside(change):.0%} with {k} coordinates" for k, change in maps.items()))

low, high = found.interval()[1:]
assert low < exact < high
assert inside(found.per_point) > 0.8 > 2 * max(map(inside, maps.values()))

figure = plot.new_figure(12.0, 4.4, dpi=80)
titles = ["discrepancy, per_point", *(f"{k} aligned coordinates" for k in maps)]
for ax, title, change in zip(
    figure.subplots(1, 3), titles, [found.per_point, *maps.values()], strict=True
):
    drawn = ax.scatter(X[:, 0], X[:, 1], c=change / change.max(), s=8, cmap="YlGnBu")
    angle = np.linspace(0, 2 * np.pi, 100)
    ax.plot(1.5 + 0.3 * np.cos(angle), 1.2 + 0.3 * np.sin(angle), color="0.2", linewidth=1)
    ax.set_title(f"{title}: {inside(change):.0%} in the disc", loc="left", fontsize=10)
    ax.set_aspect("equal")
figure.colorbar(drawn, ax=list(figure.axes), label="change, relative to the largest", shrink=0.8)
plot.save(figure, "what_changed.png")
