// The page: facts in, text and drawings out. Nothing from the facts is ever read as HTML.

const facts = JSON.parse(document.getElementById("facts").textContent);
const element = (id) => document.getElementById(id);
const VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37]];
const SCALE_HEIGHT = 36; // of the bar below the points
const MANY = 12; // columns, beyond which one is found by typing
const LISTED = 200; // rows of a selection in the table; the file has all

function say(parent, tag, text) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function pairs(list, entries) {
  for (const [name, value] of entries) {
    say(list, "dt", name);
    say(list, "dd", value);
  }
}

// Columns ------------------------------------------------------------------------------------

const exact = (value, none) => (Number.isNaN(value) ? none : String(Number(value.toPrecision(6))));

function read(column) {
  const values = unpack(column.type === "number" ? column.values : column.codes);
  const text = column.type === "number"
    ? (k) => exact(values[k], "missing")
    : (k) => (values[k] < 0 ? "missing" : column.names[values[k]]);
  return { ...column, values, text };
}

const columns = facts.columns.map(read);
const idNames = Object.keys(facts.ids);
const rows = facts.shown ? unpack(facts.shown) : null;
const rowOf = (k) => (rows ? rows[k] : k);
const nameOf = (k) => (idNames.length ? facts.ids[idNames[0]][k] : String(rowOf(k)));

function ramp(share) {
  const at = share * (VIRIDIS.length - 1), low = Math.min(Math.floor(at), VIRIDIS.length - 2);
  return VIRIDIS[low].map((c, j) => Math.round(c + (VIRIDIS[low + 1][j] - c) * (at - low)));
}

const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));

// The picture --------------------------------------------------------------------------------

const { times, sizes, chosen } = facts.frames;
const [, n, d] = facts.frames.positions.shape;

function framesOf(positions) { // (times, n, d) -> (n, 3) for each time
  const flat = unpack(positions), [count, , width] = positions.shape;
  const lane = (k) => ((k * 0.6180339887) % 1) * 0.7 - 0.35;
  return Array.from({ length: count }, (_, t) => {
    const frame = new Float32Array(3 * n);
    for (let k = 0; k < n; k++) {
      for (let j = 0; j < width; j++) frame[3 * k + j] = flat[(t * n + k) * width + j];
      if (width === 1) frame[3 * k + 1] = lane(k); // points of a line side by side
    }
    return frame;
  });
}

const scatter = new Scatter(element("points"), framesOf(facts.frames.positions), d);
scatter.now = chosen;
scatter.fit();
const views = [{ scatter, stage: element("stage"), overlay: element("overlay"), tip: element("tip") }];
if (facts.beside) {
  element("beside").hidden = false;
  element("beside-title").textContent = facts.beside.title;
  element("here-title").textContent = facts.title;
  const positions = facts.beside.positions, other = new Scatter(element("points-beside"), framesOf(positions), positions.shape[2]);
  views.push({ scatter: other, stage: element("stage-beside"), overlay: element("overlay-beside"), tip: element("tip-beside") });
}
const redraw = () => views.forEach((view) => view.scatter.redraw());
const sketch = facts.sketch ? new Sketch(facts.sketch) : null;
const usual = Math.min(0.95, Math.max(0.45, 1.5 - 0.2 * Math.log10(n))); // opacity
let selected = new Set(), only = new Set(), pair = null, path = [], hovered = -1;
let source = -1, target = -1, route = [], reach = null; // points clicked, the way between, a column

function shownColumn() {
  return reach || columns[element("colour").value];
}

function scaleOf(values) { // a number -> 0 … 1, as the options say; and the ends
  const known = Float64Array.from(values.filter(Number.isFinite)).sort(), cut = element("clip").checked ? Math.floor(known.length / 100) : 0;
  const low = known[cut], high = known[known.length - 1 - cut], logarithm = element("log").checked && low > 0;
  const on = (x) => (logarithm ? Math.log(x) : x), width = on(high) - on(low) || 1;
  return { low, high, share: (x) => Math.min(1, Math.max(0, (on(x) - on(low)) / width)) };
}

