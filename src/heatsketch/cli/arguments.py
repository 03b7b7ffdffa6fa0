"""Options of the methods: what they may be set to, and their defaults from the signatures."""

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from heatsketch._words import did_you_mean
from heatsketch.comparison.methods import ESTIMATORS, defaults
from heatsketch.markov.affinities import AFFINITIES
from heatsketch.neighbors import METRICS
from heatsketch.scales import bandwidth
from heatsketch.spectral.filters import FILTERS

DEFAULT_METHOD = next(iter(ESTIMATORS))
RULE_WORDS = ("auto", "gap")  # of counts and times: stand for a rule in place of a number
RULES_OF_METHOD: dict[str, dict[str, tuple[str, ...]]] = {
    "heat-embedding": {"time": ("auto",)},
    "diffusion-map": {"n_components": ("auto",), "time": RULE_WORDS},
    "mixture-diffusion": {"n_components": ("auto",), "epsilon": ("auto",)},
    "laplacian-eigenmap": {"epsilon": ("edges",)},
    "heat-sketch": {"n_components": ("auto",)},
    "tsne": {"learning_rate": ("auto",)},
    "sne": {"learning_rate": ("auto",)},
}
Adds = argparse.ArgumentParser | argparse._ArgumentGroup
EPSILON_RULES = ("self-tuning", *bandwidth.RULES, "auto", "edges")

_HELP = {
    "n_components": "number of coordinates",
    "time": "diffusion time, or several with commas between",
    "kind": "entries of the random matrix: normal (gaussian), ±1 (rademacher), or ±1 made from few "
    "random bits (pairwise)",
    "n_sketch": "columns of the sketch of what 64 eigenvectors leave out, beyond 2,048 points",
    "objective": "keep as many distances as possible within the factor (most), or lower the ratio "
    "of the most stretched to the most shrunk one (worst)",
    "n_init": "number of starts of the search for the map; those beyond the fourth are random",
    "share": "share of the distances that the coordinates must keep, for time auto",
    "factor": "factor by which a kept distance may change, for time auto and objective most",
    "delta": "weight relative to the first below which auto leaves out a coordinate",
    "mixture": "number of components of the Gaussian mixture, instead of that which the Bayesian "
    "information criterion chooses",
    "tolerance": "largest error of a distance, as a share of the root mean square distance, or (of "
    "a sketch with n-components auto, for 95 of 100 seeds) of itself",
    "max_features": "largest number of coordinates that the tolerance may take",
    "filter": "function of an eigenvalue λ at time t: λ^t (power) or exp(-t (1 - λ)) (heat)",
    "epsilon": f"bandwidth of the affinity: a number or one of {', '.join(EPSILON_RULES)} (auto of "
    "mixture-diffusion, edges of laplacian-eigenmap)",
    "affinity": "pairs of points that have an affinity: nearest neighbours (knn), the same "
    "weighted so that alpha 1 removes the effect of the density (variable), all (dense), those "
    "within a radius (radius); of rows of counts, steps to a column and back (bipartite) or "
    "cosines (cosine); or INPUT holds the affinities (precomputed)",
    "n_neighbors": "number of nearest neighbours of each point",
    "normalization": "normalisation of the affinities",
    "alpha": "power of the density of the points that affinities are divided by; 1 removes its "
    "effect with --affinity variable, or radius and dense with one small epsilon, not with knn",
    "tol": "tolerance at which iterations stop",
    "max_iter": "largest number of iterations",
    "radius": "join all points within this distance, instead of the nearest neighbours",
    "metric": "distance of points, those of directions being cosine and (of rows less their means) "
    "correlation; or INPUT holds the distances (precomputed, with classical methods)",
    "n_landmarks": "number of landmarks",
    "landmarks": "choice of the landmarks: far from each other (maxmin), or random",
    "shrinkage": "0 to 1: how far correlations within classes are shrunk towards zero",
    "cut": "distance beyond which a radius affinity is zero, in units of √(ε/2)",
    "weights": "weight of an edge of length d: exp(-d²/ε) (heat) or 1 (binary)",
    "reg": "regularisation of the weights that reconstruct a point",
    "perplexity": "effective number of neighbours of a point",
    "early_exaggeration": "factor of the attraction between points in the first steps",
    "learning_rate": "step length of the gradient descent: a number or auto",
}


def add_diffusion(command: argparse.ArgumentParser, *, of: str | None = None) -> None:
    """Add the options that lead from points to a diffusion; commands without a method say `of`."""
    group = command.add_argument_group("from points to a diffusion")
    add_option(group, "metric", of, choices=(*METRICS, "precomputed"))
    add_option(group, "affinity", of, choices=(*AFFINITIES, "precomputed"))
    add_option(group, "n_neighbors", of, type=int, metavar="M")
    add_option(group, "epsilon", of, type=_epsilon)
    add_option(group, "normalization", of, choices=("symmetric", "bistochastic", "markov"))
    add_option(group, "alpha", of, type=float)
    add_option(group, "filter", of, choices=tuple(FILTERS))
    add_option(group, "tol", of, type=float)
    add_option(group, "max_iter", of, type=int, metavar="N")
    add_seed(command)


