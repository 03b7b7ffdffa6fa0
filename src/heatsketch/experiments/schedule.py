"""The tasks of a figure, running them in parallel, and the time they will take."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from heatsketch._progress import in_words
from heatsketch.experiments import trials
from heatsketch.experiments.figures import MDS_METHODS, OUR_METHODS, PAPER_METHODS, Figure
from heatsketch.experiments.summary import trials_of
from heatsketch.experiments.trials import Result, Task

# Methods that share eigenpairs are one task; slow ones have their own, so that little is lost when
# a run is stopped. The number is a guess of the seconds of an embedding of 500 points.
_GROUP_SECONDS = {PAPER_METHODS: 0.02, OUR_METHODS: 0.5, MDS_METHODS: 0.3}

Done = set[tuple[str, str, int]]  # setting, method, trial


def missing_tasks(
    figure: Figure, methods: Sequence[str], n_trials: int, seed: int, done: Done
) -> list[Task]:
    """List the tasks of a figure that are not done, trial by trial."""
    setting, tasks = figure.setting, []
    for trial in range(n_trials):
        for group in _GROUP_SECONDS:
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


def keys_of(tasks: Sequence[Task]) -> Done:
    """Return setting, method and trial of everything that the tasks compute."""
    return {(task.setting.name, method, task.trial) for task in tasks for method in task.methods}


def run_tasks(tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """Yield results as they are found, by `jobs` processes of one thread each, or by this one.

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
    """Estimates the remaining time of a list of tasks from those already done."""

    def __init__(self, tasks: Sequence[Task], jobs: int) -> None:
        self._remaining: dict[Any, int] = {}
        self._seconds_spent: dict[Any, list[float]] = {}
        self._jobs, self._last_report = jobs, -math.inf
        for task in tasks:
            kind = task.setting, task.methods
            self._remaining[kind] = self._remaining.get(kind, 0) + 1

    def finished(self, result: Result) -> None:
        """Count a finished task."""
        kind = result.task.setting, result.task.methods
        self._remaining[kind] -= 1
        self._seconds_spent.setdefault(kind, []).append(result.seconds)

    def remaining(self) -> str:
        """Return the remaining time: measured for kinds of tasks that were done, else guessed."""
        seconds = sum(count * self._seconds(*kind) for kind, count in self._remaining.items())
        seconds /= self._jobs
        return in_words(seconds)

    def is_report_due(self, interval: float = 5.0) -> bool:
        """Say whether the last report was at least `interval` seconds ago; if so, note this one."""
        now = time.monotonic()
        if now - self._last_report < interval:
            return False
        self._last_report = now
        return True

    def _seconds(self, setting: Any, methods: tuple[str, ...]) -> float:
        spent = self._seconds_spent.get((setting, methods))
        if spent:
            return sum(spent) / len(spent)
        group = next(group for group in _GROUP_SECONDS if methods[0] in group)
        return _GROUP_SECONDS[group] * len(methods) * len(setting.values) * (setting.n / 500) ** 2
