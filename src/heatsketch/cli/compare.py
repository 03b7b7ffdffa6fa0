"""heatsketch compare: methods on the same points, or the diffusions on two files of points."""

from argparse import Namespace
from mimetypes import guess_type
from pathlib import Path
from typing import Any

import numpy as np

import heatsketch as hs
from heatsketch import io, plot
from heatsketch.cli import common
from heatsketch.cli.common import WITH_OBSM, read_picture, shared_ids, warn_of_order
from heatsketch.comparison.run import DEFAULT_METHODS, ESTIMATORS, FILES, OTHERS, defaults, fitting
from heatsketch.io.files import suffix_of
from heatsketch.io.formats import FORMATS
from heatsketch.plot.pictures import SUFFIXES
from heatsketch.uncertainty import sample_discrepancy


def run(args: Namespace) -> dict[str, str]:
    """Compare methods, or the data of two files."""
    return (_compare_methods if args.other is None else _compare_data)(args)


def _compare_methods(args: Namespace) -> dict[str, str]:
    """Compare the methods, write a sheet or a folder, print the table."""
    if args.same_rows:
        args.usage_error("--same-rows compares two files; pass the other one, too")
    names = [name for part in args.methods or [DEFAULT_METHODS] for name in part]
    pictures = [name for name in names if _is_picture(args, name)]
    plain = [name for name in names if name not in pictures and "." not in name]
    common.check_methods(args, plain, *OTHERS, "all")
    options = common.parameters(args, defaults(hs.compare), "compare")
    output = args.output
    if output is None:
        args.usage_error("the following arguments are required: -o/--output PATH")
    is_image = (guess_type(output.name)[0] or "").startswith("image/")  # of whatever format
    is_sheet = is_image or suffix_of(output) in SUFFIXES
    plot.check_picture(None)
    if is_sheet:
        common.check_files(args, *SUFFIXES)
    elif output.is_file():
        raise NotADirectoryError(f"{output} is a file; name a folder, or a .png, .pdf or .svg.")
    existing = ", ".join(name for name in FILES if (output / name).exists())
    if existing and not args.force:
        raise FileExistsError(f"{output} already has {existing}; pass --force to replace them.")
    table = common.read_points(args)
    common.warn_of_units({}, table)
    label = None if table.label is None else table.extra[table.label]
    methods: dict[str, Any] = {}
    for name in names:
        if name in pictures:
            short = Path(name).stem
            taken = short in methods or short in names
            methods[name if taken else short] = read_picture(args, table, name)[0]
        elif name == "all":
            n_classes = len(set(common.groups_of(table)) - {None})
            methods |= {one: one for one in fitting(table.values.shape[0], n_classes)}
        else:
            methods[name] = name
    seeds = (1 if is_sheet else 2) if args.seeds is None else args.seeds
    result = hs.compare(table.values, methods, label, seeds=seeds, **options)
    print(result, end="\n\n")
    (result.plot if is_sheet else result.write)(output, whole=args.whole)
    if not result.embeddings:
        raise ValueError(f"no method computed an embedding; {output} says why.")
    written = output if is_sheet else f"{output}: {', '.join(FILES)}"
    return {"changed": "; ".join(table.notes), "written": str(written)}


def _is_picture(args: Namespace, name: str) -> bool:
    """Say whether a name among the methods is that of a file, or of an entry of obsm of INPUT."""
    if name in (*ESTIMATORS, *OTHERS, "all"):
        return False
    is_file = Path(name).exists() or suffix_of(name) in FORMATS
    return is_file or ("." not in name and suffix_of(args.input) in WITH_OBSM)


def _compare_data(args: Namespace) -> dict[str, str]:
    """Compare the files, write the discrepancy of each point, return the summary."""
    if args.methods or args.seeds is not None or args.whole:
        args.usage_error("--methods, --seeds and --whole compare methods; leave out OTHER")
    if args.same_rows and args.missing == "drop":
        args.usage_error(
            "--missing drop leaves other rows out of each file; with --same-rows pass "
            "--missing median, or name ids with --id"
        )
    sizes = {"time": 8, "n_components": 256}
    options = common.parameters(args, defaults(hs.HeatSketch), "heat-sketch", **sizes)
    if np.size(options["time"]) > 1:
        args.usage_error(f"--time has {np.size(options['time'])} times; pass one")
    common.check_files(args, *common.ROW_SUFFIXES)
    first = common.read_points(args)
    tables = first, _read_other(args, first)
    shared = shared_ids(args, *tables)
    ids = [[], []] if shared is None else [shared.first, shared.second]
    names = [common.names_of(args, table) for table in tables]
    how = {name: options[name] for name in sizes} | {"rng": options["random_state"]}
    of_diffusion = defaults(hs.Diffusion.from_points)
    diffusion = {name: x for name, x in options.items() if name in of_diffusion}
    if args.same_rows:
        warn_of_order(args, *tables)
    if args.same_rows or len(set(ids[0]) & set(ids[1])) > 1:
        models = [
            hs.HeatSketch(1, 1, random_state=0, **diffusion).fit(table.values, ids=own)
            for table, own in zip(tables, (None, None) if args.same_rows else ids, strict=True)
        ]
        how["filter"] = options.get("filter", "power")
        found: Any = hs.diffusion_discrepancy(*models, **how)
        matched, shown = "by their rows", np.array(names[0])
        if found.ids is not None:
            lost, shown = [len(own) - len(found.ids) for own in ids], found.ids
            matched = f"by their ids; {lost[0]:,} and {lost[1]:,} points are in one file only"
        most = ", ".join(shown[np.argsort(-found.per_point)[:5]])
        lines = {"matched": matched, "most at": most}
        cells: list[Any] = [("id", "discrepancy", "low", "high")]
        ends = np.transpose(found.point_interval(args.level))
        cells += [(i, *(f"{x:.6g}" for x in row)) for i, row in zip(shown, ends, strict=True)]
    else:
        if "filter" in options or "precomputed" in options.values():
            args.usage_error("--filter and affinities need the same points: ids, or --same-rows")
        X, Z = (table.values for table in tables)
        found = sample_discrepancy(X, Z, **how, **diffusion)
        lines = {"matched": "not (no common ids); p is for independent points of one distribution"}
        cells = [("file", "id", "discrepancy")]
        for table, own, each in zip(tables, names, found.per_point, strict=True):
            cells += [(table.source, i, f"{x:.6g}") for i, x in zip(own, each, strict=True)]
    if args.output is not None:
        io.files.write_rows(args.output, cells, force=args.force)
    lines["changed"] = "; ".join(f"{table.source}: {n}" for table in tables for n in table.notes)
    return lines | {"discrepancy": found.describe(args.level).removeprefix("discrepancy ")}


def _read_other(args: Namespace, first: io.Table) -> io.Table:
    """Read OTHER in the units of INPUT: in its own units a shift of all points would vanish."""
    second = common.read_points(Namespace(**vars(args) | {"input": args.other}))
    if args.graph is None and {*first.columns} != {*second.columns}:
        raise ValueError(
            f"{first.source} and {second.source} have different features; name those of both with "
            "--features."
        )
    same_order = args.graph is not None or first.columns == second.columns
    if same_order and not args.standardize and args.missing != "median":
        return second
    return common.read_as(args, args.other, first.learned)
