import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import colormaps, rc_context
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from scipy.spatial.distance import pdist

from heatsketch import plot
from heatsketch.plot.pictures import MAX_VECTOR_POINTS, NO_LABEL_COLOUR, palette, place_names
from heatsketch.reports.columns import column


def drawn(figure):
    """Points, in the order drawn, and their colours."""
    collection = figure.axes[0].collections[0]
    return np.asarray(collection.get_offsets()), collection.get_facecolors()


def legend_names(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def sorted_rows(X):
    return X[np.lexsort(X.T)]


def points(n=40, k=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, k))


def test_two_coordinates_are_drawn_as_they_are_with_equal_axes():
    F = points()
    figure = plot.scatter(F, names=["u", "v"], title="a $title_")
    np.testing.assert_allclose(sorted_rows(drawn(figure)[0]), sorted_rows(F))
    ax = figure.axes[0]
    assert ax.get_aspect() == 1
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title("left")) == ("u", "v", "a $title_")


def test_a_plane_in_five_dimensions_is_drawn_without_distortion():
    rng = np.random.default_rng(1)
    plane = rng.normal(size=(30, 2)) * [3, 1]
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0][:2]
    figure = plot.scatter(plane @ turn + 7)
    np.testing.assert_allclose(np.sort(pdist(drawn(figure)[0])), np.sort(pdist(plane)))
    variances = np.linalg.eigvalsh(np.cov(plane.T))[::-1]
    share = 100 * variances / variances.sum()
    assert figure.axes[0].get_xlabel() == f"principal axis 1 ({share[0]:.0f} %)"
    assert figure.axes[0].get_ylabel() == f"principal axis 2 ({share[1]:.0f} %)"


def test_one_coordinate_keeps_its_values_and_gives_each_category_a_lane():
    x = np.linspace(0, 1, 60)[:, None]
    labels = np.repeat([5, 7, 9], 20)
    view, _ = drawn(plot.scatter(x, labels))
    order = np.argsort(view[:, 0])
    np.testing.assert_allclose(view[order, 0], x[:, 0])
    lanes = [view[order, 1][labels == label] for label in (5, 7, 9)]
    assert lanes[0].min() > lanes[1].max() > lanes[1].min() > lanes[2].max()
    # Heights say nothing of data drawn with a common seed: 4.5 standard errors of independence.
    view, _ = drawn(plot.scatter(np.random.default_rng(0).uniform(size=(500, 1))))
    assert abs(np.corrcoef(view.T)[0, 1]) < 0.2


def test_equal_points_and_a_single_point_can_be_drawn():
    for F in (np.ones((5, 3)), np.ones((1, 2)), np.zeros((4, 1))):
        figure = plot.scatter(F, ["a"] * len(F))
        figure.canvas.draw()
        assert len(drawn(figure)[0]) == len(F)
        plot.density(F).canvas.draw()
    plot.density(np.column_stack([np.arange(5.0), np.zeros(5)])).canvas.draw()


def test_each_point_has_the_colour_of_its_category_and_none_is_drawn_last_as_a_whole():
    F = points(400)
    figure = plot.scatter(F[:6], ["a", None, "b", "a", float("nan"), "b"])
    assert legend_names(figure) == ["a", "b", "no label"]
    assert len(np.unique(drawn(figure)[1], axis=0)) == 3
    view, colours = drawn(plot.scatter(F, np.where(F[:, 0] > 0, "right", "left")))
    assert len(np.unique(colours, axis=0)) == 2
    assert len(np.unique(colours[view[:, 0] > 0], axis=0)) == 1
    assert len(np.unique(colours[view[:, 0] <= 0], axis=0)) == 1
    assert len(np.unique(colours[-30:], axis=0)) == 2  # 30 of one colour by chance: 2^-29


def test_legend_lies_outside_the_axes_and_shows_any_text():
    names = ["_hidden", "$a", "cost in $ and $x_{", "plain"]
    figure = plot.scatter(points(40), np.repeat(names, 10))
    figure.canvas.draw()
    assert sorted(legend_names(figure)) == sorted(names)
    ax = figure.axes[0]
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1
    assert ax.get_legend().get_window_extent().x1 <= figure.bbox.x1


CELLS = ["CD4+ central memory T cell", "Plasmacytoid dendritic cell", "Naive B cell"]


