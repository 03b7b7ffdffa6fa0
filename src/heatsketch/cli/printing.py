"""Printing: progress, warnings and errors on stderr, results on stdout."""

import json
import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

OUTPUTS = ("output", "table", "plot", "save_model", "metadata")  # options that name a file
TIMED = ("embed", "transform", "report", "audit")
_EXPECTED_ERRORS = (ValueError, OSError, ImportError, ArithmeticError)


def say(text: str) -> None:
    """Print a line to stderr; where a message names argument and option, only the option stays."""
    text = re.sub(r"\w+=\S+(?: or '\w+')? \((--[^)]+)\)", r"\1", text)
    text = re.sub(r"\b(with|by|pass) \w+ \((--[^)]+)\)", r"\1 \2", text)
    print(f"heatsketch: {text}", file=sys.stderr, flush=True)


def describe(error: BaseException) -> str:
    """Return an error as one line, with its type if it is an unexpected one."""
    text = " ".join(" ".join([str(error), *getattr(error, "__notes__", [])]).split())
    if isinstance(error, MemoryError):
        return f"out of memory; {text or 'use fewer points or --affinity knn'}"
    if isinstance(error, _EXPECTED_ERRORS) and text:
        return text
    return f"{type(error).__name__}: {text} (--debug prints the traceback)"


@contextmanager
def report_to_stderr(*, quiet: bool) -> Iterator[list[str]]:
    """Send records and warnings to stderr, as lines, while the block runs; return the warnings.

    If `quiet`, they are not shown, but still returned.
    """
    from tqdm import tqdm

    from heatsketch._threads import progress  # slow to import

    warned: list[str] = []
    with nullcontext() if quiet else progress(), warnings.catch_warnings():

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            text = " ".join(str(message).split())
            if text in warned:
                return
            if not quiet:
                with tqdm.external_write_mode(file=sys.stderr):  # above the bars
                    say(f"warning: {text}")
            warned.append(text)

        warnings.showwarning = show
        yield warned


def print_summary(args: Any, lines: dict[str, str]) -> None:
    """Print names and texts in two columns, then the seconds and the written files.

    They go to stderr if the result itself goes to standard output.
    """
    files = [str(path) for name in OUTPUTS if (path := getattr(args, name))]
    to_stderr = "-" in files
    if to_stderr and args.quiet:
        return
    written = lines.pop("written", ", ".join(name for name in files if name != "-"))
    if args.verb in TIMED and not args.info:
        lines["seconds"] = f"{time.monotonic() - args.start:.1f}"
    for name, text in (lines | {"written": written}).items():
        if text:
            print(f"{name:<12} {text}", file=sys.stderr if to_stderr else sys.stdout)


def print_json(facts: dict[str, Any]) -> None:
    """Print facts as JSON."""
    from heatsketch.io.metadata import plain

    print(json.dumps(plain(facts), indent=2, allow_nan=False))
