"""The public names, for type checkers; `__init__.py` imports them when they are first used."""

from heatsketch import anndata, classical, datasets, distributed, metrics, uncertainty
from heatsketch._checks import (
    CertificateError,
    ConvergenceWarning,
    DisconnectedWarning,
    ScaleWarning,
)
from heatsketch._environment import show_versions
from heatsketch._progress import progress
from heatsketch.comparison import compare
from heatsketch.estimators import (
    DiffusionMap,
    HeatEmbedding,
    HeatSketch,
    MixtureDiffusion,
    NearIsometricProjection,
)
from heatsketch.estimators.initialization import initialization
from heatsketch.io.models import load_model, save_model
from heatsketch.markov.affinity import gaussian_affinity
from heatsketch.markov.diffusion import Diffusion, diffusion
from heatsketch.markov.normalization import (
    bistochastic_normalize,
    markov_normalize,
    symmetric_normalize,
)
from heatsketch.metrics import diffusion_distance, distortion
from heatsketch.mixture import MixtureKernel
from heatsketch.operators import (
    Affine,
    Deflated,
    Dense,
    Graph,
    Kernel,
    LinearMap,
    LowRank,
    Scaled,
    Sparse,
    TorchDense,
    TorchKernel,
    TorchSparse,
    graph,
)
from heatsketch.reports.writer import report
from heatsketch.scales.bandwidth import ksum
from heatsketch.scales.connecting_scale import connecting_epsilon
from heatsketch.scales.density import density_estimate
from heatsketch.scales.dimension import intrinsic_dimension
from heatsketch.spectral.eigenpairs import eigh
from heatsketch.spectral.filters import Heat, Power
from heatsketch.spectral.heat_trace import heat_trace
from heatsketch.spectral.sketch import sketch
from heatsketch.uncertainty import (
    columns_for,
    data_interval,
    diffusion_discrepancy,
    sketch_interval,
)

__version__: str

__all__ = [
    "Affine",
    "CertificateError",
    "ConvergenceWarning",
    "Deflated",
    "Dense",
    "Diffusion",
    "DiffusionMap",
    "DisconnectedWarning",
    "Graph",
    "Heat",
    "HeatEmbedding",
    "HeatSketch",
    "Kernel",
    "LinearMap",
    "LowRank",
    "MixtureDiffusion",
    "MixtureKernel",
    "NearIsometricProjection",
    "Power",
    "ScaleWarning",
    "Scaled",
    "Sparse",
    "TorchDense",
    "TorchKernel",
    "TorchSparse",
    "anndata",
    "bistochastic_normalize",
    "classical",
    "columns_for",
    "compare",
    "connecting_epsilon",
    "data_interval",
    "datasets",
    "density_estimate",
    "diffusion",
    "diffusion_discrepancy",
    "diffusion_distance",
    "distortion",
    "distributed",
    "eigh",
    "gaussian_affinity",
    "graph",
    "heat_trace",
    "initialization",
    "intrinsic_dimension",
    "ksum",
    "load_model",
    "markov_normalize",
    "metrics",
    "progress",
    "report",
    "save_model",
    "show_versions",
    "sketch",
    "sketch_interval",
    "symmetric_normalize",
    "uncertainty",
]
