"""A process of its own for what a damaged file may crash: only that process dies."""

import importlib.util
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from heatsketch.io.files import granted

_START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from heatsketch.io.child import serve; serve()"
)
_SECONDS = 60  # of computing, for any file
_BYTES_PER_SECOND = 2**20  # of larger files; unpacking is fifty times faster


def from_child(path: Path, function: Callable[..., Any], *args: Any) -> Generator[Any, None, None]:
    """Yield what a generator of the library yields, in a new process with limits.

    The process may use some times the memory that `check_budget` grants to a file, and a second of
    computing per megabyte. It starts in a fraction of a second, since it imports little; memory and
    threads of this process have no part in it.

    Parameters
    ----------
    path : path
        The file that decides the limits and that errors name.
    function : generator function, or function that returns None
        Of a module of the library that is quick to import.
    *args
        Its arguments; what they are and what it yields must pickle.

    Raises
    ------
    ValueError
        If the process dies.
    Exception
        What the function raises.
    """
    if not sys.executable or getattr(sys, "frozen", False):  # no interpreter to start
        yield from function(*args) or ()
        return
    command = [sys.executable, "-P", "-c", _START]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **pipes) as process:  # type: ignore[call-overload]
        try:
            with suppress(BrokenPipeError):
                pickle.dump(sys.path, process.stdin)
                pickle.dump((path, function, args), process.stdin, protocol=5)
                process.stdin.close()
            yield from _answers(process, path)
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                process.stdin.close()


def _answers(process: Any, path: Path) -> Iterator[Any]:
    while True:
        try:
            kind, item = pickle.load(process.stdout)
        except (EOFError, pickle.UnpicklingError) as error:
            reason = _cause_of_death(process.wait())
            raise ValueError(
                f"{path} cannot be read: {reason}; the file is damaged, save it again."
            ) from error
        if kind == "end":
            return
        if kind == "error":
            raise item
        yield item


def _cause_of_death(code: int) -> str:
    """Describe the exit code of a process; negative ones are signals."""
    if code == -getattr(signal, "SIGXCPU", 0):
        return "reading it takes far longer than a file of its size should"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"code {code}"
    return f"it ended the process that read it ({name})"


def serve() -> None:
    """Run in the child: call the function that standard input names, write what it yields."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what libraries print is not an answer
        path, function, args = pickle.load(sys.stdin.buffer)
        _limit(path.stat().st_size)
        try:
            for item in function(*args) or ():
                pickle.dump(("item", item), out, protocol=5)
                out.flush()
            answer: tuple[str, Any] = ("end", None)
        except MemoryError:
            reason = "it needs far more memory than a file of its size should"
            refusal = ValueError(
                f"{path} cannot be read: {reason}; the file is damaged, save it again."
            )
            answer = ("error", refusal)
        except Exception as problem:
            answer = ("error", problem)
        pickle.dump(answer, out)


def _limit(size: int) -> None:
    """Limit memory and time by the size of a file, where the system can."""
    if importlib.util.find_spec("resource") is None:
        return
    import resource

    seconds = _SECONDS + size // _BYTES_PER_SECOND
    limits = {resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0}
    with suppress(OSError):  # there is no such file but on Linux
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        limits[resource.RLIMIT_AS] = pages * resource.getpagesize() + 3 * granted(size)
    for kind, most in limits.items():
        with suppress(ValueError, OSError):  # a lower limit holds already
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
