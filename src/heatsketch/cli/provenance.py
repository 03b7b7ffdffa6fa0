"""How an embedding was made: what `embed` records and `score` reads again."""

import warnings
from typing import Any

import numpy as np

import heatsketch as hs
from heatsketch import io
from heatsketch._typing import Array

# What the distances depend on; other parameters say how they are approximated.
_OF_THE_DISTANCE = (
    *("filter", "metric", "affinity", "epsilon", "n_neighbors", "normalization", "alpha", "cut"),
    *("tol", "max_iter"),
)


def record(method: str, estimator: Any, Y: Array, points: Any) -> dict[str, Any]:
    """Return what an output file says of how it was made."""
    parameters = estimator.get_params(deep=False)
    return {
        "version": hs.__version__,
        "method": method,
        "parameters": parameters,
        "time": getattr(estimator, "time_", parameters.get("time")),
        "dtype": str(Y.dtype),
        "data": io.data_hash(points),
    }


def distance_options(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return time and parameters of the distance that an embedding was made to keep.

    Of what a model has mapped these are the model's. Empty for files that do not say, and for
    methods that have no diffusion on points.
    """
    made = metadata if "parameters" in metadata else _model(metadata)
    parameters = made.get("parameters")
    if not isinstance(parameters, dict) or "affinity" not in parameters:
        return {}
    time = made.get("time", parameters.get("time"))
    options = {name: parameters[name] for name in _OF_THE_DISTANCE if name in parameters}
    if isinstance(time, list):
        raise ValueError(
            f"The embedding has the coordinates of {len(time)} times side by side; embed the "
            "points at one time."
        )
    return options | {"time": time}


def merged(recorded: dict[str, Any], given: dict[str, Any], file: str) -> dict[str, Any]:
    """Return the options given, and those recorded for the rest; warn where they differ."""
    differing = [
        f"{name} {given[name]} instead of {recorded[name]}"
        for name in given
        if name in recorded and given[name] != recorded[name]
    ]
    if differing:
        warnings.warn(
            f"{file} was made with other parameters: {', '.join(differing)}. What follows is about "
            "distances that it was not made to keep.",
            stacklevel=2,
        )
    return recorded | given


def warn_of_other_points(metadata: dict[str, Any], points: Any, file: str, source: str) -> None:
    """Warn if the embedding is one of other points, or of the same ones in another precision."""
    if "data" in metadata and metadata["data"] != io.data_hash(points):
        warnings.warn(
            f"{file} was not made from the numbers in {source}; pass the same points.",
            stacklevel=2,
        )


def warn_of_model(metadata: dict[str, Any], points: Any, file: str, source: str) -> None:
    """Warn if a model has mapped the points that was fitted to others, or to a sample of them."""
    model = _model(metadata)
    if "data" in model and model["data"] != io.data_hash(points):
        warnings.warn(
            f"{file} was mapped by a model of {model.get('n', 0):,} points (others, or a sample), "
            "and keeps the distances of walks among these; what follows compares with walks among "
            f"the {points.shape[0]:,} points of {source}.",
            stacklevel=2,
        )


def recorded_reading(metadata: dict[str, Any]) -> Any:
    """Return how the points were read, by `embed` or for the model that has mapped them."""
    return metadata.get("reading") or _model(metadata).get("reading")


def _model(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return what a file says of the model that has mapped its points; {} if none has."""
    model = metadata.get("model")
    return model if isinstance(model, dict) else {}


def as_written(values: Array, metadata: dict[str, Any]) -> Array:
    """Return coordinates in the precision they were computed in: text says float32 shorter."""
    single = metadata.get("dtype") == "float32"
    return values.astype(np.float32) if single else values
