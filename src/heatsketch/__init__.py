"""Embed data by sketching the heat kernel.

Coordinates whose Euclidean distances are the diffusion distances of the data.

A name is imported when it is first used, so that a command or a script waits only for what it
needs. Type checkers read the same names in `__init__.pyi`.
"""

import importlib
import importlib.util
from typing import Any

from heatsketch._version import __version__ as __version__

_HOMES = {
    "_checks": ("CertificateError", "ConvergenceWarning", "DisconnectedWarning", "ScaleWarning"),
    "_environment": ("show_versions",),
    "_progress": ("progress",),
    "comparison": ("compare",),
    "estimators": ("DiffusionMap", "HeatEmbedding", "HeatSketch"),
    "estimators.initialization": ("initialization",),
    "estimators.mixture_diffusion": ("MixtureDiffusion",),
    "estimators.near_isometric": ("NearIsometricProjection",),
    "io.models": ("load_model", "save_model"),
    "markov.affinity": ("gaussian_affinity",),
    "markov.diffusion": ("Diffusion", "diffusion"),
    "markov.normalization": ("bistochastic_normalize", "markov_normalize", "symmetric_normalize"),
    "metrics": ("diffusion_distance", "distortion"),
    "mixture": ("MixtureKernel",),
    "operators": (
        *("Affine", "Deflated", "Dense", "Graph", "Kernel", "LinearMap", "LowRank", "Scaled"),
        *("Sparse", "TorchDense", "TorchKernel", "TorchSparse", "graph"),
    ),
    "reports.writer": ("report",),
    "scales.bandwidth": ("ksum",),
    "scales.connecting_scale": ("connecting_epsilon",),
    "scales.density": ("density_estimate",),
    "scales.dimension": ("intrinsic_dimension",),
    "spectral.eigenpairs": ("eigh",),
    "spectral.filters": ("Heat", "Power"),
    "spectral.heat_trace": ("heat_trace",),
    "spectral.sketch": ("sketch",),
    "uncertainty": ("columns_for", "data_interval", "diffusion_discrepancy", "sketch_interval"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(
    [*_HOME_OF, "anndata", "classical", "datasets", "distributed", "metrics", "uncertainty"]
)


def __getattr__(name: str) -> Any:
    """Import a public name, or a module, when it is first used."""
    if name in _HOME_OF:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
