"""What a page says of an audited picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heatsketch.comparison.audit import Audit
from heatsketch.reports.columns import column, feature_columns, label_columns, packed, texts
from heatsketch.reports.facts import distortion_facts, shown_points, versions
from heatsketch.reports.truth import flat_picture, gap_facts, group_facts

COLUMNS = ("trust", "neighbors_kept", "false_neighbors", "order_kept")


def audit_facts(
    audit: Audit,
    X: Any = None,
    *,
    labels: Mapping[str, Any],
    colors: Mapping[str, Mapping[str, str]] | None = None,
    ids: Mapping[str, Any],
    features: Any = None,
    title: str = "",
    command: str = "",
) -> dict[str, Any]:
    """Return the facts of a page on an audit, coloured by trust at first."""
    Y, distortion = audit.picture, audit.distortion
    shown = shown_points(len(Y), distortion)
    columns = [column(name.replace("_", " "), getattr(audit, name), shown) for name in COLUMNS]
    dubious = column("dubious", audit.dubious.astype(str), shown)
    given = label_columns(labels, colors, shown)
    count, lines = Y.shape[1], audit.describe().splitlines()
    names = features or [f"feature {k}" for k in range(0 if X is None else X.shape[1])]
    frames = {
        "times": [None],
        "positions": packed(flat_picture(Y)[None, shown], "f4"),
        "sizes": [1.0],
        "chosen": 0,
        "distances": None,
    }
    return {
        "title": title or "Audit of a picture",
        "n_points": len(Y),
        "n_coordinates": count,
        "shown": None if len(shown) == len(Y) else packed(shown, "i4"),
        "lines": dict(zip(("trust", "neighbours", "groups"), lines, strict=True)),
        "axes": [f"coordinate {k + 1}" for k in range(min(count, 3))],
        "frames": frames,
        "ids": {str(name): texts(values, shown) for name, values in ids.items()},
        "columns": [*columns, dubious, *given, *feature_columns(X, names, shown)],
        "distortion": distortion_facts(distortion, shown),
        "ksum": None,
        "scales": None,
        "explained": None,
        "parameters": {key: repr(value) for key, value in audit.model.get_params().items()},
        "versions": versions(),
        "command": command or "heatsketch.audit(X, Y)",
        "gaps": gap_facts(audit),
        "groups": group_facts(audit, shown),
    }
