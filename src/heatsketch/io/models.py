"""Fitted models in files: a zip archive of a JSON header and .npy arrays; nothing is pickled.

The header has a list of records, the parts of the model: each has the name of its class, of this
package, and its fields. A JSON object with one key that begins with $ stands for something that
JSON has no form for. Records refer only to those before them, so that what was one object is one
object again, and nothing refers to itself.
"""

from __future__ import annotations

import importlib
import json
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from heatsketch._typing import Array
from heatsketch._version import __version__
from heatsketch.io.files import blame, check_archive, write_atomically
from heatsketch.io.metadata import plain
from heatsketch.io.numpy_files import write_arrays
from heatsketch.io.table import objects

__all__ = ["Stored", "load_model", "read_facts", "read_model", "save_model", "write_model"]

FORMAT = 4
_HEADER = "header.json"
_WHAT_TO_DO = "pass a file that save_model (or --save-model) wrote, or write it again"
_PLAIN = (type(None), bool, int, float, str)
_SPARSE = ("csr_matrix", "csr_array", "csc_matrix", "csc_array")


class Stored(NamedTuple):
    """What a file holds."""

    model: Any
    facts: dict[str, Any]  # what it is, for people: versions, parameters, hash of the data
    reading: dict[str, Any]  # how tables of points are read for it; empty if it was not said


@dataclass(frozen=True)
class NotStored:
    """What stands for a parameter that was an object of the caller's."""

    what: str

    def __repr__(self) -> str:
        """Say what it was."""
        return f"<not in the file: {self.what}>"


def save_model(model: Any, path: str | Path, *, force: bool = False) -> None:
    """Write a fitted estimator, or a `MixtureKernel`, to a file that holds nothing executable.

    After `load_model`, also in another process, `transform` gives the same bits, and so do the
    fitted attributes. What follows from others (search trees, caches) is computed again when it is
    needed.

    Parameters
    ----------
    model : estimator or MixtureKernel
        Any fitted estimator of heatsketch, those of `heatsketch.classical` included. For a
        `MixtureDiffusion` `embedding_`, `stationary_` and `mixture_` are left out, so that the
        size of its file does not depend on the number of points.
    path : str or path
    force : bool, default False
        Replace the file if it exists.

    Raises
    ------
    TypeError
        If the model is of another kind (use skops for those of scikit-learn), or holds an object
        that files cannot, such as a search by a fitted transformer.
    ValueError
        If it is not fitted.
    FileExistsError, FileNotFoundError
        As for `heatsketch.io.write_atomically`.

    Notes
    -----
    A parameter that is an object of the caller's, such as a transformer or a random generator, is
    not stored: after loading, its place says what it was, and `fit` refuses it.

    Cost: the arrays once. A graph takes about 30 bytes for each neighbour of a point; the training
    points are stored where `transform` compares with them.

    Examples
    --------
    >>> import tempfile, numpy as np, heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> model = hs.HeatEmbedding(random_state=0).fit(X[:90])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hs.save_model(model, f"{folder}/circle.model")
    ...     again = hs.load_model(f"{folder}/circle.model")
    >>> np.array_equal(again.transform(X[90:]), model.transform(X[90:]))
    True
    """
    write_model(model, path, {}, force=force)


def load_model(path: str | Path) -> Any:
    """Read a model that `save_model` wrote; it maps points to the same bits.

    Nothing in the file is executed, and only classes of heatsketch are made.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        Fitted, with the parameters and attributes that it had, less what
        `save_model` leaves out.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, of another format, or not a model.

    Examples
    --------
    >>> import tempfile, heatsketch as hs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hs.save_model(hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0), f"{folder}/a.model")
    ...     hs.load_model(f"{folder}/a.model")
    MixtureKernel(n_components=1, n_features=1, epsilon=2)
    """
    return read_model(path).model


