"""From a file to a fitted estimator: one way for all verbs."""

from argparse import Namespace
from collections.abc import Collection, Iterable
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from heatsketch import io, plot
from heatsketch._checks import feature_names, warn_of_scales
from heatsketch._typing import Array
from heatsketch._words import did_you_mean
from heatsketch.cli.tables import read_input, reading
from heatsketch.comparison.methods import ESTIMATORS, needs_labels
from heatsketch.operators.graph import Graph


class Fitted(NamedTuple):
    """A table of points, an estimator that was fitted to them, and their coordinates (n, k)."""

    table: io.Table
    estimator: Any
    embedding: Array


def fit(args: Namespace, estimator: Any, table: io.Table | None = None) -> Fitted:
    """Fit an estimator to INPUT, which is read unless it is passed.

    Methods that need labels are fitted to the labelled rows, and map the others, too.
    """
    table = read_input(args) if table is None else table
    if not needs_labels(estimator):
        warn_of_units(estimator.get_params(deep=False), table)
        X = table.values if args.graph is None else Graph(table.values)
        return Fitted(table, estimator, np.asarray(estimator.fit_transform(X)))
    groups = None if table.label is None else plot.categories(table.extra[table.label])
    if groups is None:
        raise ValueError(
            f"{type(estimator).__name__} is fitted to classes, but {table.source} has none; name "
            "the column that holds them with --label."
        )
    known = groups[0] >= 0
    estimator.fit(table.values[known], np.asarray(groups[1])[groups[0][known]])
    return Fitted(table, estimator, np.asarray(estimator.transform(table.values)))


def check_methods(args: Namespace, names: Iterable[str], *more: str) -> None:
    """End with a usage error for a name that is neither that of a method nor one of `more`."""
    for name in names:
        if name not in (*ESTIMATORS, *more):
            known, hint = ", ".join([*ESTIMATORS, *more]), did_you_mean(name, ESTIMATORS, end="")
            args.usage_error(f"there is no method {name!r}; choose from {known}{hint}")


def estimator_of(args: Namespace, method: str, **defaults: Any) -> Any:
    """Return an estimator with the parameters that were given, checked by their names."""
    check_methods(args, [method])
    make = ESTIMATORS[method]
    return make(**parameters(args, signature(make).parameters, method, **defaults))


def parameters(
    args: Namespace, known: Collection[str], name: str, **given_before: Any
) -> dict[str, Any]:
    """Return the parameters that were given, those of a graph, and a seed.

    Ends with a usage error for one that is not among the `known`.
    """
    for parameter in args.parameters:
        if parameter not in known:
            made = ESTIMATORS.items()
            owners = [method for method, make in made if parameter in signature(make).parameters]
            hint = f"; it belongs to {', '.join(owners)}" if owners else ""
            hint = hint or did_you_mean(parameter, known, end="")
            args.usage_error(f"{name} has no parameter {parameter!r}{hint}")
    seed = {"random_state": 0} if "random_state" in known else {}
    options = seed | given_before | graph_options(args) | args.parameters
    if args.graph is not None and "affinity" not in known:
        args.usage_error(f"--graph: {name} is about points; choose a diffusion method")
    if args.graph is not None and options["affinity"] != "precomputed":
        args.usage_error("--affinity is about points, but INPUT is a graph; leave it out")
    if args.standardize and is_precomputed(options):
        args.usage_error("--standardize scales features, but INPUT is precomputed; leave it out")
    return options


def graph_options(args: Namespace, recorded: Any = None) -> dict[str, Any]:
    """Return the options that INPUT sets where it holds a graph, as given or else recorded."""
    is_graph = "graph" in reading(args, recorded)
    return {"filter": "heat", "affinity": "precomputed"} if is_graph else {}


def is_precomputed(options: dict[str, Any]) -> bool:
    """Say whether INPUT holds affinities or distances."""
    return "precomputed" in (options.get("affinity"), options.get("metric"))


def warn_of_units(options: dict[str, Any], table: io.Table) -> None:
    """Warn if one column decides all distances; the rest of the verb has the names of columns.

    That is also of methods that warn of nothing; what these say again is printed once.
    """
    feature_names.set(table.columns)
    if not is_precomputed(options) and options.get("metric", "euclidean") == "euclidean":
        warn_of_scales(table.values)


def size_of(args: Namespace, table: io.Table) -> str:
    """Say how many points or nodes a table has."""
    n, d = table.values.shape
    if args.graph is None:
        return f"{n:,} points, {d:,} features"
    return f"{n:,} nodes, {Graph(table.values).n_edges:,} edges"
