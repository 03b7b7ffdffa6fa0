"""heatsketch score: measure how an embedding distorts the diffusion distance."""

import warnings
from argparse import Namespace
from typing import Any

import numpy as np

import heatsketch as hs
from heatsketch import io
from heatsketch._typing import Array
from heatsketch.cli.fitting import graph_options, parameters, warn_of_units
from heatsketch.cli.printing import print_json, print_lines
from heatsketch.cli.tables import names_of, read_input
from heatsketch.comparison.methods import checked_time, chosen_time, defaults
from heatsketch.io.metadata import read_metadata
from heatsketch.reports.summary import distortion_lines, kept

# What the distances depend on; other parameters say how they are approximated.
_OF_THE_DISTANCE = (
    *("filter", "metric", "affinity", "epsilon", "n_neighbors", "normalization", "alpha", "cut"),
    *("tol", "max_iter"),
)
_IN_JSON = ("log_L", "expansion", "contraction", "quantiles", "within", "worst_factor")


def run(args: Namespace) -> None:
    """Compare the distances of the embedding with the diffusion distances of the points."""
    parameters(args, (*_OF_THE_DISTANCE, "time", "random_state"), "the distance")
    made = None if args.metadata is None else read_metadata(args.metadata)
    embedding = io.formats.read_embedding(args.embedding, args.embedding_key, made)
    model = embedding.metadata.get("model")  # that has mapped the points, if one has
    model = model if isinstance(model, dict) else {}
    how = embedding.metadata.get("reading") or model.get("reading")
    table = read_input(args, how)
    F = _coordinates(args, table, embedding)
    _warn_of_other_points(args, embedding.metadata, model, table)
    made = embedding.metadata if "parameters" in embedding.metadata else model
    recorded = graph_options(args, how) | _recorded(made)
    given = dict(args.parameters)
    seed = given.pop("random_state", 0)
    _warn_of_other_distances(args, recorded, given)
    options = recorded | given
    filter, asked = options.get("filter", "accumulated"), options.get("time", "auto")
    if asked == 0 and "time" not in given:
        raise ValueError(
            f"{args.embedding} was made at time 0, before any diffusion, when all points are "
            "equally far whatever the data; pass --time with that of the distances to compare with."
        )
    time = checked_time(asked, filter)
    warn_of_units(options, table)
    precomputed = options.get("affinity") == "precomputed"
    make: Any = hs.Diffusion.from_affinity if precomputed else hs.Diffusion.from_points
    known = {name: options[name] for name in defaults(make) if name in options}
    diffusion = make(table.values, **known)
    time = chosen_time(diffusion, time, filter=filter)
    result = hs.metrics.diffusion_distortion(
        F, diffusion, time, filter=filter, n_pairs=args.pairs, rng=seed
    )
    whence = "given" if "time" in given else "recorded in the file of the embedding"
    whence = "chosen as heat-embedding does" if asked == "auto" else whence
    all_pairs = result.looked_at == "all pairs"
    if args.json:
        facts = {name: getattr(result, name) for name in (*_IN_JSON, "worst_pairs", "looked_at")}
        facts |= {"time": time, "time_from": whence, "filter": filter, "distances": kept(result)}
        facts |= {"pairs": result.n_pairs, "all_pairs": all_pairs, "random_state": seed}
        print_json(facts)
        return
    points = names_of(args, table)
    pairs = f"{result.looked_at} (seed {seed})"
    if all_pairs:
        pairs = f"{result.n_pairs:,} pairs among all {len(points):,} points"
    lines = {"time": f"{time:g} ({whence})", "pairs": pairs}
    print_lines(lines | distortion_lines(result, points))


def _coordinates(args: Namespace, table: io.Table, embedding: io.Table) -> Array:
    """Return the coordinates (n, k): the columns of the file that are not columns of the input."""
    columns = [j for j, name in enumerate(embedding.columns) if name not in table.extra]
    F, n = embedding.values[:, columns], table.values.shape[0]
    if F.shape[0] != n:
        raise ValueError(
            f"{args.embedding} has {F.shape[0]:,} rows but {args.input} has {n:,}; pass the "
            "embedding of these points."
        )
    F = F.toarray() if hasattr(F, "toarray") else np.asarray(F)
    single = embedding.metadata.get("dtype") == "float32"  # which text says shorter
    return F.astype(np.float32) if single else F


def _recorded(made: dict[str, Any]) -> dict[str, Any]:
    """Return time and parameters of the distance that an embedding was made to keep.

    Empty for files that do not say, and for methods that have no diffusion on points.
    """
    parameters = made.get("parameters")
    if not isinstance(parameters, dict) or "affinity" not in parameters:
        return {}
    time = made.get("time", parameters.get("time"))
    if isinstance(time, list):
        raise ValueError(
            f"The embedding has the coordinates of {len(time)} times side by side; embed the "
            "points at one time."
        )
    known = {name: parameters[name] for name in _OF_THE_DISTANCE if name in parameters}
    return known | {"time": time}


def _warn_of_other_distances(
    args: Namespace, recorded: dict[str, Any], given: dict[str, Any]
) -> None:
    differing = [
        f"{name} {value} instead of {recorded[name]}"
        for name, value in given.items()
        if recorded.get(name, value) != value
    ]
    if differing:
        warnings.warn(
            f"{args.embedding} was made with other parameters: {', '.join(differing)}. What "
            "follows is about distances that it was not made to keep.",
            stacklevel=2,
        )


def _warn_of_other_points(
    args: Namespace, metadata: dict[str, Any], model: dict[str, Any], table: io.Table
) -> None:
    """Warn if the embedding is one of other points, or a model has mapped it that knew others."""
    data, said = io.data_hash(table.values), []
    if metadata.get("data", data) != data:
        said.append(f"was not made from the numbers in {args.input}; pass the same points.")
    if model.get("data", data) != data:
        said.append(
            f"was mapped by a model of {model.get('n', 0):,} points (others, or a sample), and "
            "keeps the distances of walks among these; what follows compares with walks among the "
            f"{table.values.shape[0]:,} points of {args.input}."
        )
    for words in said:
        warnings.warn(f"{args.embedding} {words}", stacklevel=2)
