// The colours of the points, and their legend.

const VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37]];
const FENCE = 3, FEW = 0.05, GAIN = 1.5; // quartile ranges beyond a quartile, from where on few numbers share a colour
const PLAIN_COLOUR = "#3b6ea8", MISSING = "#c9c9c9";

function ramp(share) {
  const at = share * (VIRIDIS.length - 1), low = Math.min(Math.floor(at), VIRIDIS.length - 2);
  return VIRIDIS[low].map((c, j) => Math.round(c + (VIRIDIS[low + 1][j] - c) * (at - low)));
}

const inOrder = new WeakMap(); // the finite numbers of a column, sorted
function ordered(values) {
  if (!inOrder.has(values)) inOrder.set(values, Float64Array.from(values.filter(Number.isFinite)).sort());
  return inOrder.get(values);
}

// A number -> 0 … 1, as the options say; the ends of the colours; how many numbers are beyond them.
function scaleOf(values) {
  const known = ordered(values), count = known.length, at = (share) => known[Math.round(share * (count - 1))];
  let [low, high] = [known[0], known[count - 1]];
  if (element("clip").checked) [low, high] = [known[Math.floor(count / 100)], known[count - 1 - Math.floor(count / 100)]];
  const logarithm = element("log").checked && low > 0, on = (x) => (logarithm ? Math.log(x) : x);
  if (!logarithm && !element("clip").checked && !element("whole").checked && count >= 20) {
    const range = at(0.75) - at(0.25); // a few far numbers would leave one colour to all others
    let [first, last] = [Math.max(low, at(0.25) - FENCE * range), Math.min(high, at(0.75) + FENCE * range)];
    if (countBelow(known, first) > FEW * count) first = low;
    if (count - countBelow(known, last, true) > FEW * count) last = high;
    if (range > 0 && high - low > GAIN * (last - first)) [low, high] = [first, last];
  }
  const width = on(high) - on(low) || 1, below = countBelow(known, low), above = count - countBelow(known, high, true);
  return { low, high, below, above, logarithm, share: (x) => Math.min(1, Math.max(0, (on(x) - on(low)) / width)) };
}

function countBelow(sorted, x, equal = false) { // how many numbers are smaller (or equal)
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < x || (equal && sorted[middle] === x)) low = middle + 1;
    else high = middle;
  }
  return low;
}

const bytesOf = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0; // little-endian

function recolour() {
  const column = shownColumn(), colours = new Uint32Array(n).fill(bytesOf(rgb(PLAIN_COLOUR))), states = new Uint8Array(n).fill(PLAIN);
  const missing = bytesOf(rgb(column?.missing || MISSING));
  if (column?.type === "number") {
    const { share } = scaleOf(column.values), steps = Array.from({ length: 256 }, (_, k) => bytesOf(ramp(k / 255)));
    for (let k = 0; k < n; k++) colours[k] = Number.isFinite(column.values[k]) ? steps[Math.round(255 * share(column.values[k]))] : missing;
  } else if (column) {
    const palette = column.colours.map((hex) => bytesOf(rgb(hex)));
    for (let k = 0; k < n; k++) colours[k] = column.values[k] < 0 ? missing : palette[column.groups[column.values[k]]];
  }
  for (let k = 0; k < n; k++) {
    if (failed[k]) states[k] = FADED;
    else if (selected.size) states[k] = selected.has(k) ? LIT : FADED;
  }
  const bytes = new Uint8Array(colours.buffer);
  for (const view of views) view.scatter.paint(bytes, states);
}

function drawLegend() {
  const legend = element("legend"), column = shownColumn();
  // A click on a point changes the legend, and not its height, so that the points stay in their places.
  legend.style.height = reach ? legend.style.height || `${legend.getBoundingClientRect().height}px` : "";
  legend.replaceChildren();
  if (!column) return;
  if (column.type === "number") {
    const { low, high, below, above, logarithm } = scaleOf(column.values);
    say(legend, "span", column.name);
    say(legend, "span", (below ? "≤ " : "") + short(low));
    const bar = say(legend, "canvas"), pen = bar.getContext("2d");
    bar.width = 100;
    bar.height = 1;
    for (let x = 0; x < 100; x++) {
      pen.fillStyle = `rgb(${ramp(x / 99)})`;
      pen.fillRect(x, 0, 1, 1);
    }
    say(legend, "span", (above ? "≥ " : "") + short(high));
    const known = ordered(column.values), notes = [];
    if (logarithm) notes.push("logarithmic");
    if (below + above) notes.push(`${counted(below + above)} points lie beyond the colours, from ${short(known[0])} to ${short(known[known.length - 1])}`);
    if (notes.length) say(legend, "span", `(${notes.join("; ")})`).className = "note";
    return;
  }
  column.legend.forEach((name, group) => {
    const entry = button(legend, undefined, () => toggleGroup(column, group));
    entry.setAttribute("aria-pressed", String(groupsShown(column).has(group)));
    const dot = svg(entry, "svg", { viewBox: "0 0 10 10", class: "dot" });
    svg(dot, "circle", { cx: 5, cy: 5, r: 5, fill: column.colours[group] });
    say(entry, "span", name);
  });
}

function categoryColumn(name, codes, names) { // a column made in the page; more than 20 names share colours
  const palette = facts.palette;
  return {
    name, type: "category", values: codes, codes, names, legend: names, groups: names.map((_, k) => k),
    colours: names.map((_, k) => palette[k % palette.length]), missing: MISSING,
    text: (k) => (codes[k] < 0 ? "missing" : names[codes[k]]),
  };
}
