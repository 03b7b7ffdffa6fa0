"""Photograph the page of a report: docs/images/report.png, 392 cars by their names.

Run: pip install pandas playwright vega_datasets, then python docs/screenshot.py

Needs a Chromium: that of the variable HEATSKETCH_CHROMIUM, else `chromium` on the path, else what
`playwright install chromium` brings. One car is clicked, so that all show their distance to it,
and the pointer stands on another.
"""

import os
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.preprocessing import StandardScaler
from vega_datasets import local_data

import heatsketch as hs

IMAGE = Path(__file__).resolve().parent / "images" / "report.png"
CLICKED, POINTED_AT = "vw rabbit custom 1979", "volkswagen rabbit custom diesel 1978"


def write(path):
    """Write the page of the cars, by six measures in units of their spread; return the names."""
    cars = local_data.cars().dropna()
    names = (cars["Name"] + " " + cars["Year"].dt.year.astype(str)).to_numpy()
    X = cars.drop(columns=["Name", "Year", "Origin"])
    model = hs.HeatEmbedding(random_state=0).fit(StandardScaler().fit_transform(X))
    labels = {"origin": cars["Origin"].to_numpy()}
    hs.report(model, X, labels=labels, ids={"car": names}, title="392 cars", path=path)
    return names.tolist()


def photograph(path, names):
    """Open the page in a Chromium without a window, click a car, and keep what is seen."""
    chromium = os.environ.get("HEATSKETCH_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.as_uri())
        while not page.evaluate("element('command').textContent"):  # the page has read its facts
            page.wait_for_timeout(50)  # milliseconds
        box = page.locator("#points").bounding_box()
        for name in (CLICKED, POINTED_AT):
            k = 2 * names.index(name)
            x, y = page.evaluate(f"[...scatter.onScreen().subarray({k}, {k} + 2)]")
            page.mouse.move(box["x"] + x, box["y"] + y)
            if name == CLICKED:
                page.mouse.down()
                page.mouse.up()
        page.wait_for_timeout(500)  # milliseconds, for the last drawing
        page.screenshot(path=IMAGE)
        browser.close()
    small = Image.open(IMAGE).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
    small.save(IMAGE, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        photograph(page, write(page))