function recolour() {
  const column = shownColumn(), numbers = column && column.type === "number";
  const colours = new Uint8Array(4 * n), states = new Float32Array(n).fill(PLAIN);
  const plain = rgb("#3b6ea8"), missing = rgb((column && column.missing) || "#c9c9c9");
  const { share } = numbers ? scaleOf(column.values) : {};
  const palette = column && column.colours ? column.colours.map(rgb) : [];
  const alpha = Math.round(255 * Math.min(1, usual * element("opacity").value));
  for (let k = 0; k < n; k++) {
    let colour = plain;
    if (numbers) colour = Number.isFinite(column.values[k]) ? ramp(share(column.values[k])) : missing;
    else if (column) {
      const group = column.values[k] < 0 ? -1 : column.groups[column.values[k]];
      colour = group < 0 ? missing : palette[group];
      if (only.size && !only.has(group)) states[k] = FADED;
    }
    colours.set([...colour, alpha], 4 * k);
    if (selected.size && states[k] !== FADED) states[k] = selected.has(k) ? LIT : FADED;
  }
  for (const view of views) view.scatter.paint(colours, states);
}

function drawLegend() {
  const legend = element("legend"), column = shownColumn();
  legend.replaceChildren();
  if (!column) return;
  if (column.type === "number") {
    const { low, high } = scaleOf(column.values);
    if (reach) say(legend, "span", reach.name);
    say(legend, "span", short(low));
    const bar = say(legend, "canvas"), pen = bar.getContext("2d");
    bar.width = 100;
    bar.height = 1;
    for (let x = 0; x < 100; x++) {
      pen.fillStyle = `rgb(${ramp(x / 99)})`;
      pen.fillRect(x, 0, 1, 1);
    }
    say(legend, "span", short(high));
    return;
  }
  column.legend.forEach((name, group) => {
    const button = say(legend, "button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(only.has(group)));
    const dot = svg(button, "svg", { viewBox: "0 0 10 10", class: "dot" });
    svg(dot, "circle", { cx: 5, cy: 5, r: 5, fill: column.colours[group] });
    say(button, "span", name);
    button.addEventListener("click", () => {
      if (!only.delete(group)) only.add(group);
      drawLegend();
      recolour();
    });
  });
}

// What stands over the points: the lasso, worst pairs, the points asked for, names, the scale.
function drawOver({ scatter: own, overlay }) {
  const ratio = window.devicePixelRatio || 1, pen = overlay.getContext("2d");
  const { width, height } = own, style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  if (overlay.width !== own.canvas.width || overlay.height !== own.canvas.height)
    [overlay.width, overlay.height] = [own.canvas.width, own.canvas.height];
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const place = own.onScreen();
  const ring = (k, r) => {
    pen.beginPath();
    pen.arc(place[2 * k], place[2 * k + 1], r, 0, 7);
    pen.stroke();
  };
  const line = (points) => {
    pen.beginPath();
    points.forEach((k) => pen.lineTo(place[2 * k], place[2 * k + 1]));
    pen.stroke();
  };
  const wanted = element("worst").getAttribute("aria-pressed") === "true";
  for (const [end, name] of [["expansion", "--stretched"], ["contraction", "--shrunk"]]) {
    pen.strokeStyle = colour(name);
    for (const found of (distances && distances.worst_pairs[end]) || []) {
      const mine = pair && pair[0] === found[0] && pair[1] === found[1];
      if (!wanted && !mine) continue;
      pen.lineWidth = mine ? 3 : 1.5;
      pen.setLineDash(end === "contraction" ? [4, 3] : []);
      line(found);
      pen.setLineDash([]);
      found.forEach((k) => ring(k, mine ? 9 : 6));
    }
  }
  pen.strokeStyle = colour("--chosen");
  pen.lineWidth = 2.5;
  if (route.length) line(route);
  for (const k of [source, target]) if (k >= 0) ring(k, 9);
  pen.strokeStyle = pen.fillStyle = colour("--ink");
  pen.lineWidth = 1.5;
  if (hovered >= 0) ring(hovered, 8);
  const outside = own.outside();
  if (own === scatter)
    element("outside").textContent = outside.length
      ? `${outside.length.toLocaleString("en")} of ${n.toLocaleString("en")} points lie farther out, ringed at the edge; “all” shows them.` : "";
  for (const [k, x, y] of outside) {
    if (own.states[k] === FADED) continue;
    const [r, g, b] = own.colours.subarray(4 * k, 4 * k + 3);
    pen.fillStyle = `rgb(${r},${g},${b})`;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.arc(x, y, 4, 0, 7);
    pen.fill();
    pen.stroke();
  }
  if (element("names").getAttribute("aria-pressed") === "true") drawNames(pen, own, colour);
  pen.fillStyle = colour("--ink");
  if (path.length && path.own === own) {
    pen.beginPath();
    path.forEach(([x, y]) => pen.lineTo(x, y));
    pen.stroke();
  }
  if (own === scatter) drawScale(pen);
}

function drawNames(pen, own, colour) { // of the categories, with lines to their medians
  const column = shownColumn();
  if (!column || column.type !== "category") return;
  pen.font = "600 13px system-ui, sans-serif";
  // They are placed anew if the points or the window have moved, not whenever the pointer has.
  const given = [column, own.width, own.height, own.size], points = own.shown(), before = own.named;
  if (!before || given.some((x, k) => x !== before.given[k]) || points.some((x, k) => x !== before.points[k])) {
    const boxes = column.legend.map((name) => [pen.measureText(name).width + 4, 14]);
    const codes = Array.from(column.values, (code) => (code < 0 ? -1 : column.groups[code]));
    const found = placeNames(points, codes, boxes, [own.width, own.height - SCALE_HEIGHT], own.size / 2);
    own.named = { given, points, boxes, found };
  }
  const { boxes, found } = own.named;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillStyle = colour("--ink");
  for (const [ink, width] of [["--page", 3], ["--ink", 1]])
    found.forEach((spot, group) => {
      if (!spot || !spot.place) return; // the legend has it
      const { home, place } = spot, half = boxes[group].map((size) => size / 2);
      pen.lineWidth = width;
      pen.strokeStyle = colour(ink);
      pen.beginPath();
      pen.moveTo(...place.map((middle, j) => Math.min(Math.max(home[j], middle - half[j]), middle + half[j])));
      pen.lineTo(...home);
      pen.stroke();
      if (ink === "--page") pen.strokeText(column.legend[group], ...place);
      else pen.fillText(column.legend[group], ...place);
    });
  pen.textAlign = "start";
  pen.textBaseline = "alphabetic";
}

function drawScale(pen) {
  const { width, height } = scatter;
  const [i, j, part] = scatter.between, size = Math.exp(Math.log(sizes[i]) * (1 - part) + Math.log(sizes[j]) * part);
  const most = (0.25 * width * size) / scatter.zoom, ten = 10 ** Math.floor(Math.log10(most));
  const length = ten * [5, 2, 1].find((f) => f * ten <= most), pixels = (length / size) * scatter.zoom;
  if (!Number.isFinite(pixels)) return;
  pen.fillRect(12, height - 14, pixels, 2);
  pen.font = "12px system-ui, sans-serif";
  pen.fillText(short(length), 12, height - 19);
}

for (const view of views) view.scatter.after = () => drawOver(view);

// The distance that is asked for: one click, a second one -----------------------------------------

function choose(k) {
  if (!sketch || k < 0) return;
  if (source < 0 || target >= 0) [source, target, route] = [k, -1, []];
  else if (k === source) return forget();
  else [target, route] = [k, sketch.path(source, k)];
  const values = sketch.from(source), text = (k) => exact(values[k], "none");
  reach = { type: "number", name: `distance to ${nameOf(source)}`, values, text };
  const way = route.length ? `; ${route.length - 1} step${route.length > 2 ? "s" : ""} from neighbour to neighbour` : "";
  element("asked").textContent = target < 0
    ? `Colours are distances to ${nameOf(source)}: ${facts.sketch.what}. Click a second point for the way between them.`
    : `${nameOf(source)} to ${nameOf(target)}: ${interval(source, target)}${way}.`;
  showNear();
  drawLegend();
  select([...selected]); // its table has the distance, too
}

const near = () => sketch.nearest(source, Math.max(1, Number(element("near-count").value)));

function showNear() {
  const column = columns[element("colour").value], made = element("near-table"), points = near();
  element("near").hidden = false;
  element("near-to").textContent = nameOf(source);
  element("near").querySelector(".note").textContent = points.length
    ? "The order is that of estimates: points whose intervals overlap may stand in another order in truth." : "It is alone: nothing diffuses from it.";
  made.replaceChildren();
  const head = say(made, "tr"), names = [idNames[0] ?? "row", ...(column ? [column.name] : []), `distance (${facts.sketch.level} %)`];
  if (points.length) names.forEach((name) => say(head, "th", name));
  for (const k of points) {
    const row = say(made, "tr"), [value, low, high] = sketch.distance(source, k).map(short);
    [nameOf(k), ...(column ? [column.text(k)] : []), `${value} (${low} to ${high})`].forEach((text) => say(row, "td", text));
    row.addEventListener("pointerenter", () => {
      hovered = k;
      redraw();
    });
  }
}

function forget() {
  [source, target, route, reach] = [-1, -1, [], null];
  element("asked").textContent = "";
  element("near").hidden = true;
  drawLegend();
  select([...selected]);
}

function interval(i, j) {
  if (!sketch.joined(i, j)) return "in two components of the graph, between which nothing diffuses";
  const [value, low, high] = sketch.distance(i, j).map(short);
  return `${value} (${facts.sketch.level} %: ${low} to ${high})`;
}

// Time ---------------------------------------------------------------------------------------

// How distances are kept at a time, where that is known.
const distancesAt = (time) => (time === chosen ? facts.distortion : facts.frames.distances[time]);
let distances = facts.distortion; // shown now: those of the nearest time that has some

function moveTo(at) {
  scatter.now = Math.min(times.length - 1, Math.max(0, at));
  element("slider").value = scatter.now;
  const [i, j, part] = scatter.between, near = part < 0.5 ? i : j, still = Math.min(part, 1 - part) < 1e-6;
  let text = still ? `time ${short(times[near])}` : `between ${short(times[i])} and ${short(times[j])}`;
  if (still && near === chosen) text += ", that of the embedding";
  if (distancesAt(near)) {
    const share = `${Math.round(100 * distancesAt(near).within["1.5"])} % of distances kept within a factor of 1.5`;
    text += still ? `: ${share}` : `; time ${short(times[near])}: ${share}`;
    showDistances(distancesAt(near), times[near]);
  }
  element("now").value = text;
  redraw();
}

let playing = null;
function play(wanted) {
  playing = wanted ? { since: performance.now(), from: scatter.now >= times.length - 1 ? 0 : scatter.now } : null;
  element("play").textContent = wanted ? "❚❚" : "▶";
  element("play").setAttribute("aria-label", wanted ? "stop" : "move through the times");
  if (wanted) requestAnimationFrame(advance);
}

function pause() { // at the nearest time: between two, points are on no embedding
  play(false);
  moveTo(Math.round(scatter.now));
}

function advance(now) {
  if (!playing) return;
  const u = playing.from + Math.max(0, now - playing.since) / 1200, whole = Math.floor(u), x = u - whole;
  moveTo(whole + x * x * (3 - 2 * x)); // slow at the times, faster between
  if (u >= times.length - 1) play(false);
  else requestAnimationFrame(advance);
}

// Pointer: hover, move, turn, zoom, lasso -------------------------------------------------------

function hover({ scatter: own, tip }, x, y) {
  const k = own.nearest(x, y, 14);
  if (k !== hovered) {
    hovered = k;
    redraw();
  }
  tip.hidden = k < 0;
  if (k < 0) return;
  tip.replaceChildren();
  const line = (name, value) => {
    const row = say(tip, "div");
    say(row, "b", name);
    row.append(` ${value}`);
  };
  if (facts.images) drawImage(say(tip, "canvas"), k);
  if (!idNames.length) line("row", String(rowOf(k)));
  for (const name of idNames) line(name, facts.ids[name][k]);
  if (source >= 0 && k !== source) line(`to ${nameOf(source)}`, interval(source, k));
  const listed = new Set([columns[element("colour").value], ...columns].filter(Boolean)); // the colour first
  [...listed].slice(0, 10).forEach((column) => line(column.name, column.text(k)));
  if (columns.length > 10) say(tip, "div", `and ${columns.length - 10} more`);
  tip.style.left = `${x > own.width / 2 ? Math.max(0, x - tip.offsetWidth - 14) : x + 14}px`;
  tip.style.top = `${Math.max(0, Math.min(y + 14, own.height - tip.offsetHeight))}px`;
}

const pixels = facts.images ? unpack(facts.images) : null;
function drawImage(canvas, k) { // bright on dark
  const [, height, width] = facts.images.shape, pen = canvas.getContext("2d");
  [canvas.width, canvas.height, canvas.className] = [width, height, "image"];
  const image = pen.createImageData(width, height);
  for (let p = 0; p < width * height; p++) {
    const grey = pixels[k * width * height + p];
    image.data.set([grey, grey, grey, 255], 4 * p);
  }
  pen.putImageData(image, 0, 0);
}

function listen(view) {
  const { scatter: own, stage, tip } = view, pointers = new Map();
  let drag = null;
  const at = (event) => {
    const box = own.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  stage.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    stage.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, at(event));
    const circling = event.shiftKey || element("lasso").getAttribute("aria-pressed") === "true";
    drag = { from: at(event), kind: circling ? "lasso" : own.deep && !event.ctrlKey ? "turn" : "move" };
    path = Object.assign(circling ? [at(event)] : [], { own });
  });

  stage.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (!pointers.has(event.pointerId)) return hover(view, x, y);
    const before = pointers.get(event.pointerId);
    pointers.set(event.pointerId, [x, y]);
    if (pointers.size === 2) { // two fingers zoom
      const [[ax, ay], [bx, by]] = [...pointers.values()];
      const gap = Math.hypot(ax - bx, ay - by);
      if (drag && drag.gap) own.zoomAt((ax + bx) / 2, (ay + by) / 2, gap / drag.gap);
      drag = { kind: "zoom", gap };
      path = [];
      return;
    }
    const [dx, dy] = [x - before[0], y - before[1]];
    if (drag.kind === "lasso") path.push([x, y]);
    else if (drag.kind === "turn") {
      own.angles[0] += dx / 150;
      own.angles[1] += dy / 150;
    } else if (drag.kind === "move" && Math.hypot(x - drag.from[0], y - drag.from[1]) > 3) {
      own.framed = false;
      own.centre[0] -= dx / own.zoom;
      own.centre[1] += dy / own.zoom;
    }
    own.redraw();
  });

  for (const kind of ["pointerup", "pointercancel"])
    stage.addEventListener(kind, (event) => {
      if (!pointers.delete(event.pointerId) || pointers.size) return;
      const [x, y] = at(event), still = drag.from && Math.hypot(x - drag.from[0], y - drag.from[1]) <= 3;
      if (drag.kind === "lasso" && path.length > 2) select(own.inside(path));
      else if (drag.kind !== "zoom") {
        if (still && kind === "pointerup") choose(own.nearest(x, y, 14));
        hover(view, x, y); // a tap on a screen without a mouse
      }
      path = [];
      redraw();
    });

  stage.addEventListener("pointerleave", () => {
    hovered = -1;
    tip.hidden = true;
    redraw();
  });
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    own.zoomAt(...at(event), Math.exp(-event.deltaY / 500));
  }, { passive: false });
  stage.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -0.1, ArrowRight: 0.1 }[event.key], zoom = { "+": 1.2, "-": 1 / 1.2 }[event.key];
    if (step && times.length > 1) moveTo(scatter.now + step);
    if (zoom) own.zoomAt(own.width / 2, own.height / 2, zoom);
    if (step || zoom) event.preventDefault();
  });
}

