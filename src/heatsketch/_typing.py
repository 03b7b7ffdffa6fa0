"""Names of the few types that several modules use."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Points: TypeAlias = Any  # array (n, d), or CSR matrix (n, d) from SciPy, which has no types
Rng: TypeAlias = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None