def add_classical(command: argparse.ArgumentParser) -> None:
    """Add the options of the classical methods that no diffusion has."""
    group = command.add_argument_group("classical methods")
    add_option(group, "radius", type=float)
    add_option(group, "n_landmarks", type=positive, metavar="L")
    add_option(group, "landmarks", choices=("maxmin", "random"))
    add_option(group, "shrinkage", type=float)
    add_option(group, "weights", choices=("heat", "binary"))
    add_option(group, "reg", type=float)
    add_option(group, "perplexity", type=float)
    add_option(group, "early_exaggeration", type=float)
    add_option(group, "learning_rate", type=or_rule(float), metavar="R")


def add_option(command: Adds, name: str, of: str | None = None, **kwargs: Any) -> None:
    """Add an option that stays out of the result unless given, so that defaults live in one place.

    The help text reads the defaults from the signatures of the methods, or of the one it is `of`.
    """
    by_default: dict[str, list[str]] = {}
    owners = methods_with(name) if of is None else [of]
    for method in owners:
        by_default.setdefault(str(defaults(ESTIMATORS[method])[name]), []).append(method)
    alone = len(by_default) == 1 and owners in ([of], list(ESTIMATORS))
    text = ", ".join(
        f"default {value}" if alone else f"{', '.join(methods)}: default {value}"
        for value, methods in by_default.items()
    ).replace("default None", "not set")
    kwargs.setdefault("metavar", None if "choices" in kwargs else name[0].upper())
    help = f"{_HELP[name]} ({text})".replace("%", "%%")
    command.add_argument(flag(name), default=argparse.SUPPRESS, help=help, **kwargs)


def add_metric(command: argparse.ArgumentParser) -> None:
    """Add the distance of points, for commands without a method."""
    metric = f"distance of points (default {METRICS[0]})"
    command.add_argument("--metric", choices=METRICS, default=METRICS[0], help=metric)


def add_seed(command: argparse.ArgumentParser) -> None:
    """Add the seed."""
    seed = "seed of the random numbers (default 0)"
    command.add_argument("--random-state", type=int, default=0, metavar="S", help=seed)


def methods_with_rule(name: str, word: Any) -> list[str]:
    """Return the methods whose parameter takes this word for a rule; [] if it stands for none."""
    return [method for method, words in RULES_OF_METHOD.items() if word in words.get(name, ())]


def flag(name: str) -> str:
    """Return the option of a parameter."""
    return "--" + name.replace("_", "-")


def methods_with(name: str) -> list[str]:
    """Return the methods that have a parameter of this name."""
    return [method for method, make in ESTIMATORS.items() if name in defaults(make)]


def number(text: str) -> int | float:
    """Read an integer or another number."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a number")


def integer_from(low: int) -> Callable[[str], int]:
    """Return a reader of integers that are at least `low`."""

    def read(text: str) -> int:
        value = number(text)
        if not isinstance(value, int) or value < low:
            raise argparse.ArgumentTypeError(f"{text!r} is not an integer >= {low}")
        return value

    return read


positive = integer_from(1)


def or_rule(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader of what `kind` reads, or of a word for a rule."""

    def read(text: str) -> Any:
        try:
            return text if text in RULE_WORDS else kind(text)
        except (ValueError, argparse.ArgumentTypeError):
            raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor auto") from None

    return read


def times(text: str) -> Any:
    """Read a time, several of them with commas between, or the word for a rule."""
    values = [or_rule(number)(part) for part in text.split(",")]
    words = [word for word in RULE_WORDS if word in values]
    if len(values) > 1 and words:
        raise argparse.ArgumentTypeError(f"{words[0]} cannot be combined with other times")
    return values if len(values) > 1 else values[0]


def method_names(known: Iterable[str], word: str | None = None) -> Callable[[str], Any]:
    """Return a reader of names of methods with commas between, or of a word that means all."""

    def read(text: str) -> Any:
        if text == word:
            return text
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            choices = ", ".join([*known, *([word] if word else [])])
            hint = did_you_mean(unknown[0], known, end="")
            raise argparse.ArgumentTypeError(
                f"no method {unknown[0]!r}; choose from {choices}{hint}"
            )
        return names

    return read


def _epsilon(text: str) -> float | str:
    try:
        return text if text in EPSILON_RULES else float(text)
    except ValueError:
        rules = ", ".join(EPSILON_RULES)
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor {rules}") from None
