"""A multiple of an operator plus a multiple of the identity."""

from heatsketch.backend import Block
from heatsketch.operators.operator import Composed, Operator


class Affine(Composed):
    """The operator scale * A + shift * I, for example the lazy walk (A + I) / 2 or I - A.

    A product costs a product by A, and a pass over the block.

    Parameters
    ----------
    A : Operator
        The operator A.
    scale : float, default=1
        Factor of A.
    shift : float, default=0
        Factor of the identity I.

    See Also
    --------
    Scaled : An operator scaled from both sides by a diagonal matrix.
    Deflated : An operator without given directions.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> L = hs.Affine(hs.Dense(np.diag([1.0, 0.25])), scale=-1.0, shift=1.0)
    >>> L @ np.ones(2), L.spectrum
    (array([0.  , 0.75]), (0.0, 2.0))
    """

    def __init__(self, A: Operator, scale: float = 1.0, shift: float = 0.0) -> None:
        self.A, self.n, self.dtype, self.scale, self.shift = A, A.n, A.dtype, scale, shift
        low, high = sorted(float(scale * end + shift) for end in A.spectrum)
        self.spectrum = low, high

    def _matmul(self, X: Block) -> Block:
        return float(self.scale) * (self.A @ X) + float(self.shift) * X
