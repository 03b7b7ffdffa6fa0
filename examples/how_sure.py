"""How sure is a distance?
=======================

How sure is a distance? Three errors of one distance between two handwritten digits.

The sketch has few columns, the data are one sample of many: `distance`, `sketch_interval` and
`data_interval` say what each may change. More columns make the first error smaller, more digits the
second.
"""

import numpy as np

import heatsketch as hs
from heatsketch import plot

X, label = hs.datasets.digits()
zero, one = 0, 1  # rows of a nought and of a one


def length(Y):
    """Return the distance of the two digits, the first two rows."""
    return np.linalg.norm(Y[one] - Y[zero])


exact = hs.diffusion_distance(hs.diffusion(X), 8, pairs=([zero], [one]))[0]
columns, rows = (16, 64, 256), []
for k in columns:
    model = hs.HeatSketch(k, time=8, random_state=1).fit(X)
    rows.append((model.distance(zero, one), hs.sketch_interval(model, length, rng=0)))
data = hs.data_interval(model, X[:2], length, n_resamples=40, rng=0)
best = rows[-1][0]
print(f"distance {best.value:.3f}, by 256 columns surely {best.low:.3f} to {best.high:.3f}")
print(f"other digits would give {data.low:.3f} to {data.high:.3f}; exact for these: {exact:.3f}")

assert best.low < exact < best.high
assert data.high - data.low > best.high - best.low  # more columns would say nothing more


def bar(place, interval, colour, name=None):
    ends = np.abs(np.array([interval.low, interval.high])[:, None] - interval.value)
    ax.errorbar(place, interval.value, ends, fmt="o", capsize=4, color=colour, label=name)


sure = model.neighbor_confidence_
figure = plot.new_figure(11.0, 4.2)
ax, right = figure.subplots(1, 2)
blue, orange, green = plot.OKABE_ITO[0], plot.OKABE_ITO[1], plot.OKABE_ITO[2]
for place, (exactly, resampled) in enumerate(rows):
    names = ("columns: exact distribution", "columns: drawn again") if place == 0 else (None, None)
    bar(place - 0.1, exactly, blue, names[0])
    bar(place + 0.1, resampled, orange, names[1])
bar(len(columns), data, green, "data: points weighed again")
ax.axhline(exact, color="0.6", zorder=0)
ax.set_xticks(range(len(columns) + 1), [*map(str, columns), "other\ndigits"])
ax.set_xlabel("columns of the sketch")
ax.set_title("distance of two digits; grey: exact for these 1,797", loc="left", fontsize=10)
ax.legend(frameon=False)
few = hs.HeatSketch(32, time=8, random_state=1).fit(X).neighbor_confidence_
for values, colour, name in ((few, orange, "32 columns"), (sure, blue, "256 columns")):
    right.hist(values, bins=np.linspace(0.6, 1, 41), color=colour, alpha=0.7, label=name)
right.set_xlabel("fraction of certain neighbours")
right.set_ylabel("digits")
right.set_title("neighbor_confidence_ of the digits", loc="left", fontsize=10)
right.legend(frameon=False)
plot.save(figure, "how_sure.png")
