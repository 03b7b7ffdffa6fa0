"""A stand-in for a card: tensors that lie on the processor, say "cuda:0", and behave like it.

While `card()` is entered, torch takes device="cuda". As on a card, an operation on tensors of both
places fails, NumPy gets no tensor, and the memory ends somewhere. Everything that costs time on a
card is counted: operations, copies from and to the host, and waits for a number, whose size the
host needs before it goes on. Numbers are those of torch's processor device.

Operations are caught at two levels. Functions of Python (`__torch_function__`) know which tensors
are on the card. The operations of ATen that they are made of (`__torch_dispatch__`) are what a card
runs, so these are counted. What a kernel does inside itself is not seen: kernels of a sort,
workspaces of products, Python threads that make tensors from nothing.
"""

import sys
import time
import weakref
from collections import Counter
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("cuda:0")
HOST = torch.device("cpu")

# The host waits until these operations of ATen end, because it needs a number or a size.
_WAITING = {
    *("_local_scalar_dense", "nonzero", "masked_select", "equal", "bincount", "histc"),
    *("_unique2", "unique_dim", "unique_consecutive", "_linalg_check_errors"),
}
_MOVES = ("to", "cpu", "cuda")
_COPYING = {"as_tensor", "native", "to_device", "host", "on_host", "norm", "norms"}
# Operations on elements take a number from the host, a tensor without dimensions; so do these.
_TAKE_NUMBERS = {
    *("where", "index_put_", "_index_put_impl_", "masked_fill_", "fill_", "copy_"),
    "_local_scalar_dense",
}


class OnCard(torch.Tensor):
    """A tensor on the card; `held` has its entries."""

    device, is_cuda, is_cpu = DEVICE, True, False

    @staticmethod
    def of(held, card):
        found = torch.Tensor._make_subclass(OnCard, torch.empty(0))
        found.held, found.card = held, card
        return found

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        every = []
        _mapped((args, kwargs or {}), every.append)
        return next(x for x in every if isinstance(x, OnCard)).card.call(function, args, kwargs)


