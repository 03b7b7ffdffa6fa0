"""Operators whose eigenvalues are known: a new one enters every test by one line of PROBLEMS."""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import ive

import heatsketch as hs
from problems.clouds import even_circle, even_torus


def circle_eigenvalues(m, epsilon):
    """λ_m = I_m(2/ε) / I_0(2/ε): many even points of the unit circle, each m >= 1 twice.

    K is circulant, and its first row holds samples of e^{(2/ε)(cos θ - 1)}.
    """
    return ive(m, 2 / epsilon) / ive(0, 2 / epsilon)


def circle_frequencies(count):
    """Return m = 0, 1, 1, 2, 2, … of the eigenvalues in descending order."""
    return (np.arange(count) + 1) // 2


def circle_distances(steps, n, epsilon, time):
    """D between points `steps` apart, of n even points of the circle: all terms are positive."""
    m = np.arange(1, n // 2)
    wave = np.sin(np.pi * np.outer(steps, m) / n) ** 2
    return np.sqrt(8 / n * wave @ circle_eigenvalues(m, epsilon) ** (2 * time))


def log_L_of_first_pair(n, epsilon, time):
    """Distortion of the circle by its first two coordinates, which have the first term of D²."""
    steps = np.arange(1, n // 2 + 1)
    ratio = np.sin(np.pi * steps / n) / circle_distances(steps, n, epsilon, time)
    return np.log(ratio.max() / ratio.min())


def cycle_graph(n):
    """Adjacency matrix of a cycle."""
    i = np.arange(n)
    step = sparse.csr_matrix((np.ones(n), (i, (i + 1) % n)), shape=(n, n))
    return sparse.csr_matrix(step + step.T)


def lazy_torus(n, m):
    """The lazy walk on an n by m grid of a torus: eigenvalues below."""
    steps = sparse.kron(cycle_graph(n), sparse.identity(m))
    steps = steps + sparse.kron(sparse.identity(n), cycle_graph(m))
    return sparse.csr_matrix((steps + 3 * sparse.identity(n * m)) / 7)


def lazy_torus_eigenvalues(n, m):
    """All eigenvalues of `lazy_torus`, descending."""
    one, other = (2 * np.cos(2 * np.pi * np.arange(p) / p) for p in (n, m))
    return np.sort((3 + np.add.outer(one, other).ravel()) / 7)[::-1]


def path_graph(n):
    """Adjacency matrix of a path."""
    return sparse.diags([np.ones(n - 1)] * 2, [-1, 1]).tocsr()


def star_graph(n):
    """Adjacency matrix of a star: vertex 0 and n - 1 leaves."""
    return sparse.csr_matrix((np.arange(n)[:, None] == 0) ^ (np.arange(n) == 0), dtype=float)


def complete_graph(n):
    """All pairs, and each vertex with itself twice."""
    return sparse.csr_matrix(1 + np.eye(n))


class Problem(NamedTuple):
    """A symmetric operator and its eigenvalues in descending order; the others are below 1e-13."""

    operator: object
    values: np.ndarray


def circle(n=120, epsilon=0.25, affinity=hs.gaussian_affinity):
    """Even points of a circle and the Gaussian kernel."""
    A = hs.symmetric_normalize(affinity(even_circle(n), epsilon))
    return Problem(A, circle_eigenvalues(circle_frequencies(n), epsilon))


def torus(n=24, m=26, epsilon=2.0, radius=1.5):
    """An even grid on a torus: products of the eigenvalues of the circles."""
    A = hs.symmetric_normalize(hs.gaussian_affinity(even_torus(n, m, radius), epsilon))
    one = circle_eigenvalues(circle_frequencies(n), epsilon)
    other = circle_eigenvalues(circle_frequencies(m), epsilon / radius**2)
    return Problem(A, np.sort(np.outer(one, other).ravel())[::-1])


def walk(graph, values):
    """The random walk on a graph."""
    return Problem(hs.Diffusion.from_graph(graph).operator, np.sort(values)[::-1])


def mehler(n=60, epsilon=2.0):
    """The Gaussian kernel and the standard normal measure, by Gauss-Hermite quadrature.

    λ_k = √(2a/(a+b+c)) (b/(a+b+c))^k with a = 1/4, b = 1/ε, c² = a² + 2ab (Mehler's formula).
    """
    x, w = np.polynomial.hermite_e.hermegauss(n)
    root = np.sqrt(w / np.sqrt(2 * np.pi))
    K = np.exp(-((x[:, None] - x) ** 2) / epsilon) * np.outer(root, root)
    a, b = 0.25, 1 / epsilon
    whole = a + b + np.sqrt(a * a + 2 * a * b)
    return Problem(K, np.sqrt(2 * a / whole) * (b / whole) ** np.arange(n))


PROBLEMS = {
    "circle": circle,
    "torus": torus,
    "cycle": lambda: walk(cycle_graph(30), np.cos(2 * np.pi * np.arange(30) / 30)),
    "path": lambda: walk(path_graph(31), np.cos(np.pi * np.arange(31) / 30)),
    "star": lambda: walk(star_graph(12), [1, *[0] * 10, -1]),
    "complete graph": lambda: walk(complete_graph(12), [1, *[1 / 13] * 11]),
    "mehler": mehler,
}


@cache
def problem(name):
    """Return a problem of PROBLEMS, made once."""
    return PROBLEMS[name]()
