"""An operator that counts its products by blocks."""

from heatsketch.core.operators import Operator


class Counting(Operator):
    """Another operator, and how many blocks of at least some columns it has multiplied."""

    def __init__(self, A, least_columns=1):
        self.A, self.n, self.dtype, self.spectrum = A, A.n, A.dtype, A.spectrum
        self.least_columns, self.products = least_columns, 0

    def asarray(self, X):
        return self.A.asarray(X)

    def _matmul(self, X):
        self.products += X.ndim == 2 and X.shape[1] >= self.least_columns
        return self.A @ X
