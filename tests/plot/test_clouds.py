"""Pictures of many points, and of points in space."""

import numpy as np
import pytest

from heatsketch import plot

pytest.importorskip("matplotlib")


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


@pytest.mark.parametrize("n", [300, 3_000, 30_000])
def test_as_large_a_share_of_the_density_is_seen_of_few_points_as_of_many(n):
    """Of uniform points in c² n cells a share 1 - exp(-1/c²) is occupied, whatever n is."""
    F = np.random.default_rng(0).random((n, 2))
    image = plot.density(F).axes[0].images[0].get_array()
    share = np.mean(image[..., 3] > 0)
    assert share == pytest.approx(-np.expm1(-1 / 2.4**2), abs=0.02)


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