def write_model(
    model: Any, path: str | Path, reading: dict[str, Any], *, force: bool = False
) -> None:
    """Write a model as `save_model` does, and with it how tables of points are read for it."""
    kind = type(model)
    is_model = hasattr(kind, "get_params") or kind.__name__ == "MixtureKernel"
    if not (is_model and kind.__module__.startswith("heatsketch.")):
        raise TypeError(
            f"model is of type {kind.__name__}; pass a fitted estimator of heatsketch, or a "
            "MixtureKernel (skops keeps those of scikit-learn)."
        )
    if hasattr(model, "fit"):
        check_is_fitted(model, msg="model is not fitted; call fit first.")
    encoder = Encoder()
    header = {
        "format": FORMAT,
        "model": encoder.node(model, type(model).__name__),
        "facts": _facts_of(model, reading),
        "reading": encoder.node(reading, "reading"),
        "records": encoder.records,
    }

    def write(draft: Path) -> None:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open(_HEADER, "w") as stream:  # without a date, as `writestr` gives one
                stream.write(json.dumps(header).encode())
            write_arrays(archive, {f"arrays/{i}": one for i, one in enumerate(encoder.arrays)})

    write_atomically(path, write, force=force)


def read_model(path: str | Path) -> Stored:
    """Read a model, what it is, and how tables of points are read for it."""
    with _opened(Path(path)) as (archive, header):
        arrays = []
        for i in range(len(archive.namelist()) - 1):
            with archive.open(f"arrays/{i}.npy") as stream:
                arrays.append(np.lib.format.read_array(stream, allow_pickle=False))
        made: list[Any] = []
        for name, nodes in header["records"]:
            made.append(_restored(name, _decoded(nodes, arrays, made)))
        model, reading = (_decoded(header[key], arrays, made) for key in ("model", "reading"))
        return Stored(model, header["facts"], reading)


def read_facts(path: str | Path) -> dict[str, Any]:
    """Return what the model in a file is, without reading its arrays."""
    with _opened(Path(path)) as (_, header):
        return dict(header["facts"])


@contextmanager
def _opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """Open a file; yield the archive and its header. Errors become one that names the file."""
    blamed = blame(path, _WHAT_TO_DO)
    with path.open("rb") as stream, blamed, zipfile.ZipFile(stream) as archive:
        check_archive(archive, path)
        if _HEADER not in archive.namelist():
            raise ValueError(f"{path} does not hold a model; {_WHAT_TO_DO}.")
        header = json.loads(archive.read(_HEADER))
        if header["format"] != FORMAT:
            maker = header.get("facts", header).get("heatsketch", "another version")
            raise ValueError(
                f"{path} has format {header['format']}, of heatsketch {maker}, but heatsketch "
                f"{__version__} reads format {FORMAT}; save the model again, or use that version."
            )
        yield archive, header


class Encoder:
    """Turns objects into nodes of JSON; collects their arrays and records."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self.records: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._alive: list[Any] = []  # identities of objects are unique only as long as these live

    def node(self, value: Any, place: str) -> Any:
        """Return the node of a value; `place` says where it is in the model, for errors."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind in (list, tuple):
            items = [self.node(item, f"{place}[{i}]") for i, item in enumerate(value)]
            return items if kind is list else {"$tuple": items}
        if kind is dict:
            pairs = [[key, self.node(item, f"{place}[{key!r}]")] for key, item in value.items()]
            if all(type(key) is str and not key.startswith("$") for key in value):
                return dict(pairs)
            return {"$dict": [[self.node(key, place), item] for key, item in pairs]}
        if isinstance(value, NotStored):
            return {"$lost": value.what}
        if isinstance(value, np.dtype):
            return {"$dtype": value.str}
        if isinstance(value, np.ndarray | np.generic):
            return self._numbers_of(value, place)
        if kind.__name__ in _SPARSE:
            parts = [self.node(part, place) for part in (value.data, value.indices, value.indptr)]
            return {"$sparse": [kind.__name__, parts, list(map(int, value.shape))]}
        return {"$record": self._record(value, place)}

    def _numbers_of(self, value: Any, place: str) -> Any:
        """Return the node of an array or a number; arrays in the same memory are one."""
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            return {"$objects": [list(value.shape), self.node(value.ravel().tolist(), place)]}
        if value.dtype.kind not in "biufUS":
            raise TypeError(
                f"{place} has the type {value.dtype}, but files hold numbers and text only."
            )
        if isinstance(value, np.generic):
            return {"$number": [value.dtype.str, value.item()]}
        memory = value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str
        if memory not in self._numbers:
            self._alive.append(value)
            self._numbers[memory] = len(self.arrays)
            # Rows or columns stay what is contiguous: products give the same bits.
            contiguous = value.flags.c_contiguous or value.flags.f_contiguous
            self.arrays.append(np.asarray(value) if contiguous else value.copy(order="K"))
        return {"$array": self._numbers[memory]}

    def _record(self, value: Any, place: str) -> int:
        """Return the number of an object, after those of its fields."""
        kind = type(value)
        if id(value) in self._numbers:
            return self._numbers[id(value)]
        if not kind.__module__.startswith("heatsketch."):
            raise TypeError(
                f"{place} is of type {kind.__name__}, which no model file can hold; fit without "
                "it, such as with neighbors=None or a NeighborIndex in place of a transformer."
            )
        parameters = kind._get_param_names() if hasattr(kind, "_get_param_names") else ()
        nodes = {}
        for key, item in _state_of(value).items():
            try:
                nodes[key] = self.node(item, f"{place}.{key}")
            except TypeError:
                if key not in parameters:  # which `transform` does not need
                    raise
                nodes[key] = {"$lost": type(item).__name__}
        self._alive.append(value)
        self._numbers[id(value)] = len(self.records)
        self.records.append([f"{kind.__module__}:{kind.__name__}", nodes])
        return self._numbers[id(value)]