views.forEach(listen);

// Search: by id, number of the row, or the text of a column ---------------------------------------

function search(words) {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  const texts = [...idNames.map((name) => (k) => facts.ids[name][k]), ...columns.filter((c) => c.type !== "number").map((c) => c.text)];
  if (!idNames.length) texts.unshift((k) => String(rowOf(k)));
  const exact = [], partly = [];
  for (let k = 0; k < n; k++) {
    const mine = texts.map((text) => text(k).toLowerCase());
    if (mine.includes(wanted)) exact.push(k);
    else if (mine.some((text) => text.includes(wanted))) partly.push(k);
  }
  return exact.length ? exact : partly;
}

function find(words) {
  const found = search(words);
  element("found").value = !words.trim() ? "" : found.length ? `${found.length.toLocaleString("en")} found` : "nothing found";
  select(found);
  return found;
}

// Colours by name: of the page, and of a notebook's kernel, which is asked for others (widget.js) ----

let kernel = null, offered = []; // the window that speaks for it, and the names of its columns

function tellKernel(what) {
  if (kernel) kernel.postMessage(what, "*");
}

function offer(words) { // the first names that begin with the words, then those that contain them
  const wanted = words.trim().toLowerCase(), list = element("column-names");
  const fitting = [...new Set([...columns.map((column) => column.name), ...offered])].filter((name) => name.toLowerCase().includes(wanted));
  const rank = (name) => (name === words ? 0 : name.toLowerCase().startsWith(wanted) ? 1 : 2);
  const found = fitting.sort((a, b) => rank(a) - rank(b)).slice(0, 50);
  list.replaceChildren();
  if (wanted) found.forEach((name) => (say(list, "option").value = name));
  return wanted ? found : [];
}

