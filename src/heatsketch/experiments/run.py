"""Run the trials of figures, keep them, and write tables and pictures."""

from collections.abc import Sequence
from pathlib import Path

from heatsketch._checks import check_choice, check_number, logger
from heatsketch._progress import report
from heatsketch.experiments import pictures, store
from heatsketch.experiments.figures import FIGURE_METHODS, FIGURES, Figure
from heatsketch.experiments.schedule import Clock, keys_of, missing_tasks, run_tasks
from heatsketch.experiments.store import Results
from heatsketch.experiments.summary import Row, summarise, write_csv
from heatsketch.experiments.trials import Task
from heatsketch.plot import check_picture


def reproduce(
    figure: str,
    directory: str | Path,
    *,
    trials: int | None = None,
    jobs: int | None = None,
    seed: int = 0,
    methods: Sequence[str] | None = None,
) -> list[Row]:
    """Run the trials of a figure of *Sketching the heat kernel* and write its table and picture.

    Returns the rows of the tables. Writes figure-2a.csv and figure-2a.png (for figure 2a) and keeps
    each finished trial in trials-torus.jsonl, so that a stopped run can be continued, and more
    trials, methods or figures can be added. Table and picture show all results kept of the trials
    asked for.

    Parameters
    ----------
    figure : str
        "1a", "1b", "2a", "2b", "3a", "3b", "3c", "4", "5a", "5b", "6a", "6b" or "all".
    directory : path
        Where to write; made if it does not exist.
    trials : int >= 1, optional
        By default as many as in the paper. The two MDS methods are run in the first 10; a scatter
        shows at most as many samples as in the paper.
    jobs : int >= 1, optional
        Processes of one thread each, by default one for each CPU. Results do not depend on it.
    seed : int >= 0, default 0
        Trial number i has the same points in every run with the same seed.
    methods : sequence of str, optional
        Some of "DMS", "DMB", "GPS", "GPB", "GPSBS", "GPSBB", "ours", "CMDS", "SMACOF", by default
        all that the figure shows.

    Returns
    -------
    list of Row
        The rows of the tables: a method at a number of dimensions or a time.

    Raises
    ------
    ValueError
        If a figure or method is unknown, the figure shows none of the methods, a number is out of
        range, or the directory holds trials with another seed or other parameters.
    ImportError
        If matplotlib is missing, or scikit-learn is too old for the MDS methods (before 1.8).

    Notes
    -----
    On two cores the paper's six methods take some minutes for all figures.

    Examples
    --------
    >>> import tempfile
    >>> from heatsketch.experiments import reproduce
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     rows = reproduce("3a", directory, trials=1, jobs=1, methods=["DMS", "GPS"])
    >>> [row.value for row in rows if row.method == "GPS"]
    [2, 3, 4, 5]
    """
    directory, wanted = Path(directory), _check_methods(methods)
    check_choice(figure, "figure", (*FIGURES, "all"))
    seed = check_number(seed, "seed", low=0, integer=True)
    shown = {
        name: FIGURES[name]
        for name in (FIGURES if figure == "all" else [figure])
        if set(FIGURES[name].methods) & set(wanted)
    }
    if not shown:
        raise ValueError(
            f"methods={', '.join(wanted)} but figure {figure} shows "
            f"{', '.join(FIGURES[figure].methods)}; pass some of these methods."
        )
    counts = {name: _count(shown[name], trials) for name in shown}
    jobs = _check_jobs(jobs)
    check_picture(None)
    directory.mkdir(parents=True, exist_ok=True)
    return _Run(directory, seed, wanted, jobs).figures(shown, counts)


class _Run:
    """What the figures of a run share."""

    def __init__(self, directory: Path, seed: int, methods: Sequence[str], jobs: int) -> None:
        self.directory, self.seed, self.methods, self.jobs = directory, seed, methods, jobs
        self.results: dict[str, Results] = {}  # by setting

    def figures(self, figures: dict[str, Figure], counts: dict[str, int]) -> list[Row]:
        plan = self.plan(figures, counts)
        clock = Clock([task for tasks in plan.values() for task in tasks], self.jobs)
        rows = []
        for name, figure in figures.items():
            self.compute(name, plan[name], clock)
            rows += self.write(name, figure, counts[name])
        return rows

    def plan(self, figures: dict[str, Figure], counts: dict[str, int]) -> dict[str, list[Task]]:
        """List the tasks of each figure that neither the store nor an earlier figure has."""
        for setting in {figure.setting for figure in figures.values()}:
            path = store.path_of(self.directory, setting)
            self.results[setting.name] = store.read(path, setting, self.seed)
        done = {(name, *key) for name, results in self.results.items() for key in results}
        plan = {}
        for name, figure in figures.items():
            plan[name] = missing_tasks(figure, self.methods, counts[name], self.seed, done)
            done |= keys_of(plan[name])
        return plan

    def compute(self, name: str, tasks: list[Task], clock: Clock) -> None:
        """Run the tasks, and keep each result as soon as it is known."""
        if not tasks:
            return
        setting = tasks[0].setting
        path = store.path_of(self.directory, setting)
        store.start(path, setting, self.seed)
        _report_progress(name, 0, len(tasks), clock)
        try:
            for number, result in enumerate(run_tasks(tasks, self.jobs), start=1):
                store.append(path, result)
                for method, log_L in result.log_L.items():
                    self.results[setting.name][method, result.task.trial] = log_L
                clock.finished(result)
                _report_progress(name, number, len(tasks), clock)
        except KeyboardInterrupt:
            logger.info(
                "stopped; finished tasks are kept, and the same command continues after them"
            )
            raise

    def write(self, name: str, figure: Figure, trials: int) -> list[Row]:
        """Write the table and the picture of a figure."""
        rows = summarise(name, figure, self.results[figure.setting.name], trials)
        write_csv(self.directory / f"figure-{name}.csv", figure.setting.axis, rows)
        picture = self.directory / f"figure-{name}.png"
        if figure.scatter:
            pictures.scatters(name, figure, rows, self.seed, picture)
        else:
            pictures.curves(name, figure, rows, picture)
        return rows


def _report_progress(name: str, number: int, total: int, clock: Clock) -> None:
    if clock.is_report_due():
        remaining = clock.remaining()
        message = "%d of %d tasks done; about %s left"
        report(f"figure {name}", message, number, total, remaining)


def _check_methods(methods: Sequence[str] | None) -> tuple[str, ...]:
    """Return the methods to run, in the order of FIGURE_METHODS, or raise."""
    if methods is None:
        return FIGURE_METHODS
    if isinstance(methods, str):
        raise TypeError(f"methods={methods!r} is a string; pass a list, [{methods!r}].")
    if not methods:
        raise ValueError(f"methods is empty; pass some of {', '.join(FIGURE_METHODS)}.")
    for method in methods:
        check_choice(method, "methods", FIGURE_METHODS)
    return tuple(method for method in FIGURE_METHODS if method in methods)


def _check_jobs(jobs: int | None) -> int:
    from joblib import cpu_count

    return cpu_count() if jobs is None else check_number(jobs, "jobs", low=1, integer=True)


def _count(figure: Figure, trials: int | None) -> int:
    """Return the number of trials of a figure."""
    if trials is None:
        return figure.trials
    trials = check_number(trials, "trials", low=1, integer=True)
    return min(trials, figure.trials) if figure.scatter else trials
