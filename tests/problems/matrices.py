"""Matrices of vertices as matrices of points: vertices are numbered by content, not by row."""

import numpy as np


def of_points(built, matrix=None):
    """Return the operator of a diffusion or an affinity, or a matrix of its vertices, by points."""
    if matrix is None:
        matrix = built.operator @ np.eye(built.operator.n)
    matrix = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
    return matrix[np.ix_(built.vertex, built.vertex)]


def rows_of_points(built, X):
    """Return the affinities of new points to the points, dense (m, n)."""
    rows = built.rows(X)
    rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    return rows[:, built.vertex]