@pytest.mark.parametrize("width", [89, 183])  # millimetres: columns of a journal
def test_at_the_width_of_a_journal_all_is_inside_and_names_leave_room_for_the_points(width):
    codes = np.arange(600) % 3
    F = points(600) / 4 + np.array([[0, 0], [5, 0], [0, 5]])[codes]
    with rc_context({"font.size": 7}):
        figure = plot.new_figure(width / 25.4, 89 / 25.4)
        ax = figure.add_subplot()
        plot.scatter(F, np.array(CELLS)[codes], title="cells", ax=ax)
    figure.canvas.draw()
    (legend,) = [one for one in (ax.get_legend(), *figure.legends) if one]
    found = figure.findobj(Text)
    assert {round(text.get_fontsize(), 6) for text in found if text.get_text()} == {7, 5.6}
    box = legend.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert 0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert not any(box.overlaps(one.get_window_extent()) for one in (ax, ax.xaxis.label))
    assert ax.get_window_extent().width > 0.6 * figure.bbox.width
    assert [text.get_visible() for text in ax.texts] == [True] * 3


def test_dots_take_as_large_a_share_of_a_small_picture_as_of_a_large_one():
    def share(inches):
        ax = plot.new_figure(inches, inches).add_subplot()
        plot.scatter(points(), ax=ax)
        return np.sqrt(ax.collections[0].get_sizes()[0]) / inches

    assert share(1.5) == pytest.approx(share(3))


def test_text_in_files_is_text(tmp_path):
    F = points(60) + 9 * np.repeat(np.arange(3), 20)[:, None]
    figure = plot.scatter(F, np.repeat(CELLS, 20), title="a title", names=["u $_{v}$", "w"])
    plot.save(figure, tmp_path / "a.svg")
    plot.save(figure, tmp_path / "a.pdf")
    texts = [one.text for one in ElementTree.parse(tmp_path / "a.svg").iter() if one.text]
    figure.canvas.draw()
    names = [text.get_text() for text in figure.axes[0].texts if text.get_visible()]
    for name in ["a title", "u $_{v}$", *CELLS]:
        assert texts.count(name) == 1 + (name in names)  # in the legend and on its points
    assert sorted(names) == sorted(CELLS)
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"/Type3" not in pdf
    assert b"/FontFile2" in pdf  # the font itself, as TrueType


def test_a_name_stands_on_its_points_with_a_white_edge():
    rng = np.random.default_rng(0)
    labels = np.repeat(["east", "Saint-Germain-en-Laye"], [300, 200])
    F = rng.normal(size=(500, 2)) * 0.3 + np.repeat([[5.0, 0], [-5, 0]], [300, 200], axis=0)
    figure = plot.scatter(F, labels)
    figure.canvas.draw()
    ax = figure.axes[0]
    assert [text.get_text() for text in ax.texts] == ["Saint-Germain-en-Laye", "east"]
    for text in ax.texts:
        box = text.get_window_extent().transformed(ax.transData.inverted())
        assert box.padded(0.2).contains(*np.median(F[labels == text.get_text()], axis=0))
    text = ax.texts[1]
    assert np.linalg.norm(text.get_position() - np.median(F[labels == "east"], axis=0)) < 0.2
    box = text.get_window_extent()
    middle = int(figure.bbox.y1 - (box.y0 + box.y1) / 2)
    row = np.asarray(figure.canvas.buffer_rgba())[middle, :, :3]
    row = row[int(box.x0) : int(box.x1)].astype(int)
    black, white = row.max(axis=1) < 60, row.min(axis=1) == 255
    edge = np.flatnonzero(black)[[0, -1]] + [-2, 2]
    assert white[edge].all()


def test_fractions_get_a_colour_bar_and_missing_ones_stay_grey():
    F = points(30)
    values = F[:, 0].copy()
    values[:4] = np.nan
    figure = plot.scatter(F, values)
    assert figure.axes[0].get_legend() is None
    assert len(figure.axes) == 2
    view, colours = drawn(figure)
    order = np.argsort(view[:, 0])
    grey = np.all(np.isclose(colours[order, :3], to_rgb(NO_LABEL_COLOUR)), axis=1)
    assert grey.sum() == 4
    known = np.sort(values[4:])
    scaled = (known - known[0]) / np.ptp(known)
    np.testing.assert_allclose(colours[order][~grey, :3], colormaps["viridis"](scaled)[:, :3])


def test_of_many_categories_the_largest_keep_their_colour():
    sizes = np.arange(1, 27)
    labels = np.repeat([chr(96 + size) for size in sizes], sizes)  # a once, b twice, ... z 26 times
    figure = plot.scatter(points(len(labels)), labels)
    assert legend_names(figure) == [*"hijklmnopqrstuvwxyz", "7 others"]
    _, colours = drawn(figure)
    counts = np.unique(colours, axis=0, return_counts=True)[1]
    assert sorted(counts) == sorted([*range(8, 27), sum(range(1, 8))])
    assert column("letters", labels, np.arange(0))["legend"] == legend_names(figure)  # of a page


