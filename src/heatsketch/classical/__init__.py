"""The methods of *Linear and nonlinear dimensionality reduction*, one in each module.

Modules that begin with an underscore hold what several methods share. Neighbourhoods and shortest
paths are in `heatsketch.graphs`, classical scaling and singular vectors in `heatsketch.spectral`.
"""

from heatsketch.classical.classical_mds import ClassicalMDS
from heatsketch.classical.fisher_discriminant import FisherDiscriminant
from heatsketch.classical.isomap import Isomap
from heatsketch.classical.landmark_isomap import LandmarkIsomap
from heatsketch.classical.landmark_mds import LandmarkMDS
from heatsketch.classical.laplacian_eigenmap import LaplacianEigenmap
from heatsketch.classical.lle import LocallyLinearEmbedding
from heatsketch.classical.metric_mds import MetricMDS
from heatsketch.classical.multiple_discriminant import MultipleDiscriminant
from heatsketch.classical.pca import PCA
from heatsketch.classical.sne import SNE
from heatsketch.classical.tsne import TSNE
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
]
