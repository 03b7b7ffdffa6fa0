"""Options of the methods: what they may be set to, and their defaults from the signatures."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from heatsketch.comparison.methods import METHODS, defaults
from heatsketch.scales import bandwidth

DEFAULT_METHOD = next(iter(METHODS))
WORDS = ("auto", "gap")
AUTOMATIC: dict[str, dict[str, tuple[str, ...]]] = {  # what a method can choose by itself, and how
    "heat-embedding": {"time": ("auto",)},
    "diffusion-map": {"n_components": ("auto",), "time": WORDS},
    "mixture-diffusion": {"n_components": ("auto",)},
    "tsne": {"learning_rate": ("auto",)},
    "sne": {"learning_rate": ("auto",)},
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


def add_classical(command: argparse.ArgumentParser) -> None:
    """Add the options of the classical methods that no diffusion has."""
    add_option(command, "radius", type=float, help="joins all pairs within it, in place of k")
    add_option(command, "metric", choices=("euclidean", "precomputed"), help="what INPUT holds")
    add_option(command, "n_landmarks", type=positive, metavar="L", help="landmarks")
    add_option(command, "landmarks", choices=("maxmin", "random"), help="how they are chosen")
    add_option(command, "shrinkage", type=float, help="towards uncorrelated features")
    add_option(command, "cut", type=float, help="of a radius affinity, in units of √(ε/2)")
    add_option(command, "weights", choices=("heat", "binary"), help="of the edges")
    add_option(command, "reg", type=float, help="regularisation of its weights")
    add_option(command, "perplexity", type=float, metavar="P", help="effective neighbours")
    add_option(command, "early_exaggeration", type=float, metavar="E", help="at first")
    add_option(command, "learning_rate", type=or_auto(float), metavar="R", help="of the descent")


def add_option(command: argparse.ArgumentParser, name: str, *, help: str, **kwargs: Any) -> None:
    """Add an option that stays out of the result unless given, so that defaults live in one place.

    The help text reads the defaults from the signatures of the methods.
    """
    by_default: dict[str, list[str]] = {}
    for method in methods_with(name):
        by_default.setdefault(str(defaults(METHODS[method])[name]), []).append(method)
    everywhere = len(by_default) == 1 and len(methods_with(name)) == len(METHODS)
    text = ", ".join(
        f"default {value}" if everywhere else f"{', '.join(owners)}: default {value}"
        for value, owners in by_default.items()
    )
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
    """Return a reader of what `kind` reads, or of a word for a rule."""

    def value(text: str) -> Any:
        try:
            return text if text in WORDS else kind(text)
        except (ValueError, argparse.ArgumentTypeError):
            raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor auto") from None

    return value


def times(text: str) -> Any:
    """Read a time, several of them with commas between, or the word for a rule."""
    values = [or_auto(number)(part) for part in text.split(",")]
    words = [word for word in WORDS if word in values]
    if len(values) > 1 and words:
        raise argparse.ArgumentTypeError(f"{words[0]} stands alone")
    return values if len(values) > 1 else values[0]


def _epsilon(text: str) -> float | str:
    try:
        return text if text in RULES else float(text)
    except ValueError:
        rules = ", ".join(RULES)
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor {rules}") from None