function colourBy(name) {
  const k = columns.findIndex((column) => column.name === name);
  element("found").value = k < 0 ? `asking the kernel for ${name} …` : "";
  if (k < 0) return tellKernel({ wanted: name });
  element("colour").value = k;
  element("colour").dispatchEvent(new Event("change"));
}

function listenToKernel({ source: from, data }) {
  if (from === window || from !== window.parent || !data) return;
  if (data.names) {
    [kernel, offered] = [from, data.names];
    element("column").hidden = false;
  }
  if (data.missing) element("found").value = data.missing;
  if (data.column) {
    say(element("colour"), "option", data.column.name).value = columns.push(read(data.column)) - 1;
    colourBy(data.column.name);
  }
}

// Selection ------------------------------------------------------------------------------------

const known = () => (reach ? [reach, ...columns] : columns);
const heads = () => ["row", ...idNames, ...known().map((column) => column.name)];
const cells = (k) => [String(rowOf(k)), ...idNames.map((name) => facts.ids[name][k]), ...known().map((column) => column.text(k))];

function select(found) {
  selected = new Set(found);
  element("selection").hidden = !selected.size;
  element("count").textContent = `${found.length.toLocaleString("en")} of ${n.toLocaleString("en")} points` +
    (found.length > LISTED ? `, the first ${LISTED} here` : "");
  const table = element("selected");
  table.replaceChildren();
  const head = say(table, "tr");
  heads().forEach((name) => say(head, "th", name));
  found.slice(0, LISTED).forEach((k) => {
    const row = say(table, "tr");
    cells(k).forEach((text) => say(row, "td", text));
  });
  recolour();
  tellKernel({ selected: found.map(rowOf) });
}

