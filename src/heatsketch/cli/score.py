"""heatsketch score: measure how an embedding distorts the diffusion distance."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import heatsketch as hs
from heatsketch import io
from heatsketch.cli.arguments import add_diffusion, number, or_rule, positive
from heatsketch.cli.files import (
    add_graph,
    add_input,
    add_json,
    graph_options,
    read_input,
    warn_of_units,
)
from heatsketch.cli.points import names_of
from heatsketch.cli.provenance import (
    as_written,
    distance_options,
    merged,
    recorded_reading,
    warn_of_model,
    warn_of_other_points,
)
from heatsketch.cli.reporting import print_json, print_lines
from heatsketch.comparison.methods import defaults
from heatsketch.comparison.times import checked_time, chosen_time
from heatsketch.reports.summary import kept


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "score", help="measure how an embedding distorts the diffusion distance"
    )
    add_graph(add_input(command))
    add = command.add_argument
    add("embedding", metavar="EMBEDDING", help="file of coordinates, with the rows of INPUT")
    add("--embedding-key", metavar="KEY", help="array of EMBEDDING to read (.npz, .h5ad)")
    time = "diffusion time (default: as recorded in EMBEDDING, else auto: as heat-embedding does)"
    add("--time", type=or_rule(number), metavar="T", default=argparse.SUPPRESS, help=time)
    add_diffusion(command, of="heat-embedding")
    add(
        "--pairs",
        type=positive,
        metavar="N",
        help="number of random pairs beyond 2,048 points, up to which all pairs count",
    )
    add_json(command)
    return command


def run(args: argparse.Namespace) -> None:
    """Compare the distances of the embedding with the diffusion distances of the points."""
    embedding = io.formats.read_embedding(args.embedding, args.embedding_key)
    how = recorded_reading(embedding.metadata)
    table = read_input(args, how)
    embedding = _coordinates(args, table, embedding)
    file, F = args.embedding, embedding.values
    warn_of_other_points(embedding.metadata, table.values, file, args.input)
    warn_of_model(embedding.metadata, table.values, file, args.input)
    of_graph = graph_options(args, how)
    recorded = of_graph | distance_options(embedding.metadata)
    options = merged(recorded, _given(args), file)
    filter, asked = options.get("filter", "power"), options.get("time", "auto")
    if asked == 0 and recorded.get("time") == 0 and not hasattr(args, "time"):
        raise ValueError(
            f"{file} was made at time 0, before any diffusion, when all points are equally far "
            "whatever the data; pass --time with that of the distances to compare with."
        )
    time = checked_time(asked, filter)
    warn_of_units(options, table)
    diffusion = _diffusion(options, table)
    time = chosen_time(diffusion, time, filter=filter)
    result = hs.metrics.diffusion_distortion(
        F, diffusion, time, filter=filter, n_pairs=args.pairs, rng=args.random_state
    )
    known = "given" if hasattr(args, "time") else "recorded in the file of the embedding"
    facts = {
        "time": time,
        "time_from": "chosen as heat-embedding does" if asked == "auto" else known,
        "filter": filter,
        "log_L": result.log_L,
        "expansion": result.expansion,
        "contraction": result.contraction,
        "distances": kept(result),
        "quantiles": result.quantiles,
        "within": result.within,
        "worst_factor": result.worst_factor,
        "worst_pairs": result.worst_pairs,
        "pairs": result.n_pairs,
        "all_pairs": result.looked_at == "all pairs",
        "looked_at": result.looked_at,
        "random_state": args.random_state,
    }
    print_json(facts) if args.json else _print_score(facts, names_of(args, table))


def _coordinates(args: argparse.Namespace, table: io.Table, embedding: io.Table) -> io.Table:
    """Keep the coordinates (n, k): the columns of the file that are not columns of the input."""
    columns = [j for j, name in enumerate(embedding.columns) if name not in table.extra]
    F, n = embedding.values[:, columns], table.values.shape[0]
    if F.shape[0] != n:
        raise ValueError(
            f"{args.embedding} has {F.shape[0]:,} rows but {args.input} has {n:,}; pass the "
            "embedding of these points."
        )
    F = F.toarray() if hasattr(F, "toarray") else np.asarray(F)
    return replace(embedding, values=as_written(F, embedding.metadata))


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the distance that were given."""
    names = {*defaults(hs.Diffusion.from_points), "time", "filter"}
    return {name: value for name, value in vars(args).items() if name in names}


def _diffusion(options: dict[str, Any], table: io.Table) -> hs.Diffusion:
    precomputed = options.get("affinity") == "precomputed"
    make: Callable[..., Any] = (
        hs.Diffusion.from_affinity if precomputed else hs.Diffusion.from_points
    )
    known = {name: options[name] for name in defaults(make) if name in options}
    diffusion: hs.Diffusion = make(table.values, **known)
    return diffusion


def _print_score(facts: dict[str, Any], names: list[str]) -> None:
    looked_at = f"{facts['pairs']:,} pairs among all {len(names):,} points"
    if not facts["all_pairs"]:
        looked_at = f"{facts['looked_at']} (seed {facts['random_state']})"
    quantiles = ", ".join(f"{level}: {ratio:.3g}" for level, ratio in facts["quantiles"].items())
    worst = (facts["worst_pairs"][end][0] for end in ("expansion", "contraction"))
    stretched, shrunk = (f"{names[i]} and {names[j]}" for i, j in worst)
    print_lines(
        {
            "time": f"{facts['time']:g} ({facts['time_from']})",
            "pairs": looked_at,
            "distances": facts["distances"],
            "log L": f"{facts['log_L']:.4g}",
            "expansion": f"{facts['expansion']:.4g} (points {stretched})",
            "contraction": f"{facts['contraction']:.4g} (points {shrunk})",
            "quantiles": f"{quantiles} (of the ratio of distances, over its median)",
        }
    )
