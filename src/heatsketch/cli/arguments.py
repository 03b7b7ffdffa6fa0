"""Options of the methods: what they may be set to, and their defaults from the signatures."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from typing import Any

import heatsketch as hs
from heatsketch import bandwidth

METHODS: dict[str, Callable[..., Any]] = {
    "heat-embedding": hs.HeatEmbedding,
    "heat-sketch": hs.HeatSketch,
    "diffusion-map": hs.DiffusionMap,
    "mixture-diffusion": hs.MixtureDiffusion,
}
DEFAULT_METHOD = next(iter(METHODS))
AUTOMATIC = {  # what a method can choose by itself
    "heat-embedding": ("time",),
    "heat-sketch": (),
    "diffusion-map": ("n_components", "time"),
    "mixture-diffusion": ("n_components",),
}
RULES = ("self-tuning", *bandwidth.RULES)


def add_diffusion(command: argparse.ArgumentParser) -> None:
    """Add the options that lead from points to a diffusion."""
    affinities = ("knn", "dense", "radius", "precomputed")
    normalizations = ("symmetric", "bistochastic", "markov")
    add_option(command, "filter", choices=("power", "heat"), help="function of the eigenvalues")
    add_option(command, "epsilon", type=_epsilon, help=f"a number or {', '.join(RULES)}")
    add_option(command, "affinity", choices=affinities, help="which pairs are joined")
    add_option(command, "n_neighbors", type=int, metavar="M", help="of the knn graph")
    add_option(command, "normalization", choices=normalizations, help="of the affinity")
    add_option(command, "alpha", type=float, help="power of the density divided out")
    add_option(command, "tol", type=float, help="accuracy of iterations")
    add_option(command, "max_iter", type=int, metavar="N", help="limit of iterations")
    add_seed(command)


def add_option(command: argparse.ArgumentParser, name: str, *, help: str, **kwargs: Any) -> None:
    """Add an option that stays out of the result unless given, so that defaults live in one place.

    The help text reads the defaults from the signatures of the methods.
    """
    found = {method: defaults(METHODS[method])[name] for method in methods_with(name)}
    lacking = [method for method in METHODS if method not in found]
    if len(lacking) <= 1 and len(set(map(str, found.values()))) == 1:
        text = f"default {next(iter(found.values()))}"
        text += "".join(f", not of {method}" for method in lacking)
    else:
        text = ", ".join(f"{method}: default {value}" for method, value in found.items())
    kwargs.setdefault("metavar", None if "choices" in kwargs else name[0].upper())
    command.add_argument(
        flag(name), default=argparse.SUPPRESS, help=f"{help} ({text})".replace("%", "%%"), **kwargs
    )


def add_seed(command: argparse.ArgumentParser) -> None:
    """Add the seed."""
    command.add_argument(
        "--random-state", type=int, default=0, metavar="S", help="seed (default 0)"
    )


def flag(name: str) -> str:
    """Return the option of a parameter."""
    return "--" + name.replace("_", "-")


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters of a function or class with their defaults."""
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


def methods_with(name: str) -> list[str]:
    """Return the methods that have a parameter of this name."""
    return [method for method, make in METHODS.items() if name in defaults(make)]


def number(text: str) -> int | float:
    """Read an integer or another number."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def positive(text: str) -> int:
    """Read an integer above 0."""
    value = number(text)
    if not isinstance(value, int) or value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return value


def or_auto(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader of what `kind` reads or the word auto."""

    def value(text: str) -> Any:
        try:
            return text if text == "auto" else kind(text)
        except (ValueError, argparse.ArgumentTypeError):
            raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor auto") from None

    return value


def times(text: str) -> Any:
    """Read a time, several of them with commas between, or the word auto."""
    values = [or_auto(number)(part) for part in text.split(",")]
    if len(values) > 1 and "auto" in values:
        raise argparse.ArgumentTypeError("auto stands alone")
    return values if len(values) > 1 else values[0]


def _epsilon(text: str) -> float | str:
    try:
        return text if text in RULES else float(text)
    except ValueError:
        rules = ", ".join(RULES)
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor {rules}") from None
