"""The figures of *Sketching the heat kernel*: methods, trials, files."""

import csv
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import heatsketch as hs
from papers.__main__ import RUNS, main
from papers.notes.figures import NOTES
from papers.sketching import drawings, run, trials
from papers.sketching.figures import FIGURE_METHODS, FIGURES, methods_of
from papers.sketching.trials import Sample
from problems.spectra import log_L_of_first_pair

pytest.importorskip("matplotlib")

FORMS = ("symmetric", "bistochastic")
CLASSIC = tuple(method for method in FIGURE_METHODS if method != "ours")
SMALL = replace(FIGURES["3a"].setting, n=30, sizes=(2, 3))


@pytest.fixture
def small(monkeypatch):
    """Figure 3a with few points and two dimensions."""
    monkeypatch.setitem(FIGURES, "3a", replace(FIGURES["3a"], setting=SMALL, methods=CLASSIC))


@pytest.fixture
def counted(monkeypatch):
    """The trials that are run."""
    found, original = [], trials.run

    def counted_run(*task):
        found.append(task)
        return original(*task)

    monkeypatch.setattr(run, "run", counted_run)
    return found


def random_points(n=60):
    return np.random.default_rng(0).standard_normal((n, 3))


# Methods


@pytest.mark.parametrize("form", FORMS)
def test_diffusion_map_of_the_equispaced_circle_has_its_closed_form(form):
    n, epsilon, p = 300, 0.25, 8
    X, _ = hs.datasets.circle(n, equispaced=True)
    s = trials.spectrum(X, epsilon, form)
    D = pdist(trials.diffusion_factor(s, p))
    measured = hs.distortion(trials.diffusion_map(s, p, 2), D).log_L
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
    s = trials.spectrum(X, 1.0, form)
    power = np.linalg.matrix_power(A, p)
    np.testing.assert_allclose(pdist(trials.diffusion_factor(s, p)), pdist(power), rtol=1e-8)
    G = np.random.default_rng(1).standard_normal((60, 4))
    expected = power @ G / 2
    np.testing.assert_allclose(trials.gaussian_process(s, p, G), expected, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_no_power_is_too_large(form):
    X, _ = hs.datasets.circle(100, rng=0)
    s, G = trials.spectrum(X, 0.25, form), np.random.default_rng(0).standard_normal((100, 2))
    for p in (1024, 2**20):
        F = trials.diffusion_map(s, p, 2)
        assert np.linalg.norm(F[:, 0]) == pytest.approx(1)
        Y = trials.gaussian_process(s, p, G)  # all that is left is v_0
        lead = np.outer(s.vectors[:, 0], s.vectors[:, 0] @ G) / np.sqrt(2)
        np.testing.assert_allclose(Y, lead, atol=1e-6)


@pytest.mark.parametrize("scale", [trials.classical_mds, trials.smacof])
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


# Trials


def test_a_trial_depends_on_nothing_but_setting_seed_and_number():
    whole = trials.run(SMALL, 5, 2, CLASSIC)
    trials.run(SMALL, 5, 1, CLASSIC)
    for method in reversed(CLASSIC):
        assert trials.run(SMALL, 5, 2, [method])[method] == whole[method]


def test_seeds_settings_and_trials_have_points_and_matrices_of_their_own():
    torus, powers = FIGURES["2a"].setting, FIGURES["6a"].setting
    samples = [Sample(torus, 0, 0), Sample(torus, 1, 0), Sample(torus, 0, 1), Sample(powers, 0, 0)]
    for draw in (lambda sample: sample.X[0, 0], lambda sample: sample.G("gaussian")[0, 0]):
        assert len({float(draw(sample)) for sample in samples}) == 4


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
    F = trials.diffusion_factor(sample.spectrum("bistochastic"), 4)
    found = trials.run(SMALL, 0, 0, ["ours"])["ours"]
    assert found == [hs.distortion(F[:, :k], pdist(F)).log_L for k in (2, 3)]
    seeds = [seed for _, seed in projection]
    assert len(set(seeds)) == 2
    trials.run(replace(SMALL, sizes=(3,)), 0, 0, ["ours"])
    assert projection[-1] == (3, seeds[1])  # whatever sizes came before


# Files


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_written(name, tmp_path, monkeypatch, projection):
    figure = FIGURES[name]
    monkeypatch.setitem(FIGURES, name, replace(figure, setting=replace(figure.setting, n=30)))
    rows = run.run_figure(name, tmp_path, trials=1, jobs=1)
    assert list(dict.fromkeys(row.method for row in rows)) == list(figure.methods)
    values = [2] if figure.scatter else list(figure.setting.values)
    assert [row.value for row in rows] == values * len(figure.methods)
    assert (tmp_path / f"figure-{name}.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / f"figure-{name}.csv").open(newline="") as stream:
        header, *lines = csv.reader(stream)
    assert header == ["method", figure.setting.axis, "trials", "mean", "std", "median"]
    assert len(lines) == len(rows)


def test_the_table_sums_up_the_trials(small, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "MDS_TRIALS", 2)  # slow scalings stop early
    rows = run.run_figure("3a", tmp_path, trials=3, jobs=1)
    found = run.run_trials(SMALL, list(CLASSIC), 3, 0, 2)  # the same bits by other processes
    for row in rows:
        log_L = found[row.method][:, row.value - 2]
        assert row.trials == len(log_L) == (2 if row.method in ("CMDS", "SMACOF") else 3)
        assert row[3:] == (log_L.mean(), log_L.std(), np.median(log_L))
    row = run._row("DMS", 2, np.array([1.0, np.inf]))  # a point mapped onto another
    assert row.mean == np.inf
    assert np.isnan(row.std)


def test_trials_are_not_computed_again_and_other_ones_are(small, tmp_path, counted):
    once = run.run_figure("3a", tmp_path, trials=3, jobs=1)
    assert len(counted) == 3
    assert run.run_figure("3a", tmp_path, trials=3, jobs=1) == once
    assert len(counted) == 3
    assert run.run_figure("3a", tmp_path, trials=3, jobs=1, seed=1) != once
    assert len(counted) == 6


def test_figures_with_the_same_setting_share_its_trials(tmp_path, monkeypatch, counted):
    setting = replace(FIGURES["2b"].setting, n=30, sizes=(3, 4))
    for name in ("2b", "5a"):
        methods = [method for method in FIGURES[name].methods if method != "ours"]
        shown = replace(FIGURES[name], setting=setting, methods=methods)
        monkeypatch.setitem(FIGURES, name, shown)
    klein, sketches = (run.run_figure(name, tmp_path, 2, jobs=1) for name in ("2b", "5a"))
    assert len(counted) == 2
    of_gps = [[row for row in rows if row.method == "GPS"] for rows in (klein, sketches)]
    assert of_gps[0] == of_gps[1]


def test_the_command_runs_one_figure_and_all_skips_finished_ones(
    small, tmp_path, capsys, monkeypatch
):
    main(["3a", "-o", str(tmp_path), "--trials", "2", "--jobs", "1"])
    assert (tmp_path / "figure-3a.csv").read_text() in capsys.readouterr().out
    asked = []

    def noted(name, folder, **_):
        asked.append(name)
        (folder / (f"figure-{name}.csv" if name in FIGURES else f"{name}.csv")).touch()

    for place in ("run_figure", "run_notes"):
        monkeypatch.setattr(f"papers.__main__.{place}", noted)
    for name, experiment in RUNS.items():
        monkeypatch.setitem(RUNS, name, experiment._replace(run=partial(noted, name)))
    main(["all", "-o", str(tmp_path)])
    assert asked == [name for name in (*FIGURES, *RUNS, *NOTES) if name != "3a"]


def test_asked_methods_are_those_of_the_whole_figure(small, tmp_path, counted):
    main(["3a", "-o", str(tmp_path), "--trials", "2", "--jobs", "1", "--methods", "GPS,DMS"])
    assert [task[3] for task in counted] == [["DMS", "GPS"]] * 2
    some = (tmp_path / "figure-3a.csv").read_text().splitlines()
    every = run.run_figure("3a", tmp_path, 2, jobs=1)
    whole = (tmp_path / "figure-3a.csv").read_text().splitlines()
    assert some == [line for line in whole if line.split(",")[0] in ("method", "DMS", "GPS")]
    assert len(counted) == 4
    again = run.run_figure("3a", tmp_path, 2, jobs=1, methods=["CMDS"])  # from the whole figure
    assert again == [row for row in every if row.method == "CMDS"]
    assert len(counted) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["5a", "--methods", "DMS"],
            "figure 5a does not have DMS, but GPS, GPB, GPSBS, GPSBB, ours",
        ),
        (["1a", "--methods", "GPS,UMAP"], "no method 'UMAP'; there are DMS, DMB, GPS"),
        (["noise", "--methods", "GPS"], "--methods is for one of the figures 1a, 1b"),
        (["all", "--methods", "GPS"], "--methods is for one of the figures 1a, 1b"),
    ],
)
def test_a_method_that_is_not_there_is_refused(arguments, said, capsys, tmp_path):
    with pytest.raises(SystemExit):
        main([*arguments, "-o", str(tmp_path)])
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert methods_of("4", ["ours", "GPS"]) == ("GPS", "ours")


