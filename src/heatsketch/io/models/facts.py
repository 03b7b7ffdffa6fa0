"""What a model is, for people: class, parameters, versions, data."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import sklearn

from heatsketch._version import __version__
from heatsketch.io.metadata import encoded
from heatsketch.io.models.tree import NotStored


def facts_of(model: Any, reading: dict[str, Any]) -> dict[str, Any]:
    """Return what the header of a file says of a model, and of its tables, as JSON."""
    found: dict[str, Any] = {
        "kind": type(model).__name__,
        "heatsketch": __version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
    if hasattr(model, "get_params"):
        found |= _of_estimator(model)
    if reading:
        found |= {"features": reading["columns"], "reading": reading["options"]}
    plain: dict[str, Any] = json.loads(encoded(found))
    return plain


def _of_estimator(model: Any) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    embedding = getattr(model, "embedding_", None)
    parameters = model.get_params(deep=False)
    distortion = getattr(model, "distortion_", None)
    return {
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "n": None if embedding is None else len(embedding),
        "n_features": getattr(model, "n_features_in_", None),
        "features": None if names is None else [str(name) for name in names],
        "columns": [str(name) for name in model.get_feature_names_out()],
        "data": getattr(model, "_data_hash", None),
        "time": getattr(model, "time_", parameters.get("time")),
        "distances": None if distortion is None else distortion.describe(),
        "log_L": None if distortion is None else distortion.log_L,
    }


def _plain(value: Any) -> Any:
    """Return plain values as they are; of others the name of their type."""
    if isinstance(value, NotStored):
        return f"<{value.what}>"
    if value is None or isinstance(value, bool | int | float | str | list | tuple | np.generic):
        return value
    return f"<{type(value).__name__}>"
