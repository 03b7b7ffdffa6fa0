"""The command line: embed a file, compare methods, score an embedding, choose a bandwidth, …

One module per command: `add` declares its arguments, `run` does its work. They share `arguments`
(the options of the methods), `files` (input and output) and `reporting` (what is printed).
"""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

import heatsketch as hs
from heatsketch.cli import compare, datasets, embed, ksum, reproduce, score
from heatsketch.cli.reporting import describe, report_to_stderr, say

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        0 done, 1 the data or the computation failed, 2 wrong usage, 130 interrupted.

    Examples
    --------
    >>> from heatsketch.cli import main
    >>> main(["ksum", "no-such-file.csv", "-q"])
    1
    """
    parser = _parser()
    try:
        args = parser.parse_args(argv)
        with report_to_stderr(quiet=args.quiet):
            args.run(args)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse ends --help, --version and wrong usage this way
        return stop.code if isinstance(stop.code, int) else 2
    except KeyboardInterrupt:
        say("interrupted; no file was left half-written")
        return 130
    except BrokenPipeError:
        # The reader of stdout is gone; the interpreter must not fail again at its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if args.debug:
            traceback.print_exc()
        say(f"error: {describe(error)}")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="heatsketch",
        description="Compute coordinates whose Euclidean distances are diffusion distances.",
        epilog="Points come from a file (.npy, .npz, .csv, .tsv, .parquet, .h5ad), a folder of "
        "MNIST IDX files, or a built-in set by its name ('heatsketch datasets' lists them).",
    )
    parser.add_argument("--version", action="version", version=f"heatsketch {hs.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (embed, compare, score, ksum, datasets, reproduce):
        command = module.add(commands)
        command.add_argument(
            "-q", "--quiet", action="store_true", help="print no progress and no warnings"
        )
        command.add_argument("--debug", action="store_true", help="print the traceback of an error")
        command.set_defaults(run=module.run, usage_error=command.error)
    return parser
