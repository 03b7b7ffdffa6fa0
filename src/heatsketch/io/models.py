"""Fitted models in files: a zip archive of JSON and .npy arrays; nothing is pickled.

`header.json` describes the model for people. `model.json` lists the records, the parts of the
model: each has the name of its class, of this package, and its fields. An object of JSON has one
key, its kind: an array, an earlier record, or a form of `_FORMS`. So an object that occurs twice is
again one object after loading, and no object contains itself.
"""

import importlib
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from heatsketch._arrays import Array
from heatsketch._state import fresh
from heatsketch._version import __version__
from heatsketch.estimators._base import Embedder
from heatsketch.io.files import blame, check_archive, write_atomically
from heatsketch.io.metadata import plain
from heatsketch.io.numpy_files import write_arrays
from heatsketch.metrics.picture import Picture

FORMAT = 13
_HEADER, _MODEL = "header.json", "model.json"
_WHAT_TO_DO = "pass a file that save_model (or --save-model) wrote, or write it again"
_REFUSED = (
    "a {} cannot be stored; pass a fitted estimator of heatsketch or a MixtureKernel, with "
    "neighbors=None or a NeighborIndex in place of a transformer."
)
_PLAIN = (type(None), bool, int, float, str)


@dataclass(frozen=True)
class NotStored:
    """A placeholder for a parameter that was an object of the caller."""

    what: str

    def __repr__(self) -> str:
        """Describe the object that was not stored."""
        return f"<not in the file: {self.what}>"


def save_model(model: Any, path: str | Path, *, force: bool = False) -> None:
    """Write a fitted estimator, or a `MixtureKernel`, to a file without executable contents.

    After `load_model`, in this or another process, `transform` and the fitted attributes give the
    same bits. Search trees and caches are not stored; they are computed again when needed.

    Parameters
    ----------
    model : estimator or MixtureKernel
        Any fitted estimator of heatsketch, including those of `heatsketch.classical`. For a
        `MixtureDiffusion` `embedding_`, `stationary_` and `mixture_` are left out, so that the size
        of the file does not depend on the number of points.
    path : str or path
        The file to write.
    force : bool, default=False
        Replace the file if it exists.

    Raises
    ------
    TypeError
        If the model is of another kind (use skops for those of scikit-learn), or holds an object
        that cannot be stored, such as a neighbour search by a fitted transformer.
    ValueError
        If it is not fitted.
    FileExistsError, FileNotFoundError
        If the file exists and `force` is false; if its folder does not exist.

    See Also
    --------
    load_model : Read a model that `save_model` wrote.
    distributed.embed : Embed more points than memory holds.

    Notes
    -----
    A parameter that is an object of the caller, such as a transformer or a random generator, is not
    stored. After loading, a placeholder describes it, and `fit` raises.

    The cost is that of writing the arrays once. A graph takes about 30 bytes for each neighbour of
    a point; the training points are stored if `transform` compares with them.

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
    estimator or MixtureKernel
        With the same parameters and attributes, except those that `save_model` leaves out.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, has another format, or holds no model.

    See Also
    --------
    save_model : Write a fitted estimator to a file.

    Examples
    --------
    >>> import tempfile, heatsketch as hs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hs.save_model(hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0), f"{folder}/a.model")
    ...     hs.load_model(f"{folder}/a.model")
    MixtureKernel(n_components=1, n_features=1, epsilon=2)
    """
    return read_model(path)[0]


def write_model(
    model: Any, path: str | Path, reading: dict[str, Any], *, force: bool = False
) -> None:
    """Write a model as `save_model` does, with the options of reading tables of points for it."""
    if not type(model).__module__.startswith("heatsketch."):
        raise TypeError(_REFUSED.format(type(model).__name__))
    if isinstance(model, BaseEstimator):
        check_is_fitted(model, msg="model is not fitted; call fit first.")
    facts: dict[str, Any] = {
        "kind": type(model).__name__,
        "heatsketch": __version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        **(_fit_facts(model) if isinstance(model, Embedder) else {}),
    }
    if reading:
        facts |= {"features": reading["columns"], "reading": reading["options"]}
    contents, arrays = _contents([model, reading])
    members = {_HEADER: {"format": FORMAT, "facts": plain(facts)}, _MODEL: contents}

    def write(draft: Path) -> None:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                member = zipfile.ZipInfo(name)  # without the date that a name alone gets
                archive.writestr(member, json.dumps(content), zipfile.ZIP_DEFLATED)
            write_arrays(archive, {f"arrays/{i}": array for i, array in enumerate(arrays)})

    write_atomically(path, write, force=force)


def _fit_facts(model: Embedder) -> dict[str, Any]:
    """Describe the fit of an estimator; None for what is not known of it."""
    embedding = model._result("embedding_")
    is_judged = not isinstance(model._result("_judged"), Picture)  # else it stays so
    distortion = model._result("distortion_") if is_judged else None
    return {
        "parameters": model._fitted_as.get_params(deep=False),
        "n": None if embedding is None else len(embedding),
        "n_features": model._result("n_features_in_"),
        "features": model._result("feature_names_in_"),
        "data": model._result("_data_hash"),
        "time": model._time,
        "distances": None if distortion is None else distortion.describe(),
    }