class Card(TorchFunctionMode):
    """What has happened on the card, and `room`, its memory in bytes.

    `operations`, `waits`, `copies`, and the bytes `to_host` and `to_card` are counted by `place`;
    `sizes` has the bytes of each copy to the host. `alive` and `peak` are bytes of tensors,
    `seconds` is the time that torch and this class took.
    """

    def __init__(self, room):
        super().__init__()
        self.room = room
        self._storages = {}  # their bytes, by the address of what torch stores
        self.alive = 0
        self.clear()

    def clear(self):
        """Count from here on."""
        self.operations, self.waits, self.kinds = Counter(), Counter(), Counter()
        self.to_host, self.to_card, self.copies = Counter(), Counter(), Counter()
        self.sizes, self.seconds, self.peak = [], 0.0, self.alive

    def __torch_function__(self, function, types, args=(), kwargs=None):
        return self.call(function, args, kwargs)

    def call(self, function, args, kwargs):
        """Do what torch does for tensors on a card and on the host, and count it."""
        started = time.perf_counter()
        try:
            return self._call(function, args, kwargs or {})
        finally:
            self.seconds += time.perf_counter() - started

    def _call(self, function, args, kwargs):
        if function is torch.device:
            return function(*args, **kwargs)
        cards, hosts, arrays, device = {}, [], [], None

        def plain(x):
            nonlocal device
            if isinstance(x, OnCard):
                cards[id(x.held)] = x
                return x.held
            if isinstance(x, torch.Tensor):
                hosts.append(x)
            elif isinstance(x, np.ndarray):
                arrays.append(x)
            elif isinstance(x, torch.device) or (isinstance(x, str) and x[:4] in ("cpu", "cuda")):
                device = torch.device(x)
                if device.type == "cuda" and device.index not in (None, 0):
                    raise RuntimeError("CUDA error: invalid device ordinal")
                return HOST if device.type == "cuda" else x
            return x

        name = getattr(function, "__name__", "")
        given, named = _mapped((args, kwargs), plain)
        there = bool(cards) if device is None else device.type == "cuda"
        if not cards and not there:
            return function(*args, **kwargs)
        if name in ("numpy", "__array__"):
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")
        if name in _MOVES:
            return self._moved(name, args, given, named, cards, device)
        if name in ("as_tensor", "tensor", "sparse_csr_tensor") and not cards:
            return self._arrived(function(*given, **named), *args[:1])
        if name == "tolist":
            self._left(given[0])
        elif name in ("__getitem__", "__setitem__", "copy_"):
            self._check_places(name, args)
        elif cards and any(x.ndim for x in hosts):
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"cuda:0 and cpu! ({name})"
            )
        elif name.startswith("__") and any(x.ndim for x in arrays):
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")
        with _Kernels(self, any(x.ndim == 0 for x in hosts)):
            found = function(*given, **named)
        return self._wrapped(found, cards, there)

    def _wrapped(self, found, cards, there):
        """Return what a function has found, on the card."""

        def wrap(x):
            if not isinstance(x, torch.Tensor) or not there:
                return x
            return cards[id(x)] if id(x) in cards else OnCard.of(x, self)

        return _mapped(found, wrap)

    def _moved(self, name, args, given, named, cards, device):
        """Return what `to`, `cpu` or `cuda` return."""
        source, X = args[0], given[0]
        if device is None:
            others = [x.device for x in args[1:] if isinstance(x, torch.Tensor)]
            usual = {"cpu": HOST, "cuda": DEVICE, "to": source.device}[name]
            device = others[0] if others else usual
        name = "to" if name == "cuda" else name
        found = getattr(X, name)(*given[1:], **named)
        if device.type == "cuda":
            if isinstance(source, OnCard):
                self._count(torch.ops.aten._to_copy.default, found) if found is not X else None
                return self._wrapped(found, cards, True)
            return self._arrived(found, X)
        if isinstance(source, OnCard):
            self._left(X)
            return _copy(found) if _same_memory(found, X) else found
        return found

    def _arrived(self, found, given):
        """Return a copy on the card of what was on the host."""
        self._count_copy(self.to_card, found)
        found = _copy(found) if _same_memory(found, given) else found
        self._keep(found)
        return OnCard.of(found, self)

    def _left(self, X):
        self._count_copy(self.to_host, X)
        self.waits[self.place()] += 1
        self.sizes.append(_bytes(X))

    def _count_copy(self, counter, X):
        place = self.place()
        counter[place] += _bytes(X)
        self.copies[place] += 1

    def _check_places(self, name, args):
        """Check tensors of both places in an index, an assignment or a copy; count the copies."""
        target, *rest = args
        on_card = isinstance(target, OnCard)
        index = rest[0] if name != "copy_" else ()
        parts = index if isinstance(index, tuple) else (index,)
        lists = [x for x in parts if isinstance(x, torch.Tensor | np.ndarray | list)]
        for x in lists:
            if isinstance(x, OnCard) and not on_card and x.held.ndim:
                raise RuntimeError("indices should be either on cpu or on the same device (cpu)")
            if not isinstance(x, OnCard) and on_card:
                self._count_copy(self.to_card, torch.as_tensor(x))
        value = rest[-1]
        if name == "__getitem__" or not isinstance(value, torch.Tensor):
            return
        if isinstance(value, OnCard) == on_card:
            return
        if lists and value.ndim:
            raise RuntimeError(f"Expected {target.device}, got {value.device} for indexed values")
        self._count_copy(self.to_card, value) if on_card else self._left(value.held)

    # Counts

    def place(self):
        """Return the innermost function of the package that runs now, but for those that copy."""
        frame = sys._getframe(2)
        while frame is not None:
            _, inside, file = frame.f_code.co_filename.rpartition("/heatsketch/")
            if inside and frame.f_code.co_name not in _COPYING:
                return f"{file}:{frame.f_lineno} {frame.f_code.co_name}"
            frame = frame.f_back
        return "elsewhere"

    def _count(self, operation, found):
        """Count an operation of ATen and the memory of its result."""
        name = operation.__name__.split(".")[0]
        place = self.place()
        if name == "_local_scalar_dense":
            self._left(torch.empty(1))
            return
        if "empty" not in name:  # which takes memory alone
            self.operations[place] += 1
            self.kinds[name] += 1
        for x in found if isinstance(found, tuple | list) else (found,):
            if isinstance(x, torch.Tensor):
                self._keep(x)

    def _keep(self, X):
        """Count the memory of a tensor until it is freed."""
        for part in _parts(X):
            storage = part.untyped_storage()
            key, size = storage._cdata, storage.nbytes()
            if key in self._storages or not size:
                continue
            if self.alive + size > self.room:
                raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes.")
            self._storages[key] = size
            self.alive += size
            self.peak = max(self.peak, self.alive)
            weakref.finalize(storage, self._forget, key)

    def _forget(self, key):
        self.alive -= self._storages.pop(key)


