"""The command line: embed a file, show it in a page, compare methods, score an embedding, …

One module per command: `add` declares its arguments, `run` does its work. They share `arguments`
(the options of the methods), `files` (input and output) and `reporting` (what is printed). Only
the module of the command that is asked for is imported: --version and --help wait for nothing.
"""

import argparse
import contextvars
import importlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from heatsketch import __version__
from heatsketch._words import did_you_mean

__all__ = ["main"]

COMMANDS = {
    "embed": "embed a file of points",
    "transform": "place the points of a file by a model that embed has kept",
    "info": "say what a model in a file is",
    "report": "embed a file of points, and show it in an interactive page of HTML",
    "compare": "compare several methods on the same points, in a table and a picture",
    "compare-data": "say how much the diffusions on two files of points differ, and where",
    "score": "measure how an embedding distorts the diffusion distance",
    "distances": "print diffusion distances of points, with error bars",
    "ksum": "find the bandwidth and dimension of a file of points",
    "scales": "show which diffusion time suits a file of points, and why",
    "datasets": "list the built-in data sets, or write one to a file",
    "reproduce": "run the experiments of the papers again",
}

EXAMPLES = {
    "embed": "embed table.csv -o map.csv --plot map.png",
    "transform": "transform table.model new.csv -o new-map.csv",
    "info": "info table.model",
    "report": "report table.csv -o report.html --label species --standardize",
    "compare": "compare digits --methods heat-embedding,pca -o compared",
    "compare-data": "compare-data before.csv after.csv --plot where.png",
    "score": "score table.csv map.csv",
    "distances": "distances table.csv --from sample_7 -o distances.csv",
    "ksum": "ksum table.csv --plot ksum.png",
    "scales": "scales table.csv --plot scales.png",
    "datasets": "datasets swiss_roll -o roll.csv",
    "reproduce": "reproduce 2a --trials 5 -o figures",
}


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
    argv = sys.argv[1:] if argv is None else list(argv)
    if hasattr(sys.stdout, "reconfigure"):  # λ in a pipe of Windows becomes ? (as in stderr)
        sys.stdout.reconfigure(errors="replace")
    try:
        if not argv:
            _parser(argv).print_help(sys.stderr)
            return 2
        args, unknown = _parser(argv).parse_known_args(argv)
        if unknown:
            args.refuse(unknown)
        args.words = argv
        return _run(args)
    except SystemExit as stop:  # argparse ends --help, --version and wrong usage this way
        return stop.code if isinstance(stop.code, int) else 2
    except KeyboardInterrupt:
        print("heatsketch: interrupted; no file was left half-written", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of stdout is gone; the interpreter must not fail again at its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


class _Help(argparse.HelpFormatter):
    """Help whose first line is short: it names what must be given, the list below the options."""

    def add_usage(
        self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None
    ) -> None:
        """Add the usage, with [OPTION ...] for all that may be left out."""
        needed = [group for group in groups if group.required]
        of_groups = [action for group in needed for action in group._group_actions]
        shown = [action for action in actions if action.required or action in of_groups]
        if len(shown) < len(actions):
            shown.insert(0, argparse.Action([], "options", metavar="[OPTION ...]"))
        super().add_usage(usage, shown, needed, prefix)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and suggest the word that was meant."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(formatter_class=_Help, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Print the message, without the usage, and end with code 2."""
        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if wrong:
            message += did_you_mean(wrong[1], re.findall(r"[^\s,']+", wrong[2]), end="")
        self.exit(2, f"heatsketch: error: {message} (see {self.prog} --help)\n")

    def refuse(self, arguments: Sequence[str]) -> NoReturn:
        """Raise for arguments that the command does not have."""
        options = [name for action in self._actions for name in action.option_strings]
        hint = did_you_mean(arguments[0].partition("=")[0], options, end="")
        self.error(f"unrecognized arguments: {' '.join(arguments)}{hint}")


class _ShowVersions(argparse.Action):
    """Print the versions that results depend on, and end."""

    def __init__(self, *, version: str, **rest: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **rest)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from heatsketch._environment import show_versions

        show_versions()
        parser.exit()


def _run(args: argparse.Namespace) -> int:
    """Run a command and return its exit code; report its errors."""
    from heatsketch.cli.reporting import describe, report_to_stderr, say  # slow to import

    try:
        with report_to_stderr(quiet=args.quiet):
            contextvars.copy_context().run(args.run, args)  # what it sets ends with it
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except Exception as error:
        if _is_interrupt(error):
            raise KeyboardInterrupt from None
        if args.debug:
            traceback.print_exc()
        say(f"error: {describe(error)}")
        return 1
    return 0


def _is_interrupt(error: BaseException | None) -> bool:
    """Say if an error began as an interrupt: compiled loops make errors of the system of it."""
    while isinstance(error, SystemError):
        error = error.__cause__ or error.__context__
    return isinstance(error, KeyboardInterrupt)


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="heatsketch",
        description="Compute coordinates whose Euclidean distances are diffusion distances.",
        epilog="Points come from a file (.npy, .npz, .csv, .tsv, .txt, also with .gz, .parquet, "
        ".xlsx, .h5ad, .zarr), from standard input (-), a folder of MNIST IDX files, or a built-in "
        "set by its name ('heatsketch datasets' lists them).",
    )
    version: Any = _ShowVersions if "--verbose" in argv else "version"
    parser.add_argument("--version", action=version, version=f"heatsketch {__version__}")
    verbose = "with --version: the versions of all that results depend on, for a report of a fault"
    parser.add_argument("--verbose", action="store_true", help=verbose)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    asked = next((argument for argument in argv if not argument.startswith("-")), None)
    for name, help in COMMANDS.items():
        if name == asked:
            _add(commands, name)
        else:
            commands.add_parser(name, help=help)
    return parser


def _add(commands: Any, name: str) -> None:
    """Add a command with its arguments."""
    module = importlib.import_module(f"heatsketch.cli.{name.replace('-', '_')}")
    command = module.add(commands)
    said = COMMANDS[name]
    command.description = f"{said[0].upper()}{said[1:]}."
    command.epilog = f"Example: heatsketch {EXAMPLES[name]}"
    command.add_argument(
        "-q", "--quiet", action="store_true", help="print no progress and no warnings"
    )
    command.add_argument("--debug", action="store_true", help="print the traceback of an error")
    command.set_defaults(run=module.run, usage_error=command.error, refuse=command.refuse)