def read_model(path: str | Path) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Read a model, its description, and the options of reading tables of points for it.

    The description is for people: versions, parameters, hash of the data. The options are empty if
    they are not known.
    """
    with _opened(Path(path)) as (archive, facts):
        made: list[Any] = []
        readers = {name: restored for name, (_, _, restored) in _FORMS.items()}
        readers |= {"array": cache(lambda i: archive[f"arrays/{i}"]), "record": made.__getitem__}

        def value(node: dict[str, Any]) -> Any:
            """Return the value of an object of JSON, whose inner objects have been read."""
            ((key, content),) = node.items()
            if key in readers:
                return readers[key](content)
            made.append(_restored(key, content))
            return None

        _, (model, reading) = json.loads(archive[_MODEL], object_hook=value)
        return model, facts, reading


def read_facts(path: str | Path) -> dict[str, Any]:
    """Return the description of the model in a file, without reading its arrays."""
    with _opened(Path(path)) as (_, facts):
        return facts


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open a file; yield the archive and the facts. Errors become one that names the file."""
    with path.open("rb") as stream, blame(path, _WHAT_TO_DO):
        archive: Any = np.lib.npyio.NpzFile(stream)
        check_archive(archive.zip, path)
        if _HEADER not in archive.files:
            raise ValueError(f"{path} does not hold a model; {_WHAT_TO_DO}.")
        header = json.loads(archive[_HEADER])
        if header["format"] != FORMAT:
            maker = header["facts"]["heatsketch"]
            raise ValueError(
                f"{path} has format {header['format']}, of heatsketch {maker}, but heatsketch "
                f"{__version__} reads format {FORMAT}; save the model again, or use that version."
            )
        yield archive, header["facts"]


def _csr(parts: list[Any]) -> sparse.csr_matrix:
    *arrays, n, m = parts
    matrix = sparse.csr_matrix(tuple(arrays), shape=(n, m))
    matrix.check_format(full_check=True)  # compiled loops do not look at bounds
    return matrix


# Name, type, function from a value to its parts, function from the parts to the value.
_FORMS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tuple": (tuple, list, tuple),
    "dict": (dict, lambda x: [[key, item] for key, item in x.items()], dict),
    "dtype": (np.dtype, lambda x: x.str, np.dtype),
    "number": (np.generic, lambda x: [x.dtype, x.item()], lambda parts: parts[0].type(parts[1])),
    "objects": (np.ndarray, np.ndarray.tolist, partial(np.fromiter, dtype=object)),  # (n,)
    "csr": (sparse.csr_matrix, lambda x: [x.data, x.indices, x.indptr, *x.shape], _csr),
}


def _state_of(value: Any) -> dict[str, Any]:
    return value._asdict() if issubclass(type(value), tuple) else vars(fresh(value))


def _contents(parts: list[Any]) -> tuple[list[Any], list[Array]]:
    """Return the contents of `model.json`, records and nodes of the parts, and the arrays."""
    arrays: list[Array] = []
    records: list[Any] = []
    stored: dict[int, tuple[Any, Any]] = {}  # nodes and objects, by the ids of objects

    def node(value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is list:
            return [node(item) for item in value]
        is_array = isinstance(value, np.ndarray) and not value.dtype.hasobject
        if is_array or kind.__module__.startswith("heatsketch."):
            if id(value) not in stored:
                if not is_array:
                    records.append(record(value))
                elif value.flags.c_contiguous or value.flags.f_contiguous:
                    arrays.append(value)
                else:  # in its order of memory, because products in another order give other bits
                    arrays.append(value.copy(order="K"))
                found = {"array": len(arrays) - 1} if is_array else {"record": len(records) - 1}
                stored[id(value)] = found, value  # keeps it alive, so that no other has its id
            return stored[id(value)][0]
        for name, (form, parts_of, _) in _FORMS.items():
            if isinstance(value, form):
                return {name: node(parts_of(value))}
        raise TypeError(_REFUSED.format(kind.__name__))

    def record(value: Any) -> dict[str, Any]:
        """Return the record of an object of this package, after those of its attributes.

        Attributes that are computed when needed, and those that the class lists in `_not_stored`,
        are left out. Objects of the caller become placeholders, because `transform` needs none.
        """
        kind = type(value)
        parameters = kind._get_param_names() if issubclass(kind, BaseEstimator) else ()
        nodes = []
        for name, item in _state_of(value).items():
            if name in getattr(kind, "_not_stored", ()):
                continue
            try:
                nodes.append([name, node(item)])
            except TypeError as error:
                if name not in parameters:
                    raise TypeError(f"{kind.__name__}.{name}: {error}") from None
                nodes.append([name, node(NotStored(type(item).__name__))])
        return {f"{kind.__module__}:{kind.__name__}": {"dict": nodes}}

    nodes = [node(part) for part in parts]
    return [records, nodes], arrays


def _restored(name: str, state: dict[str, Any]) -> Any:
    """Return an object with this state, of the class of this package that a file names."""
    home, _, own = name.partition(":")
    kind: Any = None
    if home.startswith("heatsketch.") and "__" not in home:
        kind = getattr(importlib.import_module(home), own)
    if not isinstance(kind, type) or kind.__module__ != home:
        raise ValueError(f"it names {name!r}, which is not a class of heatsketch")
    if issubclass(kind, tuple):
        return kind(**state)
    made = kind.__new__(kind)
    vars(made).update(state)
    return made
