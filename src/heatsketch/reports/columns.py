"""Columns of a report, packed: places of points, their colours, ids, features and images."""

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._arrays import Array
from heatsketch._checks import is_missing, names_of_columns, read_labels
from heatsketch.plot.pictures import (
    MAX_CATEGORIES,
    NO_LABEL_COLOUR,
    categories,
    central_window,
    legend_of,
    palette,
)

MOST_FEATURES, MANY_POINTS = 50, 20_000  # features that become columns, all up to so many points
MOST_VALUES = 300_000  # numbers of them in a page of more points
STEPS = 2**16 - 1  # of a place, from one side of the window to the other
_IMAGE_BYTES = 1_000_000


def packed(values: Any, kind: str) -> dict[str, Any]:
    """Return an array as its shape and text: its bytes deflated, in base64.

    The lowest bytes of all numbers come first, then the next ones: where numbers are small, the
    high bytes are alike and take no room.
    """
    values = np.ascontiguousarray(values, dtype=f"<{kind}")
    bytes_of = values.reshape(-1).view(np.uint8).reshape(values.size, values.itemsize)
    return {"kind": kind, "shape": list(values.shape), "data": _deflated(bytes_of.T.tobytes())}


def packed_texts(values: Iterable[str]) -> dict[str, Any]:
    """Return texts as one text: their JSON deflated, in base64."""
    return {"kind": "json", "data": _deflated(json.dumps(list(values)).encode("ascii"))}


def unpacked(array: Mapping[str, Any]) -> Array:
    """Return the array that `packed` was given."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(array["data"])), np.uint8)
    itemsize = np.dtype(array["kind"]).itemsize
    values = planes.reshape(itemsize, -1).T.copy().view(f"<{array['kind']}")
    return values.reshape(array["shape"])


def _deflated(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


def packed_places(P: Array) -> dict[str, Any]:
    """Return places (m, d) in whole numbers of 16 bits: steps of a window around the central ones.

    The few far points, which would make the steps of all others coarse, are kept as numbers.
    """
    window = central_window(P)
    low, high = (P.min(axis=0), P.max(axis=0)) if window is None else window
    unit = np.where(high > low, high - low, 1.0) / STEPS
    far = np.flatnonzero(((low > P) | (high < P)).any(axis=1))
    return {
        "steps": packed(np.rint((np.clip(P, low, high) - low) / unit), "u2"),
        "low": low.tolist(),
        "unit": unit.tolist(),
        "far": packed(far, "i4"),
        "places": packed(P[far], "f4"),
    }


def column(
    name: str, values: Any, shown: Array, given: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the rows `shown` (m,) of a column of labels or numbers (n,), as plain JSON.

    `plot.categories` tells categories from numbers, as in pictures. More than 20 categories share
    the colours of the 19 largest and "others", but keep their names. `given` colours (#rrggbb, by
    name) replace those of the palette.
    """
    groups = categories(values)
    if groups is None:
        return numbers(name, np.asarray(values)[shown])
    codes, names = groups
    entries, legend = legend_of(codes, names)
    return {
        "name": name,
        "type": "category",
        "codes": packed(codes[shown], "i1" if len(names) < 2**7 else "i4"),
        "names": list(names),
        "groups": packed(entries, "u1"),  # for each name, its place in the legend
        "legend": list(legend),
        "colours": [
            own if (own := (given or {}).get(group, "")).startswith("#") else usual
            for group, usual in zip(legend, palette(len(legend)), strict=True)
        ],
        "missing": NO_LABEL_COLOUR,
    }


def named_columns(values: Any, name: str, n: int) -> dict[str, Array]:
    """Return an array, mapping or DataFrame as columns (n,) by name; raise for other lengths."""
    if values is None:
        return {}
    names = values if isinstance(values, Mapping) else names_of_columns(values)
    if names is None:
        columns = {str(getattr(values, "name", None) or name): read_labels(values)}
    else:
        columns = {str(key): read_labels(values[key]) for key in names}
    for key, column in columns.items():
        if column.shape != (n,):
            raise ValueError(
                f"{name}s has a column {key!r} of shape {column.shape} but the embedding has {n} "
                f"rows; pass shape ({n},)."
            )
    return columns


def labels_and_ids(labels: Any, ids: Any, n: int) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return columns (n,) for colours and columns of ids; texts that never repeat are ids."""
    columns, names = named_columns(labels, "label", n), named_columns(ids, "id", n)
    for name, values in [*columns.items()]:
        codes, words = categories(values) or ((), ())
        is_id = MAX_CATEGORIES < len(words) == np.count_nonzero(np.greater_equal(codes, 0))
        if is_id and name not in names:
            names[name] = columns.pop(name)
    return columns, names


def feature_columns(X: Any, names: Any, shown: Array) -> list[dict[str, Any]]:
    """Return the columns of points X (n, d) if there are few; without `names` they are numbered.

    A page of many points has those of the largest variance, which make most of the distances.
    """
    if X is None or sparse.issparse(X) or np.ndim(X) != 2 or np.shape(X)[1] > MOST_FEATURES:
        return []
    values = np.asarray(X)
    if values.dtype.kind not in "biuf":
        return []
    d = values.shape[1]
    names = [f"x{j}" for j in range(d)] if names is None else names
    count = d if len(shown) <= MANY_POINTS else min(d, max(1, MOST_VALUES // len(shown)))
    kept = np.arange(d)
    if count < d:
        kept = np.sort(np.argsort(-np.nanvar(values[shown], axis=0), kind="stable")[:count])
    return [numbers(str(names[j]), values[shown, j]) for j in kept]


def numbers(name: str, values: Array) -> dict[str, Any]:
    """Return a column of numbers, in single precision where that keeps the six digits shown."""
    values = values.astype(float)
    size = np.abs(values[np.isfinite(values)]).max(initial=0)
    kind = "f4" if size < 2**24 else "f8"
    return {"name": name, "type": "number", "values": packed(values, kind)}


def texts(values: Any, shown: Array) -> dict[str, Any]:
    """Return ids (n,) as text, of the rows `shown`."""
    values = np.asarray(values)[shown].tolist()
    return packed_texts("" if is_missing(x) else str(x) for x in values)


def image_facts(X: Any, images: tuple[int, int] | None, shown: Array) -> dict[str, Any] | None:
    """Return the points shown as grey images (m, h, w), with fewer pixels if they are large."""
    if images is None:
        return None
    if X is None:
        raise ValueError(f"images={images!r} but X is not given; pass the points, as X.")
    size = np.asarray(images)
    is_pair = size.shape == (2,) and size.dtype.kind in "iu" and size.min() > 0
    if not is_pair or size.prod() != np.shape(X)[1]:
        raise ValueError(
            f"images={images!r} but X has {np.shape(X)[1]} features; pass the height and width of "
            "an image, whose product is this."
        )
    values = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)[shown]
    values = values.reshape(-1, *images)
    while values.size > _IMAGE_BYTES and min(values.shape[1:]) > 1:
        values = values[:, ::2, ::2]
    low, high = values.min(), values.max()
    return packed(255 * (values - low) / ((high - low) or 1.0), "u1")
