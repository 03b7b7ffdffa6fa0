"""The pictures of scales and of explained variance."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import plot
from problems.clouds import even_circle

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def roll():
    return hs.datasets.swiss_roll(300, rng=0)[0]


def test_scales_show_what_was_measured_and_chosen(roll, tmp_path):
    model = hs.HeatEmbedding(2, random_state=0).fit(roll)
    curve, trace = model.time_curve_, hs.heat_trace(model.diffusion_, model.time_curve_.times)
    figure = plot.scales(model, path=tmp_path / "scales.png")
    directions, ranks = figure.axes
    np.testing.assert_allclose(directions.lines[0].get_ydata(), curve.directions)
    np.testing.assert_allclose(ranks.lines[0].get_ydata(), trace.effective_rank)
    for ax in figure.axes:
        assert any(set(line.get_xdata()) == {model.time_} for line in ax.lines)
    assert f"time {model.time_:g} chosen" in ranks.get_title(loc="left")
    assert (tmp_path / "scales.png").stat().st_size > 1000


def test_components_are_marked():
    X = np.vstack([even_circle(40), even_circle(40) + 100])
    with pytest.warns(hs.DisconnectedWarning):
        model = hs.HeatEmbedding(2, random_state=0, n_neighbors=5).fit(X)
    words = [text.get_text() for text in plot.scales(model).axes[1].texts]
    assert "2 components of the graph" in words


def test_a_time_that_was_given_has_no_scales(roll):
    with pytest.raises(ValueError, match="has chosen no time"):
        plot.scales(hs.HeatEmbedding(2, 8, random_state=0).fit(roll))
    with pytest.raises(ValueError, match="has chosen no time"):
        plot.scales(hs.DiffusionMap(2).fit(roll))


def test_explained_variance_shows_shares_and_intervals(roll, tmp_path):
    found = hs.DiffusionMap(8, 8).fit(roll).explained_diffusion_variance()
    figure = plot.explained_variance(found, path=tmp_path / "explained.svg", share=0.5)
    ax = figure.axes[0]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 100 * found.cumulative)
    assert len(ax.patches) == 8
    assert "8 coordinates hold" in ax.get_title(loc="left")
    assert (tmp_path / "explained.svg").stat().st_size > 1000
