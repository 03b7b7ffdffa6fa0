"""heatsketch score: measure how an embedding distorts the diffusion distance."""

from argparse import Namespace
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import issparse

import heatsketch as hs
from heatsketch import io
from heatsketch._messages import warn
from heatsketch.cli import common
from heatsketch.cli.common import coordinates
from heatsketch.cli.printing import print_json
from heatsketch.comparison.run import defaults, resolve_time
from heatsketch.estimators.heat_embedding import FREE_DIMENSIONS, FREE_TIME
from heatsketch.io.metadata import Record, read_metadata
from heatsketch.markov.rows import leading_pairs
from heatsketch.metrics.distances import DiffusionDistances
from heatsketch.metrics.distortions import distortion_from
from heatsketch.neighbors.missing import Donors
from heatsketch.reports.facts import kept
from heatsketch.spectral.filters import FILTERS

# The distances depend on these; other parameters control how they are approximated.
_OF_THE_DISTANCE = (
    *("filter", "metric", "affinity", "epsilon", "n_neighbors", "normalization", "alpha", "cut"),
    *("tol", "max_iter", "time"),
)


def run(args: Namespace) -> dict[str, str] | None:
    """Compare the distances of the embedding with the diffusion distances of the points."""
    common.parameters(args, (*_OF_THE_DISTANCE, "random_state"), "the distance")
    made = None if args.made is None else read_metadata(args.made)
    asked = {"ids": args.ids or (), "coordinates": args.coordinates or ()}
    embedding = io.formats.read_embedding(args.embedding, args.embedding_key, made, **asked)
    record = Record(embedding.metadata)
    table = common.read_points(args, record.reading)
    F, shown = coordinates(args, table, embedding)
    _warn_of_other_points(args, record, table)
    options, seed, whence = _wanted(args, record, F.shape[1])
    filter, asked = options["filter"], options["time"]
    time = asked if asked == "auto" else FILTERS[filter].check_time(asked, whole=True)
    common.warn_of_units(options, table)
    precomputed = options.get("affinity") == "precomputed"
    make: Any = hs.Diffusion.from_affinity if precomputed else hs.Diffusion.from_points
    known = {name: options[name] for name in defaults(make) if name in options}
    points, notes = table.values, list(table.notes)
    if not precomputed and not issparse(points) and np.isnan(points).any():  # as in a fit
        donors = Donors.of(points, known.get("n_neighbors", defaults(make)["n_neighbors"]))
        points = donors.fill(points)
        notes.append("gaps filled by the nearest rows, as embed does")
    diffusion = make(points, **known)
    leading = cache(leading_pairs)  # the choice of the time and the distances need the same
    time = resolve_time(diffusion, time, filter=filter, leading=leading)
    wanted = DiffusionDistances.from_operator(
        diffusion, time, filter, within_components=True, leading=leading
    )
    result = distortion_from(F, wanted, args.pairs, seed)
    if args.json:
        facts = {"time": time, "time_from": whence, "filter": filter, "random_state": seed}
        print_json(facts | {"distances": kept(result)} | result._asdict())
        return None
    names = common.names_of(args, table)
    worst = (result.worst_pairs[end][0] for end in ("expansion", "contraction"))
    stretched, shrunk = (f"{names[i]} and {names[j]}" for i, j in worst)
    quantiles = ", ".join(f"{level}: {ratio:.3g}" for level, ratio in result.quantiles.items())
    return {
        "changed": "; ".join(notes),
        "embedding": shown,
        "time": f"{time:g} ({whence})",
        "pairs": f"{result.n_pairs:,}: {result.looked_at} (seed {seed})",
        "distances": kept(result),
        "log L": f"{result.log_L:.4g}",
        "expansion": f"{result.expansion:.4g} (points {stretched})",
        "contraction": f"{result.contraction:.4g} (points {shrunk})",
        "quantiles": f"{quantiles} (of the ratio of distances, over its median)",
    }


def _wanted(args: Namespace, record: Record, k: int) -> tuple[dict[str, Any], Any, str]:
    """Return the options of the distances, a seed, and words for where the time comes from.

    Options that are given count before those recorded for the embedding.
    """
    recorded = common.graph_options(common.reading(args, record.reading))
    if "affinity" in record.parameters:  # a method with a diffusion
        chosen = record.parameters
        recorded |= {name: chosen[name] for name in _OF_THE_DISTANCE if name in chosen}
    if isinstance(recorded.get("time"), list):
        times = len(recorded["time"])
        raise ValueError(f"The embedding has coordinates of {times} times; embed at one time.")
    given = dict(args.parameters)
    seed = given.pop("random_state", 0)
    other = {name: x for name, x in given.items() if recorded.get(name, x) != x}
    if other:
        words = ", ".join(f"{name} {x} instead of {recorded[name]}" for name, x in other.items())
        warn(UserWarning, f"{args.embedding} was made for other distances: {words}.")
    is_told = "time" in recorded | given
    free = FREE_TIME if k in FREE_DIMENSIONS else "auto"
    options = {"filter": "accumulated", "time": free} | recorded | given
    if options["time"] == 0 and "time" not in given:
        raise ValueError(
            f"{args.embedding} was made at time 0, when all points are equally far; pass --time."
        )
    whence = "given" if "time" in given else "recorded in the file of the embedding"
    if not is_told:
        whence = "that of heat-embedding in 2 and 3 dimensions"
    if options["time"] == "auto":
        whence = "chosen as a linear heat-embedding does"
    return options, seed, whence


def _warn_of_other_points(args: Namespace, record: Record, table: io.Table) -> None:
    """Warn if the embedding, or the model that mapped it, was made from other points."""
    data, n = io.data_hash(table.values), table.values.shape[0]
    if not record.may_be_of(data):
        text = f"{args.embedding} was made from other numbers than those in {args.input}"
        warn(UserWarning, f"{text}; pass the file it was made from.")
    if not record.model.may_be_of(data):
        points = f"{record.model.metadata.get('n', 0):,} points (others, or a sample)"
        text = f"was mapped by a model of {points}. Its distances are those of walks among these"
        walks = f"the walks compared here are among the {n:,} points of {args.input}"
        warn(UserWarning, f"{args.embedding} {text}; {walks}.")
