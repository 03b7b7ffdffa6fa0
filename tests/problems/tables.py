"""Tables with ids, labels and words that files must not change."""

import csv

import numpy as np

from heatsketch import io

TEXT = ("plain", 'quoted "a", b', "tab\there", "naïve 点", "", "two\nlines")


def table_of(n=6, d=3, source="made up", label="group", **extra):
    values = np.random.default_rng(0).standard_normal((n, d))
    words = np.array([TEXT[j % len(TEXT)] for j in range(n)], dtype=object)
    columns = {"id": np.arange(n) * 7, "group": words, **extra}
    return io.Table(values, tuple("abcdefgh"[:d]), columns, label, source)


def saved(folder, text, name="t.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def write_csv(path, X, names="abc", **columns):
    """Write other columns, and points after them, to a file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = zip(*columns.values(), *np.asarray(X).T.tolist(), strict=True)
        csv.writer(file).writerows([[*columns, *names], *rows])
    return path
