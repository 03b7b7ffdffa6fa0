"""Embed data by sketching the heat kernel.

Coordinates whose Euclidean distances are the diffusion distances of the data.

A name is imported when it is first used, so that a command or a script imports no more than it
needs; `__init__.pyi` lists where each name comes from.
"""

import lazy_loader

from heatsketch._version import __version__ as __version__

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
del lazy_loader


def __getattr__(name: str) -> object:
    """Import a public name, or suggest one."""
    if name in __all__ or name.startswith("_"):
        return _load(name)
    from heatsketch._words import no_name

    raise AttributeError(no_name(__name__, name, __all__))