const idsOf = (found) => found.map((k) => nameOf(k)).join("\n") + "\n";

async function copy(found, button) {
  const area = element("by-hand"), words = button.textContent;
  area.hidden = true;
  try {
    await navigator.clipboard.writeText(idsOf(found));
  } catch { // not allowed here, as in some frames: the older way, or by hand
    area.value = idsOf(found);
    area.hidden = false;
    button.closest("p").after(area);
    area.select();
    area.hidden = document.execCommand("copy");
  }
  button.textContent = area.hidden ? "copied" : "press Ctrl+C";
  setTimeout(() => (button.textContent = words), 2000);
}

function table() { // the selection as CSV (RFC 4180)
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [heads(), ...[...selected].map(cells)].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function savePNG() { // as it is on the screen
  const { canvas } = scatter, made = document.createElement("canvas"), pen = made.getContext("2d");
  [made.width, made.height] = [canvas.width, canvas.height];
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--page");
  pen.fillRect(0, 0, made.width, made.height);
  if (scatter.gl) scatter.draw();
  pen.drawImage(canvas, 0, 0);
  pen.drawImage(element("overlay"), 0, 0);
  made.toBlob((blob) => save(blob, "picture.png"));
}

function saveSVG() {
  const place = scatter.onScreen(), { width, height } = scatter, r = scatter.size / 2;
  const dots = Array.from({ length: n }, (_, k) => {
    const [red, green, blue, alpha] = scatter.colours.subarray(4 * k, 4 * k + 4);
    const opacity = scatter.states[k] === FADED ? 0.08 : alpha / 255, [x, y] = [place[2 * k], place[2 * k + 1]];
    return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${r.toFixed(1)}" fill="rgb(${red},${green},${blue})" fill-opacity="${opacity.toFixed(2)}"/>`;
  });
  const text = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}">\n${dots.join("\n")}\n</svg>\n`;
  save(new Blob([text], { type: "image/svg+xml" }), "picture.svg");
}

