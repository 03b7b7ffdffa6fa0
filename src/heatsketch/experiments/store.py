"""The file of the results of a setting, in lines of JSON: a header, then one for each task.

Lines are appended as tasks finish, so that a stopped run loses no finished task.
"""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heatsketch.experiments.figures import Setting
from heatsketch.experiments.trials import Result

FORMAT = 1

Results = dict[tuple[str, int], list[float]]  # (method, trial) -> log L along the axis


def path_of(directory: Path, setting: Setting) -> Path:
    """Return the file of a setting."""
    return directory / f"trials-{setting.name}.jsonl"


def read(path: Path, setting: Setting, seed: int) -> Results:
    """Read the results, if any; an incomplete last line, of a run that was killed, is ignored.

    Raises
    ------
    ValueError
        If the file was made with other parameters, or is damaged.
    """
    lines = _whole_lines(path)
    if not lines:
        return {}
    _check_header(path, _parse(path, 0, lines[0]), _header(setting, seed))
    results: Results = {}
    for number, line in enumerate(lines[1:], start=1):
        try:
            entry = _parse(path, number, line)
            for method, values in entry["log_L"].items():
                results[method, entry["trial"]] = [
                    math.inf if v is None else float(v) for v in values
                ]
        except (AttributeError, KeyError, TypeError) as error:
            raise _damaged(path, number) from error
    return results


def start(path: Path, setting: Setting, seed: int) -> None:
    """Prepare the file for new lines: write its header, or remove an incomplete last line."""
    lines = _whole_lines(path)
    if not lines:
        path.write_text(json.dumps(_header(setting, seed)) + "\n", encoding="utf-8")
        return
    with path.open("r+b") as stream:
        stream.truncate(sum(len(line) for line in lines))


def append(path: Path, result: Result) -> None:
    """Add the line of a finished task."""
    log_L = {  # JSON has no infinity
        method: [v if math.isfinite(v) else None for v in values]
        for method, values in result.log_L.items()
    }
    entry = {"trial": result.task.trial, "log_L": log_L, "seconds": round(result.seconds, 3)}
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(entry) + "\n")


def _header(setting: Setting, seed: int) -> dict[str, Any]:
    return json.loads(json.dumps({"format": FORMAT, "seed": seed, **asdict(setting)}))


def _whole_lines(path: Path) -> list[bytes]:
    if not path.exists():
        return []
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def _parse(path: Path, number: int, line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise _damaged(path, number) from error


def _damaged(path: Path, number: int) -> ValueError:
    return ValueError(f"{path}, line {number + 1}, is damaged; delete that line or the file.")


def _check_header(path: Path, found: Any, wanted: dict[str, Any]) -> None:
    if not isinstance(found, dict):
        raise _damaged(path, 0)
    differing = [name for name in wanted if found.get(name) != wanted[name]]
    if not differing:
        return
    old = ", ".join(f"{name}={found.get(name)!r}" for name in differing)
    new = ", ".join(f"{name}={wanted[name]!r}" for name in differing)
    same = f", or {old} (--seed)" if differing == ["seed"] else ""
    raise ValueError(
        f"{path} holds trials with {old}, but this run has {new}; pass another directory "
        f"(-o){same}."
    )
