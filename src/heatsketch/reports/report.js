// The page: its facts are read, and everything starts.

const MANY = 12; // columns, beyond which one is found by typing

function view(name, frames, width) {
  const end = name ? `-${name}` : "", own = new Scatter(element(`points${end}`), frames, width);
  return { scatter: own, stage: element(`stage${end}`), overlay: element(`overlay${end}`), tip: element(`tip${end}`) };
}

async function open() {
  const { sketch: packedSketch, ...others } = facts;
  facts = { ...(await unpacked(others)), sketch: packedSketch };
  element("facts").textContent = ""; // a second copy, which may be large
  ({ times, sizes, chosen } = facts.frames);
  [n, d] = facts.frames.positions[0].steps.shape;
  columns = facts.columns.map(read);
  idNames = Object.keys(facts.ids);
  rows = facts.shown;
  distances = facts.distortion;
  painted = columns.length ? 0 : -1;
  views = [view("", facts.frames.positions.map(placesOf), d)];
  ({ scatter } = views[0]);
  scatter.now = chosen;
  scatter.fit();
  if (facts.beside) {
    element("beside").hidden = false;
    element("beside-title").textContent = facts.beside.title;
    element("here-title").textContent = facts.title;
    const [places] = facts.beside.positions;
    views.push(view("beside", [placesOf(places)], places.steps.shape[1]));
  }
  for (const one of views) {
    one.scatter.after = () => drawOver(one);
    listen(one);
  }
  const list = start();
  await new Promise((resume) => requestAnimationFrame(() => setTimeout(resume))); // the picture first
  list();
  if (packedSketch) {
    sketch = new Sketch(await unpacked(packedSketch));
  }
  element("command").textContent = facts.command; // all is read
}

function sayFacts() {
  element("title").textContent = facts.title;
  element("subtitle").textContent = facts.subset
    ? `${counted(n)} points, a selection embedded again.`
    : rows
      ? `${counted(n)} of ${counted(facts.n_points)} points are shown, a random sample and the worst pairs; all figures are those of all points.`
      : `${counted(n)} points, all shown.`;
  element("verdict").textContent = facts.verdict;
  element("reading").textContent = facts.reading;
  element("hint").textContent = `${facts.frames.axes.join(", ")}. ${facts.sketch ? "Click a point: all others take the colour of their true distance to it. " : ""}Drag to ${d > 2 ? "turn or " : ""}move, wheel or two fingers to zoom` +
    (facts.frames.labels ? "; the slider moves points from their old places to the new ones." : times.length > 1 ? "; each time has a scale of its own (the bar is in units of diffusion distance), and between times points move on straight lines." : ".");
  pairs(element("lines"), Object.entries(facts.lines));
  pairs(element("parameters"), Object.entries(facts.parameters));
  pairs(element("versions"), Object.entries(facts.versions));
  // The picture fills what the header leaves of the window.
  new ResizeObserver(([{ target }]) => document.documentElement.style.setProperty("--head", `${target.offsetHeight}px`)).observe(document.querySelector("header"));
  if (facts.gaps && facts.gaps.length) showGaps(facts.gaps);
  if (facts.groups) showGroups(facts.groups);
  if (facts.distortion) showDistances(facts.distortion, times[chosen]);
  if (facts.scales) showScales(facts.scales);
  if (facts.explained) showExplained(facts.explained);
  if (facts.ksum) showKsum(facts.ksum);
}

function start() {
  const press = (id, action) => element(id).addEventListener("click", () => {
    const on = !pressed(id);
    element(id).setAttribute("aria-pressed", String(on));
    action(on);
  });
  const choice = element("colour");
  columns.forEach((column, k) => (say(choice, "option", column.name).value = k));
  say(choice, "option", "none").value = -1;
  choice.value = painted;
  choice.addEventListener("change", () => choice.value !== "reach" && paintBy(choice.value));
  element("column").hidden = columns.length <= MANY;
  element("column").addEventListener("input", ({ target: { value } }) => {
    if (offer(value)[0] === value) colourBy(value);
  });
  element("column").addEventListener("keydown", (event) => {
    const [name] = event.key === "Enter" ? offer(event.target.value) : [];
    if (name) colourBy((event.target.value = name));
  });
  for (const id of ["log", "clip", "whole"]) element(id).addEventListener("input", () => (drawLegend(), recolour()));
  element("opacity").addEventListener("input", (event) => {
    for (const one of views) one.scatter.denser = Number(event.target.value);
    redraw();
  });
  element("size").addEventListener("input", (event) => {
    for (const one of views) one.scatter.enlarged = Number(event.target.value);
    redraw();
  });
  const clear = () => {
    element("search").value = "";
    find("");
  };
  element("search").addEventListener("input", (event) => find(event.target.value));
  element("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") choose(find(event.target.value)[0] ?? -1);
  });
  element("clear").addEventListener("click", clear);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    clear();
    clearFilters();
    forget();
  });
  press("more", (on) => element("rarely").classList.toggle("open", on));
  element("space").hidden = d < 3;
  press("space", (on) => {
    scatter.deep = on;
    scatter.fit();
  });
  press("lasso", (on) => views.forEach(({ stage }) => (stage.style.cursor = on ? "crosshair" : "")));
  press("names", refresh);
  element("worst").disabled = !facts.distortion;
  press("worst", refresh);
  element("fit").addEventListener("click", () => views.forEach((one) => one.scatter.fit()));
  element("all").addEventListener("click", () => views.forEach((one) => one.scatter.fit(true)));
  element("png").addEventListener("click", savePNG);
  element("svg").addEventListener("click", saveSVG);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
  startSelection();
  const list = startFilters();
  if (times.length > 1) {
    element("time").hidden = false;
    element("slider").max = times.length - 1;
    element("slider").addEventListener("input", (event) => {
      play(false);
      moveTo(Number(event.target.value));
    });
    element("play").addEventListener("click", () => (playing ? pause() : play(true)));
  }
  sayFacts();
  if (times.length > 1) moveTo(chosen);
  drawLegend();
  recolour();
  return list;
}

const opened = open();
window.addEventListener("message", listenToKernel);
