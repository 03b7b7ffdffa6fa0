"""Isomap, locally linear embedding and t-SNE of the notes, §6 to §8."""

from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from sklearn.base import clone
from sklearn.datasets import make_swiss_roll
from sklearn.neighbors import kneighbors_graph

import heatsketch as hs
from papers.notes import drawings
from papers.notes.data import mnist
from papers.notes.diffusion import ROLL
from papers.notes.measures import HALF_TURN, Drawn, NotesRow, digit_rows, pieces, recovered
from papers.output import random

OTHER_ROLL, ENDS, CLUSTERS = range(2, 5)  # purposes of random numbers, beside ROLL and PICTURE
_STRESS_TOL = 1e-4  # of the stress1 of a step
_EXAGGERATION = 4.0


def isomap(seed: int, *, points: int = 1600, noise: float = 0.0, n_neighbors: int = 10) -> Drawn:
    """Unroll the strip by Isomap, and compare distances in the graph with those on the strip.

    Step 3 is done twice: by classical scaling, as in Isomap itself, and by nonmetric scaling, as
    `mdscale` in the notes.
    """
    X, flat = hs.datasets.swiss_roll(points, noise=noise, rng=random(seed, ROLL, points))
    graph = distance_graph(X, n_neighbors)
    start, end = random(seed, ENDS).choice(points, 2, replace=False)
    distances, predecessors = dijkstra(graph, False, start, return_predecessors=True)
    Y = hs.classical.Isomap(n_components=2, n_neighbors=n_neighbors).fit_transform(X)
    scaling = hs.classical.NonmetricMDS(2, metric="precomputed", tol=_STRESS_TOL)
    scaling.fit(dijkstra(graph, False))
    i, j = sparse.triu(graph).nonzero()
    arcs = np.abs(flat[i, 0] - flat[j, 0])
    ratios = _ratios(graph, flat)
    rows = [
        NotesRow("points", points, points),
        NotesRow("neighbours", n_neighbors, 10),
        NotesRow("edges", len(i)),
        NotesRow("edges between windings", int((arcs > HALF_TURN).sum())),
        NotesRow("graph over strip distance, median", float(np.median(ratios))),
        NotesRow("graph over strip distance, smallest", float(ratios.min())),
        *recovered(Y, flat),
        NotesRow("stress1 of classical scaling", scaling.diagnostics_["classical_stress"]),
        NotesRow("stress1 of nonmetric scaling", scaling.stress_),
        *recovered(scaling.embedding_, flat, "nonmetric scaling, coordinate"),
    ]
    edges, path = np.column_stack([i, j]), _path(predecessors, end)
    embeddings = {"classical scaling": Y, "nonmetric scaling": scaling.embedding_}
    return rows, partial(drawings.isomap, X, edges, distances, path, embeddings)


def distance_graph(X: np.ndarray, n_neighbors: int) -> sparse.csr_matrix:
    """Return max(G, Gᵀ) of the k-neighbour graph of distances."""
    graph = kneighbors_graph(X, n_neighbors, mode="distance")
    return graph.maximum(graph.T).tocsr()


def _ratios(graph: sparse.csr_matrix, flat: np.ndarray) -> np.ndarray:
    """Divide distances in the graph by distances on the strip, for pairs more than 10 apart."""
    sources = np.arange(0, len(flat), 20)
    strip = np.linalg.norm(flat[sources, None] - flat, axis=2)
    far = strip > 10
    return dijkstra(graph, False, sources)[far] / strip[far]


def _path(predecessors: np.ndarray, end: int) -> np.ndarray:
    path = [end]
    while predecessors[path[-1]] >= 0:
        path.append(predecessors[path[-1]])
    return np.array(path[::-1])


def locally_linear(seed: int, *, points: int = 2000, n_neighbors: int = 12) -> Drawn:
    """Unroll the strip of the notes, and the wider one of Roweis and Saul, by LLE."""
    X, flat = hs.datasets.swiss_roll(points, rng=random(seed, ROLL, points))
    state = int(random(seed, OTHER_ROLL).integers(2**31))
    other, turn = make_swiss_roll(points, random_state=state)
    length = (turn * np.hypot(1, turn) + np.arcsinh(turn)) / 2
    wide = np.column_stack([length - length.min(), other[:, 1]])
    method = hs.classical.LocallyLinearEmbedding(n_components=2, n_neighbors=n_neighbors)
    rows, panels = [], []
    rolls = (("roll of the notes", X, flat), ("roll of Roweis and Saul", other, wide))
    for name, roll, known in rolls:
        Y = method.fit_transform(roll)
        rows += recovered(Y, known, f"{name}, coordinate")
        panels.append((name, roll, known[:, 0]))
        panels.append((f"{name}, LLE", Y, known[:, 0]))
    rows = [NotesRow("points", points), NotesRow("neighbours", n_neighbors, 12), *rows]
    return rows, partial(drawings.scatters, panels)


def t_sne_of_roll(seed: int, *, points: int, noise: float) -> Drawn:
    """Embed the noisy roll by t-SNE as printed, at two perplexities."""
    X, flat = hs.datasets.swiss_roll(points, noise=noise, rng=random(seed, ROLL, points))
    rows = [NotesRow("points", points, 800)]
    panels = [(f"noise {noise:g}", X, flat[:, 0])]
    for perplexity in (30, 12):
        Y = printed_t_sne(perplexity, seed).fit_transform(X)
        name = f"perplexity {perplexity}"
        rows += [NotesRow(f"{name}, pieces", pieces(Y)), *recovered(Y, flat, f"{name}, coordinate")]
        panels.append((name, Y, flat[:, 0]))
    return rows, partial(drawings.scatters, panels)


def t_sne_of_digits(
    seed: int,
    *,
    digits: int = 10_000,
    exact_digits: int = 3000,
    perplexity: int = 30,
    folder: Path | None,
) -> Drawn:
    """Embed the MNIST test digits by t-SNE: some as printed, and all by Barnes and Hut."""
    X, label = (part[:digits] for part in mnist(folder))
    state = int(random(seed, CLUSTERS).integers(2**31))
    rows = [
        NotesRow("perplexity", perplexity, 30),
        NotesRow("exaggeration", _EXAGGERATION, 4),
    ]
    method, panels = printed_t_sne(perplexity, seed), []
    faster = clone(method).set_params(
        method="barnes-hut", learning_rate="auto", early_iter=250, momentum_iter=None
    )
    models = (
        ("exact", method, exact_digits),
        ("Barnes-Hut of the same", faster, exact_digits),
        ("Barnes-Hut", faster, digits),
    )
    for name, model, n in models:
        Y = model.fit_transform(X[:n])
        rows.append(NotesRow(f"{name}, digits", len(Y), 10_000))
        rows.append(NotesRow(f"{name}, Kullback-Leibler divergence", model.kl_divergence_))
        rows += digit_rows(Y, label[:n], f"{name}, embedding", state)
        rows += digit_rows(X[:n], label[:n], f"{name}, pixels", state)
        panels.append((f"{name}, {len(Y):,} digits", Y, label[:n]))
    return rows, partial(drawings.digits, [panels[0], panels[-1]])


def printed_t_sne(perplexity: float, seed: int) -> hs.classical.TSNE:
    """Return t-SNE as printed, §8.6."""
    printed = {"learning_rate": 100, "early_exaggeration": _EXAGGERATION, "early_iter": 50}
    start = {"init": "random", "momentum_iter": 250, "random_state": seed}
    return hs.classical.TSNE(2, perplexity, method="exact", **printed, **start)
