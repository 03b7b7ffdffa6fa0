"""A table of numbers and a category, in the layouts that people write."""

import numpy as np

rng = np.random.default_rng(0)
X = np.round(rng.normal(size=(30, 3)), 3)
KIND = ["ab"[j % 2] for j in range(30)]


def cells(decimal="."):
    return [[f"{x:.3f}".replace(".", decimal) for x in row] for row in X]


def text(rows=None, header=("x", "y", "z"), sep=",", end="\n", kind=True, front=None):
    """Write the table; `front` makes a first cell of each row, which the header does not name."""
    rows = cells() if rows is None else rows
    lines = [] if header is None else [sep.join([*header, "kind"] if kind else header)]
    for j, row in enumerate(rows):
        first = [] if front is None else [front(j)]
        lines.append(sep.join([*first, *row, *([KIND[j]] if kind else [])]))
    return end.join(lines) + end


def saved(folder, content, name="t.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
