"""heatsketch markers: the features that distinguish the points with a label from others."""

import re
from argparse import Namespace
from contextlib import suppress

import numpy as np

from heatsketch._checks import feature_names
from heatsketch.cli import common
from heatsketch.cli.common import WITH_OBSM
from heatsketch.io.files import PIPE, suffix_of, write_rows
from heatsketch.io.formats import FORMATS
from heatsketch.io.table import Table, in_units_of_source
from heatsketch.metrics.markers import having, markers


def run(args: Namespace) -> dict[str, str]:
    """Compare the groups, write or print a row for each feature, return the summary."""
    common.check_files(args, *common.ROW_SUFFIXES, PIPE)
    args.missing = "keep"  # gaps are left out, feature by feature
    if suffix_of(args.input) in WITH_OBSM:  # genes, not components
        args.read.setdefault("key", "X")
    table = _read(args)
    values = in_units_of_source(table)
    feature_names.set(table.columns)
    groups = common.groups_of(table)
    known = sorted({str(group) for group in groups.tolist() if group is not None})
    if table.label is None or len(known) < 2:
        raise ValueError(f"{args.input} has no column of labels with two groups; pass --label.")
    turns = [[group] for group in known] if args.group is None else [args.group]
    against = None if args.against is None else having(groups, args.against, table.label)
    labelled = np.array([group is not None for group in groups.tolist()])
    header = None
    rows, sizes = [], []
    for turn in turns:
        inside = having(groups, turn, table.label)
        others = labelled & ~inside if against is None else against
        if args.group is None and against is not None and (inside & others).any():
            continue  # those that the others are compared with
        found = markers(values, inside, others, names=table.columns)
        columns = found.columns()
        header = ["group", *columns]
        name = "+".join(turn)
        cells = zip(*(column.tolist() for column in columns.values()), strict=True)
        for feature, *numbers in cells:
            rows.append((name, feature, *(f"{x:.6g}" for x in numbers)))
        sizes.append(f"{name} ({found.n_selected:,} against {found.n_against:,})")
    if header is None:
        raise ValueError("every label is named by --against; name a --group, or fewer.")
    write_rows(args.output, [header, *rows], force=args.force)
    return {
        "input": f"{table.source}: {common.size_of(args, table)}",
        "changed": re.sub(r" \(to embed [^)]*\)", "", "; ".join(table.notes)),
        "groups": ", ".join(sizes),
        "p-values": "too small for groups that were drawn in, or clustered by, these features",
    }


def _read(args: Namespace) -> Table:
    """Read INPUT; where it has columns of other types than numbers, these are features, too."""
    form = FORMATS.get(suffix_of(args.input))  # None for a built-in set
    if args.input != PIPE and not (form and form.has_columns):
        return common.read_points(args)
    if args.input != PIPE:  # which can be read once
        with suppress(ValueError):  # such as that there are no numbers
            table = common.read_points(args)
            if not table.passed_over:
                return table
            if table.label is not None:  # text is a label here, but a feature where it is encoded
                args.label = [table.label]
    args.encode = True
    return common.read_points(args)
