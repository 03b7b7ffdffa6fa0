"""heatsketch score: measure how an embedding distorts the diffusion distance."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import heatsketch as hs
from heatsketch import io
from heatsketch.cli.arguments import add_diffusion, number, positive
from heatsketch.cli.files import add_input, read_input
from heatsketch.cli.reporting import print_json, print_lines
from heatsketch.comparison.methods import defaults


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "score", help="measure how an embedding distorts the diffusion distance"
    )
    add_input(command)
    add = command.add_argument
    add("embedding", metavar="EMBEDDING", help="file of coordinates, with the rows of INPUT")
    add("--embedding-key", metavar="KEY", help="array of EMBEDDING to read (.npz, .h5ad)")
    add("--time", type=number, metavar="T", default=argparse.SUPPRESS, help="diffusion time")
    add_diffusion(command)
    add(
        "--pairs",
        type=positive,
        metavar="N",
        help="use N random pairs, and extreme ones, instead of all",
    )
    add("--json", action="store_true", help="print the result as JSON")
    return command


def run(args: argparse.Namespace) -> None:
    """Compare the distances of the embedding with the diffusion distances of the points."""
    table = read_input(args)
    F = _read_embedding(args, table)
    A = _diffusion(args, table)
    given = {name: getattr(args, name) for name in ("time", "filter") if hasattr(args, name)}
    result = hs.metrics.diffusion_distortion(
        F, A, n_pairs=args.pairs, rng=args.random_state, **given
    )
    facts = {
        "log_L": result.log_L,
        "expansion": result.expansion,
        "contraction": result.contraction,
        "distances": result.describe().removeprefix("distances "),
        "quantiles": result.quantiles,
        "worst_pairs": result.worst_pairs,
        "pairs": result.n_pairs,
        "all_pairs": result.looked_at == "all pairs",
        "looked_at": result.looked_at,
        "random_state": args.random_state,
    }
    print_json(facts) if args.json else _print_score(facts, len(F))


def _read_embedding(args: argparse.Namespace, table: io.Table) -> Any:
    """Read the coordinates (n, k): the columns of the file that are not columns of the input."""
    key = args.embedding_key
    if key is None and Path(args.embedding).suffix.lower() == ".h5ad":
        key = defaults(io.write_table)["key"]
    embedding = io.read_table(args.embedding, key=key)
    kept = [j for j, name in enumerate(embedding.columns) if name not in table.extra]
    F, n = embedding.values[:, kept], table.values.shape[0]
    if F.shape[0] != n:
        raise ValueError(
            f"{args.embedding} has {F.shape[0]:,} rows but {args.input} has {n:,}; pass the "
            "embedding of these points."
        )
    return F.toarray() if hasattr(F, "toarray") else np.asarray(F)


def _diffusion(args: argparse.Namespace, table: io.Table) -> hs.Diffusion:
    given = {name: value for name, value in vars(args).items() if name != "random_state"}
    precomputed = given.get("affinity") == "precomputed"
    make: Callable[..., Any] = (
        hs.Diffusion.from_affinity if precomputed else hs.Diffusion.from_points
    )
    options = {name: given[name] for name in defaults(make) if name in given}
    diffusion: hs.Diffusion = make(table.values, **options)
    return diffusion


def _print_score(facts: dict[str, Any], n: int) -> None:
    looked_at = f"{facts['pairs']:,} pairs among all {n:,} points"
    if not facts["all_pairs"]:
        looked_at = f"{facts['looked_at']} (seed {facts['random_state']})"
    quantiles = ", ".join(f"{level}: {ratio:.3g}" for level, ratio in facts["quantiles"].items())
    stretched, shrunk = (facts["worst_pairs"][end][0] for end in ("expansion", "contraction"))
    print_lines(
        {
            "pairs": looked_at,
            "distances": facts["distances"],
            "log L": f"{facts['log_L']:.4g}",
            "expansion": f"{facts['expansion']:.4g} (points {stretched[0]} and {stretched[1]})",
            "contraction": f"{facts['contraction']:.4g} (points {shrunk[0]} and {shrunk[1]})",
            "quantiles": f"{quantiles} (of the ratio of distances, over its median)",
        }
    )
