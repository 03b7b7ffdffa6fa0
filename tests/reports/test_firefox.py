"""Reports in Firefox without a window, where there is one on the path: what a user does."""

import shutil

import numpy as np
import pytest

import heatsketch as hs
from problems.firefox import Firefox

pytestmark = pytest.mark.slow

READY = "document.getElementById('command').textContent !== ''"


def text(name):
    return f"document.getElementById('{name}').textContent"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    if path is None:
        pytest.skip("there is no Firefox")
    folder = tmp_path_factory.mktemp("firefox")
    X, sheet = hs.datasets.swiss_roll(400, rng=0)
    labels = {"half": np.where(sheet[:, 0] < 60, "inner", "outer"), "sheet": sheet[:, 0]}
    model = hs.HeatEmbedding(2, layout="linear", random_state=0).fit(X)
    hs.report(model, X, labels=labels, path=folder / "page.html")
    browser = Firefox(path, folder)
    browser.open(folder / "page.html")
    browser.until(READY)
    yield browser
    browser.close()


@pytest.fixture(autouse=True)
def fresh(page):
    page.run("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))")


def box(page, selector):
    return page.run(f"""const found = document.querySelector("{selector}");
      found.scrollIntoView({{ block: "center" }});
      const {{ x, y, width, height }} = found.getBoundingClientRect();
      return [x, y, width, height];""")


def test_points_are_drawn(page):
    drawn = page.run("""const shot = document.createElement("canvas");
      const from = document.getElementById("points");
      [shot.width, shot.height] = [from.width, from.height];
      const pen = shot.getContext("2d", { willReadFrequently: true });
      pen.drawImage(from, 0, 0);
      const bytes = pen.getImageData(0, 0, shot.width, shot.height).data;
      return bytes.filter((byte, k) => k % 4 === 3 && byte > 100).length;""")
    by_card = "document.getElementById('points').getContext('2d') === null"  # cannot be read later
    assert drawn > 400 or page.run(f"return {by_card}")
    assert page.run(f"return {text('subtitle')}") == "400 points, all shown."


def test_a_search_asks_for_distances(page):
    page.run("""const field = document.getElementById("search");
      field.value = "17";
      field.dispatchEvent(new Event("input"));
      field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));""")
    page.until(f"{text('asked')}.startsWith('Colours are distances to 17')")
    assert page.run("return document.getElementById('near-table').rows.length") == 16


def test_a_lasso_selects_and_the_page_says_what_distinguishes_the_points(page):
    page.run("document.getElementById('lasso').click()")
    x, y, width, height = box(page, "#points")
    corners = [(x + 3, y + 3), (x + width / 2, y + 3), (x + width / 2, y + height - 3)]
    page.drag(*((int(a), int(b)) for a, b in [*corners, (x + 3, y + height - 3)]))
    page.run("document.getElementById('lasso').click()")
    page.until("document.getElementById('markers').rows.length === 5")
    count = int(page.run(f"return {text('count')}").split()[0])
    assert 0 < count < 400
    areas = page.run("""return [...document.getElementById('markers').rows].slice(1)
      .map((row) => Math.abs(Number(row.cells[1].textContent) - 0.5))""")
    assert areas == sorted(areas, reverse=True)
    assert areas[0] > 0.2


def test_a_brushed_histogram_filters(page):
    x, y, width, height = box(page, "svg.bars")
    middle = int(y + height / 2)
    page.drag(*((int(x + share * width), middle) for share in (0.2, 0.4, 0.6)))
    page.until(f"{text('passing')} !== ''")
    count = int(page.run(f"return {text('passing')}").split()[0])
    assert 0 < count < 400
    page.run("document.getElementById('clear-filters').click()")
    page.until(f"{text('passing')} === ''")


def test_the_slider_moves_the_points(page):
    page.run("""const slider = document.getElementById("slider");
      slider.value = 0;
      slider.dispatchEvent(new Event("input"));""")
    page.until(f"!{text('now')}.includes('that of the embedding')")