@pytest.mark.parametrize("count", [1, 2, 6, 7, 10, 11, 20])
def test_categories_have_different_colours_none_of_them_the_grey_of_missing_ones(count):
    colours = palette(count)
    assert len({*colours, NO_LABEL_COLOUR}) == count + 1


@given(st.lists(st.one_of(st.none(), st.text(max_size=4)), min_size=1, max_size=30))
def test_categories_of_text_give_every_label_back(labels):
    array = np.array(labels, dtype=object)
    found = plot.categories(array)
    said = [None if label is None or label.strip() == "" else label for label in labels]
    if not any(said):
        assert found is None or set(found[0]) == {-1}
        return
    codes, names = found
    assert [None if code < 0 else names[code] for code in codes] == said


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([3, 1, 3], ("1", "3")),
        ([3.0, 1.0, float("nan")], ("1", "3")),
        (np.array([3, 1, None], dtype=object), ("1", "3")),
        ([True, False, True], ("False", "True")),
        (list(range(20)), tuple(str(j) for j in range(20))),
        (list(range(21)), None),
        ([0.5, 1.0], None),
    ],
)
def test_which_labels_are_categories(labels, names):
    found = plot.categories(labels)
    assert (None if found is None else found[1]) == names


@pytest.mark.parametrize(
    ("draw", "suffix", "start"),
    [
        (plot.scatter, ".png", b"\x89PNG"),
        (plot.space, ".pdf", b"%PDF"),
        (plot.density, ".svg", b"<?xml"),
        (lambda F, path: plot.panels({"": F}, path=path), ".PNG", b"\x89PNG"),
    ],
)
def test_files_have_the_format_of_their_suffix(tmp_path, draw, suffix, start):
    path = tmp_path / f"picture{suffix}"
    path.write_bytes(b"old")
    draw(points(k=3), path=path)
    assert path.read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_drawn_or_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no embeddings to draw"):
        plot.panels({})
    with pytest.raises(ValueError, match=r"\.jpg"):
        plot.save(plot.scatter(points(k=2)), tmp_path / "picture.jpg")
    assert (
        plot.panels({"a": points(k=2)}, notes={"b": "elsewhere"}).axes[0].get_title("left") == "a"
    )


def test_the_same_data_gives_the_same_picture_of_at_least_150_dots_per_inch(tmp_path):
    for name in ("a.png", "b.png"):
        figure = plot.scatter(points(k=4), np.arange(40) % 3, path=tmp_path / name)
    content = (tmp_path / "a.png").read_bytes()
    assert content == (tmp_path / "b.png").read_bytes()
    assert int.from_bytes(content[16:20], "big") >= 150 * figure.get_figwidth()


