"""Tensors of torch: coordinates come back as tensors; what a fit keeps is on the host."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from heatsketch._tensors import returned_for
from heatsketch.operators.properties import on_device


def kept_on_host(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let what a fit keeps be on the host, wherever its products were made."""

    @functools.wraps(method)
    def fit(self: Any, X: Any, *args: Any, **given: Any) -> Any:
        method(self, X, *args, **given)
        diffusion = self.__dict__.get("diffusion_")
        if diffusion is not None:
            operator = on_device(diffusion.operator, None)
            if operator is not diffusion.operator:  # elsewhere there may be no such device
                self.diffusion_ = replace(diffusion, operator=operator)
        return self

    return fit


def returned(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let what a method returns be a tensor where it is given one: same device and precision."""

    @functools.wraps(method)
    def mapped(self: Any, X: Any, *args: Any, **given: Any) -> Any:
        return returned_for(method(self, X, *args, **given), X)

    return mapped
