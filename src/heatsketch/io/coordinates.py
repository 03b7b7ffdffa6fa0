"""Which columns of a table are the coordinates of a picture."""

import re
from collections.abc import Container
from dataclasses import replace

import numpy as np

from heatsketch.io.files import listed
from heatsketch.io.table import Names, Table, whole_numbers

# Names of coordinates: one stem with numbers, or with x, y, z: UMAP1, umap-0, PC_2, x, tSNE_y.
_NUMBERED = re.compile(r"(.*?)[ _.-]?\d+")
_LETTERED = re.compile(r"(|.*[ _.-])[xyz]", re.IGNORECASE)
# Numbers about points that `embed` or scanpy write beside coordinates.
_MEASURE = re.compile(
    r"(heat|dpt)_pseudotime(_low|_high)?|neighbor_confidence|(n|total|pct|log1p)_\D.*",
    re.IGNORECASE,
)
_MOST_UNNAMED = 2  # columns of any other names that may be a picture


def with_coordinates_only(mapped: Table, points: Table) -> Table:
    """Return a table whose features are coordinates; its other numbers are passed through.

    Columns that it has from the points, such as their labels, are no coordinates; features of the
    points are none if there are others. A column with the name of a coordinate has got another,
    see `Table.named_extra`.

    Raises
    ------
    ValueError
        If the names leave a choice.
    """
    names = (*mapped.columns, *mapped.extra)
    passed = points.named_extra([name for name in names if f"{name}_input" in names])
    chosen = _chosen(mapped, passed, points.columns)
    values = np.asarray(mapped.values)
    numbers = dict(zip(mapped.columns, values.T, strict=True))
    others = {name: whole_numbers(column) for name, column in numbers.items() if name not in chosen}
    kept = values[:, [mapped.columns.index(name) for name in chosen]]
    return replace(mapped, values=kept, columns=chosen, extra=mapped.extra | others)


def _chosen(mapped: Table, passed: Container[str], features: Names) -> Names:
    names = [n for n in mapped.columns if n not in passed and not _MEASURE.fullmatch(n)]
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        for pattern in (_NUMBERED, _LETTERED):
            if found := pattern.fullmatch(name):
                groups.setdefault((pattern.pattern, found[1].lower()), []).append(name)
    alike = [group for group in groups.values() if len(group) > 1]
    alike = [group for group in alike if not {*group} <= {*features}] or alike
    if len(alike) == 1:
        return tuple(alike[0])
    if not alike and 0 < len(names) <= _MOST_UNNAMED:
        return tuple(names)
    what = "no columns with the names of coordinates"
    if alike:
        what = "several sets of coordinates: " + "; ".join(listed(group, 3) for group in alike)
    raise ValueError(
        f"{mapped.source} has {what}. Its numeric columns are {listed(mapped.columns)}; name the "
        "coordinates with --coordinates."
    )
