"""How large is the page of a report, and how fast does it open and move?

Run: python benchmarks/pages.py [--chromium PATH] [--small]

Random clouds in the plane with two labels, a measure, and distances from a clicked point. The page
opens in Chromium without a window and without a graphics card (SwiftShader draws on the processor),
1,400 x 900 pixels. "picture": from the start of loading to the first frame that shows points;
"all": until all of them are drawn and distances can be asked for. "pan" and "hover": milliseconds
of a frame, median and 95th percentile of 60; "pan" draws as many points as it says. "click": from a
click to the frame that shows the distances from a point. Medians of the repeats.

The sketch is of random rows beside each other in a random order, so that no search of neighbours is
made: a page of such points has the size and the speed of any other.
"""

import shutil
import statistics
import tempfile
import time
from pathlib import Path

import _harness as harness
import numpy as np
from playwright.sync_api import sync_playwright

import heatsketch as hs
from heatsketch.reports import facts

SIZES, SMALL = (1_800, 20_000, 100_000, 1_000_000), (1_800, 20_000)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
]
# The first frame after points were drawn is over when the next one begins.
FIRST = """(() => {
  const usual = WebGL2RenderingContext.prototype.drawElements;
  WebGL2RenderingContext.prototype.drawElements = function (...given) {
    usual.apply(this, given);
    requestAnimationFrame(() => requestAnimationFrame(() => (window.first ??= performance.now())));
  };
})()"""
READY = """typeof scatter === "object" && element("command").textContent === facts.command
  && !scatter.moves && !scatter.asked && window.first"""
FRAMES = """async (act) => {
  const passed = [], move = { pan: () => {
    scatter.framed = false;
    scatter.centre[0] += 0.01;
    scatter.move();
  }, hover: (k) => hover(views[0], 100 + 8 * k, 300) }[act];
  for (let k = 0, last = performance.now(); k < 60; k++) {
    move(k);
    await new Promise(requestAnimationFrame);
    passed.push(performance.now() - last);
    last = performance.now();
  }
  passed.sort((a, b) => a - b);
  return [passed[30], passed[57], Math.round(scatter.few)];
}"""
CLICK = """async () => {
  const started = performance.now();
  choose(100);
  for (let k = 0; k < 2; k++) await new Promise(requestAnimationFrame);
  return performance.now() - started;
}"""


def write(path, n):
    """Write the page of n points."""
    rng = np.random.default_rng(0)
    centres, of = 4 * rng.normal(size=(24, 2)), rng.choice(24, n, p=rng.dirichlet(np.full(24, 2)))
    Y = centres[of] + rng.normal(size=(n, 2))
    labels = {
        "kind": np.array([f"kind {k % 6}" for k in range(24)])[of],
        "type": np.array([f"type {k:02d}" for k in range(24)])[of],
        "measure": Y[:, 0] + rng.normal(size=n),
    }
    page = hs.report(hs.classical.PCA(2).fit(Y), labels=labels, title=f"{n:,} random points")
    order, room = rng.permutation(n), facts.room_for(n)
    before, near = np.empty(n, int), np.empty((n, room.neighbors), int)
    before[order] = np.append(order[0], order[:-1])
    for k in range(room.neighbors):
        near[order, k] = np.roll(order, k + 1)
    facts._neighbors_and_tree = lambda *_: (near, before)
    F = rng.normal(size=(n, room.columns)) + rng.normal(size=(24, room.columns))[of]
    page.facts["sketch"] = facts.sketch_facts((F, "power", 8.0), np.zeros(n, int), np.arange(n))
    page.save(path)


def opened(browser, path):
    """Return what one visit of a page measures."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.add_init_script(FIRST)
    started = time.perf_counter()
    page.goto(path.as_uri())
    while not page.evaluate(READY):
        time.sleep(0.02)
    found = {"picture s": page.evaluate("first / 1000"), "all s": time.perf_counter() - started}
    for act in ("hover", "pan"):
        middle, slow, drawn = page.evaluate(FRAMES, act)
        found |= {f"{act} ms": middle, f"{act} ms, 95 %": slow}
    found |= {"points drawn at pan": int(drawn), "click s": page.evaluate(CLICK) / 1000}
    page.close()
    return found


def main():
    parser = harness.parser(__doc__, repeats=3)
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=FLAGS)
        for n in SMALL if arguments.small else SIZES:
            path = Path(folder) / f"{n}.html"
            seconds, _ = harness.timed(write, path, n)
            visits = [opened(browser, path) for _ in range(arguments.repeats)]
            middle = {name: statistics.median(one[name] for one in visits) for name in visits[0]}
            size = path.stat().st_size / 1e6
            rows.append({"points": n, "MB": size, "write s": seconds} | middle)
        browser.close()
    print(harness.save("report", rows, arguments, (*harness.PACKAGES, "playwright")))


if __name__ == "__main__":
    main()
