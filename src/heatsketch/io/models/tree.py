"""Objects as JSON: plain values, and references to arrays and to records that come before.

A JSON object with one key that begins with $ stands for something that JSON has no form for; the
records of a model are in one list, in which each refers only to those before it, so that what was
one object is one object again, and nothing refers to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.io.models.archive import KINDS
from heatsketch.io.models.checks import check_record, check_sparse
from heatsketch.io.models.records import class_of, is_parameter, name_of, restored, state_of

_PLAIN = (type(None), bool, int, float, str)
_SPARSE = {kind.__name__: kind for kind in (sparse.csr_matrix, sparse.csr_array)}
_SPARSE_PARTS = ("data", "indices", "indptr", "shape")


@dataclass(frozen=True)
class NotStored:
    """What stands for a parameter that was an object of the caller's."""

    what: str

    def __repr__(self) -> str:
        """Say what it was."""
        return f"<not in the file: {self.what}>"


class Encoder:
    """Turns objects into nodes; collects their arrays and records."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self.records: list[Any] = []
        self._known: dict[Any, int] = {}
        self._alive: list[Any] = []  # identities of objects are unique only as long as these live

    def node(self, value: Any, place: str) -> Any:
        """Return the node of a value; `place` says where it is in the model, for errors."""
        if type(value) in _PLAIN:
            return value
        if type(value) is list:
            return self._nodes(value, place)
        if type(value) is tuple:
            return {"$tuple": self._nodes(value, place)}
        if type(value) is dict:
            return self._dict(value, place)
        if isinstance(value, np.generic):
            _check_kind(value.dtype, place)
            return {"$number": [value.dtype.str, value.item()]}
        if isinstance(value, np.dtype):
            return {"$dtype": value.str}
        if isinstance(value, np.ndarray):
            return self._array(value, place)
        if isinstance(value, NotStored):
            return {"$lost": value.what}
        return {"$record": self._record(value, place)}

    def _nodes(self, values: Sequence[Any], place: str) -> list[Any]:
        return [self.node(value, f"{place}[{i}]") for i, value in enumerate(values)]

    def _dict(self, value: dict[Any, Any], place: str) -> Any:
        nodes = {key: self.node(item, f"{place}[{key!r}]") for key, item in value.items()}
        if all(type(key) is str and not key.startswith("$") for key in nodes):
            return nodes
        return {"$dict": [[self.node(key, place), item] for key, item in nodes.items()]}

    def _array(self, value: Array, place: str) -> Any:
        if value.dtype.hasobject:
            return {"$objects": [list(value.shape), self._nodes(value.ravel().tolist(), place)]}
        _check_kind(value.dtype, place)
        memory = value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str
        if memory not in self._known:
            self._alive.append(value)
            self._known[memory] = len(self.arrays)
            # Rows or columns stay what is contiguous: products give the same bits.
            contiguous = value.flags.c_contiguous or value.flags.f_contiguous
            self.arrays.append(np.asarray(value) if contiguous else value.copy(order="K"))
        return {"$array": self._known[memory]}

    def _record(self, value: Any, place: str) -> int:
        if id(value) in self._known:
            return self._known[id(value)]
        name, state = self._state(value, place)
        fields = {
            key: self._parameter(item, f"{place}.{key}")
            if is_parameter(value, key)
            else self.node(item, f"{place}.{key}")
            for key, item in state.items()
        }
        self._alive.append(value)
        self._known[id(value)] = len(self.records)
        self.records.append([name, fields])
        return self._known[id(value)]

    def _parameter(self, value: Any, place: str) -> Any:
        """Return the node of a parameter, which `transform` does not need: it may be left out."""
        try:
            return self.node(value, place)
        except TypeError:
            return {"$lost": type(value).__name__}

    def _state(self, value: Any, place: str) -> tuple[str, dict[str, Any]]:
        kind = type(value).__name__
        if kind in _SPARSE and type(value) is _SPARSE[kind]:
            return kind, {part: getattr(value, part) for part in _SPARSE_PARTS}
        name = name_of(type(value))
        if name is None:
            raise TypeError(
                f"{place} is of type {kind}, which no model file can hold; fit without it, such as "
                "with neighbors=None or a NeighborIndex in place of a transformer."
            )
        return name, state_of(value)


class Decoder:
    """Turns nodes into objects: those of a fixed list of classes only."""

    def __init__(self, records: list[Any], arrays: Sequence[Array]) -> None:
        self._arrays = arrays
        self._made: list[Any] = []
        for name, fields in records:
            state = {key: self.value(node) for key, node in fields.items()}
            self._made.append(_made(name, state))

    def value(self, node: Any) -> Any:
        """Return what a node stands for."""
        if type(node) in _PLAIN:
            return node
        if isinstance(node, list):
            return [self.value(item) for item in node]
        [(key, content), *others] = node.items() or [("", None)]
        if not key.startswith("$"):
            return {key: self.value(item) for key, item in node.items()}
        if others:
            raise TypeError(f"its header has {key} beside {others[0][0]}")
        return self._readers[key](self, content)

    def _of_index(self, made: Sequence[Any], i: Any) -> Any:
        if type(i) is not int or not 0 <= i < len(made):
            raise TypeError(f"its header refers to number {i!r} of {len(made)}")
        return made[i]

    def _objects(self, content: Any) -> Array:
        shape, items = content
        array = np.empty(len(items), dtype=object)
        array[:] = [self.value(item) for item in items]
        return array.reshape(shape)

    _readers: ClassVar[dict[str, Callable[[Decoder, Any], Any]]] = {
        "$tuple": lambda self, items: tuple(self.value(item) for item in items),
        "$dict": lambda self, pairs: {self.value(key): self.value(item) for key, item in pairs},
        "$number": lambda self, said: _dtype(said[0]).type(said[1]),
        "$dtype": lambda self, name: _dtype(name),
        "$array": lambda self, i: self._of_index(self._arrays, i),
        "$record": lambda self, i: self._of_index(self._made, i),
        "$objects": lambda self, content: self._objects(content),
        "$lost": lambda self, what: NotStored(str(what)),
    }


def _dtype(name: str) -> np.dtype:
    found = np.dtype(name)
    _check_kind(found, "its header")
    return found


def _check_kind(dtype: np.dtype, place: str) -> None:
    if dtype.kind not in KINDS:
        raise TypeError(f"{place} has the type {dtype}, but files hold numbers and text only.")


def _made(name: str, state: dict[str, Any]) -> Any:
    if name in _SPARSE:
        data, indices, indptr, shape = (state[part] for part in _SPARSE_PARTS)
        check_sparse(data, indices, indptr, shape)
        return _SPARSE[name]((data, indices, indptr), shape=shape)
    made = restored(class_of(name), state)
    check_record(made)
    return made
