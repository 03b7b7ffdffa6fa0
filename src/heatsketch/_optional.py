"""Optional libraries: imported where they are needed, by functions."""

import importlib
from typing import Any


def optional(module: str, what: str, extra: str) -> Any:
    """Return a module of an optional library, or say what needs it and which extra installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f'{what}; pip install "heatsketch[{extra}]"') from error
