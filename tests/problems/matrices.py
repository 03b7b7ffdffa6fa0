"""Matrices of vertices as matrices of points (vertices are numbered by content), and kernels."""

import numpy as np
from scipy.spatial.distance import cdist


def kernel_matrix(X, epsilon):
    """Return exp(-|x_i - x_j|² / ε), or with ε_ij = s_i s_j of scales s (n,), in float64."""
    scale = epsilon if np.ndim(epsilon) == 0 else np.multiply.outer(epsilon, epsilon)
    return np.exp(-cdist(X, X, "sqeuclidean") / scale)


def dense(matrix):
    """Return a matrix, sparse or not, as an array."""
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


def of_points(built, matrix=None):
    """Return the operator of a diffusion or an affinity, or a matrix of its vertices, by points."""
    if matrix is None:
        matrix = built.operator @ np.eye(built.operator.n)
    return dense(matrix)[np.ix_(built.vertex, built.vertex)]


def rows_of_points(built, X):
    """Return the affinities of new points to the points, dense (m, n)."""
    return dense(built.kernel.new_rows(X))[:, built.vertex]
