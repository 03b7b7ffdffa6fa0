"""heatsketch embed of a file larger than memory: a sample is fitted, all points are mapped."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from heatsketch import distributed
from heatsketch.cli.common import reading
from heatsketch.distributed.sample import size
from heatsketch.io.files import suffix_of
from heatsketch.io.formats import BLOCK_FORMATS, open_blocks, parts_of
from heatsketch.io.metadata import write_metadata
from heatsketch.io.table import Reading
from heatsketch.reports.summary import parameters, summary

_READ_WHOLE_BYTES = 2**27  # smaller files are embedded whole unless a sample is asked for
_SAMPLED = ("heat-embedding", "heat-sketch", "diffusion-map", "mixture-diffusion")  # unasked
_LEAST_SAMPLE = 20_000  # if memory holds fewer, it is too little, and that is said


def takes(args: Namespace, estimator: Any) -> bool:
    """Say whether points are read by blocks: a sample is asked for, or memory holds no more."""
    path = Path(args.input)
    is_folder = bool(parts_of(path))
    able = is_folder or (suffix_of(path) in BLOCK_FORMATS and path.exists())
    if not able or "precomputed" in estimator.get_params().values():
        for option in ("resume", "cluster", "fit-points"):
            if getattr(args, option.replace("-", "_")) is not None:
                kinds = ", ".join(BLOCK_FORMATS)
                args.usage_error(f"--{option} is for points in {kinds} or a folder of parts")
        return False
    if is_folder or args.resume or args.cluster:
        return True
    how = Reading(**{"missing": "error"} | reading(args))
    if args.fit_points is not None:
        return open_blocks(path, how).n > args.fit_points
    files = path.rglob("*") if path.is_dir() else [path]
    few = sum(file.stat().st_size for file in files) < _READ_WHOLE_BYTES
    if few or args.method not in _SAMPLED:
        return False
    try:
        points = open_blocks(path, how)
        return _LEAST_SAMPLE <= size(points, estimator) < points.n
    except (ValueError, ImportError):
        return False  # it is read whole, which has messages of its own


def run(args: Namespace, estimator: Any) -> dict[str, str]:
    """Embed by blocks; return the lines of the summary."""
    for option in ("plot", "in-place", "pseudotime", "intervals"):
        if getattr(args, option.replace("-", "_")) is not None:
            args.usage_error(f"--{option} needs all points at once, but they are read by blocks")
    done = distributed.embed(
        args.input,
        args.output,
        estimator,
        fit_points=args.fit_points,
        resume=bool(args.resume),
        force=args.force,
        model=args.save_model,
        output_key=args.output_key,
        cluster=args.cluster,
        **reading(args),
    )
    if args.metadata is not None:
        write_metadata(args.metadata, done.metadata, force=args.force)
    d = done.estimator.n_features_in_
    return {
        "input": f"{args.input}: {done.n:,} points, {d:,} features, read by blocks",
        "changed": "; ".join(done.notes),
        "sample": done.describe(),
        "method": f"{args.method}, {parameters(done.estimator)}",
        **summary(done.estimator),
    }
