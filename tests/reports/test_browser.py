"""Reports in a real browser: Chromium without a window, where there is one.

Asks for playwright, and for a Chromium: the one that playwright installs, one on the path, or that
of the variable HEATSKETCH_CHROMIUM.
"""

import csv
import io
import json
import os
import shutil
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import false_discovery_control, mannwhitneyu

import heatsketch as hs

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>"
DRIVER = "GL Driver Message"  # warnings of the software that stands in for a graphics card


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        known = [os.environ.get("HEATSKETCH_CHROMIUM"), *map(shutil.which, NAMES)]
        own = playwright.chromium.executable_path
        path = next((p for p in [*known, own] if p and Path(p).exists()), None)
        if path is None:
            pytest.skip("there is no Chromium")
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def roll():
    X, sheet = hs.datasets.swiss_roll(400, rng=0)
    return X, sheet[:, 0]


@pytest.fixture(scope="module")
def file(tmp_path_factory, roll):
    path = tmp_path_factory.mktemp("report") / "report.html"
    model = hs.HeatEmbedding(3, layout="linear", random_state=0).fit(roll[0])
    names = np.array([f"{HOSTILE} {row}" for row in range(400)], dtype=object)
    kinds = np.array([HOSTILE, "b", "c", None], dtype=object)[np.arange(400) % 4]
    labels = {HOSTILE: kinds, "sheet": roll[1]}
    hs.report(model, roll[0], labels=labels, ids={HOSTILE: names}, title=HOSTILE, path=path)
    return path


@pytest.fixture
def page(browser, file):
    yield from _opened(browser, file)


def _opened(browser, file, script="", **kwargs):
    context = browser.new_context(accept_downloads=True, **kwargs)
    page = context.new_page()
    page.add_init_script(script)
    page.faults, page.requests = [], []
    page.on("console", lambda message: page.faults.append(message.text))
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(file.as_uri())
    until(page, "facts.command === element('command').textContent")
    yield page
    faults = [fault for fault in page.faults if DRIVER not in fault]
    assert faults == []
    assert [url for url in page.requests if not url.startswith(("file:", "blob:"))] == []
    assert page.evaluate("window.hacked") is None
    context.close()


def until(page, words, seconds=30):
    """Wait for what is to become true. (The page does not let playwright's own way of it run.)"""
    end = time.monotonic() + seconds
    while not page.evaluate(words):
        assert time.monotonic() < end, words
        time.sleep(0.05)


def place_of(page, k):
    """Return where a point is on the page."""
    x, y = page.evaluate(f"[...scatter.onScreen().subarray({2 * k}, {2 * k + 2})]")
    box = page.locator("#points").bounding_box()
    return box["x"] + x, box["y"] + y


def drag(page, start, *others):
    """Press the mouse in a place, move it through others, and let it go."""
    page.mouse.move(*start)
    page.mouse.down()
    for place in others:
        page.mouse.move(*place)
    page.mouse.up()


def pixels(page):
    """Return how many pixels of the picture are drawn, and a sum of where they are."""
    return page.evaluate("""() => {
      scatter.draw();
      const gl = scatter.gl, w = gl.drawingBufferWidth, h = gl.drawingBufferHeight;
      const bytes = new Uint8Array(4 * w * h);
      gl.readPixels(0, 0, w, h, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
      let count = 0, sum = 0;
      for (let k = 0; k < w * h; k++) if (bytes[4 * k + 3] > 100) { count++; sum += k % 9973; }
      return [count, sum];
    }""")


def test_points_are_drawn_and_the_slider_moves_them(page):
    assert page.evaluate("scatter.gl !== null")
    page.evaluate("moveTo(0.5)")
    count, first = pixels(page)
    assert count > 400
    before = page.evaluate("[...scatter.onScreen()]")
    for wanted in (0, page.evaluate("times.length - 1")):
        page.evaluate(f"element('slider').value = {wanted}")
        page.dispatch_event("#slider", "input")
        assert page.evaluate("scatter.now") == wanted
        assert page.evaluate("[...scatter.onScreen()]") != before
        count, moved = pixels(page)
        assert count > 400
        assert moved != first


def test_the_card_of_distances_follows_the_slider(page):
    """Its words, histogram and worst pairs are those of the time at which the slider stands."""
    card = "#distances .line", "#distances .chart", "#pairs"
    shown = []
    for t in (page.evaluate("chosen"), page.evaluate("chosen + 1")):
        page.evaluate(f"moveTo({t})")
        shown.append([page.inner_html(each) for each in card])
        assert page.inner_text(card[0]) == page.evaluate(f"distancesAt({t}).line")
    assert all(before != after for before, after in zip(*shown, strict=True))
    page.evaluate("moveTo(chosen)")
    assert [page.inner_html(each) for each in card] == shown[0]


def test_between_two_times_points_are_between(page):
    ends = [page.evaluate(f"moveTo({t}), [...scatter.turned()]") for t in (0, 1)]
    middle = page.evaluate("moveTo(0.25), [...scatter.turned()]")
    expected = 0.75 * np.array(ends[0]) + 0.25 * np.array(ends[1])
    np.testing.assert_allclose(middle, expected, atol=1e-5)
    assert "between" in page.inner_text("#now")


@pytest.mark.parametrize("part", [0.3, 0.7])
def test_between_two_times_the_distances_are_those_of_the_nearer_one_and_say_so(page, part):
    page.evaluate(f"moveTo(chosen), moveTo(1 + {part})")
    near = page.evaluate(f"Math.round(1 + {part})")
    assert page.inner_text("#distances .line") == page.evaluate(f"distancesAt({near}).line")
    time = page.evaluate(f"short(times[{near}])")
    assert f"; time {time}: " in page.inner_text("#now")
    assert page.inner_text("#distances h2") == f"Distances kept at time {time}"


