"""Fisher's linear discriminant: the direction in which two classes are most separate."""

from typing import Any

import numpy as np
from sklearn.utils import ClassifierTags

from heatsketch._typing import Array
from heatsketch.classical._discriminant import Directions, Discriminant


class FisherDiscriminant(Discriminant):
    """Project points of two classes on the line that separates the classes most.

    *Linear and nonlinear dimensionality reduction*, §4: with the means m_1, m_2 of the classes and
    the sum S_w of their scatters, the maximiser of (1),

        J(w) = (wᵀ(m_1 - m_2))² / wᵀ S_w w,  is  w = S_w⁻¹ (m_1 - m_2),  normalised to |w| = 1.

    The sign is such that the second class has the larger scores. For two classes this is the only
    direction of `MultipleDiscriminant`, which takes more classes, and whose scores are in units of
    the spread within classes.

    When to use it: for two classes of about the same shape; it gives one number per point that
    separates them, and weights that show the importance of each feature if all have the same unit.
    When not: where the classes have the same mean, so that J is 0.

    Parameters
    ----------
    shrinkage : float in [0, 1], default 0
        γ: S_w is replaced by (1 - γ) S_w + γ diag(S_w + S_b), as in `MultipleDiscriminant`.

    Attributes
    ----------
    embedding_ : array (n, 1)
        Scores wᵀ(x - m), m the mean of all points: wᵀx of the notes up to a constant.
    components_ : array (1, d)
        w.
    mean_ : array (d,)
        m.
    objective_ : float
        J(w), with S_b = (m_1 - m_2)(m_1 - m_2)ᵀ.
    classes_ : array (2,)
        The first and the second class, sorted.
    diagnostics_, n_features_in_, feature_names_in_
        As in `MultipleDiscriminant`.

    Raises
    ------
    ValueError
        One class, or more than two; class means that coincide; S_w singular in a direction in
        which the classes differ.

    Notes
    -----
    Cost: that of `MultipleDiscriminant`. Where features are constant or dependent, w lies in the
    range of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import FisherDiscriminant
    >>> X = np.array([[2, 1], [2, -1], [-2, 1], [-2, -1]])
    >>> fisher = FisherDiscriminant().fit(np.vstack([X, X + [12, 4]]), list("aaaabbbb"))
    >>> fisher.components_.round(12)  # S_w = diag(32, 8), so w ~ (12 / 32, 4 / 8)
    array([[0.6, 0.8]])
    """

    def __init__(self, shrinkage: float = 0.0) -> None:
        self.shrinkage = shrinkage

    def _read_labels(self, y: Any, X: Array) -> tuple[Array, Array]:
        classes, labels = super()._read_labels(y, X)
        if len(classes) > 2:
            raise ValueError(
                f"y has {len(classes)} classes but FisherDiscriminant separates two; use "
                "MultipleDiscriminant."
            )
        return classes, labels

    def _choose(self, found: Directions) -> Array:
        n_1, n_2 = found.counts
        self.objective_ = float(found.J[0] * (n_1 + n_2) / (n_1 * n_2))
        return found.W / np.linalg.norm(found.W / self._scale[:, None])

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn: two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
