"""Fitted models in files: a zip archive of a JSON header and arrays; nothing is pickled.

`records` lists the classes that a model may hold, and what of each is stored; `tree` writes objects
as JSON with references to arrays, and reads them; `archive` is the file, with a digest of all that
is in it; `checks` looks at what was read before anything computes with it; `facts` says what a
model is, for people; `first_format` reads the files of the first version.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from sklearn.utils.validation import check_is_fitted

from heatsketch.io.models import archive
from heatsketch.io.models.facts import facts_of
from heatsketch.io.models.records import is_model
from heatsketch.io.models.tree import Decoder, Encoder

__all__ = ["Stored", "load_model", "read_facts", "read_model", "save_model", "write_model"]


class Stored(NamedTuple):
    """What a file holds."""

    model: Any
    facts: dict[str, Any]  # what it is, for people: versions, parameters, hash of the data
    reading: dict[str, Any]  # how tables of points are read for it; empty if it was not said


def save_model(model: Any, path: str | Path, *, force: bool = False) -> None:
    """Write a fitted estimator, or a `MixtureKernel`, to a file that holds nothing executable.

    After `load_model`, also in another process, `transform` gives the same bits, and so do the
    fitted attributes. What follows from others (search trees, caches) is computed again when it is
    needed.

    Parameters
    ----------
    model : estimator or MixtureKernel
        Any fitted estimator of heatsketch, those of `heatsketch.classical` included. Of a
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

    Cost: the arrays once, and their SHA-256, which any change of the file breaks. A graph takes
    about 30 bytes for each neighbour of a point; the training points are stored where `transform`
    compares with them.

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

    Nothing in the file is executed, and only classes on a fixed list are made.

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
        If the file is damaged, of a later format, or not a model.

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
    if not is_model(model):
        raise TypeError(
            f"model is of type {type(model).__name__}; pass a fitted estimator of heatsketch, or a "
            "MixtureKernel (skops keeps those of scikit-learn)."
        )
    if hasattr(model, "fit"):
        check_is_fitted(model, msg="model is not fitted; call fit first.")
    encoder = Encoder()
    header = {
        "model": encoder.node(model, type(model).__name__),
        "facts": facts_of(model, reading),
        "reading": encoder.node(reading, "reading"),
        "records": encoder.records,
    }
    archive.write(path, header, encoder.arrays, force=force)


def read_model(path: str | Path) -> Stored:
    """Read a model, what it is, and how tables of points are read for it."""
    with archive.opened(path) as (header, read_array):
        if header["format"] == archive.FIRST_FORMAT:
            from heatsketch.io.models import first_format  # imports the estimators

            facts = first_format.facts_of(header)
            return Stored(first_format.model_of(header, read_array), facts, {})
        arrays = [read_array(i) for i in range(len(header["arrays"]))]
        decoder = Decoder(header["records"], arrays)
        model, reading = decoder.value(header["model"]), decoder.value(header["reading"])
        if not is_model(model) or not isinstance(reading, dict):
            raise TypeError("it does not hold a model")
        return Stored(model, header["facts"], reading)


def read_facts(path: str | Path) -> dict[str, Any]:
    """Return what the model in a file is, without reading its arrays."""
    with archive.opened(path) as (header, _):
        if header["format"] == archive.FIRST_FORMAT:
            from heatsketch.io.models import first_format

            return first_format.facts_of(header)
        facts = header["facts"]
        if not isinstance(facts, dict):
            raise TypeError("its header does not say what it is")
        return facts
