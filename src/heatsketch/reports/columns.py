"""Columns of a report: what points are coloured by and what is said of them, as plain JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import is_missing
from heatsketch._typing import Array
from heatsketch.plot.labels import NO_LABEL_COLOUR, categories, check_labels, largest, palette

MOST_FEATURES = 50  # columns of the points themselves that are kept
_KINDS = {
    "f2": np.float16,
    "f4": np.float32,
    "f8": np.float64,
    "i1": np.int8,
    "i4": np.int32,
    "u1": np.uint8,
    "u2": np.uint16,
}


def packed(values: Any, kind: str) -> dict[str, Any]:
    """Return an array as text: little-endian numbers of a kind in base64, and the shape."""
    values = np.ascontiguousarray(values, dtype=np.dtype(_KINDS[kind]).newbyteorder("<"))
    text = base64.b64encode(values.tobytes()).decode("ascii")
    return {"kind": kind, "shape": list(values.shape), "data": text}


def unpacked(array: Mapping[str, Any]) -> Array:
    """Return the array that `packed` was given."""
    kind = np.dtype(_KINDS[array["kind"]]).newbyteorder("<")
    return np.frombuffer(base64.b64decode(array["data"]), kind).reshape(array["shape"])


def column(
    name: str, values: Any, shown: Array, given: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a column of labels or numbers (n,), of which the rows `shown` (m,) are kept.

    Categories and numbers are told apart as in pictures, `plot.categories`; more than 20 categories
    share the colours of the 19 largest and "others", but keep their names. Categories have the
    `given` colours (#rrggbb, by name) where there are some.
    """
    labels = check_labels(values, len(values))
    groups = categories(labels)
    if groups is None:
        numbers = labels[shown].astype(np.float64)
        kind = "f4" if _fits_single(numbers) else "f8"
        return {"name": name, "type": "number", "values": packed(numbers, kind)}
    codes, names = groups
    colours, legend = largest(np.arange(len(names)), names)
    return {
        "name": name,
        "type": "category",
        "codes": packed(codes[shown], "i1" if len(names) < 2**7 else "i4"),
        "names": list(names),
        "groups": colours.tolist(),  # of each name: its place in the legend
        "legend": list(legend),
        "colours": [
            own if (own := (given or {}).get(group, "")).startswith("#") else usual
            for group, usual in zip(legend, palette(len(legend)), strict=True)
        ],
        "missing": NO_LABEL_COLOUR,
    }


def label_columns(
    labels: Mapping[str, Any] | None, colors: Mapping[str, Mapping[str, str]] | None, shown: Array
) -> list[dict[str, Any]]:
    """Return the columns that the user gave."""
    colors = colors or {}
    return [
        column(str(name), values, shown, colors.get(name))
        for name, values in (labels or {}).items()
    ]


def feature_columns(X: Any, names: Any, shown: Array) -> list[dict[str, Any]]:
    """Return the columns of points X (n, d), if there are few."""
    if X is None or sparse.issparse(X) or np.ndim(X) != 2 or np.shape(X)[1] > MOST_FEATURES:
        return []
    values = np.asarray(X)
    if values.dtype.kind not in "biuf":
        return []
    pairs = zip(names, values.T, strict=True)
    return [
        {"name": str(name), "type": "number", "values": packed(x[shown], _kind_of(x))}
        for name, x in pairs
    ]


def texts(values: Any, shown: Array) -> list[str]:
    """Return ids (n,) as text, of the rows `shown`."""
    values = np.asarray(values)
    return ["" if is_missing(value) else str(value) for value in values[shown].tolist()]


def _kind_of(values: Array) -> str:
    return "f4" if values.dtype == np.float32 or _fits_single(values) else "f8"


def _fits_single(values: Array) -> bool:
    """Say whether numbers lose nothing that is shown, six digits, in single precision."""
    finite = np.abs(values[np.isfinite(values)]).astype(float)
    return not len(finite) or bool(finite.max() < 2**24)