// The cards ------------------------------------------------------------------------------------

function card(id, line, note) {
  const found = element(id);
  found.hidden = false;
  for (const [name, text] of [[".line", line], [".note", note]])
    if (text) found.querySelector(name).textContent = text;
  return [...found.querySelectorAll(".chart")];
}

function showDistances(found, time) {
  if (found === distances && element("pairs").firstChild) return;
  element("distances-time").textContent = time === null ? "" : ` at time ${short(time)}`;
  [distances, pair] = [found, null];
  const { line, looked_at, histogram: [edges, counts], worst_pairs: worst, median } = found;
  const total = counts.reduce((a, b) => a + b, 0) || 1, [place] = card("distances", line, `Compared: ${looked_at}.`);
  const share = counts.map((count) => (100 * count) / total);
  place.replaceChildren();
  chart(place, {
    x: { low: edges[0], high: edges[edges.length - 1], log: true, label: "distance in the picture / diffusion distance, median 1", ticks: [0.125, 0.25, 0.5, 1, 2, 4, 8] },
    y: { low: 0, high: Math.max(...share) * 1.05, label: "pairs (%)" },
    bars: share.map((y, k) => [edges[k], edges[k + 1], y]),
    upright: [{ x: 1 }],
  });
  const list = element("pairs");
  list.replaceChildren();
  for (const [end, word] of [["expansion", "stretched"], ["contraction", "shrunk"]])
    worst[end].forEach((points, place) => {
      const button = say(say(list, "li"), "button"), ratio = found[end] / median;
      const size = place === 0 && Number.isFinite(ratio) && ratio > 0 ? ` × ${short(ratio)}` : "";
      button.type = "button";
      button.textContent = `${points.map(nameOf).join(" – ")} ${word}${size}`;
      button.addEventListener("click", () => {
        pair = pair === points ? null : points;
        redraw();
      });
    });
}