def test_many_points_are_rasterised_and_few_are_not():
    many = plot.scatter(np.zeros((MAX_VECTOR_POINTS + 1, 2)))
    assert many.axes[0].collections[0].get_rasterized()
    assert not plot.scatter(points()).axes[0].collections[0].get_rasterized()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"labels": ["a"] * 3},
            r"labels has shape \(3,\) but F has shape \(40, 2\); pass shape \(40,\)",
        ),
        ({"names": ["u"]}, r"names has shape \(1,\) but F has shape \(40, 2\); pass shape \(2,\)"),
        ({"path": "picture.jpg"}, r"\.png, \.pdf, \.svg"),
        ({"F": np.where(np.eye(40, 2, -3), np.nan, 1.0)}, r"F contains NaN.*row 3"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot.scatter(**{"F": points()} | arguments)


def test_missing_matplotlib_is_named_and_pyplot_never_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it now raises
    plot.scatter(points(), points(k=1).ravel()).canvas.draw()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "heatsketch\[plot\]"'):
        plot.scatter(points())


def far_cloud(n=2_000, k=2, far=11, distance=100.0, seed=5):
    """A cloud of points, and a few points far from it."""
    rng = np.random.default_rng(seed)
    F = rng.uniform(-1, 1, size=(n, k))
    F[:far] = distance * rng.choice([-1.0, 1.0], size=(far, k)) * rng.uniform(0.5, 1, (far, k))
    return F


@pytest.mark.parametrize("distance", [4.0, 100.0, 1e9])
def test_far_points_stand_at_the_edge_and_the_others_fill_the_picture(distance):
    F = far_cloud(distance=distance)
    figure = plot.scatter(F, np.arange(len(F)) % 3, title="a cloud")
    figure.canvas.draw()
    ax = figure.axes[0]
    said = "11 of 2,000 points lie farther out, ringed at the edge"
    assert ax.get_title("left") == f"a cloud\n{said}"
    view, _ = drawn(figure)
    assert len(view) == len(F)  # none is lost
    rings = np.asarray(ax.collections[1].get_offsets())
    assert len(rings) == 11
    low, high = np.transpose([ax.get_xlim(), ax.get_ylim()])
    assert np.all((view > low) & (view < high))
    on_edge = np.isclose(rings, view.min(axis=0)) | np.isclose(rings, view.max(axis=0))
    assert on_edge.any(axis=1).all()
    assert len(np.unique(rings, axis=0)) == 11  # each in its own direction
    near = sorted_rows(F[11:])
    inside = view[~np.any([np.all(np.isclose(view, ring), axis=1) for ring in rings], axis=0)]
    np.testing.assert_allclose(sorted_rows(inside), near)  # at their own places
    assert np.all(np.ptp(near, axis=0) > 0.7 * (high - low))
    width, height = ax.get_window_extent().size
    assert width / (high - low)[0] == pytest.approx(height / (high - low)[1])  # one scale


def test_where_all_points_fit_well_or_are_wanted_nothing_changes():
    for F, whole in (
        (points(20_000), False),
        (points(3_000, seed=1) * [10, 1], False),
        (np.repeat(np.eye(4, 2) * 9, 50, axis=0) + points(200, seed=2), False),  # clusters
        (np.vstack([np.zeros((999, 2)), [[5.0, 5.0]]]), False),  # one place
        (np.vstack([points(30), [[500.0, 0]]]), False),
        (far_cloud(), True),
    ):
        (drawn_points,) = plot.scatter(F, whole=whole).axes[0].collections
        assert drawn_points.axes.get_title("left") == ""
        np.testing.assert_allclose(sorted_rows(drawn_points.get_offsets()), sorted_rows(F))


def test_of_all_kinds_of_pictures_far_points_stand_at_the_edge():
    F = far_cloud()
    kinds = (plot.scatter, 1, "ringed"), (plot.space, 3, "ringed"), (plot.density, 2, "counted")
    for draw, k, how in (*kinds, (plot.density, 1, "counted")):
        ax = draw(far_cloud(k=k)).axes[0]
        assert f"11 of 2,000 points lie farther out, {how} at the edge" in ax.get_title("left")
        assert np.ptp(ax.get_xlim()) < 2.4
        assert np.ptp(draw(far_cloud(k=k), whole=True).axes[0].get_xlim()) > 40
    assert plot.space(far_cloud(k=3)).axes[0].get_zlim()[1] < 1.2
    x0, x1, y0, y1 = plot.density(F).axes[0].images[0].get_extent()
    np.testing.assert_allclose([[x0, y0], [x1, y1]], [F[11:].min(axis=0), F[11:].max(axis=0)])
    figure = plot.panels({"far": F, "near": points()}, notes={"far": "one", "near": "two"})
    far, near = figure.axes  # each has a window of its own
    assert far.get_title("left").startswith("far\n11 of 2,000")
    assert near.get_title("left") == "near"
    assert [ax.get_xlabel() for ax in (far, near)] == ["one", "two"]


@pytest.mark.parametrize("labels", ["none", "groups", "numbers", "gaps"])
def test_density_counts_every_point_in_its_cell(labels):
    F = np.random.default_rng(0).normal(size=(2_000, 2))
    given = {
        "none": None,
        "groups": np.where(F[:, 0] > 0, "right", "left"),
        "numbers": F[:, 0],
        "gaps": np.where(F[:, 1] > 0, F[:, 0], np.nan),
    }[labels]
    (image,) = plot.density(F, given).axes[0].images
    pixels, extent = np.asarray(image.get_array()), np.reshape(image.get_extent(), (2, 2))
    np.testing.assert_allclose(extent.T, [F.min(axis=0), F.max(axis=0)])
    inside = np.clip(F, *extent.T)  # the last one is outside by rounding
    counts, _, _ = np.histogram2d(*inside.T, pixels.shape[1::-1], extent)
    np.testing.assert_array_equal(pixels[..., 3] > 0, counts.T > 0)
    if labels == "groups":  # two colours, one on each side
        thirds = (pixels[:, : len(pixels) // 3], pixels[:, -len(pixels) // 3 :])
        left, right = (np.unique(third[third[..., 3] > 0][:, :3], axis=0) for third in thirds)
        assert len(left) == len(right) == 1
        assert not np.allclose(left, right)


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
@pytest.mark.parametrize("words", ["digit", "category"])
def test_names_cover_no_other_name_at_any_size(width, words):
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(10), 30)
    F = rng.normal(size=(10, 2))[codes] + 0.05 * rng.normal(size=(300, 2))
    figure = plot.new_figure(width, width)
    names = np.array([f"{words} {code}" for code in codes])
    ax = figure.add_subplot()
    plot.scatter(F, names, ax=ax, legend=False)
    for _ in range(2):
        figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts if text.get_visible()]
    assert len(boxes) >= (10 if width == 8 else 3)
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    window = ax.bbox.padded(1e-6)
    assert all(window.contains(*corner) for box in boxes for corner in box.corners())


def crowd(n, m, seed):
    """Return points, categories and sizes of names, in a window of 300 x 200."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, m, n)
    codes[:m] = np.arange(m)
    points = rng.uniform(20, 180, (m + 1, 2))[codes] + rng.normal(size=(n, 2)) * 9
    return points, codes, np.column_stack([rng.uniform(8, 90, m), np.full(m, 12.0)])


def test_only_categories_that_gather_somewhere_get_a_name():
    rng = np.random.default_rng(0)
    points = rng.uniform([0, 0], [300, 200], (2000, 2))
    places = [
        place_names(points, codes, np.full((6, 2), 8.0), np.array([300.0, 200]))
        for codes in (rng.integers(0, 6, 2000), (points[:, 0] // 50).astype(int))
    ]
    assert np.isnan(places[0]).all()  # at random
    assert np.isfinite(places[1]).all()  # strips beside each other


@given(st.integers(1, 12), st.integers(12, 300), st.integers(0, 10**6))
def test_of_any_crowd_names_cover_no_name_and_stay_in_the_window(m, n, seed):
    points, codes, sizes = crowd(n, m, seed)
    window = np.array([300.0, 200.0])
    places = place_names(points, codes, sizes, window)
    written = np.flatnonzero(np.isfinite(places[:, 0]))
    assert m >= 5 or len(written) in (0, m)
    places, half = places[written], sizes[written] / 2
    assert (places >= half).all()
    assert (places <= window - half).all()
    i, j = np.triu_indices(len(places), 1)
    assert (np.abs(places[i] - places[j]) >= half[i] + half[j]).any(axis=1).all()


def test_a_name_stands_where_its_points_are_dense():
    rng = np.random.default_rng(0)
    size, window = np.array([[40.0, 12]]), np.array([300.0, 200])
    middle, left, right, edge = np.array([[150, 100], [70, 100], [230, 100], [2, 100]])
    disc = rng.normal(size=(400, 2))
    disc *= 40 * np.sqrt(rng.random((400, 1))) / np.linalg.norm(disc, axis=1, keepdims=True)
    turn = 2 * np.pi * rng.random(300)
    ring = np.column_stack([np.cos(turn), np.sin(turn)]) * 70
    islands = np.concatenate([disc + left, disc[:130] + right])
    (of_disc,), (of_ring,), (of_islands,), (beside_edge,), (nowhere,) = (
        place_names(points, np.zeros(len(points), int), size, shape)
        for points, shape in (
            (disc + middle, window),
            (ring + middle, window),
            (islands, window),
            (disc / 40 + edge, window),
            (disc + middle, np.array([30.0, 200])),
        )
    )
    assert np.linalg.norm(of_disc - middle) < 20
    assert np.linalg.norm(of_ring - middle) == pytest.approx(70)  # not in its empty middle
    assert np.linalg.norm(of_islands - left) < 30  # in the larger one
    assert beside_edge[0] == 20  # moved until it is inside
    assert np.isnan(nowhere).all()  # wider than the window


@pytest.mark.parametrize(("gathered", "written"), [(2, 0), (3, 0), (4, 4), (7, 7)])
def test_fewer_than_five_names_are_all_written_or_none(gathered, written):
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(gathered + 1), 400)
    points = 8 * rng.normal(size=(len(codes), 2)) + [40, 100] + 60 * codes[:, None] * [1, 0]
    points[-400:] = rng.choice(points[:-400], 400)  # of the last category everywhere among them
    places = place_names(points, codes, np.full((gathered + 1, 2), 12.0), np.array([600.0, 200]))
    assert np.count_nonzero(np.isfinite(places[:, 0])) == written
