"""Models in a file: a zip archive of a JSON header and arrays; nothing is pickled."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.estimators import MixtureDiffusion
from heatsketch.io.files import DAMAGE, blame, check_budget, write_atomically
from heatsketch.io.npz import read_member, write_member
from heatsketch.markov.novelty import LeftOut
from heatsketch.mixture import CholeskyMap, MixtureKernel, Whitening

FORMAT = 1
KINDS = ("MixtureDiffusion", "MixtureKernel")
_HEADER = "header.json"
_MAX_HEADER_BYTES = 2**24
_KERNEL_ARRAYS = ("weights", "means", "covariances")
_WHITENING_ARRAYS = ("centre", "axes", "lengths", "rest_deviation")
_PARAMETERS = ("n_components", "tolerance", "time", "max_features")


def save_model(
    model: MixtureDiffusion | MixtureKernel, path: str | Path, *, force: bool = False
) -> None:
    """Write a fitted `MixtureDiffusion`, or a `MixtureKernel`, to one small file.

    Its size depends on the mixture and the coordinates, not on the number of training points: they,
    `embedding_` and `stationary_` are not in the file.

    Parameters
    ----------
    model : MixtureDiffusion or MixtureKernel
    path : str or path
    force : bool, default False
        Replace the file if it exists.

    Raises
    ------
    TypeError
        If the model is of another kind (use scikit-learn or skops for those).
    FileExistsError, FileNotFoundError
        As for `heatsketch.io.write_atomically`.

    Examples
    --------
    >>> import tempfile, numpy as np, heatsketch as hs
    >>> X, label = hs.datasets.gaussian_clouds(200, n_labels=2, dim=2, rng=0)
    >>> model = hs.MixtureDiffusion(mixture=2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hs.save_model(model, f"{folder}/clouds.model")
    ...     again = hs.load_model(f"{folder}/clouds.model")
    >>> np.array_equal(again.transform(X), model.transform(X))
    True
    """
    if isinstance(model, MixtureKernel):
        header, arrays = _of_kernel(model)
    elif isinstance(model, MixtureDiffusion):
        header, arrays = _of_estimator(model)
    else:
        raise TypeError(
            f"model is a {type(model).__name__}; pass a MixtureDiffusion or MixtureKernel."
        )

    def write(draft: Path) -> None:
        with zipfile.ZipFile(draft, "w") as archive:
            text = json.dumps({"format": FORMAT, **header}, indent=1, default=_plain)
            archive.writestr(zipfile.ZipInfo(_HEADER), text)
            for name, array in arrays.items():
                write_member(archive, name, array)

    write_atomically(path, write, force=force)


def load_model(path: str | Path) -> MixtureDiffusion | MixtureKernel:
    """Read a model that `save_model` wrote; it maps points to the same bits.

    `mixture_`, `random_state` and everything about the training points are not in the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, of a later format, or not a model.

    Examples
    --------
    >>> import tempfile, heatsketch as hs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hs.save_model(hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0), f"{folder}/a.model")
    ...     hs.load_model(f"{folder}/a.model")
    MixtureKernel(n_components=1, n_features=1, epsilon=2)
    """
    path = Path(path)
    with (
        path.open("rb") as stream,
        blame(path, *DAMAGE, ValueError),
        zipfile.ZipFile(stream) as archive,
    ):
        check_budget(sum(i.file_size for i in archive.infolist()), path.stat().st_size, str(path))
        header = _read_header(archive, path)
        names = [name.removesuffix(".npy") for name in archive.namelist() if name != _HEADER]
        arrays = {name: read_member(archive, name, path) for name in names}
        weights, means, covariances = (arrays[name] for name in _KERNEL_ARRAYS)
        kernel = MixtureKernel(
            weights,
            means,
            covariances,
            header["epsilon"],
            covariance_type="full",
            time=header["kernel_time"],
        )
        if header["kind"] == "MixtureKernel":
            return kernel
        return _to_estimator(kernel, header, arrays)


def _plain(value: Any) -> Any:
    """Return a NumPy number as one of Python, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be written as JSON.")


def _of_kernel(kernel: MixtureKernel) -> tuple[dict[str, Any], dict[str, Array]]:
    header = {
        "kind": "MixtureKernel",
        "epsilon": kernel.epsilon,
        "kernel_time": kernel.time,
    }
    return header, {name: getattr(kernel, name) for name in _KERNEL_ARRAYS}