def _decoded(node: Any, arrays: Sequence[Array], made: Sequence[Any]) -> Any:
    """Return what a node stands for, by the arrays of a file and the records made so far."""
    value = partial(_decoded, arrays=arrays, made=made)
    if isinstance(node, list):
        return [value(item) for item in node]
    if not isinstance(node, dict):
        return node
    content: Any
    key, content = next(iter(node.items()), ("", None))
    match key:
        case "$tuple":
            return tuple(value(content))
        case "$dict":
            return {value(key): value(item) for key, item in content}
        case "$number":
            return np.dtype(content[0]).type(content[1])
        case "$dtype":
            return np.dtype(content)
        case "$objects":
            return objects(value(content[1])).reshape(content[0])
        case "$array":
            return arrays[content]
        case "$lost":
            return NotStored(content)
        case "$sparse":
            name, parts, shape = content
            matrix = getattr(sparse, name)(tuple(value(parts)), shape=shape)
            matrix.check_format(full_check=True)  # compiled loops do not look at bounds
            return matrix
        case "$record":
            return made[content]
    return {key: value(item) for key, item in node.items()}


def _state_of(value: Any) -> dict[str, Any]:
    """Return what is stored of an object: of a record what its constructor takes, else attributes.

    Attributes are left out that are computed when they are needed, and those that the class lists
    in `_not_stored`.
    """
    if isinstance(value, tuple):
        named: dict[str, Any] = value._asdict()  # type: ignore[attr-defined]
        return named
    if is_dataclass(value) and not isinstance(value, BaseEstimator):
        return {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    kind = type(value)
    left_out = getattr(kind, "_not_stored", ())
    return {
        name: item
        for name, item in vars(value).items()
        if name not in left_out and not isinstance(getattr(kind, name, None), cached_property)
    }


def _restored(name: str, state: dict[str, Any]) -> Any:
    """Return an object of a class of this package, which a header names, with this state."""
    home, _, own = name.partition(":")
    kind: Any = None
    if home.startswith("heatsketch.") and "__" not in home:
        kind = getattr(importlib.import_module(home), own)
    if not isinstance(kind, type) or kind.__module__ != home:
        raise ValueError(f"it names {name!r}, which is not a class of heatsketch")
    if issubclass(kind, tuple) or (is_dataclass(kind) and not issubclass(kind, BaseEstimator)):
        return kind(**state)
    made = kind.__new__(kind)
    vars(made).update(state)
    return made


def _facts_of(model: Any, reading: dict[str, Any]) -> dict[str, Any]:
    """Return what a file says of a model, and of the tables for it, as JSON."""
    found: dict[str, Any] = {
        "kind": type(model).__name__,
        "heatsketch": __version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
    if hasattr(model, "get_params"):
        embedding = getattr(model, "embedding_", None)
        parameters = model.get_params(deep=False)
        distortion = getattr(model, "distortion_", None)
        found |= {
            "parameters": parameters,
            "n": None if embedding is None else len(embedding),
            "n_features": getattr(model, "n_features_in_", None),
            "features": getattr(model, "feature_names_in_", None),
            "columns": model.get_feature_names_out(),
            "data": getattr(model, "_data_hash", None),
            "time": getattr(model, "time_", parameters.get("time")),
            "distances": None if distortion is None else distortion.describe(),
            "log_L": None if distortion is None else distortion.log_L,
        }
    if reading:
        found |= {"features": reading["columns"], "reading": reading["options"]}
    facts: dict[str, Any] = plain(found)
    return facts
