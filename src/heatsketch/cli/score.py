"""heatsketch score: measure how an embedding distorts the diffusion distance."""

import warnings
from argparse import Namespace
from typing import Any

import heatsketch as hs
from heatsketch import io
from heatsketch.cli import inputs
from heatsketch.cli.printing import print_json, print_summary
from heatsketch.comparison.methods import checked_time, chosen_time, defaults
from heatsketch.io.metadata import read_metadata
from heatsketch.reports.summary import distortion_lines, kept
from heatsketch.spectral.cache import caching

# What the distances depend on; other parameters say how they are approximated.
_OF_THE_DISTANCE = (
    *("filter", "metric", "affinity", "epsilon", "n_neighbors", "normalization", "alpha", "cut"),
    *("tol", "max_iter"),
)


@caching()
def run(args: Namespace) -> None:
    """Compare the distances of the embedding with the diffusion distances of the points."""
    inputs.parameters(args, (*_OF_THE_DISTANCE, "time", "random_state"), "the distance")
    made = None if args.made is None else read_metadata(args.made)
    embedding = io.formats.read_embedding(args.embedding, args.embedding_key, made)
    metadata = embedding.metadata
    model = metadata.get("model")  # that has mapped the points, if one has
    model = model if isinstance(model, dict) else {}
    how = metadata.get("reading") or model.get("reading")
    table = inputs.read_points(args, how)
    F = inputs.coordinates(args, table, embedding)
    _warn_of_other_points(args, metadata, model, table)
    made = metadata if "parameters" in metadata else model
    recorded = inputs.graph_options(inputs.reading(args, how)) | _recorded(made)
    given = dict(args.parameters)
    seed = given.pop("random_state", 0)
    other = {name: x for name, x in given.items() if recorded.get(name, x) != x}
    if other:
        words = ", ".join(f"{name} {x} instead of {recorded[name]}" for name, x in other.items())
        warnings.warn(f"{args.embedding} was made for other distances: {words}.", stacklevel=2)
    options = {"filter": "accumulated", "time": "auto"} | recorded | given
    filter, asked = options["filter"], options["time"]
    if asked == 0 and "time" not in given:
        raise ValueError(
            f"{args.embedding} was made at time 0, when all points are equally far; pass --time."
        )
    time = checked_time(asked, filter)
    inputs.warn_of_units(options, table)
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
        facts = {"time": time, "time_from": whence, "filter": filter, "distances": kept(result)}
        facts |= {"pairs": result.n_pairs, "all_pairs": all_pairs, "random_state": seed}
        print_json(facts | result._asdict())
        return
    points = inputs.names_of(args, table)
    pairs = f"{result.looked_at} (seed {seed})"
    if all_pairs:
        pairs = f"{result.n_pairs:,} pairs among all {len(points):,} points"
    lines = {"time": f"{time:g} ({whence})", "pairs": pairs}
    print_summary(args, lines | distortion_lines(result, points))


def _recorded(made: dict[str, Any]) -> dict[str, Any]:
    """Return time and parameters of the distance that an embedding was made to keep.

    Empty for files that do not say, and for methods that have no diffusion on points.
    """
    parameters = made.get("parameters")
    if not isinstance(parameters, dict) or "affinity" not in parameters:
        return {}
    time = made.get("time", parameters.get("time"))
    if isinstance(time, list):
        raise ValueError(f"The embedding has coordinates of {len(time)} times; embed at one time.")
    known = {name: parameters[name] for name in _OF_THE_DISTANCE if name in parameters}
    return known | {"time": time}


def _warn_of_other_points(
    args: Namespace, metadata: dict[str, Any], model: dict[str, Any], table: io.Table
) -> None:
    """Warn if the embedding is one of other points, or a model has mapped it that knew others."""
    data, n = io.data_hash(table.values), table.values.shape[0]
    if metadata.get("data", data) != data:
        text = f"{args.embedding} was not made from the numbers in {args.input}; pass these."
        warnings.warn(text, stacklevel=2)
    if model.get("data", data) != data:
        by = f"a model of {model.get('n', 0):,} points (others, or a sample)"
        text = f"was mapped by {by}, and keeps distances of walks among these, not among the {n:,}"
        warnings.warn(f"{args.embedding} {text} points of {args.input}.", stacklevel=2)
