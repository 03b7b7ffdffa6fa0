"""Pictures of many points, of points in space, and curves on given axes."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import plot

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def roll():
    return hs.datasets.swiss_roll(300, rng=0)[0]


@pytest.fixture(scope="module")
def model(roll):
    return hs.HeatEmbedding(2, random_state=0).fit(roll)


def test_curves_draw_on_the_axes_given(roll, model):
    for draw, given in (
        (plot.ksum_curve, hs.ksum(roll)),
        (plot.time_curve, model.time_curve_),
        (plot.explained_variance, model.explained_diffusion_variance()),
        (plot.distortion_histogram, model.distortion_),
    ):
        ax = plot.new_figure(4, 3).add_subplot()
        assert draw(given, ax=ax) is ax.figure
        assert ax.get_xlabel()
        assert draw(given) is not ax.figure
        ax.figure.canvas.draw()
    pair = plot.new_figure(4, 6).subplots(2, 1)
    assert plot.scales(model, ax=pair) is pair[0].figure
    assert all(ax.lines for ax in pair)
    with pytest.raises(ValueError, match="ax holds 1 axes; pass two, for directions and ranks"):
        plot.scales(model, ax=pair[0])


def test_a_spectrum_shows_shares_and_eigenvalues(roll):
    model = hs.DiffusionMap(6, 8).fit(roll)
    explained = model.explained_diffusion_variance()
    figure = plot.explained_variance(explained, share=0.9, eigenvalues=model.eigenvalues_)
    ax = figure.axes[0]
    shares = {tuple(np.round(line.get_ydata(), 9)) for line in ax.lines}
    assert tuple(np.round(100 * explained.cumulative, 9)) in shares
    assert tuple(np.round(100 * model.eigenvalues_, 9)) in shares


def test_a_distortion_shows_every_pair_once(model):
    (stairs,) = plot.distortion_histogram(model.distortion_).axes[0].patches
    assert stairs.get_data().values.sum() == pytest.approx(100)
    edges, counts = model.distortion_.histogram
    np.testing.assert_array_equal(stairs.get_data().edges, edges)
    within = 100 * counts[(edges[:-1] >= 2**-1 - 1e-9) & (edges[1:] <= 2 + 1e-9)].sum()
    assert within / counts.sum() == pytest.approx(100 * model.distortion_.within[2.0], abs=1e-9)


@pytest.mark.parametrize("labels", ["none", "groups", "numbers", "gaps"])
def test_density_counts_every_point_in_its_cell(labels):
    rng = np.random.default_rng(0)
    F = rng.normal(size=(2_000, 2))
    given = {
        "none": None,
        "groups": np.where(F[:, 0] > 0, "right", "left"),
        "numbers": F[:, 0],
        "gaps": np.where(F[:, 1] > 0, F[:, 0], np.nan),
    }[labels]
    ax = plot.density(F, given).axes[0]
    (image,) = ax.images
    pixels, (x0, x1, y0, y1) = np.asarray(image.get_array()), image.get_extent()
    assert (x0, x1) == pytest.approx((F[:, 0].min(), F[:, 0].max()))
    assert (y0, y1) == pytest.approx((F[:, 1].min(), F[:, 1].max()))
    rows, columns = pixels.shape[:2]
    inside = np.clip(F, (x0, y0), (x1, y1))  # the last one is outside by rounding
    counts, _, _ = np.histogram2d(*inside.T, (columns, rows), [(x0, x1), (y0, y1)])
    np.testing.assert_array_equal(pixels[..., 3] > 0, counts.T > 0)
    if labels == "groups":  # two colours, one on each side
        left, right = (
            pixels[:, side][pixels[:, side][..., 3] > 0][:, :3]
            for side in (slice(0, columns // 3), slice(2 * columns // 3, None))
        )
        assert len(np.unique(left, axis=0)) == len(np.unique(right, axis=0)) == 1
        assert not np.allclose(left[0], right[0])


def test_density_of_one_place_and_of_a_line():
    for F in (np.ones((5, 2)), np.column_stack([np.arange(5.0), np.zeros(5)])):
        plot.density(F).canvas.draw()


@pytest.mark.parametrize("k", [3, 5])
def test_space_keeps_one_scale_for_all_axes(k):
    F = np.random.default_rng(0).normal(size=(200, k)) * np.arange(k, 0, -1)
    labels = np.arange(200) % 3
    (ax,) = plot.space(F, labels).axes
    drawn = np.column_stack(ax.collections[0]._offsets3d)
    if k == 3:
        np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(F, axis=0))
    ratio = np.ptp(drawn, axis=0) / ax._box_aspect
    np.testing.assert_allclose(ratio, ratio[0])
    ax.figure.canvas.draw()
    with pytest.raises(ValueError, match="three"):
        plot.space(F[:, :2])


def test_both_scales_stand_on_the_same_logarithmic_times(model):
    """Side by side the two axes share nothing; each has to be told."""
    for ax in plot.new_figure(8, 3).subplots(1, 2), plot.new_figure(4, 6).subplots(2, 1):
        plot.scales(model, ax=ax)
        for own in ax:
            assert own.get_xscale() == "log"
            assert own.get_xlabel() == "diffusion time"
            assert own.get_xticks().tolist() == model.time_curve_.times.tolist()


@pytest.mark.parametrize("n", [300, 3_000, 30_000])
def test_as_large_a_share_of_the_density_is_seen_of_few_points_as_of_many(n):
    """Of uniform points in c² n cells a share 1 - exp(-1/c²) is occupied, whatever n is."""
    F = np.random.default_rng(0).random((n, 2))
    image = plot.density(F).axes[0].images[0].get_array()
    share = np.mean(image[..., 3] > 0)
    assert share == pytest.approx(-np.expm1(-1 / 2.4**2), abs=0.02)


@pytest.mark.parametrize("width", [2.5, 5, 10])
def test_titles_and_names_of_axes_fit_their_axes(model, width):
    ax = plot.new_figure(width, 4).add_subplot()
    plot.distortion_histogram(model.distortion_, ax=ax).canvas.draw()
    own = ax.get_window_extent().width
    for text in (ax.title, ax.xaxis.label, ax._left_title):
        assert text.get_window_extent().width < 1.15 * own


@pytest.mark.parametrize("width", [3, 4, 8])
def test_names_on_the_points_do_not_overlap_at_any_size(width):
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(10), 30)
    F = rng.normal(size=(10, 2))[codes] + 0.05 * rng.normal(size=(300, 2))
    figure = plot.new_figure(width, width)
    names = np.array([f"category {code}" for code in codes])
    plot.scatter(F, names, ax=figure.add_subplot(), legend=False)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert boxes
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
