"""Multiple discriminant analysis: the directions in which several classes are most separate."""

from heatsketch._checks import check_number
from heatsketch._typing import Array
from heatsketch.classical._discriminant import Directions, Discriminant


class MultipleDiscriminant(Discriminant):
    """Project points of several classes on the directions that separate the classes most.

    *Linear and nonlinear dimensionality reduction*, §5: with class means m_i of n_i points each,
    mean m and

        S_w = Σ_i Σ_{k in class i} (x_k - m_i)(x_k - m_i)ᵀ,  S_b = Σ_i n_i (m_i - m)(m_i - m)ᵀ,

    the directions are the top eigenvectors of S_b w = λ S_w w: the maximisers of
    J(w) = wᵀ S_b w / wᵀ S_w w = λ. With c classes S_b has at most rank c - 1, so there are at most
    so many directions. The result is independent of the units of the features, and of any other
    invertible linear map of them.

    When to use it: where labels are available and each class is a single cloud of about the same
    shape; it is a good first step before a search of nearest neighbours. When not: where labels are
    to be found (see `PCA`); where classes are curved, or of several clouds, so that means describe
    them badly.

    Parameters
    ----------
    n_components : int, 1 <= k <= c - 1, or None, default None
        Number of coordinates k; None: the rank of S_b.
    shrinkage : float in [0, 1], default 0
        γ: S_w is replaced by (1 - γ) S_w + γ diag(S_w + S_b). Needed where S_w is singular in a
        direction in which the classes differ, as with more features than points; helpful where
        there are few points for the number of features. With γ > 0 the result is independent of
        the units of the features, but not of other linear maps.

    Attributes
    ----------
    embedding_ : array (n, k)
        Scores wᵀ(x - m). Their covariance within classes is I, so that their distances are
        Mahalanobis distances; the mean of the last class is above that of the first.
    components_ : array (k, d)
        The rows w: ``embedding_`` is ``(X - mean_) @ components_.T``.
    mean_ : array (d,)
        m.
    eigenvalues_ : array (k,)
        λ = J(w), descending.
    explained_ratio_ : array (k,)
        λ as a share of the sum of all nonzero λ.
    classes_ : array (c,)
    diagnostics_ : dict
        `classes`, the number c; `discriminants`, the rank of S_b.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Raises
    ------
    ValueError
        A single class; class means that coincide; more components than the rank of S_b; S_w
        singular in a direction in which the classes differ, where λ would be infinite.

    Notes
    -----
    Directions in which the data do not vary beyond rounding (constant or dependent features) are
    removed by a singular value decomposition of the centred data, in units of standard deviation.
    Cost: some 4 n d² operations (n² d where d > n); twice the data in memory.
    `sklearn.discriminant_analysis.LinearDiscriminantAnalysis`, which also classifies, removes the
    directions in which S_w is singular: the ones that separate the classes best.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, label = hs.datasets.gaussian_clouds(500, n_labels=3, dim=5, rng=0)
    >>> hs.classical.MultipleDiscriminant().fit_transform(X, label).shape
    (500, 2)
    """

    def __init__(self, n_components: int | None = None, shrinkage: float = 0.0) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage

    def _choose(self, found: Directions) -> Array:
        rank = len(found.J)
        k = rank
        if self.n_components is not None:
            k = check_number(self.n_components, "n_components", low=1, integer=True)
        if k > rank:
            raise ValueError(
                f"n_components={k} but the means of {len(self.classes_)} classes differ in {rank} "
                f"direction(s); pass n_components <= {rank}."
            )
        self.eigenvalues_ = found.J[:k]
        self.explained_ratio_ = found.J[:k] / found.J.sum()
        return found.W[:, :k]
