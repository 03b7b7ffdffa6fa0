"""The methods of *Linear and nonlinear dimensionality reduction*, one family per module.

Neighbourhoods and shortest paths are in `heatsketch.neighbors`, the factor of classical scaling in
`heatsketch.spectral`.
"""

from heatsketch.classical.discriminants import FisherDiscriminant, MultipleDiscriminant
from heatsketch.classical.isomap import Isomap, LandmarkIsomap
from heatsketch.classical.laplacian_eigenmap import LaplacianEigenmap
from heatsketch.classical.lle import LocallyLinearEmbedding
from heatsketch.classical.mds import ClassicalMDS, LandmarkMDS, MetricMDS, NonmetricMDS
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
    "MetricMDS",
    "MultipleDiscriminant",
    "NonmetricMDS",
]