def test_a_pause_stops_at_a_time(page):
    page.evaluate("moveTo(0)")
    page.click("#play")
    until(page, "scatter.now > 0.1")
    page.click("#play")
    assert page.evaluate("playing === null && Number.isInteger(scatter.now)")
    assert page.inner_text("#now").startswith(f"time {page.evaluate('short(times[scatter.now])')}")


def test_play_goes_through_the_times_and_stops(page):
    page.evaluate("moveTo(times.length - 1.3)")
    page.click("#play")
    until(page, "scatter.now === times.length - 1 && playing === null")


@pytest.mark.parametrize("k", [0, 57, 399])
def test_hover_names_the_point(page, k):
    page.mouse.move(*place_of(page, k))
    tip = page.inner_text("#tip")
    nearest = page.evaluate("hovered")
    assert f"{HOSTILE} {nearest}" in tip
    (x, y), (at_x, at_y) = place_of(page, k), place_of(page, nearest)
    assert abs(x - at_x) + abs(y - at_y) < 1  # itself, or one in the same place


def test_hostile_names_stay_text(page):
    assert page.inner_text("#title") == HOSTILE
    assert page.locator("#colour option").first.inner_text() == HOSTILE
    assert HOSTILE in page.inner_text("#legend")
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0


def test_a_lasso_lists_points_and_saves_them(page, roll):
    page.click("#lasso")
    box = page.locator("#points").bounding_box()
    middle, bottom = box["x"] + box["width"] / 2, box["y"] + box["height"] - 2
    drag(page, (box["x"] + 2, box["y"] + 2), (middle, box["y"] + 2), (middle, bottom), (2, bottom))
    half = page.evaluate("scatter.width / 2")
    P = np.array(page.evaluate("[...scatter.onScreen()]")).reshape(-1, 2)
    inside = np.flatnonzero(P[:, 0] < half)
    assert 0 < len(inside) < 400
    assert page.inner_text("#count").startswith(f"{len(inside)} of 400 points")
    with page.expect_download() as download:
        page.click("#save")
    text = Path(download.value.path()).read_text("utf-8")
    head, *rows = csv.reader(io.StringIO(text))
    assert head == ["row", HOSTILE, HOSTILE, "sheet", "x0", "x1", "x2"]
    assert [int(row[0]) for row in rows] == inside.tolist()
    assert [row[1] for row in rows] == [f"{HOSTILE} {k}" for k in inside]
    np.testing.assert_allclose([float(row[3]) for row in rows], roll[1][inside], rtol=1e-5)
    page.click("#clear")
    assert page.evaluate("selected.size") == 0


def test_colours_follow_the_column(page):
    for name, expected in (("sheet", 0), ("none", 0), (HOSTILE, 4)):
        page.select_option("#colour", label=name)
        distinct = page.evaluate("""() => {
          const found = new Set();
          for (let k = 0; k < n; k++) found.add(String(scatter.colours.subarray(4 * k, 4 * k + 3)));
          return found.size;
        }""")
        assert distinct == expected if expected else distinct > 100 if name == "sheet" else 1


def test_a_category_alone_and_worst_pairs(page):
    page.locator("#legend button").nth(1).click()
    assert page.evaluate("scatter.states.filter((s) => s !== FADED).length") == 100
    page.click("#worst")
    page.locator("#pairs button").first.click()
    worst = page.evaluate("facts.distortion.worst_pairs.expansion[0]")
    assert page.evaluate("pair") == worst


