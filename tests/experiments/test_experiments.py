import csv
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import heatsketch as hs
from heatsketch import cli
from heatsketch.experiments import (
    FIGURE_METHODS,
    FIGURES,
    methods,
    reproduce,
    schedule,
    store,
    trials,
)
from heatsketch.experiments.trials import Result, Sample, Task
from problems.spectra import log_L_of_first_pair

pytest.importorskip("matplotlib")

FORMS = ("symmetric", "bistochastic")
CLASSIC = tuple(method for method in FIGURE_METHODS if method != "ours")
SMALL = replace(FIGURES["3a"].setting, n=30, sizes=(2, 3))


@pytest.fixture
def small(monkeypatch):
    """Figure 3a with few points and two dimensions."""
    figure = replace(FIGURES["3a"], setting=SMALL, methods=CLASSIC)
    monkeypatch.setitem(FIGURES, "3a", figure)
    return figure


@pytest.fixture
def counted(monkeypatch):
    """The tasks that are run."""
    tasks, run = [], trials.run
    monkeypatch.setattr(trials, "run", lambda task: tasks.append(task) or run(task))
    return tasks


def small_run(directory, **options):
    given = {"trials": 3, "jobs": 1, "methods": ["DMS", "GPS"], **options}
    return reproduce("3a", directory, **given)


