"""The command line: embed a file, show it in a page, compare methods, score an embedding, …

`arguments` has the table of options; each verb is a module with a function `run`, which returns the
lines of its summary. They share `common`: from a file to a fitted estimator and output files.
Only the verb that is asked for is imported, and only after a look for the files that it names:
--help, a mistyped name and an output that exists are answered without the slow imports.
"""

import contextvars
import importlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heatsketch._words import did_you_mean
from heatsketch.cli.arguments import VERBS, parse
from heatsketch.cli.printing import OUTPUTS, describe, print_summary, report_to_stderr, say
from heatsketch.io.files import check_target

__all__ = ["VERBS", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        0 done, 1 data or computation failed, 2 wrong usage, 130 interrupted, 143 by SIGTERM.

    Examples
    --------
    >>> from heatsketch.cli import main
    >>> main(["scales", "no-such-file.csv", "-q"])
    1
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    if hasattr(sys.stdout, "reconfigure"):  # λ in a pipe of Windows becomes ? (as in stderr)
        sys.stdout.reconfigure(errors="replace")
    try:
        if {"--version", "--verbose"} <= set(argv):
            from heatsketch._version import show_versions

            show_versions()
            return 0
        args = parse(argv)
        args.words, args.start = argv, time.monotonic()
        _check_files(args)
        verb = importlib.import_module(f"heatsketch.cli.{args.verb}")
        with _sigterm_interrupts(), report_to_stderr(quiet=args.quiet) as args.warned:
            lines = contextvars.copy_context().run(verb.run, args)  # its settings end with it
        if lines is not None:
            print_summary(args, lines)
        sys.stdout.flush()
        return 0
    except SystemExit as stop:  # argparse ends --help, --version and wrong usage this way
        return stop.code if isinstance(stop.code, int) else 2
    except BrokenPipeError:
        # The reader of stdout is gone; the interpreter must not fail again at its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Exception, KeyboardInterrupt) as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):  # compiled loops make it of an interrupt
            cause = cause.__cause__ or cause.__context__
        if isinstance(cause, KeyboardInterrupt):
            say("interrupted; no file was left half-written")
            return 128 + next(iter(cause.args), signal.SIGINT)
        if "--debug" in argv:
            traceback.print_exc()
        say(f"error: {describe(error)}")
        return 1


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM interrupt as Ctrl-C does, so that no draft is left, if it has no handler yet."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def interrupt(number: int, _: Any) -> None:
        raise KeyboardInterrupt(number)

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _check_files(args: Any) -> None:
    """Raise if an input does not exist, or an output does, before libraries are imported."""
    for name in ("input", "other", "embedding", "picture", "beside", "model", "pairs_file"):
        path = Path(getattr(args, name) or "-")
        if path.suffix and not path.exists():  # a built-in set has no suffix
            beside = [str(path.parent / one.name) for one in path.parent.glob("*")]
            raise FileNotFoundError(f"{path} does not exist{did_you_mean(str(path), beside)}")
    for name in () if args.force or args.resume else OUTPUTS:
        path = Path(getattr(args, name) or "-")
        if path.suffix and path.is_file():
            check_target(path, force=False, source=args.input or "")
