"""The public names and where they are; `__init__.py` imports them when they are first used."""

from . import (
    anndata as anndata,
)
from . import (
    classical as classical,
)
from . import (
    datasets as datasets,
)
from . import (
    distributed as distributed,
)
from . import (
    io as io,
)
from . import (
    metrics as metrics,
)
from . import (
    mixture as mixture,
)
from . import (
    neighbors as neighbors,
)
from . import (
    plot as plot,
)
from . import (
    uncertainty as uncertainty,
)
from ._messages import CertificateError, ConvergenceWarning, DisconnectedWarning, ScaleWarning
from ._threads import progress
from ._version import show_versions
from .comparison import compare
from .comparison.audit import audit
from .core.graph import Graph, graph
from .core.kernel import Kernel
from .core.operators import Affine, Deflated, Dense, LinearMap, LowRank, Scaled, Sparse
from .device.operators import TorchDense, TorchKernel, TorchSparse
from .estimators import (
    DiffusionMap,
    HeatEmbedding,
    HeatSketch,
    MixtureDiffusion,
    NearIsometricProjection,
)
from .estimators.initialization import initialization
from .estimators.table import TableEncoder
from .io.models import load_model, save_model
from .markov.affinity import gaussian_affinity, kernel_affinity
from .markov.diffusion import Diffusion, diffusion
from .markov.normalization import (
    bistochastic_normalize,
    markov_normalize,
    symmetric_normalize,
)
from .metrics import diffusion_distance, distortion
from .metrics.markers import Markers, markers
from .mixture import MixtureKernel, TaylorMap
from .reports.facts import report
from .scales import connecting_epsilon, density_estimate, intrinsic_dimension, ksum, nearest_epsilon
from .spectral.eigen import eigh
from .spectral.filters import Accumulated, Heat, Power
from .spectral.functions import heat_kernel_embedding, sketch
from .spectral.traces import heat_trace
from .uncertainty import (
    columns_for,
    data_interval,
    diffusion_discrepancy,
    secant_inner_products,
    sketch_interval,
)

__version__: str

__all__ = [
    "Accumulated",
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
    "Markers",
    "MixtureDiffusion",
    "MixtureKernel",
    "NearIsometricProjection",
    "Power",
    "ScaleWarning",
    "Scaled",
    "Sparse",
    "TableEncoder",
    "TaylorMap",
    "TorchDense",
    "TorchKernel",
    "TorchSparse",
    "anndata",
    "audit",
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
    "heat_kernel_embedding",
    "heat_trace",
    "initialization",
    "intrinsic_dimension",
    "io",
    "kernel_affinity",
    "ksum",
    "load_model",
    "markers",
    "markov_normalize",
    "metrics",
    "mixture",
    "nearest_epsilon",
    "neighbors",
    "plot",
    "progress",
    "report",
    "save_model",
    "secant_inner_products",
    "show_versions",
    "sketch",
    "sketch_interval",
    "symmetric_normalize",
    "uncertainty",
]
