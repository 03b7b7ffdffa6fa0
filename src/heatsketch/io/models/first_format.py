"""The first format, of heatsketch 0.1.0: a `MixtureDiffusion` or a `MixtureKernel`, no digest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.estimators import MixtureDiffusion
from heatsketch.markov.novelty import LeftOut
from heatsketch.mixture import CholeskyMap, MixtureKernel, Whitening

_KINDS = ("MixtureDiffusion", "MixtureKernel")
_KERNEL_ARRAYS = ("weights", "means", "covariances")
_WHITENING_ARRAYS = ("centre", "axes", "lengths", "rest_deviation")
_MAP_ARRAYS = ("origin", "pivots", "factor", "mean", "rotation", "error_bound")

Read = Callable[[str], Array]


def facts_of(header: dict[str, Any]) -> dict[str, Any]:
    """Return what the header says of the model."""
    _check_kind(header)
    about = {"kind": header["kind"], "heatsketch": "0.1.0"}
    if header["kind"] == "MixtureDiffusion":
        about |= {"parameters": header["parameters"], "n_features": header["n_features_in"]}
    return about


def model_of(header: dict[str, Any], read: Read) -> MixtureDiffusion | MixtureKernel:
    """Return the model with this header; `read` returns the array of a name."""
    _check_kind(header)
    weights, means, covariances = map(read, _KERNEL_ARRAYS)
    kernel = MixtureKernel(
        weights,
        means,
        covariances,
        header["epsilon"],
        covariance_type="full",
        time=header["kernel_time"],
    )
    return kernel if header["kind"] == "MixtureKernel" else _estimator(kernel, header, read)


def _check_kind(header: dict[str, Any]) -> None:
    if header.get("kind") not in _KINDS:
        raise TypeError(f"it does not hold a model of a known kind ({', '.join(_KINDS)})")


def _optional(read: Read, name: str) -> Array | None:
    try:
        return read(name)
    except KeyError:
        return None


def _estimator(kernel: MixtureKernel, header: dict[str, Any], read: Read) -> MixtureDiffusion:
    white = _whitening(read, header["n_features_in"], kernel)
    model = MixtureDiffusion(
        epsilon=kernel.epsilon if white is None else "auto",
        mixture=kernel.n_components,
        **header["parameters"],
    )
    model.whitening_, model.kernel_, model.epsilon_ = white, kernel, kernel.epsilon
    arrays = {name: read(name) for name in _MAP_ARRAYS}
    r, m = arrays["pivots"].shape
    later = _optional(read, "later")
    model.step_matrix_ = np.eye(r) if later is None else later
    if arrays["factor"].shape == (r * (r + 1) // 2,):
        factor = np.zeros((r, r))
        factor[np.tril_indices(r)] = arrays["factor"]
        arrays["factor"] = factor
    shapes = {"origin": (1, m), "factor": (r, r), "mean": (r,), "rotation": (r, r)}
    unfit = any(arrays[name].shape != shape for name, shape in shapes.items())
    if unfit or model.step_matrix_.shape[:1] != (r,):
        raise TypeError("its arrays do not fit together")
    if not all(np.isfinite(array).all() for array in (*arrays.values(), model.step_matrix_)):
        raise TypeError("its arrays are not finite")
    model.features_ = CholeskyMap.from_arrays(kernel, arrays, header["domain"])
    left_out = _optional(read, "left_out")
    model._left_out = None if left_out is None else LeftOut.of(left_out)
    _set_features(model, header, kernel.n_features if white is None else len(white.centre))
    return model


def _set_features(model: MixtureDiffusion, header: dict[str, Any], width: int) -> None:
    names, known = header["feature_names_in"], header["diagnostics"]["typical_distance"]
    if header["n_features_in"] != width or not isinstance(known, int | float):
        raise TypeError("its header does not fit its arrays")
    if names is not None and [*map(type, names)] != [str] * width:
        raise TypeError("its names of features do not fit its arrays")
    model.n_features_in_ = header["n_features_in"]
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    model.diagnostics_ = header["diagnostics"]


def _whitening(read: Read, m: int, kernel: MixtureKernel) -> Whitening | None:
    axes = _optional(read, "axes")
    if axes is None:
        return None
    centre, axes, lengths, rest = (read(name) for name in _WHITENING_ARRAYS)
    q = kernel.n_features
    if centre.shape != (m,) or axes.shape != (m, q) or lengths.shape != (q,):
        raise TypeError("its arrays do not fit together")
    return Whitening(centre, axes, lengths, float(rest))
