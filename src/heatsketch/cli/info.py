"""heatsketch info: say what a model in a file is."""

import argparse
from pathlib import Path
from typing import Any

from heatsketch.cli.reporting import print_lines
from heatsketch.io.files import listed
from heatsketch.io.models import read_facts

_LIBRARIES = ("heatsketch", "numpy", "scikit-learn")


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "info", help="say what a model in a file is"
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="file of a model")
    return command


def run(args: argparse.Namespace) -> None:
    """Print the facts; the arrays are not read."""
    facts = read_facts(args.model)
    lines = {"model": f"{args.model}: {facts['kind']}, {args.model.stat().st_size:,} bytes"}
    parameters = facts.get("parameters") or {}
    said = [f"{name}={value!r}" for name, value in parameters.items() if value is not None]
    known = {
        "parameters": ", ".join(said),
        "points": _points(facts),
        "features": listed(facts.get("features") or []) if facts.get("features") else "",
        "columns": listed(facts.get("columns") or []) if facts.get("columns") else "",
        "data": f"SHA-256 {facts['data']}" if facts.get("data") else "",
        "time": "" if facts.get("time") is None else f"{facts['time']}",
        "distances": _distances(facts),
        "reading": ", ".join(f"{k}={v!r}" for k, v in (facts.get("reading") or {}).items()),
        "made by": ", ".join(f"{name} {facts[name]}" for name in _LIBRARIES if name in facts),
    }
    print_lines(lines | {name: text for name, text in known.items() if text})


def _points(facts: dict[str, Any]) -> str:
    n, d = facts.get("n"), facts.get("n_features")
    parts = [] if n is None else [f"{n:,} training points"]
    return ", ".join(parts if d is None else [*parts, f"{d:,} features"])


def _distances(facts: dict[str, Any]) -> str:
    if facts.get("distances") is None:
        return ""
    return f"{facts['distances'].removeprefix('distances ')}; log L {facts['log_L']:.2f}"
