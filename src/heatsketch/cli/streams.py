"""heatsketch embed of a file larger than memory: a sample is fitted, all points are mapped."""

import argparse
from pathlib import Path
from typing import Any

from heatsketch import distributed, memory
from heatsketch.cli.arguments import integer_from
from heatsketch.cli.files import reading, warn_of_genes
from heatsketch.comparison.methods import ESTIMATORS
from heatsketch.distributed.stream import LEAST_POINTS, size
from heatsketch.io.blocks import Blocks
from heatsketch.io.formats import DEFAULT_KEY, suffix_of
from heatsketch.io.reading import Reading
from heatsketch.io.sources import (
    BLOCK_FORMATS,
    TEXT_SUFFIXES,
    conversion,
    open_blocks,
    parts_of,
)
from heatsketch.reports.summary import parameters, summary

_WHOLE_ONLY = (  # options that look at all points at once
    *("plot", "plot_time", "in_place", "pseudotime", "graph", "intervals"),
)
_READ_WHOLE_BYTES = 2**27  # smaller files are embedded whole unless a sample is asked for
_LEAST_SAMPLE = 20_000  # if memory holds fewer, it is too little, and that is said


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of files larger than memory."""
    add = command.add_argument_group("files larger than memory, and workers of Dask").add_argument
    fitted = "fit a uniform sample of so many points and map all others by it, block by block: for "
    fitted += (
        ".npy, .parquet, .h5ad, .zarr and folders of .npy or .parquet parts (default: as many "
    )
    fitted += "as fit in half of the memory)"
    add("--fit-points", type=integer_from(LEAST_POINTS), metavar="N", help=fitted)
    resume = "go on with a run by blocks, or of --whole-graph, that was killed, from the folder "
    resume += "OUTPUT.partial"
    add("--resume", action="store_true", help=resume)
    workers = "map the blocks by workers of Dask: local:N starts N processes on this machine; or "
    workers += "the address of a scheduler (tcp://HOST:PORT) whose workers share the folders of "
    workers += "INPUT and OUTPUT"
    add("--cluster", metavar="CLUSTER", help=workers)
    whole = "of --method heat-sketch: no sample, but the neighbour graph of all points, in tiles "
    whole += "that the workers of --cluster hold together (without it this process)"
    add("--whole-graph", action="store_true", help=whole)


def takes(args: argparse.Namespace, options: dict[str, Any]) -> bool:
    """Say whether points are read by blocks: a sample is asked for, or memory holds no more."""
    path = Path(args.input)
    named = {"resume": args.resume, "cluster": args.cluster, "fit-points": args.fit_points}
    named["whole-graph"] = args.whole_graph
    asked = [name for name, value in named.items() if value]
    is_folder = bool(parts_of(path))
    able = is_folder or (suffix_of(path) in BLOCK_FORMATS and path.exists())
    if not able or args.graph is not None or "precomputed" in options.values():
        if asked:
            kinds = ", ".join(BLOCK_FORMATS)
            hint = f"; {conversion(path)}" if _is_text(path) else "; leave it out"
            args.usage_error(f"--{asked[0]} is for points in {kinds} or a folder of parts{hint}")
        if _is_text(path) and _size(path) > memory.available():
            held = (
                f"{path} is text of {memory.in_words(_size(path))}, which is read whole, but only"
            )
            has = memory.in_words(memory.available())
            raise MemoryError(f"{held} {has} is available; {conversion(path)}")
        return False
    if is_folder or args.resume or args.cluster or args.whole_graph:
        return True
    if asked:
        return opened(args).n > args.fit_points
    if args.memory_budget is not None:  # what needs more is to be refused
        return False
    is_large = _size(path) >= _READ_WHOLE_BYTES
    return is_large and args.method in memory.PREDICTED_METHODS and _exceeds_memory(args, options)


def _exceeds_memory(args: argparse.Namespace, options: dict[str, Any]) -> bool:
    """Say whether memory holds a sample that is of use, but not all points."""
    try:
        points = opened(args)
    except (ValueError, ImportError):
        return False  # it is read whole, which has messages of its own
    fitted = size(points, ESTIMATORS[args.method](**options))
    return _LEAST_SAMPLE <= fitted < points.n


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _is_text(path: Path) -> bool:
    return suffix_of(path).startswith(TEXT_SUFFIXES) and path.is_file()


def opened(args: argparse.Namespace) -> Blocks:
    """Return INPUT by blocks."""
    return open_blocks(Path(args.input), Reading.of(**{"missing": "error"} | reading(args)))


def refuse_whole_only(args: argparse.Namespace) -> None:
    """End with a usage error for options that look at all points at once."""
    given = [name for name in _WHOLE_ONLY if getattr(args, name) not in (None, False)]
    if given:
        args.usage_error(
            f"--{given[0].replace('_', '-')} needs all points at once, but they are read by "
            "blocks; leave it out, or pass fewer points"
        )


def run(args: argparse.Namespace, options: dict[str, Any]) -> dict[str, str]:
    """Embed by blocks; return the lines of the summary."""
    refuse_whole_only(args)
    if suffix_of(args.input) == ".h5ad" and args.key is None:
        warn_of_genes(args.input, len(opened(args).columns))
    if args.whole_graph:
        return _run_whole(args, options)
    with memory.memory_budget(args.memory_budget):
        done = distributed.embed(
            args.input,
            args.output,
            ESTIMATORS[args.method](**options),
            fit_points=args.fit_points,
            resume=args.resume,
            force=args.force,
            model=args.save_model,
            output_key=args.output_key or DEFAULT_KEY,
            cluster=args.cluster,
            **reading(args),
        )
    d = done.estimator.n_features_in_
    return {
        "input": f"{args.input}: {done.n:,} points, {d:,} features, read by blocks",
        **({"changed": "; ".join(done.notes)} if done.notes else {}),
        "sample": done.describe(),
        "method": f"{args.method}, {parameters(done.estimator)}",
        **summary(done.estimator),
    }


def _run_whole(args: argparse.Namespace, options: dict[str, Any]) -> dict[str, str]:
    """Sketch all points in tiles; return the lines of the summary."""
    given = [name for name in ("fit_points", "save_model") if getattr(args, name)]
    if given:
        args.usage_error(
            f"--{given[0].replace('_', '-')} is for a sample, of which --whole-graph has none; "
            "leave out one of the two"
        )
    model = ESTIMATORS[args.method](**options)
    done = distributed.sketch(
        args.input,
        model,
        args.output,
        cluster=args.cluster,
        resume=args.resume,
        force=args.force,
        **reading(args),
    )
    facts = done.diagnostics
    names = ("components", "duplicates", "recall")
    return {
        "input": f"{args.input}: {done.n:,} points, in tiles",
        "graph": done.describe(),
        "method": f"{args.method}, {parameters(model)}",
        **{name: f"{facts[name]:.4g}" for name in names if name in facts},
    }