def test_samples_are_drawn_with_their_crossings_and_the_circle_enlarged(monkeypatch):
    """Titles and insets of Figure 4 with a stand-in for GPS, a figure of eight."""
    sample = Sample(FIGURES["4"].setting, 0, 0)
    eight = np.column_stack([np.sin(sample.coordinates), np.sin(2 * sample.coordinates)]) / 40
    eight[-2:] = [[-0.9, 0.3], [0.8, 0.6]]
    sample.embedding = lambda *_: eight
    made = []
    monkeypatch.setattr(drawings, "save", lambda drawing, *_: made.append(drawing))
    drawings.scatters("4", replace(FIGURES["4"], methods=("GPS",)), [sample], None)
    drawings.scatters("3c", replace(FIGURES["3c"], methods=("GPS",)), [sample], None)
    whole, enlarged = (drawing.axes[0] for drawing in made)
    D = sample.distance("symmetric", FIGURES["4"].setting.powers[0])
    log_L = hs.distortion(eight, D).log_L
    assert whole.get_title() == f"GPS: log L {log_L:.2f}, 1 crossing"
    assert enlarged.get_title().endswith("1 crossing")
    assert (len(whole.child_axes), len(enlarged.child_axes)) == (1, 0)
    (inset,) = whole.child_axes
    dots = inset.collections[0].get_offsets()
    assert np.ptp(dots, axis=0).max() > 0.75 * np.ptp(inset.get_xlim())
    made[0].draw_without_rendering()
    box = inset.get_window_extent()
    stars = whole.transData.transform(whole.lines[0].get_xydata())
    assert not any(box.contains(*star) for star in stars)


def test_without_a_name_the_command_lists_all_with_their_minutes(capsys):
    main([])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*FIGURES, *RUNS, *NOTES]
    assert all(float(line.split()[1]) > 0 for line in lines)
