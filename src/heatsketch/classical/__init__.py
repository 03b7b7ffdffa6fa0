"""The classical methods of dimensionality reduction, on one neighbour search.

Those of *Linear and nonlinear dimensionality reduction*. `graph` holds the neighbourhoods that
`isomap`, `lle` and `laplacian` are built on, `paths` the shortest paths, `pca` the axes of points,
`scaling` the coordinates from distances that `mds` and Isomap have in common, `singular` the
smallest singular vectors that LLE asks for; `sne` is both kinds of stochastic neighbour embedding.
"""

from heatsketch.classical.classical_mds import ClassicalMDS
from heatsketch.classical.fisher_discriminant import FisherDiscriminant
from heatsketch.classical.isomap import Isomap, LandmarkIsomap
from heatsketch.classical.landmark_mds import LandmarkMDS
from heatsketch.classical.laplacian_eigenmap import LaplacianEigenmap
from heatsketch.classical.lle import LocallyLinearEmbedding
from heatsketch.classical.multiple_discriminant import MultipleDiscriminant
from heatsketch.classical.pca import PCA
from heatsketch.classical.sne import SNE, TSNE
from heatsketch.estimators import DiffusionMap

__all__ = [
    "PCA",
    "SNE",
    "TSNE",
    "ClassicalMDS",
    "DiffusionMap",
    "FisherDiscriminant",
    "Isomap",
    "LandmarkIsomap",
    "LandmarkMDS",
    "LaplacianEigenmap",
    "LocallyLinearEmbedding",
    "MultipleDiscriminant",
]
