"""Normalisations of an affinity: A = diag(s) K diag(s), with A √π = √π."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from heatsketch._arrays import Array, is_tensor, landed, on_host
from heatsketch._checks import check_choice, check_number, precision_of
from heatsketch._messages import ConvergenceWarning, logger, name_rows, warn
from heatsketch._threads import track
from heatsketch.core.blocks import blocks_of, multiply, scale_both_sides
from heatsketch.core.operators import Operator
from heatsketch.device.blocks import as_tensor, device_csr
from heatsketch.markov.affinity import as_affinity, as_matrix

_DAMPING = 2 / 3  # damping: contracts by |1 - ω(1+λ)| <= 1/3 where K is positive semidefinite
_PATIENCE = 60  # products; a damped iteration that takes more has eigenvalues near -1
_LONGEST = 2.0  # step of Newton, in log t
_MAX_SCALE = 1e250  # of a new point; beyond, its row would overflow
_FLAT = 1e-13  # curvature, relative to the largest
_MAX_RESIDUAL = 1e-3  # a scaling this far off is an error, not a warning


@dataclass(frozen=True, eq=False)
class Scaling:
    """The scaling s of an affinity and the rule that gives it to new points.

    Attributes
    ----------
    s : array (n,)
        A = diag(s) K diag(s).
    measure : array (n,)
        Stationary distribution π, summing to 1; √π is the eigenvector of A for eigenvalue 1.
    row_sums : array (n,)
        The row sums of K.
    density_weight : array (n,) or None
        w q^-α of the Markov rule; None for bistochastic.
    alpha : float
    diagnostics : dict
    weights : array (n,) or None
        How often the points count, w; None: each once.
    """

    s: Array
    measure: Array
    row_sums: Array
    density_weight: Array | None = None
    alpha: float = 1.0
    diagnostics: dict[str, Any] = field(default_factory=dict)
    weights: Array | None = None

    def normalized(self, K: Operator, dtype: Any = np.float64) -> Operator:
        """Return A, with eigenvalues in [-1, 1], or [0, 1]: scaling keeps their signs.

        A large graph is stored in the precision `dtype`; a kernel is computed in it.
        """
        spectrum = (0.0 if K.spectrum[0] >= 0 else -1.0), 1.0
        root = blocks_of(self.measure).xp.sqrt(self.measure)
        return K.scaled_both_sides(self.s, spectrum, root, dtype)

    def new_rows(self, K_rows: Any, dtype: Any = np.float64) -> Any:
        """Turn affinities K(x, x_j) of new points (m, n) into rows a(x, x_j) of A.

        By the rule of `s`: 1 / Σ K s_j (bistochastic), or q^-α / √v with v = q^-α Σ K q_j^-α w_j.
        """
        blocks = blocks_of(K_rows)
        s = blocks.native(self.s)
        if self.density_weight is None:
            scale = 1.0 / multiply(K_rows, s)
        else:
            with np.errstate(over="ignore"):
                scale = blocks.native(K_rows.sum(axis=1)).ravel() ** (-self.alpha / 2)
                scale /= blocks.xp.sqrt(multiply(K_rows, blocks.native(self.density_weight)))
            scale = blocks.xp.clip(scale, None, _MAX_SCALE)  # the Markov form takes this factor out
        return scale_both_sides(K_rows, scale, s, dtype)


def symmetric_normalize(K: Any, *, zero_diagonal: bool = False) -> Any:
    """Normalise an affinity symmetrically.

    With q = K1, K̃ = K / (q qᵀ) and v = K̃1, the result is A = K̃ / (√v √vᵀ) [1]_. Division by q
    removes the density of the sample (α = 1), if the bandwidth is one small number and does not
    follow the density. A has the eigenvector √v with eigenvalue 1.

    Parameters
    ----------
    K : Graph, Operator, tensor or {array-like, sparse matrix} of shape (n_samples, n_samples)
        Symmetric, non-negative, no row all zero.
    zero_diagonal : bool, default=False
        As in `bistochastic_normalize`, where it does more.

    Returns
    -------
    Operator or {ndarray, sparse matrix, tensor} of shape (n_samples, n_samples)
        A. An array, sparse matrix or tensor gives one like it, a graph gives a CSR matrix, and an
        operator gives an operator.

    Raises
    ------
    ValueError
        K is not square, symmetric, finite or non-negative, or a row sums to zero.

    See Also
    --------
    bistochastic_normalize : Scale an affinity so that rows and columns sum to 1.
    markov_normalize : Normalise an affinity to a Markov matrix.
    Diffusion.from_affinity : Build the diffusion of an affinity.

    Notes
    -----
    The cost is two row sums.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Algorithm 1.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> A = hs.symmetric_normalize(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> np.linalg.eigvalsh(A).round(4)
    array([0.3333, 1.    ])
    """
    return _scaled(_matrix_of(K, zero_diagonal), lambda A: markov_scaling(A, 1.0))


def markov_normalize(K: Any, alpha: float = 1.0, *, zero_diagonal: bool = False) -> Any:
    """Normalise an affinity to a Markov matrix P = diag(K⁽ᵅ⁾1)⁻¹ K⁽ᵅ⁾, K⁽ᵅ⁾ = K / (qᵅ qᵅᵀ).

    For a kernel with one small bandwidth, α = 0 keeps the density of the sample, ½ gives Langevin
    dynamics, and 1 gives the Laplacian alone [1]_. With nearest neighbours and bandwidths s_i s_j
    the limit also has a speed s², which no α removes [2]_; see ``affinity="variable"`` of
    `Diffusion.from_points`.

    Parameters
    ----------
    K : Graph or {array-like, sparse matrix} of shape (n_samples, n_samples)
        Symmetric, non-negative, no row all zero.
    alpha : float, default=1
        Power α of the row sums q by which affinities are divided.
    zero_diagonal : bool, default=False
        As in `bistochastic_normalize`, where it does more.

    Returns
    -------
    {ndarray, sparse matrix} of shape (n_samples, n_samples)
        P; rows sum to 1. Not symmetric: for sketches and eigenpairs use `Diffusion.from_affinity`,
        which keeps the symmetric A with P = D^-1/2 A D^1/2.

    Raises
    ------
    TypeError
        K is an operator.
    ValueError
        K is not square, symmetric, finite or non-negative, or a row sums to zero.

    See Also
    --------
    symmetric_normalize : Normalise an affinity to a symmetric matrix.
    bistochastic_normalize : Scale an affinity so that rows and columns sum to 1.
    Diffusion.from_affinity : Build the diffusion of an affinity.

    Notes
    -----
    The cost is two passes over the entries of K, and memory for as many numbers in the result.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §9.6,
       equation (54).
    .. [2] D. Ting, L. Huang and M. I. Jordan, "An analysis of the convergence of graph Laplacians",
       ICML (2010).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.markov_normalize(np.array([[1.0, 1.0], [1.0, 3.0]]), alpha=0)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    K = _matrix_of(K, zero_diagonal)
    operator = as_affinity(K)
    if operator is K:
        raise TypeError(
            "K is an operator, and P would not be symmetric; use Diffusion.from_affinity(K), whose "
            "operator A gives P = D^-1/2 A D^1/2."
        )
    scaling = landed(markov_scaling(operator, alpha))
    root = np.sqrt(scaling.measure)
    return _like(K, scaling.s / root, scaling.s * root)


def bistochastic_normalize(
    K: Any,
    tol: float = 1e-8,
    max_iter: int = 1000,
    *,
    weights: str | None = None,
    zero_diagonal: bool = False,
) -> Any:
    """Scale an affinity so that rows and columns sum to 1 [1]_.

    It finds s > 0 with B = diag(s) K diag(s) and B1 = 1, by the iteration s ← s r^(-2/3), where r
    are the row sums of the scaled matrix. If K is positive semidefinite the error falls to a third
    each time, however slowly the walk mixes (the fixed-point iteration of the paper needs hundreds
    to thousands). A convex function that must decrease guards the step.

    Parameters
    ----------
    K : Graph, Operator, tensor or {array-like, sparse matrix} of shape (n_samples, n_samples)
        Symmetric, non-negative.
    tol : float, 0 < tol <= 1e-3, default=1e-8
        Largest |row sum - 1| accepted, recomputed from the final scaling.
    max_iter : int, default=1000
        Largest number of iterations.
    weights : "1/q", default=None
        B is then bistochastic with respect to w, the reciprocal row sums of K: Bw = 1, and A =
        diag(√w) B diag(√w) is returned, with A √w = √w. A tends to the heat kernel for any density
        of the points [2]_, as the Markov form with α = 1 does. Without weights the result depends
        on the density as for α = ½. The diffusion of A, with r = √w, is
        `Diffusion.from_affinity(r[:, None] * A * r, alpha=0)`.
    zero_diagonal : bool, default=False
        Take the diagonal of K as 0, so that noise changes B less [3]_: in many dimensions noise of
        variance s_i at point i adds s_i + s_j to the squared distance of two points, which divides
        K_ij by factors of i and of j, and the scaling takes these out. The diagonal, to which
        nothing is added, keeps it from doing so. But B without the diagonal is another matrix,
        which pays where the squared length of the noise is above about ε/2. K has to be stored,
        not an operator.

    Returns
    -------
    Operator or {ndarray, sparse matrix, tensor} of shape (n_samples, n_samples)
        B, or A with weights. An array, sparse matrix or tensor gives one like it, a graph gives a
        CSR matrix, and an operator gives an operator.

    Raises
    ------
    ValueError
        Unknown weights; no scaling exists (a zero diagonal can leave K
        without total support; the rows are named); row sums off by 1e-3 after `max_iter`.

    Warns
    -----
    ConvergenceWarning
        The row sums are off by more than `tol` but less than 1e-3.

    See Also
    --------
    symmetric_normalize : Normalise an affinity to a symmetric matrix.
    markov_normalize : Normalise an affinity to a Markov matrix.
    Diffusion.from_affinity : Build the diffusion of an affinity.

    Notes
    -----
    The cost is one product with a vector per iteration, about 17 iterations for 1e-8 where K is
    positive semidefinite. Where that is not so, as without a diagonal, Newton's method takes over
    after 60, whose steps are found by conjugate gradients.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Algorithm 2.
    .. [2] N. F. Marshall and R. R. Coifman, "Manifold learning with bi-stochastic kernels", IMA
       Journal of Applied Mathematics 84 (2019), 455-482.
    .. [3] B. Landa, R. R. Coifman and Y. Kluger, "Doubly stochastic normalization of the Gaussian
       kernel is robust to heteroskedastic noise", SIAM Journal on Mathematics of Data Science 3
       (2021), 388-413.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> B = hs.bistochastic_normalize(np.array([[1.0, 0.5], [0.5, 4.0]]))
    >>> B.sum(axis=1).round(6)
    array([1., 1.])
    """
    K = _matrix_of(K, zero_diagonal)
    return _scaled(K, lambda A: bistochastic_scaling(A, tol, max_iter, weights=weights))


def markov_scaling(
    K: Operator, alpha: float, vertex: Array | None = None, weights: Array | None = None
) -> Scaling:
    """Return the scaling of A = diag(s) K diag(s), similar to the Markov matrix with `alpha`.

    `vertex` (points,): that of each input point, for messages; None: they have the same numbers.
    With `weights` w (n,) > 0 sums over points are weighted: q = K w, v = q^-α Σ_j K q_j^-α w_j and

        s = √w q^-α / √v,   π ∝ w v,

    which whole weights would give to points that occur so often.
    """
    alpha = check_number(alpha, "alpha")
    row_sums = q = _positive_row_sums(K, vertex)
    xp = blocks_of(q).xp
    w = xp.ones_like(q) if weights is None else blocks_of(q).native(weights, q.dtype)
    if weights is not None:
        q = K.product(w)
    with np.errstate(over="ignore", invalid="ignore"):
        weight = q**-alpha
        v = weight * K.product(w * weight)
    if not (xp.isfinite(v) & (v > 0)).all():
        raise ValueError(
            f"alpha={alpha:g} takes powers of the density out of the range of float64; pass one "
            "closer to 0, or affinities that are not negative."
        )
    if weights is None:
        return Scaling(weight / xp.sqrt(v), v / v.sum(), q, weight, alpha)
    mass = w * v
    s = xp.sqrt(w) * weight / xp.sqrt(v)
    return Scaling(s, mass / mass.sum(), row_sums, w * weight, alpha, weights=w)


def bistochastic_scaling(
    K: Operator,
    tol: float = 1e-8,
    max_iter: int = 1000,
    vertex: Array | None = None,
    weights: str | None = None,
) -> Scaling:
    """Return s with A √w = √w within `tol` of √w, A = diag(s) K diag(s); w = 1 by default.

    `vertex` as in `markov_scaling`, `weights` as in `bistochastic_normalize`.
    """
    tol = check_number(tol, "tol", low=0, open_low=True, high=_MAX_RESIDUAL)
    max_iter = check_number(max_iter, "max_iter", low=1, integer=True)
    q = _positive_row_sums(K, vertex)
    _check_support(K, vertex)
    xp = blocks_of(q).xp
    if weights is None:
        w = xp.ones_like(q)
    else:
        check_choice(weights, "weights", ("1/q",))
        w = 1 / q
        w /= w.mean()
        _check_weights(K, w, vertex)
    t, iterations = _balance(K, w, xp.sqrt(w) / xp.sqrt(q), tol, max_iter)
    residuals = abs(t * K.product(t) / w - 1)
    residual = float(residuals.max())
    logger.info("bistochastic scaling: residual %.1e after %d iterations", residual, iterations)
    worst = on_host(xp.argsort(-residuals)[: max(1, int((residuals > tol).sum()))])
    if not residual <= _MAX_RESIDUAL:
        raise ValueError(
            f"The bistochastic scaling has row sums off by {residual:.1e} after {iterations} "
            f"iterations, worst at rows {_names(worst, vertex)}; raise max_iter, give these points "
            "a positive K_ii, or leave them out."
        )
    if residual > tol:
        message = (
            f"The bistochastic scaling reached {residual:.1e}, not tol={tol:.1e}, in {iterations} "
            f"iterations, worst at rows {_names(worst, vertex)}; raise max_iter or tol."
        )
        warn(ConvergenceWarning, message)
    diagnostics = {"scaling_residual": residual, "scaling_iterations": iterations}
    return Scaling(t / xp.sqrt(w), w / w.sum(), q, diagnostics=diagnostics)


def _balance(K: Operator, w: Array, t: Array, tol: float, max_iter: int) -> tuple[Array, int]:
    """Return t from a first guess, with the row sums w of diag(t) K diag(t), and iterations."""
    Kt = K.product(t)
    energy, omega = _energy(w, t, Kt), _DAMPING
    slack = 1e-11 * K.n  # rounding of the energy; below it only the residual can tell
    patience = min(_PATIENCE, max_iter)
    for iteration in track(range(patience), "bistochastic scaling", None, "iterations"):
        r = t * Kt / w
        if abs(r - 1).max() <= tol:
            return t, iteration
        while True:
            trial = t * r**-omega
            K_trial = K.product(trial)
            trial_energy = _energy(w, trial, K_trial)
            if trial_energy <= energy + slack or omega < 1e-3:
                break
            omega /= 2
        t, Kt, energy = trial, K_trial, trial_energy
        omega = min(_DAMPING, 2 * omega)
    return _by_newton(K, w, t, tol, patience, max_iter)


def _by_newton(
    K: Operator, w: Array, t: Array, tol: float, used: int, max_iter: int
) -> tuple[Array, int]:
    """Return the same by Newton's method, whose steps are found by conjugate gradients.

    In log t the energy is convex, with the gradient t Kt - w and the curvature diag(t Kt) +
    diag(t) K diag(t), which is semidefinite for any K >= 0. It does not slow down where K has
    negative eigenvalues, as without its diagonal, when two points have most of their affinity to
    each other. An iteration is a product.
    """
    Kt = K.product(t)
    energy, slack = _energy(w, t, Kt), 1e-11 * K.n
    xp = blocks_of(t).xp
    while used < max_iter:
        sums = t * Kt
        if abs(sums / w - 1).max() <= tol:
            break
        residual = w - sums
        step, square = xp.zeros_like(t), float((residual**2 / sums).sum())
        enough = min(0.01, math.sqrt(square)) * square
        z = residual / sums
        direction = z
        while square > enough and used < max_iter:
            curved = sums * direction + t * K.product(t * direction)
            used += 1
            bend = float((direction * curved).sum())
            if bend <= _FLAT * float((sums * direction**2).sum()):  # both sides of a bipartite K
                break
            length = square / bend
            step, residual = step + length * direction, residual - length * curved
            z = residual / sums
            before, square = square, float((residual * z).sum())
            direction = z + square / before * direction
        size = min(1.0, _LONGEST / (float(abs(step).max()) or 1.0))
        while used < max_iter:
            trial = t * xp.exp(size * step)
            K_trial = K.product(trial)
            used += 1
            trial_energy = _energy(w, trial, K_trial)
            if trial_energy <= energy + slack or size < 1e-3:
                t, Kt, energy = trial, K_trial, trial_energy
                break
            size /= 2
    return t, used


def _energy(w: Array, t: Array, Kt: Array) -> float:
    """The convex function ½ tᵀKt - Σ w log t, smallest at the scaling sought."""
    return float(0.5 * (t @ Kt) - (w * blocks_of(t).xp.log(t)).sum())


def _names(vertices: Array, vertex: Array | None) -> str:
    """Name the points at some vertices."""
    if vertex is None:
        return name_rows(vertices)
    return name_rows(np.flatnonzero(np.isin(on_host(vertex), vertices)))


def _positive_row_sums(K: Operator, vertex: Array | None) -> Array:
    """Return the row sums of K, or raise where one is not positive."""
    sums: Array = K.product(K.blocks.native(np.ones(K.n), K.dtype))
    bad = K.blocks.where(~(sums > 0))
    if len(bad):
        raise ValueError(
            f"{len(bad)} point(s) have no affinity to anything, not even themselves (rows "
            f"{_names(bad, vertex)}); remove them, add K_ii > 0, or pass a larger epsilon."
        )
    return sums


def _check_support(K: Operator, vertex: Array | None) -> None:
    """Raise if no scaling of K exists, where K is stored and its diagonal has zeros.

    A scaling exists if and only if every positive entry lies on a positive diagonal (total
    support): after a perfect matching is moved to the diagonal, each entry must stay inside one
    strongly connected component (Sinkhorn and Knopp 1967). K_ii > 0 everywhere is enough.
    """
    diagonal = K.diagonal()
    if diagonal is None or (diagonal > 0).all() or K.matrix is None:
        return
    matrix = K.matrix
    pattern = sparse.csr_matrix(matrix != 0)
    column_of = maximum_bipartite_matching(pattern, perm_type="column")
    bad = np.flatnonzero(column_of < 0)
    if not len(bad):
        moved = pattern[:, column_of].tocoo()
        labels = connected_components(moved, directed=True, connection="strong")[1]
        bad = np.unique(moved.row[labels[moved.row] != labels[moved.col]])
    if len(bad):
        raise ValueError(
            "No bistochastic scaling exists: K has no total support at rows "
            f"{_names(bad, vertex)}; give K_ii > 0 to every point (self-loops; "
            "zero_diagonal=False)."
        )


def _matrix_of(K: Any, zero_diagonal: bool) -> Any:
    """Return K as a matrix or an operator, without its diagonal where that is asked for."""
    K = as_matrix(K)
    if not isinstance(zero_diagonal, bool | np.bool_):
        kind = type(zero_diagonal).__name__
        raise TypeError(f"zero_diagonal={zero_diagonal!r} is of type {kind}; pass True or False.")
    if not zero_diagonal:
        return K
    if isinstance(K, Operator):
        raise TypeError("zero_diagonal=True needs a stored K, not an operator; pass K @ np.eye(n).")
    if is_tensor(K):
        return _tensor_like(K, _matrix_of(on_host(K), zero_diagonal))
    if not sparse.issparse(K):
        K = np.array(K)
        if K.ndim == 2:  # other forms are refused later
            np.fill_diagonal(K, 0)
        return K
    K = sparse.coo_matrix(K)
    between = K.row != K.col
    ends = K.row[between], K.col[between]
    return sparse.csr_matrix((K.data[between], ends), K.shape)


def _tensor_like(K: Any, matrix: Any) -> Any:
    """Return a matrix of the host as a tensor, where K is."""
    if sparse.issparse(matrix):
        return device_csr(matrix, K.device).tensor
    return as_tensor(matrix, matrix.dtype, K.device)


def _check_weights(K: Operator, w: Array, vertex: Array | None) -> None:
    """Raise if a point without K_ii has more weight than all that it is joined to, of a stored K.

    Row i of the scaled matrix sums to w_i, and each of its entries is at most w of the other point.
    """
    diagonal = K.diagonal()
    if diagonal is None or (diagonal > 0).all() or K.matrix is None:
        return
    w, diagonal, matrix = (on_host(each) for each in (w, diagonal, K.matrix))
    bad = np.flatnonzero((diagonal == 0) & (w > (1 + 1e-9) * ((matrix != 0) @ w)))
    if len(bad):
        raise ValueError(
            f"No scaling with weights='1/q' exists: the weight of rows {_names(bad, vertex)} is "
            "larger than that of all other points that they are joined to; give them K_ii > 0 "
            "(zero_diagonal=False), leave them out, or pass a larger epsilon."
        )


def _scaled(K: Any, scaling_of: Callable[[Operator], Scaling]) -> Any:
    """Return diag(s) K diag(s) by the scaling of K, an operator if K is one."""
    operator = as_affinity(K)
    scaling = landed(scaling_of(operator))
    return scaling.normalized(operator) if operator is K else _like(K, scaling.s, scaling.s)


def _like(K: Any, left: Array, right: Array) -> Any:
    """Return diag(left) K diag(right) in the form and precision of K."""
    matrix = on_host(K)
    matrix = sparse.csr_matrix(matrix) if sparse.issparse(matrix) else np.asarray(matrix)
    A = scale_both_sides(matrix, left, right).astype(precision_of(matrix), copy=False)
    return _tensor_like(K, A) if is_tensor(K) else A
