"""Diffusion maps of the notes, §9.4: three rolls, Pacman, and a rotated picture."""

import math
from functools import partial
from typing import Any

import numpy as np

import heatsketch as hs
from papers.notes import drawings
from papers.notes.data import pacman, rotated_picture
from papers.notes.measures import Drawn, NotesRow, Walk, loop_rows, strip_rows
from papers.output import random

ROLL, PICTURE = range(2)  # purposes of random numbers
_DIMENSIONS = 3
_DELTA = 0.2
_SHOWN_IMAGES = 20


def random_walk(X: np.ndarray, delta: float, epsilon: float | str = "nearest") -> Walk:
    """Embed points in three dimensions at the time (29), and compute all eigenpairs of P."""
    options: dict[str, Any] = {"affinity": "dense", "alpha": 0.0, "epsilon": epsilon}
    fitted = hs.DiffusionMap(_DIMENSIONS, time="auto", delta=delta, **options).fit(X)
    diffusion = fitted.diffusion_
    vertex = diffusion.vertex
    A = (diffusion.operator @ np.eye(diffusion.n))[np.ix_(vertex, vertex)]
    eigenvalues, vectors = np.linalg.eigh(A)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    root = np.sqrt(diffusion.measure[vertex])[:, None]
    printed = math.log(1 / delta) / math.log(eigenvalues[1] / eigenvalues[_DIMENSIONS])
    return Walk(
        float(fitted.epsilon_),
        int(fitted.time_),
        math.ceil(printed),
        eigenvalues,
        vectors / root,
        vectors * root,
        fitted.embedding_,
    )


def roll(
    seed: int,
    *,
    points: int = 1060,
    mesh: str = "uniform",
    noise: float = 0.0,
    epsilon: float = 0.7717928,
    time: int = 147,
) -> Drawn:
    """Map a roll by the rules, and at the `epsilon` and `time` of the notes.

    At the `epsilon` of the notes the time is once that of (29) as printed, and once theirs.
    """
    X, flat = hs.datasets.swiss_roll(points, mesh=mesh, noise=noise, rng=random(seed, ROLL, points))
    walk, other = random_walk(X, _DELTA), random_walk(X, _DELTA, epsilon)
    as_printed, of_notes = (other.at(t, alike=walk) for t in (other.printed_time, time))
    theirs = "at the epsilon of the notes, "
    rows = [
        NotesRow("points", len(X), points),
        *_walk_rows(walk, _DELTA, epsilon, time),
        *strip_rows(walk, flat),
        NotesRow(f"{theirs}time (29) as printed, with lambda 3", as_printed.time, time),
        NotesRow(f"{theirs}coordinates above delta (26) at that time", as_printed.kept(_DELTA)),
        NotesRow(f"{theirs}coordinates above delta (26) at theirs", of_notes.kept(_DELTA)),
        *strip_rows(of_notes, flat, theirs),
    ]
    start = np.hypot(X[:, 0], X[:, 2]).argmin()
    order = np.argsort(np.linalg.norm(flat - flat[start], axis=1))
    walks = {
        "ε and t by the rules": walk,
        "ε of the notes, t as printed": as_printed,
        "ε and t of the notes": of_notes,
    }
    return rows, partial(drawings.roll, X, order, walks)


def turning_pacman(seed: int, *, images: int = 200, size: int = 65) -> Drawn:
    """Map the images of Pacman, none of which is random."""
    X, angle = pacman(images, size)
    return _pictures(X, angle, components=3, delta=0.5, epsilon=2335698.0, time=187)


def turning_picture(seed: int, *, images: int = 200, size: int = 500) -> Drawn:
    """Map the rotated photograph."""
    X, angle = rotated_picture(images, size, random(seed, PICTURE))
    rows, draw = _pictures(X, angle, components=2, delta=_DELTA, epsilon=7.318159e7)
    return [*rows, NotesRow("half a turn over 30° to 150°, d²", _half_turn(X, angle))], draw


def _pictures(
    X: np.ndarray,
    angle: np.ndarray,
    *,
    components: int,
    delta: float,
    epsilon: float,
    time: float = math.nan,
) -> Drawn:
    pca = hs.classical.PCA(n_components=min(len(X) - 1, X.shape[1]))
    # The principal components have the distances of the images, in n - 1 coordinates.
    scores = pca.fit_transform(X)
    walk, shares = random_walk(scores, delta), pca.explained_variance_ratio_
    rows = [
        NotesRow("images", len(X), 200),
        NotesRow("pixels", X.shape[1]),
        *_walk_rows(walk, delta, epsilon, time),
        NotesRow("lambda 2 / lambda 1", walk.eigenvalues[2] / walk.eigenvalues[1]),
        NotesRow("PCA, share of variance", float(np.sum(shares[:components]))),
        *loop_rows(scores, angle, "PCA"),
        *loop_rows(walk.embedding, angle, "diffusion map"),
    ]
    shown = np.argsort(angle)[np.linspace(0, len(X), _SHOWN_IMAGES, endpoint=False).astype(int)]
    return rows, partial(drawings.pictures, X[shown], angle, scores[:, :components], walk)


def _walk_rows(walk: Walk, delta: float, epsilon: float, time: float) -> list[NotesRow]:
    return [
        NotesRow("epsilon", walk.epsilon, epsilon),
        NotesRow("time (29) with lambda 4", walk.time, time),
        NotesRow("time (29) as printed, with lambda 3", walk.printed_time, time),
        NotesRow("coordinates above delta (26)", walk.kept(delta)),
        *(NotesRow(f"lambda {m}", walk.eigenvalues[m]) for m in range(1, 5)),
    ]


def _half_turn(X: np.ndarray, angle: np.ndarray) -> float:
    """Return d² of pictures half a turn apart (to 5°) as a share of those 30° to 150° apart."""
    apart = np.abs(np.rad2deg(np.angle(np.exp(1j * (angle[:, None] - angle)))))
    gram = (X @ X.T).astype(np.float64)
    squares = np.diag(gram)[:, None] + np.diag(gram) - 2 * gram
    between = squares[(apart > 30) & (apart < 150)].mean()
    return float(squares[apart > 175].mean() / between)
