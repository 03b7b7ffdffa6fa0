"""Which tasks a figure needs, doing them side by side, and how long that will take."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from heatsketch.experiments import trials
from heatsketch.experiments.figures import MDS, OURS, PAPER, Figure
from heatsketch.experiments.summary import trials_of
from heatsketch.experiments.trials import Result, Task

# Methods that share eigenpairs go together; the slow ones apart, so that stopping costs little.
_GROUPS = (PAPER, OURS, MDS)
_GUESS = {PAPER: 0.02, OURS: 0.5, MDS: 0.3}  # seconds for an embedding of 500 points

Done = set[tuple[str, str, int]]  # setting, method, trial


def missing_tasks(
    figure: Figure, methods: Sequence[str], n_trials: int, seed: int, done: Done
) -> list[Task]:
    """List what is not done of a figure's methods, trial by trial."""
    setting, tasks = figure.setting, []
    for trial in range(n_trials):
        for group in _GROUPS:
            todo = tuple(
                method
                for method in group
                if method in methods
                and method in figure.methods
                and trial < trials_of(method, n_trials)
                and (setting.name, method, trial) not in done
            )
            if todo:
                tasks.append(Task(setting, seed, trial, todo))
    return tasks


def names(tasks: Sequence[Task]) -> Done:
    """Return what the tasks will have done."""
    return {(task.setting.name, method, task.trial) for task in tasks for method in task.methods}


def do(tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """Yield results as they come, from `jobs` processes with one thread each, or from this one.

    Leaving the iteration early stops the processes.
    """
    from joblib import Parallel, delayed, parallel_config

    jobs = min(jobs, len(tasks))
    with parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        results: Any = parallel(delayed(trials.run)(task) for task in tasks)
        with closing(results):
            yield from results


class Clock:
    """Tells how much time a list of tasks still takes, from the tasks already done."""

    def __init__(self, tasks: Sequence[Task], jobs: int) -> None:
        self._left: dict[Any, int] = {}
        self._spent: dict[Any, list[float]] = {}
        self._jobs, self._last_told = jobs, -math.inf
        for task in tasks:
            kind = task.setting, task.methods
            self._left[kind] = self._left.get(kind, 0) + 1

    def finished(self, result: Result) -> None:
        """Take note of a finished task."""
        kind = result.task.setting, result.task.methods
        self._left[kind] -= 1
        self._spent.setdefault(kind, []).append(result.seconds)

    def left(self) -> str:
        """Say how much time is left: measured for kinds of task that were done, else guessed."""
        seconds = sum(count * self._seconds(*kind) for kind, count in self._left.items())
        seconds /= self._jobs
        return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"

    def is_time_to_tell(self, interval: float = 5.0) -> bool:
        """Say whether the last time this was true is `interval` seconds ago."""
        now = time.monotonic()
        if now - self._last_told < interval:
            return False
        self._last_told = now
        return True

    def _seconds(self, setting: Any, methods: tuple[str, ...]) -> float:
        spent = self._spent.get((setting, methods))
        if spent:
            return sum(spent) / len(spent)
        group = next(group for group in _GROUPS if methods[0] in group)
        return _GUESS[group] * len(methods) * len(setting.values) * (setting.n / 500) ** 2