def stored(directory, name="outliers"):
    lines = (directory / f"trials-{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


def random_points(n=60):
    return np.random.default_rng(0).standard_normal((n, 3))


# Methods


@pytest.mark.parametrize("form", FORMS)
def test_diffusion_map_of_the_equispaced_circle_has_its_closed_form(form):
    n, epsilon, p = 300, 0.25, 8
    X, _ = hs.datasets.circle(n, equispaced=True)
    s = methods.spectrum(X, epsilon, form)
    D = pdist(methods.diffusion_factor(s, p))
    measured = hs.distortion(methods.diffusion_map(s, p, 2), D).log_L
    assert measured == pytest.approx(log_L_of_first_pair(n, epsilon, p), abs=1e-7)
    assert measured == pytest.approx(0.0770, abs=5e-5)


@pytest.mark.parametrize("form", FORMS)
def test_factor_and_sketch_are_those_of_the_matrix(form):
    X, p = random_points(), 5
    K = hs.gaussian_affinity(X, 1.0)
    if form == "symmetric":
        A = hs.symmetric_normalize(K)
    else:
        A = hs.bistochastic_normalize(K, tol=1e-12)
    s = methods.spectrum(X, 1.0, form)
    power = np.linalg.matrix_power(A, p)
    np.testing.assert_allclose(pdist(methods.diffusion_factor(s, p)), pdist(power), rtol=1e-8)
    G = np.random.default_rng(1).standard_normal((60, 4))
    expected = power @ G / 2
    np.testing.assert_allclose(methods.gaussian_process(s, p, G), expected, atol=1e-12)


def test_sketch_by_an_orthogonal_matrix_keeps_all_distances():
    s = methods.spectrum(random_points(), 2.0, "symmetric")
    G = np.linalg.qr(np.random.default_rng(1).standard_normal((60, 60)))[0]
    D = pdist(methods.diffusion_factor(s, 3))
    assert hs.distortion(methods.gaussian_process(s, 3, G), D).log_L < 1e-9


def test_complete_diffusion_map_keeps_all_distances_where_the_first_eigenvector_is_constant():
    s = methods.spectrum(random_points(), 2.0, "bistochastic")
    D = pdist(methods.diffusion_factor(s, 3))
    assert hs.distortion(methods.diffusion_map(s, 3, 59), D).log_L < 1e-9


@pytest.mark.parametrize("form", FORMS)
def test_no_power_is_too_large(form):
    X, _ = hs.datasets.circle(100, rng=0)
    s, G = methods.spectrum(X, 0.25, form), np.random.default_rng(0).standard_normal((100, 2))
    for p in (1024, 2**20):
        F = methods.diffusion_map(s, p, 2)
        assert np.linalg.norm(F[:, 0]) == pytest.approx(1)
        Y = methods.gaussian_process(s, p, G)  # all that is left is v_0
        lead = np.outer(s.vectors[:, 0], s.vectors[:, 0] @ G) / np.sqrt(2)
        np.testing.assert_allclose(Y, lead, atol=1e-6)


@pytest.mark.parametrize("scale", [methods.classical_mds, methods.smacof])
def test_scaling_finds_points_of_the_plane(scale):
    X = random_points(40)[:, :2]
    assert hs.distortion(scale(X, 2), pdist(X)).log_L < 1e-6


@pytest.mark.parametrize("method", CLASSIC)
def test_methods_do_not_see_order_or_rotation_of_the_points(method):
    sample, moved = Sample(SMALL, 0, 0), Sample(SMALL, 0, 0)
    order = np.random.default_rng(3).permutation(SMALL.n)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    moved.X = sample.X[order] @ turn + 2.0
    moved.G = lambda kind: sample.G(kind)[order]
    assert moved.log_L(method, 4, 2) == pytest.approx(sample.log_L(method, 4, 2), rel=1e-5)


def test_a_sketch_of_more_columns_extends_one_of_fewer_with_the_same_matrix_in_both_forms():
    sample = Sample(SMALL, 0, 0)
    for method in ("GPS", "GPB", "GPSBS", "GPSBB"):
        two, three = sample.embedding(method, 4, 2), sample.embedding(method, 4, 3)
        np.testing.assert_allclose(two * np.sqrt(2), three[:, :2] * np.sqrt(3), rtol=1e-12)
    assert sample.G("gaussian").shape == sample.G("rademacher").shape == (SMALL.n, 3)
    assert set(np.unique(sample.G("rademacher"))) == {-1.0, 1.0}


# Trials


def test_a_trial_depends_on_nothing_but_setting_seed_and_number():
    whole = trials.run(Task(SMALL, 5, 2, CLASSIC)).log_L
    trials.run(Task(SMALL, 5, 1, CLASSIC))
    for method in reversed(CLASSIC):
        assert trials.run(Task(SMALL, 5, 2, (method,))).log_L[method] == whole[method]


def test_seeds_settings_and_trials_have_points_and_matrices_of_their_own():
    torus, powers = FIGURES["2a"].setting, FIGURES["6a"].setting
    samples = [Sample(torus, 0, 0), Sample(torus, 1, 0), Sample(torus, 0, 1), Sample(powers, 0, 0)]
    for draw in (lambda sample: sample.X[0, 0], lambda sample: sample.G("gaussian")[0, 0]):
        assert len({float(draw(sample)) for sample in samples}) == 4


def test_settings_have_numbers_and_files_of_their_own():
    settings = {figure.setting for figure in FIGURES.values()}
    assert len({setting.number for setting in settings}) == len(settings)
    assert len({setting.name for setting in settings}) == len(settings)


def test_another_process_finds_the_same_bits_and_loads_no_matplotlib():
    code = (
        "import json, sys\n"
        "from heatsketch.experiments import FIGURES, trials\n"
        "task = trials.Task(FIGURES['3a'].setting, 0, 1, ('DMS', 'GPB', 'SMACOF'))\n"
        "print(json.dumps(trials.run(task).log_L), 'matplotlib' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found, loaded = run.stdout.rsplit(maxsplit=1)
    here = trials.run(Task(FIGURES["3a"].setting, 0, 1, ("DMS", "GPB", "SMACOF"))).log_L
    assert json.loads(found) == here
    assert loaded == "False"


def test_processes_side_by_side_find_the_same_bits():
    tasks = [Task(SMALL, 0, trial, ("DMS", "GPS")) for trial in range(4)]
    one, two = ({r.task.trial: r.log_L for r in schedule.run_tasks(tasks, jobs)} for jobs in (1, 2))
    assert len(one) == 4
    assert one == two


@pytest.fixture
def projection(monkeypatch):
    """A stand-in for the near-isometric projection, which keeps the first columns."""
    made = []

    class FirstColumns:
        def __init__(self, n_components, *, random_state, **settings):
            self.n_components = n_components
            made.append((n_components, random_state))

        def fit_transform(self, F):
            assert F.shape[1] >= self.n_components
            return F[:, : self.n_components]

    monkeypatch.setattr(hs, "NearIsometricProjection", FirstColumns)
    return made


def test_ours_projects_the_bistochastic_factor_and_is_measured_as_it_is(projection):
    sample = Sample(SMALL, 0, 0)
    F = methods.diffusion_factor(sample.spectrum("bistochastic"), 4)
    found = trials.run(Task(SMALL, 0, 0, ("ours",))).log_L["ours"]
    assert found == [hs.distortion(F[:, :k], pdist(F)).log_L for k in (2, 3)]
    seeds = [seed for _, seed in projection]
    assert len(set(seeds)) == 2
    trials.run(replace(Task(SMALL, 0, 0, ("ours",)), setting=replace(SMALL, sizes=(3,))))
    assert projection[-1] == (3, seeds[1])  # whatever sizes came before


def test_ours_takes_no_more_directions_than_a_factor_has(projection):
    Y = methods.learned(np.eye(5, 3), 4, np.random.default_rng(0))
    assert Y.shape == (5, 3)


def test_ours_is_added_to_a_finished_directory(small, tmp_path, monkeypatch, projection, counted):
    monkeypatch.setitem(FIGURES, "3a", replace(small, methods=FIGURE_METHODS))
    small_run(tmp_path, methods=CLASSIC)
    counted.clear()
    rows = small_run(tmp_path, methods=None)
    assert [task.methods for task in counted] == [("ours",)] * 3
    assert list(dict.fromkeys(row.method for row in rows)) == list(FIGURE_METHODS)


# Runs


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_written(name, tmp_path, monkeypatch):
    figure = FIGURES[name]
    figure = replace(figure, setting=replace(figure.setting, n=30))
    monkeypatch.setitem(FIGURES, name, figure)
    shown = [method for method in figure.methods if method != "ours"]
    rows = reproduce(name, tmp_path, trials=1, jobs=1, methods=CLASSIC)
    assert list(dict.fromkeys(row.method for row in rows)) == shown
    values = [2] if figure.scatter else list(figure.setting.values)
    assert [row.value for row in rows] == values * len(shown)
    assert (tmp_path / f"figure-{name}.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / f"figure-{name}.csv").open(newline="") as stream:
        header, *lines = csv.reader(stream)
    assert header == ["method", figure.setting.axis, "trials", "mean", "std", "median"]
    assert len(lines) == len(rows)


def test_the_table_sums_up_the_trials_that_are_kept(small, tmp_path):
    rows = small_run(tmp_path)
    entries = stored(tmp_path)
    with (tmp_path / "figure-3a.csv").open(newline="") as stream:
        table = {(line["method"], int(line["k"])): line for line in csv.DictReader(stream)}
    assert set(table) == {(method, k) for method in ("DMS", "GPS") for k in (2, 3)}
    for row in rows:
        log_L = [entry["log_L"][row.method][row.value - 2] for entry in entries]
        line = table[row.method, row.value]
        for name, of in (("mean", np.mean), ("std", np.std), ("median", np.median)):
            assert float(line[name]) == getattr(row, name) == pytest.approx(of(log_L), rel=1e-14)
        assert int(line["trials"]) == row.trials == len(log_L) == 3


def test_an_interrupted_run_goes_on_where_it_was(small, tmp_path, monkeypatch):
    run, calls = trials.run, []

    def stop_at_third(task):
        calls.append(task.trial)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(task)

    whole = small_run(tmp_path / "whole", trials=5)
    monkeypatch.setattr(trials, "run", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        small_run(tmp_path / "stopped", trials=5)
    assert not (tmp_path / "stopped" / "figure-3a.csv").exists()
    assert small_run(tmp_path / "stopped", trials=5) == whole
    assert calls == [0, 1, 2, 2, 3, 4]
    tables = [(tmp_path / run / "figure-3a.csv").read_bytes() for run in ("whole", "stopped")]
    assert tables[0] == tables[1]


@pytest.mark.parametrize("kept", [1, 50, -1])
def test_a_torn_last_line_is_done_again(small, tmp_path, kept):
    whole = small_run(tmp_path)
    path = tmp_path / "trials-outliers.jsonl"
    *lines, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines) + last[:kept])
    assert small_run(tmp_path) == whole
    assert [entry["trial"] for entry in stored(tmp_path)] == [0, 1, 2]


def test_a_torn_header_is_written_again(small, tmp_path):
    (tmp_path / "trials-outliers.jsonl").write_text('{"format": 1, "se')
    assert small_run(tmp_path)[0].trials == 3
    assert len(stored(tmp_path)) == 3


def test_a_damaged_line_is_named(small, tmp_path):
    small_run(tmp_path)
    path = tmp_path / "trials-outliers.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    for damaged in ("rubbish\n", "[]\n", '{"trial": 0}\n'):
        path.write_text("".join([*lines[:2], damaged, *lines[3:]]))
        with pytest.raises(ValueError, match="line 3, is damaged"):
            small_run(tmp_path)


def test_a_directory_of_other_trials_is_refused(small, tmp_path, monkeypatch):
    small_run(tmp_path)
    before = (tmp_path / "trials-outliers.jsonl").read_bytes()
    with pytest.raises(
        ValueError, match=r"seed=0, but this run has seed=1; pass another directory.*--seed"
    ):
        small_run(tmp_path, seed=1)
    other = replace(small, setting=replace(SMALL, epsilon=0.75))
    monkeypatch.setitem(FIGURES, "3a", other)
    with pytest.raises(ValueError, match=r"epsilon=0\.5, but this run has epsilon=0\.75"):
        small_run(tmp_path)
    assert (tmp_path / "trials-outliers.jsonl").read_bytes() == before


def test_only_what_is_missing_is_computed(small, tmp_path, counted):
    small_run(tmp_path, methods=["DMS"])
    counted.clear()
    rows = small_run(tmp_path, methods=["GPS", "DMS"], trials=4)
    assert [(task.trial, task.methods) for task in counted] == [
        (0, ("GPS",)), (1, ("GPS",)), (2, ("GPS",)), (3, ("DMS", "GPS")),
    ]  # fmt: skip
    assert {row.trials for row in rows} == {4}
    counted.clear()
    fewer = small_run(tmp_path, methods=["DMS"], trials=2)
    assert counted == []
    assert {(row.method, row.trials) for row in fewer} == {("DMS", 2), ("GPS", 2)}


def test_figures_with_the_same_setting_share_its_trials(tmp_path, monkeypatch, counted):
    setting = replace(FIGURES["2b"].setting, n=30)
    for name in ("2b", "5a"):
        monkeypatch.setitem(FIGURES, name, replace(FIGURES[name], setting=setting))
    klein = reproduce("2b", tmp_path, trials=2, jobs=1, methods=["DMS", "GPS"])
    assert len(counted) == 2
    sketches = reproduce("5a", tmp_path, trials=2, jobs=1, methods=["DMS", "GPS"])
    assert len(counted) == 2
    columns = ("method", "value", "trials", "mean", "std", "median")
    values = [
        [tuple(getattr(row, column) for column in columns) for row in rows if row.method == "GPS"]
        for rows in (klein, sketches)
    ]
    assert values[0] == values[1]


def test_all_runs_every_figure_once_and_shares_what_it_can(tmp_path, monkeypatch, counted):
    for name, figure in FIGURES.items():
        small = replace(figure.setting, n=20, sizes=figure.setting.sizes[:2])
        monkeypatch.setitem(FIGURES, name, replace(figure, setting=small))
    rows = reproduce("all", tmp_path, trials=2, jobs=1, methods=["GPS"])
    shown = [name for name, figure in FIGURES.items() if "GPS" in figure.methods]
    assert list(dict.fromkeys(row.figure for row in rows)) == shown
    assert len({(task.setting, task.trial) for task in counted}) == len(counted) == 7 * 2


def test_slow_scalings_stop_early(small, tmp_path, monkeypatch):
    monkeypatch.setattr("heatsketch.experiments.summary.MDS_TRIALS", 2)
    rows = small_run(tmp_path, methods=["DMS", "CMDS"])
    assert {(row.method, row.trials) for row in rows} == {("DMS", 3), ("CMDS", 2)}


def test_an_infinite_distortion_is_kept_and_shown(small, tmp_path):
    setting, path = small.setting, tmp_path / "trials-outliers.jsonl"
    store.start(path, setting, 0)
    for trial, values in enumerate(([1.0, np.inf], [2.0, 3.0])):
        store.append(path, Result(Task(setting, 0, trial, ("DMS",)), {"DMS": values}, 0.1))
    assert store.read(path, setting, 0)["DMS", 0] == [1.0, np.inf]
    two, three = small_run(tmp_path, trials=2, methods=["DMS"])
    assert (two.mean, two.std) == (1.5, 0.5)
    assert three.mean == np.inf
    assert np.isnan(three.std)


def test_time_left_goes_by_the_tasks_that_are_done():
    fast, slow = (Task(SMALL, 0, 0, group) for group in (("DMS",), ("ours",)))
    clock = schedule.Clock([fast] * 3 + [slow] * 5, jobs=2)
    clock.finished(Result(fast, {}, 4.0))
    clock.finished(Result(fast, {}, 6.0))
    clock.finished(Result(slow, {}, 20.0))
    assert clock.remaining() == "42 s"  # (1 × 5 + 4 × 20) / 2
    assert [clock.is_report_due(), clock.is_report_due()] == [True, False]


def test_progress_is_rare_and_trials_are_silent(small, tmp_path, caplog):
    with caplog.at_level("INFO", logger="heatsketch"):
        small_run(tmp_path, methods=["DMB", "GPB"])
    (line,) = caplog.messages
    assert line.startswith("figure 3a: 0 of 3 tasks done")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials=0 is out of range"),
        ({"jobs": 0}, "jobs=0 is out of range"),
        ({"seed": -1}, "seed=-1 is out of range"),
        ({"methods": ["DMX"]}, "methods='DMX' is unknown"),
        ({"methods": []}, "methods is empty"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        reproduce("3a", tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_figures_and_methods_that_do_not_fit_are_named(tmp_path):
    with pytest.raises(ValueError, match="figure='7' is unknown"):
        reproduce("7", tmp_path)
    with pytest.raises(ValueError, match="figure 1b shows GPS, ours"):
        reproduce("1b", tmp_path, methods=["DMS"])
    with pytest.raises(TypeError, match="is a string"):
        reproduce("1a", tmp_path, methods="DMS")


# Command line


def test_the_command_writes_and_prints(small, tmp_path, capsys):
    code = cli.main(
        ["reproduce", "3a", "-o", str(tmp_path), "--trials", "2", "--jobs", "1",
         "--methods", "DMS,GPS", "--seed", "4"]
    )  # fmt: skip
    assert code == 0
    assert len(stored(tmp_path)) == 2
    rows = small_run(tmp_path, trials=2, seed=4)
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].split() == ["k", "2", "3"]
    means = [f"{row.mean:.2f}" for row in rows if row.method == "GPS"]
    assert printed[3].split() == ["GPS", *means]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["9z"], "invalid choice"),
        (["1a", "--methods", "DMS,XYZ"], "no method 'XYZ'"),
        (["1a", "--trials", "0"], "not an integer >= 1"),
        (["1a", "--seed", "-1"], "not an integer >= 0"),
    ],
)
def test_wrong_usage_is_named(given, message, tmp_path, capsys):
    assert cli.main(["reproduce", *given, "-o", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_interrupting_the_command_says_what_is_kept(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("heatsketch._progress._DELAY", 0.0)

    def stop(task):
        raise KeyboardInterrupt

    monkeypatch.setattr(trials, "run", stop)
    assert cli.main(["reproduce", "3a", "--jobs", "1", "-o", str(tmp_path)]) == 130
    assert "finished tasks are kept" in capsys.readouterr().err


def test_another_seed_in_the_same_directory_fails(small, tmp_path, capsys):
    small_run(tmp_path, trials=1)
    assert cli.main(["reproduce", "3a", "--seed", "1", "-o", str(tmp_path)]) == 1
    assert "--seed" in capsys.readouterr().err