def _of_estimator(model: MixtureDiffusion) -> tuple[dict[str, Any], dict[str, Array]]:
    if not hasattr(model, "features_"):
        raise ValueError("model is not fitted; call fit first.")
    header, arrays = _of_kernel(model.kernel_)
    names = getattr(model, "feature_names_in_", None)
    header |= {
        "kind": "MixtureDiffusion",
        "parameters": {name: getattr(model, name) for name in _PARAMETERS},
        "n_features_in": model.n_features_in_,
        "feature_names_in": None if names is None else [str(name) for name in names],
        "domain": model.features_.domain,
        "diagnostics": model.diagnostics_,
    }
    r, k = model.step_matrix_.shape
    stored = model.features_.arrays
    stored["factor"] = stored["factor"][np.tril_indices(r)]  # the rest are zeros
    more: dict[str, Array] = {}
    if model.time > 1 or k < r:
        more["later"] = model.step_matrix_
    if model.whitening_ is not None:
        white = model.whitening_
        values = (white.centre, white.axes, white.lengths, np.array(white.rest_deviation))
        more |= dict(zip(_WHITENING_ARRAYS, values, strict=True))
    if model._left_out is not None:
        more["left_out"] = model._left_out.affinity
    return header, arrays | stored | more


def _to_estimator(
    kernel: MixtureKernel, header: dict[str, Any], arrays: dict[str, Array]
) -> MixtureDiffusion:
    white = _whitening(arrays, header["n_features_in"], kernel)
    model = MixtureDiffusion(
        epsilon=kernel.epsilon if white is None else "auto",
        mixture=kernel.n_components,
        **header["parameters"],
    )
    model.whitening_, model.kernel_, model.epsilon_ = white, kernel, kernel.epsilon
    r, m = arrays["pivots"].shape
    arrays = {"later": np.eye(r)} | arrays
    if arrays["factor"].shape == (r * (r + 1) // 2,):
        factor = np.zeros((r, r))
        factor[np.tril_indices(r)] = arrays["factor"]
        arrays["factor"] = factor
    shapes = {"origin": (1, m), "factor": (r, r), "mean": (r,), "rotation": (r, r)}
    if arrays["later"].shape[:1] != (r,) or any(arrays[k].shape != v for k, v in shapes.items()):
        raise TypeError("its arrays do not fit together")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise TypeError("its arrays are not finite")
    model.features_ = CholeskyMap.from_arrays(kernel, arrays, header["domain"])
    model.step_matrix_ = arrays["later"]
    model._left_out = LeftOut.of(arrays["left_out"]) if "left_out" in arrays else None
    names, known = header["feature_names_in"], header["diagnostics"]["typical_distance"]
    width = kernel.n_features if white is None else len(white.centre)
    if header["n_features_in"] != width or not isinstance(known, int | float):
        raise TypeError("its header does not fit its arrays")
    if names is not None and [*map(type, names)] != [str] * width:
        raise TypeError("its names of features do not fit its arrays")
    model.n_features_in_ = header["n_features_in"]
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    model.diagnostics_ = header["diagnostics"]
    return model


def _whitening(arrays: dict[str, Array], m: int, kernel: MixtureKernel) -> Whitening | None:
    if "axes" not in arrays:
        return None
    centre, axes, lengths, rest = (arrays[name] for name in _WHITENING_ARRAYS)
    q = kernel.n_features
    if centre.shape != (m,) or axes.shape != (m, q) or lengths.shape != (q,):
        raise TypeError("its arrays do not fit together")
    return Whitening(centre, axes, lengths, float(rest))


def _read_header(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    if _HEADER not in archive.namelist() or archive.getinfo(_HEADER).file_size > _MAX_HEADER_BYTES:
        raise ValueError(f"{path} does not hold a model; pass a file that save_model wrote.")
    try:
        header: dict[str, Any] = json.loads(archive.read(_HEADER))
    except ValueError as error:
        raise ValueError(f"{path} has a damaged header: {error}.") from error
    if not isinstance(header, dict) or header.get("kind") not in KINDS:
        raise ValueError(f"{path} does not hold a model of a known kind ({', '.join(KINDS)}).")
    if header.get("format") != FORMAT:
        raise ValueError(
            f"{path} has format {header.get('format')!r}, but this version reads format {FORMAT}; "
            "update heatsketch."
        )
    return header
