"""Which classes a model may hold, and what of each is stored."""

from __future__ import annotations

import importlib
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

MODELS = {
    "classical": (
        *("ClassicalMDS", "FisherDiscriminant", "Isomap", "LandmarkIsomap", "LandmarkMDS"),
        *("LaplacianEigenmap", "LocallyLinearEmbedding", "MetricMDS", "MultipleDiscriminant"),
        *("PCA", "SNE", "TSNE"),
    ),
    "estimators": ("DiffusionMap", "HeatEmbedding", "HeatSketch"),
    "estimators.mixture_diffusion": ("MixtureDiffusion",),
    "estimators.near_isometric": ("NearIsometricProjection",),
    "mixture": ("MixtureKernel",),
}
_PARTS = {
    "_array": ("Frame",),
    "classical._discriminant": ("StandardUnits",),
    "classical._mds": ("SquaredDistances",),
    "classical._principal_axes": ("PrincipalAxes",),
    "classical.laplacian_eigenmap": ("_Kernel", "_Rows"),
    "classical.sne.near": ("_NearDistances", "_NearPoints"),
    "estimators._time_choice": ("TimeCurve",),
    "estimators._updates": ("Changes",),
    "graphs.given_distances": ("GivenNeighborhoods",),
    "graphs.neighborhoods": ("Neighborhoods",),
    "markov.affinity": ("KthDistances", "NeighborRows", "_KernelRows", "_LocalScales"),
    "markov.diffusion": ("Diffusion",),
    "markov.extension": ("GivenRows", "MetricRows", "MixtureRows", "ScaledRows"),
    "markov.normalization": ("Scaling",),
    "markov.novelty": ("LeftOut", "NearNovelty"),
    "markov.table": ("TableRows",),
    "markov.variable": ("MeanSquareScales", "WeightedRows"),
    "metrics.distortions": ("Distortion",),
    "mixture.pivoted": ("CholeskyMap",),
    "mixture.whitening": ("Whitening",),
    "neighbors.index": ("NeighborIndex",),
    "neighbors.search": ("_GivenGraph",),
    "operators": ("Affine", "Deflated", "Dense", "Kernel", "LowRank", "Scaled", "Sparse"),
    "spectral.classical_scaling": ("Scaling",),
}
# Names in files are these, and stay when a class moves; nothing else is ever looked up.
_HOME_OF = {
    f"{home}.{name}": (home, name)
    for homes in (MODELS, _PARTS)
    for home, names in homes.items()
    for name in names
}
_NAMES_OF_CLASSES = {name.rpartition(".")[2] for name in _HOME_OF}


def is_model(value: Any) -> bool:
    """Say whether an object is one that users save: an estimator or a `MixtureKernel`."""
    name = name_of(type(value))
    return name is not None and _HOME_OF[name][0] in MODELS


def class_of(name: str) -> type:
    """Return the class of a name in a file, or raise if it is not on the list."""
    if name not in _HOME_OF:
        raise TypeError(
            f"its header names a class {name!r} that this version does not have; update heatsketch"
        )
    home, own = _HOME_OF[name]
    found: type = getattr(importlib.import_module(f"heatsketch.{home}"), own)
    return found


def name_of(kind: type) -> str | None:
    """Return the name in files of a class; None if models cannot hold it."""
    if kind.__name__ not in _NAMES_OF_CLASSES or not kind.__module__.startswith("heatsketch."):
        return None
    known = (name for name in _HOME_OF if name.rpartition(".")[2] == kind.__name__)
    return next((name for name in known if class_of(name) is kind), None)


def is_parameter(value: Any, name: str) -> bool:
    """Say whether a field of a record is a parameter of an estimator."""
    return hasattr(value, "_get_param_names") and name in value._get_param_names()


def state_of(value: Any) -> dict[str, Any]:
    """Return what is stored of a record: what its constructor takes, else its attributes.

    Of the attributes, those are left out that are computed when they are needed, and those that
    the class lists in `_not_stored`.
    """
    if isinstance(value, tuple):
        named: dict[str, Any] = value._asdict()  # type: ignore[attr-defined]
        return named
    if is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    kind = type(value)
    left_out = getattr(kind, "_not_stored", ())
    return {
        name: item
        for name, item in vars(value).items()
        if name not in left_out and not isinstance(getattr(kind, name, None), cached_property)
    }


def restored(kind: type, state: dict[str, Any]) -> Any:
    """Return the record of a class with this state."""
    if issubclass(kind, tuple) or is_dataclass(kind):
        return kind(**state)
    bad = [name for name in state if _is_code(getattr(kind, name, None)) or not name.isidentifier()]
    if bad:
        raise TypeError(f"its header sets {bad[0]!r} of a {kind.__name__}")
    # The constructor of an estimator gives parameters that are new since the file their defaults.
    made = kind() if hasattr(kind, "_get_param_names") else kind.__new__(kind)
    vars(made).update(state)
    return made


def _is_code(attribute: Any) -> bool:
    return callable(attribute) or isinstance(attribute, property | cached_property)