def test_three_dimensions_turn(page):
    flat = page.evaluate("[...scatter.turned()]")
    page.click("#space")
    before = page.evaluate("[...scatter.turned()]")
    assert before != flat
    box = page.locator("#points").bounding_box()
    drag(page, (box["x"] + 200, box["y"] + 200), (box["x"] + 290, box["y"] + 240))
    assert page.evaluate("[...scatter.turned()]") != before
    m = np.array(page.evaluate("scatter.matrix")).reshape(3, 3)
    np.testing.assert_allclose(m @ m.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(m) == pytest.approx(1)
    count, _ = pixels(page)
    assert count > 400


def test_zoom_keeps_the_point_below_the_pointer(page):
    x, y = place_of(page, 7)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    again = place_of(page, 7)
    np.testing.assert_allclose(again, (x, y), atol=1)  # the pointer stands on whole pixels


def test_far_points_stand_at_the_edge_until_all_are_asked_for(browser, tmp_path):
    model = hs.DiffusionMap(2, 8).fit(hs.datasets.swiss_roll(400, rng=0)[0])
    model.embedding_[:5] *= 300
    hs.report(model, path=tmp_path / "far.html")
    for page in _opened(browser, tmp_path / "far.html"):
        until(page, "element('outside').textContent.startsWith('5 of 400 points')")
        page.click("#all")
        until(page, "element('outside').textContent === ''")
        page.click("#fit")
        until(page, "element('outside').textContent !== ''")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_page_without_scrolling_sideways(browser, file, scheme):
    phone = {"width": 360, "height": 740}
    for page in _opened(browser, file, viewport=phone, color_scheme=scheme, has_touch=True):
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        ink, paper = page.evaluate("""() => {
          const style = getComputedStyle(document.body);
          return [style.color, style.backgroundColor].map((c) => Number(c.match(/\\d+/)[0]));
        }""")
        assert (ink < paper) == (scheme == "light")


def test_without_webgl_points_are_squares(browser, file):
    script = """
      const usual = HTMLCanvasElement.prototype.getContext;
      HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
        return kind === "webgl2" ? null : usual.call(this, kind, ...rest);
      };"""
    for page in _opened(browser, file, script):
        until(
            page,
            """scatter.flat.getImageData(0, 0, scatter.canvas.width, scatter.canvas.height).data
              .filter((x, k) => k % 4 === 3 && x > 0).length > 400""",
        )


def test_ten_thousand_points_open_and_move(browser, tmp_path, capsys):
    """How fast is printed, and tested by no bound: another machine is slower."""
    rng, path = np.random.default_rng(0), tmp_path / "many.html"
    model = hs.DiffusionMap(2, 8, random_state=0).fit(rng.normal(size=(10_000, 3)))
    hs.report(model, labels=rng.integers(0, 10, 10_000), times=[2, 4, 16, 32], path=path)
    started = time.monotonic()
    for page in _opened(browser, path):
        seconds = time.monotonic() - started
        rate = page.evaluate("""async () => {
          const start = performance.now();
          let frames = 0, passed = 0;
          for (; passed < 2000; frames++, passed = performance.now() - start) {
            moveTo((passed / 1000) % (times.length - 1));
            await new Promise(requestAnimationFrame);
          }
          return (1000 * frames) / passed;
        }""")
    with capsys.disabled():
        print(f"\n10,000 points: open after {seconds:.2f} s, {rate:.0f} frames a second")
    assert rate > 0


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Return the page of 30,000 points: more than are drawn while a slow machine moves them."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("many") / "many.html"
    X = rng.normal(size=(30_000, 2))
    labels = {"side": np.where(X[:, 0] < 0, "left", "right"), "height": X[:, 1]}
    hs.report(hs.classical.PCA(2).fit(X), X, labels=labels, path=path)
    return path


COUNT = """(() => {
  const usual = WebGL2RenderingContext.prototype.drawElements;
  window.drawn = [];
  WebGL2RenderingContext.prototype.drawElements = function (...given) {
    drawn.push(given[1]);
    usual.apply(this, given);
  };
})()"""


def test_fewer_points_are_drawn_while_a_slow_picture_moves_and_all_when_it_rests(browser, many):
    for page in _opened(browser, many, COUNT):
        until(page, "!scatter.moves && drawn[drawn.length - 1] === n")
        page.evaluate("scatter.few = 7000, scatter.last = undefined, scatter.zoomAt(100, 100, 1.5)")
        until(page, "drawn[drawn.length - 1] === 7000 || drawn[drawn.length - 2] === 7000")
        until(page, "!scatter.moves && drawn[drawn.length - 1] === n")


def test_the_pointer_draws_no_point_again(browser, many):
    for page in _opened(browser, many, COUNT):
        until(page, "!scatter.moves && !scatter.asked")
        before = page.evaluate("drawn.length")
        for k in (5, 17, 20_000):
            page.mouse.move(*place_of(page, k))
            until(page, "!scatter.asked")
            assert page.evaluate("hovered >= 0")
        assert page.evaluate("drawn.length") == before


@pytest.fixture(scope="module")
def audited(tmp_path_factory, roll):
    """Return the page of an audit beside another picture, the model, and its labels."""
    path = tmp_path_factory.mktemp("audit") / "audit.html"
    X, sheet = roll
    labels = np.where(sheet < np.median(sheet), "inner", "outer")
    model = hs.HeatSketch(64, 8, filter="accumulated", random_state=0).fit(X)
    found = hs.audit(model, X[:, [0, 2]], labels=labels, random_state=0)
    names = [f"p{row}" for row in range(len(X))]
    beside = {"unrolled": np.c_[sheet, X[:, 1]]}
    hs.report(found, X, labels=labels, ids=names, beside=beside, images=(1, 3), path=path)
    return path, model, found


@pytest.fixture
def audit_page(browser, audited):
    yield from _opened(browser, audited[0])


def test_two_clicks_give_the_distance_of_the_model_and_a_way_of_neighbours(audit_page, audited):
    page, (_, model, _) = audit_page, audited
    page.evaluate("element('all').click()")
    page.mouse.click(*place_of(page, 10))
    assert "Colours are distances to p10: diffusion distances" in page.inner_text("#asked")
    shown = np.array(page.evaluate("[...reach.values]"))
    expected = model.distance(10)
    np.testing.assert_allclose(shown, expected.value, rtol=4e-3, atol=2e-3 * shown.max())
    page.mouse.click(*place_of(page, 390))
    ends = page.evaluate("sketch.distance(10, 390)")
    np.testing.assert_allclose(ends, model.distance(10, 390), rtol=4e-3)
    route = page.evaluate("route")
    assert (route[0], route[-1]) == (10, 390)
    links = page.evaluate("Array.from({ length: n }, (_, i) => [...sketch.links(i)])")
    assert all(b in links[a] for a, b in pairwise(route))
    assert "p10 to p390" in page.inner_text("#asked")
    page.evaluate("forget()")
    assert page.inner_text("#asked") == ""


def test_a_click_lists_the_nearest_points_which_can_be_selected_and_saved(audit_page, audited):
    page, (_, model, _) = audit_page, audited
    page.evaluate("choose(10)")
    assert page.inner_text("#near h2") == "Nearest to p10"
    page.fill("#near-count", "7")
    table = page.evaluate("""[...element('near-table').rows]
      .map((row) => [...row.cells].map((cell) => cell.textContent))""")
    head, *rows = table
    assert head == ["id", "trust", "distance (95 %)"]
    expected = model.distance(10).value
    expected[10] = np.inf
    near = [int(row[0][1:]) for row in rows]
    np.testing.assert_allclose(expected[near], np.sort(expected)[:7], rtol=5e-3)
    page.click("#near-select")
    with page.expect_download() as download:
        page.click("#save")
    head, *saved = csv.reader(io.StringIO(Path(download.value.path()).read_text("utf-8")))
    assert head[:3] == ["row", "id", "distance to p10"]
    assert [int(row[0]) for row in saved] == near
    np.testing.assert_allclose([float(row[2]) for row in saved], expected[near], rtol=5e-3)
    page.evaluate("forget()")
    assert page.locator("#near").is_hidden()


REFUSED = "navigator.clipboard.writeText = () => Promise.reject(new Error('refused'));"
BY_HAND = REFUSED + "document.execCommand = () => false;"


@pytest.mark.parametrize("script", ["", REFUSED, BY_HAND], ids=["allowed", "refused", "by hand"])
def test_ids_are_copied_also_where_the_clipboard_is_refused(browser, audited, script):
    for page in _opened(browser, audited[0], permissions=["clipboard-read", "clipboard-write"]):
        page.evaluate("navigator.clipboard.writeText('before')")
        page.evaluate(f"() => {{ {script} }}")
        page.evaluate("select([3, 1, 200])")
        page.click("#copy")
        if script != BY_HAND:
            until(page, "element('copy').textContent === 'copied'")
            assert page.evaluate("navigator.clipboard.readText()") == "p3\np1\np200\n"
            assert page.locator("#by-hand").is_hidden()
        else:
            until(page, "element('copy').textContent === 'press Ctrl+C'")
            assert page.evaluate("document.getSelection().toString()") == "p3\np1\np200\n"
            page.keyboard.press("Control+C")
            assert page.evaluate("navigator.clipboard.readText()") == "p3\np1\np200\n"


def test_ids_are_saved_one_a_line(audit_page):
    audit_page.evaluate("select([3, 1, 200])")
    with audit_page.expect_download() as download:
        audit_page.click("#list")
    assert Path(download.value.path()).read_text("utf-8").split("\n") == ["p3", "p1", "p200", ""]


@pytest.fixture(scope="module")
def genes(roll):
    rng = np.random.default_rng(0)
    return {f"GENE{k}": rng.poisson(k, 400).astype(float) for k in range(30)}


def test_a_column_is_shown_by_typing_its_name_where_there_are_many(browser, roll, genes, tmp_path):
    model = hs.HeatSketch(8, 8, random_state=0).fit(roll[0])
    hs.report(model, labels=genes, path=tmp_path / "genes.html")
    for page in _opened(browser, tmp_path / "genes.html"):
        page.locator("#column").type("gene1")
        offered = page.evaluate("[...element('column-names').children].map((one) => one.value)")
        assert offered == ["GENE1", *(f"GENE{k}" for k in range(10, 20))]
        page.keyboard.press("Enter")
        assert page.evaluate("shownColumn().name") == "GENE1"
        page.fill("#column", "GENE27")
        assert page.evaluate("shownColumn().name") == "GENE27"
        page.mouse.move(*place_of(page, 0))
        assert page.inner_text("#tip").split("\n")[1].startswith("GENE27 ")


@pytest.fixture
def in_notebook(browser, roll, genes, tmp_path):
    """Yield a page with the widget as a notebook shows it, its frame, and the kernel's side."""
    pytest.importorskip("anywidget")
    model = hs.HeatSketch(8, 8, random_state=0).fit(roll[0])
    found = hs.report(model, roll[0]).widget(genes, genes.get, np.stack([*genes.values()], 1))
    state = {"page": found.page, "names": found.names, "can": found.can}
    page = browser.new_page()
    page.expose_function("ask", lambda wanted: found._handle_custom_msg(wanted, []))
    page.expose_function("changed", lambda rows: setattr(found, "selected", rows))
    found.send = lambda message: page.evaluate("(message) => tell(message)", message)
    path = tmp_path / "notebook.html"
    path.write_text(
        f"""<!doctype html><body><script type="application/json" id="state">
        {json.dumps(state).replace("<", chr(92) + "u003c")}</script><script type="module">
        {found._esm.replace("export default { render };", "")}
        const state = JSON.parse(document.getElementById("state").textContent);
        const model = {{
          get: (name) => state[name],
          set: (name, value) => (state[name] = value),
          save_changes: () => window.changed(state.selected),
          send: (wanted) => setTimeout(() => window.ask(wanted)),
          on: (what, heard) => (heards[what] = heard),
          off: () => {{}},
        }}, heards = {{}};
        window.tell = (message) => heards["msg:custom"](message);
        window.renew = (changes) => {{
          Object.assign(state, changes);
          heards["change:page"]();
        }};
        render({{ model, el: document.body }});
        </script></body>""",
        "utf-8",
    )
    page.goto(path.as_uri())
    new = "(changes) => renew(changes)"
    found.observe(lambda _: page.evaluate(new, {"page": found.page, "can": found.can}), "page")
    until(page.frames[1], "element('command').textContent === facts.command")
    yield page, page.frame_locator("iframe"), found
    page.close()


def test_a_notebook_shows_any_column_by_typing_and_gives_back_what_is_selected(in_notebook, genes):
    page, frame, found = in_notebook
    frame.locator("#column").fill("GENE17")
    colour = frame.locator("#colour option", has_text="GENE17")
    colour.wait_for(state="attached")
    inside = page.frames[1]
    until(inside, "shownColumn().name === 'GENE17'")
    np.testing.assert_allclose(inside.evaluate("[...shownColumn().values]"), genes["GENE17"])
    inside.evaluate("select([5, 3, 77])")
    end = time.monotonic() + 30
    while found.selected != [5, 3, 77]:
        assert time.monotonic() < end
        page.wait_for_timeout(50)


def test_a_column_that_the_kernel_cannot_give_is_named(in_notebook, genes, monkeypatch):
    page, frame, _ = in_notebook
    monkeypatch.setitem(genes, "GENE3", np.zeros(7))
    frame.locator("#column").fill("GENE3")
    said = "GENE3: values has a column 'GENE3' of shape (7,) but the embedding has 400 rows"
    until(page.frames[1], f"element('found').value.startsWith({json.dumps(said)})")


def test_selections_are_named_in_the_page_and_known_to_the_kernel(in_notebook):
    page, frame, found = in_notebook
    for rows, name in (([1, 2, 3], "left"), ([3, 4], "right")):
        page.frames[1].evaluate(f"select({rows})")
        frame.locator("#new-name").fill(name)
        frame.locator("#name").click()
    until(page.frames[1], "shownColumn().name === 'annotation'")
    assert page.frames[1].evaluate("[1, 3, 4, 5].map(shownColumn().text)") == [
        *("left", "right", "right", "missing"),
    ]
    end = time.monotonic() + 30
    expected = np.full(400, "", dtype=object)
    expected[[1, 2]], expected[[3, 4]] = "left", "right"
    while found.annotations.tolist() != expected.tolist():
        assert time.monotonic() < end
        page.wait_for_timeout(50)


def test_a_selection_is_embedded_again_by_the_kernel_and_keeps_its_rows(in_notebook):
    page, frame, found = in_notebook
    page.frames[1].evaluate("select(Array.from({ length: 150 }, (_, k) => 2 * k + 1))")
    frame.locator("#again").click()
    frame.locator("#subtitle", has_text="150 points, a selection embedded again").wait_for()
    until(page.frames[1], "element('command').textContent === facts.command")
    page.frames[1].evaluate("select([0, 149])")
    end = time.monotonic() + 30
    while found.selected != [1, 299]:
        assert time.monotonic() < end
        page.wait_for_timeout(50)
    frame.locator("#column").fill("GENE17")
    until(page.frames[1], "shownColumn().name === 'GENE17'")
    assert page.frames[1].evaluate("shownColumn().values.length") == 150
    frame.locator("#back").click()
    frame.locator("#subtitle", has_text="400 points, all shown").wait_for()


def test_the_kernel_compares_all_columns(in_notebook, genes):
    page, frame, _ = in_notebook
    page.frames[1].evaluate("select([5, 6, 7]), element('all-markers').hidden = false")
    frame.locator("#all-markers").click()
    frame.locator("#markers-of", has_text="The 20 that differ most of 30 columns").wait_for()
    rows = page.frames[1].evaluate(
        "[...element('markers').rows].map((row) => row.cells[0].innerText)"
    )
    found = hs.markers(np.stack([*genes.values()], 1), [5, 6, 7], names=list(genes))
    assert rows == ["", *found.names[:20]]


MARKERS = """[...element('markers').rows].slice(1)
  .map((row) => [...row.cells].slice(0, 5).map((cell) => cell.innerText))"""


@pytest.mark.parametrize("second", [False, True], ids=["all others", "a second selection"])
def test_the_page_tells_what_distinguishes_a_selection(page, roll, second):
    X, sheet = roll
    chosen, others = np.flatnonzero(sheet > 60), np.flatnonzero(sheet <= 60)
    if second:
        others = others[::2]
        page.evaluate(f"select({others.tolist()})")
        page.click("#keep")
    page.evaluate(f"select({chosen.tolist()})")
    until(page, "element('markers').rows.length === 5 && element('shares').children.length > 0")
    found = {name: numbers for name, *numbers in page.evaluate(MARKERS)}
    values = {"sheet": sheet, **{f"x{j}": X[:, j] for j in range(3)}}
    assert found.keys() == values.keys()
    tests = {
        name: mannwhitneyu(
            np.float64(np.float32(x[chosen])),
            np.float64(np.float32(x[others])),
            use_continuity=False,
            method="asymptotic",
        )
        for name, x in values.items()
    }
    corrected = false_discovery_control([test.pvalue for test in tests.values()])
    for (name, x), p in zip(values.items(), corrected, strict=True):
        area = tests[name].statistic / len(chosen) / len(others)
        shown = [float(text) for text in found[name]]
        np.testing.assert_allclose(shown[0], area, atol=5.1e-4)
        np.testing.assert_allclose(
            shown[1:3], [np.median(x[chosen]), np.median(x[others])], rtol=6e-3
        )
        np.testing.assert_allclose(shown[3], p, rtol=0.06)  # two digits
    effects = [abs(float(area) - 0.5) for area, *_ in found.values()]
    assert effects == sorted(effects, reverse=True)
    assert "too small for a group that was drawn in the picture" in page.inner_text("#markers-of")
    page.locator("#markers button").first.click()
    assert page.evaluate("shownColumn().name") == "sheet"


def test_named_selections_are_saved_as_csv(page):
    for rows, name in (([1, 2, 3], HOSTILE), ([3, 4], 'a "b", c')):
        page.evaluate(f"select({rows})")
        page.fill("#new-name", name)
        page.press("#new-name", "Enter")
    with page.expect_download() as download:
        page.click("#save-notes")
    text = Path(download.value.path()).read_text("utf-8")
    head, *rows = csv.reader(io.StringIO(text))
    assert head == ["row", HOSTILE, "annotation"]
    assert [(int(row[0]), row[2]) for row in rows] == [
        *((1, HOSTILE), (2, HOSTILE), (3, 'a "b", c'), (4, 'a "b", c')),
    ]
    assert page.locator("#legend button").count() == 2


def test_without_a_kernel_the_page_says_how_to_embed_the_selection_again(page, file):
    page.evaluate("select([7, 5])")
    page.click("#again-command summary")
    assert page.locator("#again").is_hidden()
    with page.expect_download() as download:
        page.click("#rows")
    assert Path(download.value.path()).read_text("utf-8") == "7\n5\n"
    lines = page.inner_text("#again-lines")
    assert "np.loadtxt('rows.txt', dtype=int)" in lines
    assert "hs.HeatEmbedding(layout='linear', n_components=3, random_state=0).fit(X[rows])" in lines


# Filters


def brush(page, name, low, high):
    """Drag over the histogram of a column, from one share of its width to another."""
    bars = page.locator(".histogram", has=page.locator(f"h3:text-is('{name}')")).locator("svg.bars")
    bars.scroll_into_view_if_needed()
    box = bars.bounding_box()
    y = box["y"] + box["height"] / 2
    drag(page, *((box["x"] + share * box["width"], y) for share in (low, (low + high) / 2, high)))
    until(page, "!scatter.asked && !brushing")


def test_brushed_histograms_filter_and_combine_with_the_legend(page, roll):
    sheet = roll[1]
    brush(page, "sheet", 0.25, 0.6)
    low, high = page.evaluate("filters.get(columns[1])")
    width = np.ptp(sheet)
    np.testing.assert_allclose(
        [low, high], sheet.min() + width * np.array([0.25, 0.6]), atol=0.01 * width
    )
    inside = (np.float32(sheet) >= low) & (np.float32(sheet) <= high)
    assert page.inner_text("#passing") == f"{inside.sum()} of 400 points pass the filters."
    page.locator("#legend button").nth(1).click()
    names = page.evaluate("columns[0].legend")
    both = inside & (np.array([HOSTILE, "b", "c", ""])[np.arange(400) % 4] == names[1])
    assert page.inner_text("#passing") == f"{both.sum()} of 400 points pass the filters."
    states = np.array(page.evaluate("[...scatter.states]"))
    np.testing.assert_array_equal(states != page.evaluate("FADED"), both)
    for name in ("select-passing", "select-here"):
        page.evaluate("select([])")
        page.click(f"#{name}")
        assert page.evaluate("[...selected]") == np.flatnonzero(both).tolist()
    page.locator("#filters button").first.click()
    page.click("#clear-filters")
    assert page.inner_text("#passing") == ""
    assert not page.evaluate("failed.some(Boolean)")


def test_a_histogram_shows_what_the_filters_of_other_columns_let_pass(page, roll):
    """Its own filter leaves it as it is, so that it can be widened."""
    X, sheet = roll
    page.evaluate("filterBy(columns[1], [30, 60]), filterBy(columns[2], [-5, 5])")
    on_sheet, on_x = (
        (np.float32(v) >= a) & (np.float32(v) <= b)
        for v, a, b in ((sheet, 30, 60), (X[:, 0], -5, 5))
    )
    for k, others in ((1, on_x), (2, on_sheet), (3, on_x & on_sheet)):
        all_of, some = page.evaluate(f"countsOf(columns[{k}]).map((counts) => [...counts])")
        assert (sum(all_of), sum(some)) == (400, others.sum())
        edges = page.evaluate(f"columns[{k}].edges")
        values = np.float32(sheet if k == 1 else X[:, k - 2])
        expected = np.histogram(values[others], len(some), edges)[0]
        assert np.abs(np.array(some) - expected).sum() <= 2  # at an edge by rounding


def test_a_filter_can_be_written_with_the_keyboard(page, roll):
    inputs = page.locator(".histogram", has=page.locator("h3:text-is('sheet')")).locator("input")
    inputs.nth(0).fill("50")
    inputs.nth(0).press("Enter")
    assert (
        page.inner_text("#passing")
        == f"{(np.float32(roll[1]) >= 50).sum()} of 400 points pass the filters."
    )
    inputs.nth(0).fill("")
    inputs.nth(0).press("Enter")
    assert page.inner_text("#passing") == ""


def test_a_lasso_takes_what_passes_only(page, roll):
    page.evaluate("filterBy(columns[1], [50, Infinity])")
    page.evaluate("element('all').click()")
    page.click("#lasso")
    box = page.locator("#points").bounding_box()
    corners = [
        (2, 2),
        (box["width"] - 2, 2),
        (box["width"] - 2, box["height"] - 2),
        (2, box["height"] - 2),
    ]
    drag(page, *((box["x"] + x, box["y"] + y) for x, y in corners))
    assert page.evaluate("[...selected]") == np.flatnonzero(np.float32(roll[1]) >= 50).tolist()


# What stands where


SIZES = [(1400, 900), (390, 844)]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_points_stay_under_the_pointer_at_a_click(browser, audited, width, height):
    for page in _opened(browser, audited[0], viewport={"width": width, "height": height}):
        sizes, places = [], []
        for act in ("null", "choose(10)", "choose(390)", "forget()", "select([1, 2])"):
            page.evaluate(act)
            page.wait_for_timeout(100)
            sizes.append(page.locator("#points").bounding_box())
            places.append(page.evaluate("scatter.placed(10)"))
        assert all(size == sizes[0] for size in sizes)
        assert all(place == places[0] for place in places)


def test_the_choice_of_colour_says_what_colours_the_points(audit_page):
    audit_page.evaluate("choose(10)")
    chosen = "element('colour').selectedOptions[0].textContent"
    assert audit_page.evaluate(chosen) == "distance to p10"
    audit_page.evaluate("forget()")
    assert audit_page.evaluate(chosen) == "trust"
    assert "distance to p10" not in audit_page.inner_text("#colour")


def test_a_few_far_numbers_leave_the_colours_to_the_others_and_the_legend_says_so(page):
    values = "Float64Array.from({ length: 1000 }, (_, k) => (k < 990 ? k / 990 : 9160))"
    low, high, beyond = page.evaluate(
        f"(({{ low, high, above }}) => [low, high, above])(scaleOf({values}))"
    )
    assert low == 0
    assert 1 < high < 3
    assert beyond == 10
    many = "Float64Array.from({ length: 1000 }, (_, k) => (k < 900 ? k / 900 : 9160))"
    assert page.evaluate(f"scaleOf({many}).high") == 9160  # a tenth is a group, not a few
    page.evaluate(f"window.far = {values}.subarray(0, n).fill(9160, 0, 5)")
    page.evaluate("columns.push({ type: 'number', name: 'far', values: far, text: String })")
    page.evaluate("paintBy(columns.length - 1)")
    assert "5 points lie beyond the colours, from" in page.inner_text("#legend")
    page.evaluate("element('options').open = true")
    page.check("#whole")
    assert "beyond" not in page.inner_text("#legend")


def test_on_a_phone_the_tip_stands_below_the_picture_and_all_controls_are_near(browser, audited):
    for page in _opened(
        browser, audited[0], viewport={"width": 390, "height": 844}, has_touch=True
    ):
        tools, stage = (page.locator(name).bounding_box() for name in ("#tools", "#stage"))
        assert tools["height"] <= 844 / 8
        page.touchscreen.tap(*place_of(page, 10))
        tip = page.locator("#tip").bounding_box()
        assert "p10" in page.inner_text("#tip")
        assert tip["y"] >= stage["y"] + stage["height"]
        assert page.locator("#tip").is_visible()
        page.click("#more")
        for name in ("lasso", "names", "worst", "fit", "all", "png", "search", "colour"):
            page.evaluate("element('options').open = true")
            box = page.locator(f"#{name}").bounding_box()
            assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_page_says_what_was_chosen_and_what_not_to_read(page):
    shown = page.inner_text("#lines")
    assert "HeatEmbedding, layout='linear', n_components=3, random_state=0" in shown
    assert "n_neighbors" not in shown
    assert "n_neighbors" in page.evaluate("element('parameters').textContent")
    assert "Do not read areas or densities from it" in page.inner_text("#reading")


def test_the_finer_names_are_written_where_the_picture_is_enlarged(browser, roll, tmp_path):
    X, sheet = roll
    parts = np.array([f"part {k}" for k in (sheet / 15).astype(int)])
    labels = {"half": np.where(sheet < 60, "inner", "outer"), "part": parts, "sheet": sheet}
    model = hs.classical.PCA(2).fit(np.column_stack([sheet, X[:, 1]]))  # parts do not overlap
    hs.report(model, labels=labels, path=tmp_path / "names.html")
    named = "(redraw(), namedColumn(scatter).name)"
    for page in _opened(browser, tmp_path / "names.html"):
        assert page.evaluate(named) == "half"
        page.evaluate("scatter.zoomAt(scatter.width / 2, scatter.height / 2, 2.5)")
        assert page.evaluate(named) == "part"
        until(page, "scatter.named.column.name === 'part' && !scatter.asked")
        boxes = page.evaluate("""scatter.named.places.map((place, k) =>
          place && [...place, ...scatter.named.boxes[k]]).filter(Boolean)""")
        assert len(boxes) > 1
        for k, (x, y, width, height) in enumerate(boxes):
            for u, v, w, h in boxes[:k]:
                assert abs(x - u) >= (width + w) / 2 or abs(y - v) >= (height + h) / 2
        page.evaluate("element('fit').click()")
        assert page.evaluate(named) == "half"


def test_hover_after_a_click_says_the_interval(audit_page):
    audit_page.evaluate("choose(10)")
    audit_page.mouse.move(*place_of(audit_page, 200))
    value, low, high = audit_page.evaluate("sketch.distance(10, hovered).map(short)")
    assert f"to p10 {value} (95 %: {low} to {high})" in audit_page.inner_text("#tip")
    assert audit_page.evaluate("element('tip').querySelector('canvas').width") == 3


def test_selections_and_colours_are_the_same_in_both_pictures(audit_page):
    audit_page.evaluate("select([1, 2, 3])")
    assert audit_page.evaluate("views.every((view) => view.scatter.states === scatter.states)")
    audit_page.evaluate("select([]), element('all').click()")
    box = audit_page.locator("#points-beside").bounding_box()
    x, y = audit_page.evaluate("[...views[1].scatter.onScreen().subarray(20, 22)]")
    audit_page.mouse.click(box["x"] + x, box["y"] + y)
    assert audit_page.evaluate("source") == 10


def test_the_page_of_an_audit_lists_gaps_and_groups(audit_page, audited):
    found = audited[2]
    assert audit_page.inner_text("#colour option:first-child") == "trust"
    assert audit_page.locator("#gap-table tr").count() == 1 + len(found.gaps)
    for kind in ("torn", "merged"):
        groups = getattr(found, kind)
        assert audit_page.locator(f"#{kind} button").count() == len(groups)
        if groups:
            audit_page.click(f"#{kind} li:first-child button")
            assert audit_page.evaluate("[...selected]") == groups[0].tolist()


def test_escape_forgets_everything_asked_for_also_in_the_search(audit_page):
    audit_page.fill("#search", "p39")
    audit_page.press("#search", "Enter")
    assert audit_page.evaluate("source") == 39
    audit_page.press("#search", "Escape")
    assert audit_page.evaluate("[source, selected.size, element('search').value]") == [-1, 0, ""]
    assert audit_page.inner_text("#asked") == audit_page.inner_text("#found") == ""


def test_a_search_says_what_it_found(audit_page):
    for words, said in (("inner", "200 found"), ("nobody", "nothing found"), (" ", "")):
        audit_page.fill("#search", words)
        assert audit_page.inner_text("#found") == said
    audit_page.fill("#search", "nobody")
    audit_page.press("#search", "Enter")
    assert audit_page.evaluate("source") == -1


def test_names_stand_over_their_points(audit_page):
    """And what is more than there is room for is left to the legend."""
    audit_page.select_option("#colour", label="label")
    audit_page.evaluate("""() => {
      window.written = [];
      const usual = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        if (this.textAlign === "center" && this.canvas.id === "overlay") written.push([text, x, y]);
        usual.call(this, text, x, y);
      };
    }""")
    audit_page.evaluate("redraw()")
    until(audit_page, "written.length > 0")
    places = {text: (x, y) for text, x, y in audit_page.evaluate("written")}
    assert places.keys() == {"inner", "outer"}
    P = np.array(audit_page.evaluate("[...scatter.shown()]")).reshape(-1, 2)
    labels = audit_page.evaluate("[...Array(n).keys()].map((k) => shownColumn().text(k))")
    for name, place in places.items():
        nearest = np.argsort(np.linalg.norm(P - place, axis=1))[:20]
        assert np.mean(np.array(labels)[nearest] == name) > 0.9


def test_names_are_written_unless_the_button_says_no(audit_page):
    audit_page.select_option("#colour", label="label")
    for wanted in (True, False, True):
        audit_page.evaluate("""() => {
          window.drawn = [0, 0];
          const [over, names] = [drawOver, drawNames];
          drawOver = (...given) => (drawn[0]++, over(...given));
          drawNames = (...given) => (drawn[1]++, names(...given));
          redraw();
        }""")
        until(audit_page, "drawn[0] >= views.length")
        assert (audit_page.evaluate("drawn[1]") > 0) == wanted
        audit_page.click("#names")


def test_names_are_placed_anew_only_if_something_moves(audit_page):
    audit_page.select_option("#colour", label="label")
    audit_page.evaluate("""() => {
      window.placed = 0;
      window.drawn = 0;
      const [place, draw] = [placeNames, drawNames];
      placeNames = (...given) => (placed++, place(...given));
      drawNames = (...given) => (drawn++, draw(...given));
      views.forEach((view) => (view.scatter.named = null)); // at once: a frame may be pending
      redraw();
    }""")
    until(audit_page, "placed === views.length")
    for change, moves in (
        ("hovered = 3", False),
        ("scatter.zoomAt(9, 9, 1.5)", True),
        ("hovered = 4", False),
        ("element('size').value = 2; scatter.enlarged = 2", True),
        ("scatter.fit()", True),
    ):
        before, drawn = audit_page.evaluate("[placed, drawn]")
        audit_page.evaluate(f"() => {{ {change}; redraw(); }}")
        until(audit_page, f"drawn === {drawn} + views.length")
        assert audit_page.evaluate("placed") == before + moves


def test_the_verdict_and_the_legend_are_seen_without_scrolling(browser, file, audited):
    for path in (file, audited[0]):
        for page in _opened(browser, path, viewport={"width": 1400, "height": 900}):
            assert page.inner_text("#verdict") == page.evaluate("facts.verdict") != ""
            for name in ("verdict", "legend", "beyond"):
                box = page.locator(f"#{name}").bounding_box()
                assert box["y"] + box["height"] <= 900


@pytest.mark.parametrize("width", [390, 1000, 1400])
def test_the_table_of_gaps_is_not_cut(browser, audited, width):
    for page in _opened(browser, audited[0], viewport={"width": width, "height": 900}):
        card = page.locator("#gaps").bounding_box()
        table = page.locator("#gap-table").bounding_box()
        assert table["x"] + table["width"] <= card["x"] + card["width"]


def test_search_finds_ids_and_enter_chooses_the_first(audit_page):
    audit_page.fill("#search", "p39")
    assert audit_page.evaluate("[...selected]") == [39]  # the exact name stands before p390
    audit_page.press("#search", "Enter")
    assert audit_page.evaluate("source") == 39
    audit_page.fill("#search", "inner")
    assert audit_page.evaluate("selected.size") == 200


def test_several_entries_of_the_legend_are_shown_at_once(audit_page):
    audit_page.select_option("#colour", label="label")
    for place in (1, 2):
        audit_page.click(f"#legend button:nth-child({place})")
    assert audit_page.evaluate("groupsShown(shownColumn()).size") == 2
    assert audit_page.evaluate("scatter.states.every((state) => state === PLAIN)")


def test_colours_may_be_logarithmic_or_clipped(audit_page):
    share = audit_page.evaluate("scaleOf([1, 10, 100]).share(10)")
    assert share == pytest.approx(9 / 99)
    audit_page.evaluate("element('log').checked = true")
    assert audit_page.evaluate("scaleOf([1, 10, 100]).share(10)") == pytest.approx(0.5)
    audit_page.evaluate("element('clip').checked = true")
    values = "Array.from({ length: 200 }, (_, k) => k + 1)"
    assert audit_page.evaluate(f"scaleOf({values}).low") == 3


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_picture_is_saved(audit_page, kind):
    audit_page.evaluate("element('options').open = true")
    with audit_page.expect_download() as download:
        audit_page.click(f"#{kind}")
    content = Path(download.value.path()).read_bytes()
    if kind == "png":
        assert content.startswith(b"\x89PNG")
    else:
        assert content.count(b"<circle") == 400


def test_a_notebook_shows_the_page_in_a_frame(browser, roll, tmp_path):
    found = hs.report(hs.HeatSketch(8, 8, random_state=0).fit(roll[0]))
    path = tmp_path / "cell.html"
    path.write_text(f"<!doctype html><body>{found._repr_html_()}</body>", "utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    frame = page.frame_locator("iframe")
    assert "400 points" in frame.locator("#subtitle").inner_text()
    inside = page.frames[1]
    assert inside.evaluate("window.origin") == "null"  # it reaches nothing of the notebook
    inside.evaluate("select([1, 2])")
    with page.expect_download() as download:
        frame.locator("#list").click()
    assert Path(download.value.path()).read_text("utf-8") == "1\n2\n"
    frame.locator("#copy").click()
    until(inside, "element('copy').textContent === 'copied'")
    page.close()


def test_the_slider_goes_from_old_places_to_new_ones(browser, roll, tmp_path):
    places = np.full((400, 2), np.nan)
    places[:300] = hs.HeatEmbedding(random_state=0).fit_transform(roll[0][:300])
    model = hs.HeatEmbedding(random_state=0).fit(roll[0], places=places)
    path = tmp_path / "moved.html"
    hs.report(model, roll[0], path=path)
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    until(page, "element('command').textContent !== ''")
    assert page.evaluate("element('now').value").startswith("new places: ")
    page.evaluate("element('slider').value = 0")
    page.dispatch_event("#slider", "input")
    assert page.evaluate("element('now').value") == "old places"
    page.evaluate("element('slider').value = 0.5")
    page.dispatch_event("#slider", "input")
    assert page.evaluate("element('now').value") == "between old places and new places"
    assert "moved against old neighbours" in page.inner_text("body")
    assert errors == []
    page.close()