function showGaps(found) { // pairs of labels, the nearest first
  card("gaps");
  const made = element("gap-table"), head = say(made, "tr");
  ["labels", "true distance (95 %)", "in the picture", "place there (true)", ""].forEach((name) => say(head, "th", name));
  for (const gap of found) {
    const row = say(made, "tr"), [value, low, high] = gap.distance;
    [gap.labels.join(" – "), `${short(value)} (${short(low)} to ${short(high)})`, short(gap.picture),
      `${gap.rank} (${gap.true_ranks.join(" to ")})`, gap.believed ? "believed" : "not in its place"].forEach((text) => say(row, "td", text));
    if (!gap.believed) row.className = "wrong";
  }
}

function showGroups(found) { // torn and merged groups, each to be clicked
  card("groups");
  for (const [kind, groups] of Object.entries(found)) {
    const list = element(kind);
    if (!groups.length) say(say(list, "li"), "span", "none");
    for (const members of groups) {
      const button = say(say(list, "li"), "button", `${members.length.toLocaleString("en")} points`);
      button.type = "button";
      button.addEventListener("click", () => select(members));
    }
  }
}

function showScales(found) {
  const t = found.times, x = { low: t[0], high: t[t.length - 1], log: true, label: "diffusion time" };
  const [below] = card("scales", "", "How many directions are left at a time, the effective rank of the heat kernel.");
  const now = found.time >= t[0] && found.time <= t[t.length - 1] ? [{ x: found.time, text: `time ${short(found.time)}` }] : [];
  const k = facts.n_coordinates, [low, high] = [Math.min(1, ...found.low), Math.max(...found.high, k + 2)];
  const level = [{ y: k + 1, text: `${k} coordinates and the trivial one` }];
  if (found.components > 1) level.push({ y: found.components, text: `${found.components} components` });
  chart(below, {
    x, y: { low: Math.max(low, 0.9), high: 1.2 * high, log: true, label: "effective rank" },
    bands: [{ x: t, low: found.low, high: found.high }], lines: [{ x: t, y: found.effective_rank }], level, upright: now,
  });
}

function showExplained({ line, ratio, cumulative, cumulative_low: low, cumulative_high: high }) {
  const [place] = card("explained", line), hundred = (values) => values.map((share) => 100 * share);
  const x = ratio.map((_, k) => k + 1), whole = x.length < 6 ? x : undefined;
  chart(place, {
    x: { low: 0.4, high: x.length + 0.6, label: "coordinates", ticks: whole },
    y: { low: 0, high: 104, label: "%" },
    bars: x.map((k) => [k - 0.4, k + 0.4, 100 * ratio[k - 1]]),
    bands: x.length > 1 ? [{ x, low: hundred(low), high: hundred(high) }] : [],
    lines: [{ x, y: hundred(cumulative) }],
    dots: x.map((k) => ({ x: k, y: 100 * cumulative[k - 1] })),
  });
}

function showKsum(found) {
  if (found.why_not) return card("ksum", `There is no Ksum test: ${found.why_not}`);
  const line = `Ksum: ε ${short(found.epsilon)}, dimension ${short(found.dimension)}`;
  const note = found.used === null
    ? "The embedding has a bandwidth for each pair of points, not this one."
    : `The embedding was made with ε ${short(found.used)}.`;
  const [place] = card("ksum", line, note), x = found.epsilons, y = found.slopes;
  const upright = [{ x: found.epsilon, text: `ε ${short(found.epsilon)}` }];
  if (found.used !== null && found.used >= x[0] && found.used <= x[x.length - 1] && Math.abs(Math.log(found.used / found.epsilon)) > 0.01)
    upright.push({ x: found.used, text: "used" });
  chart(place, {
    x: { low: x[0], high: x[x.length - 1], log: true, label: "bandwidth ε" },
    y: { low: Math.min(0, ...y), high: 1.2 * Math.max(found.dimension / 2, ...y), label: "slope d log S / d log ε" },
    lines: [{ x, y }], dots: [{ x: found.epsilon, y: found.dimension / 2, best: true }], upright,
  });
}

