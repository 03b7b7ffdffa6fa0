"""Crowding: SNE beside t-SNE, Isomap and locally linear embedding on the same digits, §8."""

from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import clone

import heatsketch as hs
from papers.notes import drawings
from papers.notes.data import mnist
from papers.notes.graphs import CLUSTERS, printed_t_sne
from papers.notes.measures import Drawn, NotesRow, crowding_rows, digit_rows
from papers.output import random

_N_NEIGHBORS = 12  # of Isomap and LLE, as in §7


def digits_by_four_methods(
    seed: int, *, digits: int = 1500, perplexity: int = 30, folder: Path | None
) -> Drawn:
    """Embed the first of the MNIST test digits in the plane by four methods, and measure crowding.

    SNE has the random start, the perplexity and the number of steps of t-SNE; a second start tells
    whether its descent has ended elsewhere.
    """
    X, label = (part[:digits] for part in mnist(folder))
    state = int(random(seed, CLUSTERS).integers(2**31))
    methods = {
        "Isomap": hs.classical.Isomap(2, n_neighbors=_N_NEIGHBORS),
        "LLE": hs.classical.LocallyLinearEmbedding(2, n_neighbors=_N_NEIGHBORS),
        "SNE": hs.classical.SNE(2, perplexity, init="random", random_state=seed),
        "t-SNE": printed_t_sne(perplexity, seed),
    }
    rows = [
        NotesRow("digits", len(X)),
        NotesRow("perplexity", perplexity),
        *digit_rows(X, label, "pixels", state),
    ]
    panels: list[tuple[str, np.ndarray, np.ndarray]] = []
    for name, method in methods.items():
        Y = method.fit_transform(X)
        rows += digit_rows(Y, label, name, state)
        rows += crowding_rows(Y, label, name)
        panels.append((name, Y, label))
    sne = methods["SNE"]
    other = clone(sne).set_params(init="pca").fit(X)
    for name, fitted in (("SNE", sne), ("SNE from principal components", other)):
        rows.append(NotesRow(f"{name}, Kullback-Leibler divergence", fitted.kl_divergence_))
    return rows, partial(drawings.digits, panels)