class _Kernels(TorchDispatchMode):
    """Counts the operations of ATen within one function."""

    def __init__(self, card, with_numbers):
        super().__init__()
        self._card, self._with_numbers = card, with_numbers

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = operation.__name__.split(".")[0]
        found = operation(*args, **kwargs)
        if operation.is_view or name in ("detach", "alias"):
            return found
        takes_numbers = torch.Tag.pointwise in operation.tags or name in _TAKE_NUMBERS
        if self._with_numbers and not takes_numbers:
            raise RuntimeError(f"Expected all tensors to be on the same device ({name})")
        self._card._count(operation, found)
        waits = name in _WAITING and name != "_local_scalar_dense"
        if name in ("index", "index_put_", "_index_put_impl_"):
            waits = any(x is not None and x.dtype == torch.bool for x in args[1])
        elif operation is torch.ops.aten.repeat_interleave.Tensor:
            waits = kwargs.get("output_size") is None
        elif name == "segment_reduce":
            waits = kwargs.get("lengths") is not None and not kwargs.get("unsafe")
        if waits:
            self._card.waits[self._card.place()] += 1
        return found


@contextmanager
def card(room=80e9):
    """Let torch have the stand-in as its device "cuda"; give its counts."""
    one = Card(room)
    facts = {
        "mem_get_info": lambda device=None: (int(one.room - one.alive), int(one.room)),
        "memory_reserved": lambda device=None: one.alive,
        "memory_allocated": lambda device=None: one.alive,
        "max_memory_allocated": lambda device=None: one.peak,
        "reset_peak_memory_stats": lambda device=None: setattr(one, "peak", one.alive),
        "synchronize": lambda device=None: None,
        "get_device_name": lambda device=None: "stand-in",
    }
    with patch.multiple(torch.cuda, **facts), one:
        yield one


def _mapped(value, work):
    """Return lists, tuples and dictionaries with `work` done on all that is in them."""
    if isinstance(value, torch.Size) or not isinstance(value, list | tuple | dict):
        return work(value)
    if isinstance(value, dict):
        return {key: _mapped(x, work) for key, x in value.items()}
    return type(value)([_mapped(x, work) for x in value])


def _parts(X):
    """Return the dense tensors of which a tensor consists."""
    if X.layout == torch.sparse_csr:
        return X.crow_indices(), X.col_indices(), X.values()
    return (X._indices(), X._values()) if X.layout == torch.sparse_coo else (X,)


def _bytes(X):
    return sum(part.numel() * part.element_size() for part in _parts(X))


def _same_memory(X, Y):
    if not isinstance(Y, torch.Tensor):
        return isinstance(Y, np.ndarray)
    return _parts(X)[0].data_ptr() == _parts(Y)[0].data_ptr()


def _copy(X):
    return (
        X.detach().clone().requires_grad_(X.requires_grad) if X.is_floating_point() else X.clone()
    )
