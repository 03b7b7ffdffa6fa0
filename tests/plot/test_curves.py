"""Curves: bandwidths, times, explained variance, and how distances are kept."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import plot
from heatsketch.markov.coordinates import TimeCurve
from problems.clouds import even_circle


@pytest.fixture(scope="module")
def roll():
    return hs.datasets.swiss_roll(150, rng=0)[0]


@pytest.fixture(scope="module")
def model(roll):
    return hs.HeatEmbedding(2, layout="linear", random_state=0).fit(roll)


def test_scales_show_what_was_measured_and_chosen_on_the_same_logarithmic_times(model):
    """Side by side the two axes share nothing; each has to be told."""
    curve, trace = model.time_curve_, hs.heat_trace(model.diffusion_, model.time_curve_.times)
    for axes in (None, plot.new_figure(8, 3).subplots(1, 2), plot.new_figure(4, 6).subplots(2, 1)):
        figure = plot.scales(model, ax=axes)
        assert axes is None or figure is axes[0].figure
        measured = (curve.directions, trace.effective_rank)
        for ax, values in zip(figure.axes, measured, strict=True):
            np.testing.assert_allclose(ax.lines[0].get_ydata(), values)
            assert any(set(line.get_xdata()) == {model.time_} for line in ax.lines)
            assert (ax.get_xscale(), ax.get_xlabel()) == ("log", "diffusion time")
            assert ax.get_xticks().tolist() == curve.times.tolist()
        assert f"time {model.time_:g} chosen" in ax.get_title(loc="left")


def test_components_are_marked():
    X = np.vstack([even_circle(40), even_circle(40) + 100])
    with pytest.warns(hs.DisconnectedWarning):
        model = hs.HeatEmbedding(2, layout="linear", random_state=0, n_neighbors=5).fit(X)
    words = [text.get_text() for text in plot.scales(model).axes[1].texts]
    assert "2 components of the graph" in words


def test_a_time_that_was_given_has_no_scales(roll):
    for made in (hs.HeatEmbedding(2, 8, random_state=0), hs.DiffusionMap(2)):
        with pytest.raises(ValueError, match="has chosen no time"):
            plot.scales(made.fit(roll))


def test_explained_variance_shows_shares_and_intervals(roll):
    found = hs.DiffusionMap(8, 8).fit(roll).explained_diffusion_variance()
    ax = plot.explained_variance(found, share=0.5).axes[0]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 100 * found.cumulative)
    assert len(ax.patches) == 8
    assert "8 coordinates hold" in ax.get_title(loc="left")


def test_curves_draw_on_the_axes_given_and_write_files(roll, model, tmp_path):
    for draw, given in (
        (plot.ksum_curve, hs.ksum(roll)),
        (plot.time_curve, model.time_curve_),
        (plot.explained_variance, model.explained_diffusion_variance()),
        (plot.distortion_histogram, model.distortion_),
    ):
        ax = plot.new_figure(4, 3).add_subplot()
        assert draw(given, ax=ax) is ax.figure
        assert ax.get_xlabel()
        assert draw(given, path=tmp_path / f"{draw.__name__}.svg") is not ax.figure
    plot.scales(model, path=tmp_path / "scales.png")
    sizes = {path.stem: path.stat().st_size for path in tmp_path.iterdir()}
    assert len(sizes) == 5
    assert min(sizes.values()) > 1000


def test_a_distortion_shows_every_pair_once(model):
    (stairs,) = plot.distortion_histogram(model.distortion_).axes[0].patches
    assert stairs.get_data().values.sum() == pytest.approx(100)
    edges, counts = model.distortion_.histogram
    np.testing.assert_array_equal(stairs.get_data().edges, edges)
    within = 100 * counts[(edges[:-1] >= 2**-1 - 1e-9) & (edges[1:] <= 2 + 1e-9)].sum()
    assert within / counts.sum() == pytest.approx(100 * model.distortion_.within[2.0], abs=1e-9)


@pytest.mark.parametrize("width", [2.5, 5, 10])
def test_titles_and_names_of_axes_fit_their_axes(model, width):
    ax = plot.new_figure(width, 4).add_subplot()
    plot.distortion_histogram(model.distortion_, ax=ax).canvas.draw()
    own = ax.get_window_extent().width
    for text in (ax.title, ax.xaxis.label, ax._left_title):
        assert text.get_window_extent().width < 1.15 * own


def test_ksum_curve_marks_the_largest_slope(roll):
    found = hs.ksum(roll)
    ax = plot.ksum_curve(found).axes[0]
    ax.figure.canvas.draw()
    assert ax.get_xscale() == "log"
    np.testing.assert_allclose(ax.lines[0].get_xydata().T, [found.epsilons, found.slopes])
    marker = next(line for line in ax.lines if line.get_marker() == "o")
    np.testing.assert_allclose(marker.get_xydata(), [[found.epsilon, found.dimension / 2]])
    (text,) = ax.texts
    assert text.get_text() == f"ε = {found.epsilon:.4g}\ndimension {found.dimension:.3g}"
    box, frame = text.get_window_extent(), ax.get_window_extent()
    assert frame.x0 <= box.x0 < box.x1 <= frame.x1


def test_ksum_curve_draws_log_sums_with_the_line_of_the_largest_slope(roll):
    found = hs.ksum(roll)
    ax = plot.ksum_curve(found, "sums").axes[0]
    np.testing.assert_allclose(ax.lines[0].get_xydata().T, [found.epsilons, found.log_sums])
    x, y = ax.lines[1].get_xydata().T
    np.testing.assert_allclose(np.diff(y) / np.diff(np.log(x)), found.dimension / 2)
    ((epsilon, height),) = next(line for line in ax.lines if line.get_marker() == "o").get_xydata()
    assert np.interp(np.log(epsilon), np.log(x), y) == pytest.approx(height)
    with pytest.raises(ValueError, match="curve='both'"):
        plot.ksum_curve(found, "both")


def test_time_curve_shows_the_directions_and_marks_the_time_chosen():
    curve = TimeCurve(np.array([1, 2, 4, 8]), np.array([60.0, 30.0, 14.0, 7.5]), 12.0, 8)
    ax = plot.time_curve(curve).axes[0]
    drawn = ax.lines[0].get_xydata()
    np.testing.assert_allclose(drawn, np.column_stack([curve.times, curve.directions]))
    (marked,) = [line.get_xydata() for line in ax.lines if len(line.get_xydata()) == 1]
    np.testing.assert_allclose(marked, [[8, 7.5]])
    assert any(set(line.get_ydata()) == {12.0} for line in ax.lines)
    assert ax.get_title("left") == "At most 12 directions wanted; time 8 chosen"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("diffusion time", "directions")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "4", "8"]
    steps = np.diff(ax.transData.transform(drawn)[:, 0])
    np.testing.assert_allclose(steps, steps[0])  # doublings at equal distances