// Start ----------------------------------------------------------------------------------------

function start() {
  const press = (id, action) => element(id).addEventListener("click", () => {
    const on = element(id).getAttribute("aria-pressed") !== "true";
    element(id).setAttribute("aria-pressed", String(on));
    action(on);
  });
  element("title").textContent = facts.title;
  const points = (count) => count.toLocaleString("en");
  element("subtitle").textContent = rows
    ? `${points(n)} of ${points(facts.n_points)} points are shown, a random sample and the worst pairs; all figures are those of all points.`
    : `${points(n)} points, all shown.`;
  element("verdict").textContent = facts.verdict;
  element("hint").textContent = `${facts.frames.axes.join(", ")}. ${sketch ? "Click a point: all others take the colour of their true distance to it. " : ""}Drag to ${d > 2 ? "turn or " : ""}move, wheel or two fingers to zoom` +
    (times.length > 1 ? "; each time has a scale of its own (the bar is in units of diffusion distance), and between times points move on straight lines." : ".");
  const choice = element("colour");
  columns.forEach((column, k) => (say(choice, "option", column.name).value = k));
  say(choice, "option", "none").value = -1;
  const changed = () => {
    drawLegend();
    recolour();
  };
  element("column").hidden = columns.length <= MANY;
  element("column").addEventListener("input", ({ target: { value } }) => {
    if (offer(value)[0] === value) colourBy(value);
  });
  element("column").addEventListener("keydown", (event) => {
    const [name] = event.key === "Enter" ? offer(event.target.value) : [];
    if (name) colourBy((event.target.value = name));
  });
  window.addEventListener("message", listenToKernel);
  choice.addEventListener("change", () => {
    only = new Set();
    forget();
  });
  for (const id of ["log", "clip", "opacity"]) element(id).addEventListener("input", changed);
  element("size").addEventListener("input", (event) => {
    for (const view of views) view.scatter.enlarged = Number(event.target.value);
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
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    clear();
    forget();
  });
  element("space").hidden = d < 3;
  press("space", (on) => {
    scatter.deep = on;
    scatter.fit();
  });
  press("lasso", (on) => views.forEach(({ stage }) => (stage.style.cursor = on ? "crosshair" : "")));
  press("names", redraw);
  element("worst").disabled = !facts.distortion;
  press("worst", redraw);
  element("fit").addEventListener("click", () => views.forEach((view) => view.scatter.fit()));
  element("all").addEventListener("click", () => views.forEach((view) => view.scatter.fit(true)));
  element("save").addEventListener("click", () => save(new Blob([table()], { type: "text/csv;charset=utf-8" }), "selected.csv"));
  element("copy").addEventListener("click", (event) => copy([...selected], event.target));
  element("list").addEventListener("click", () => save(new Blob([idsOf([...selected])], { type: "text/plain;charset=utf-8" }), "ids.txt"));
  element("near-copy").addEventListener("click", (event) => copy(near(), event.target));
  element("near-select").addEventListener("click", () => select(near()));
  element("near-count").addEventListener("input", showNear);
  element("png").addEventListener("click", savePNG);
  element("svg").addEventListener("click", saveSVG);
  element("clear").addEventListener("click", clear);
  if (times.length > 1) {
    element("time").hidden = false;
    element("slider").max = times.length - 1;
    element("slider").addEventListener("input", (event) => {
      play(false);
      moveTo(Number(event.target.value));
    });
    element("play").addEventListener("click", () => (playing ? pause() : play(true)));
    moveTo(chosen);
  }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  pairs(element("lines"), Object.entries(facts.lines));
  pairs(element("parameters"), Object.entries(facts.parameters));
  pairs(element("versions"), Object.entries(facts.versions));
  element("command").textContent = facts.command;
  if (facts.gaps && facts.gaps.length) showGaps(facts.gaps);
  if (facts.groups) showGroups(facts.groups);
  if (facts.distortion) showDistances(facts.distortion, times[chosen]);
  if (facts.scales) showScales(facts.scales);
  if (facts.explained) showExplained(facts.explained);
  if (facts.ksum) showKsum(facts.ksum);
  drawLegend();
  recolour();
}

start();
