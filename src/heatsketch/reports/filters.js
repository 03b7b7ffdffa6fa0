// Filters: groups of categories, and ranges brushed on histograms. A point is shown if all let it
// pass. Each histogram shows, over all points, those that pass the filters of the other columns.

const BINS = 48, FIRST_SHOWN = 6, HIGH = 44;
const filters = new Map(); // column -> a set of groups, or [low, high]
const blocked = new Map(); // column -> (n,) whether its filter stops a point
let failed = new Uint8Array(0); // (n,) how many filters stop a point
const listedColumns = []; // those with a histogram
let brushing = null; // the frame in which a brushed range becomes a filter

const groupsShown = (column) => filters.get(column) ?? new Set();
const groupOf = (column, k) => (column.values[k] < 0 ? -1 : column.groups[column.values[k]]);
const passing = () => failed.reduce((sum, stopped) => sum + (stopped === 0), 0);

function filterBy(column, wanted) { // null forgets it
  const before = blocked.get(column);
  if (before) for (let k = 0; k < n; k++) failed[k] -= before[k];
  blocked.delete(column);
  filters.delete(column);
  if (wanted) {
    const stops = new Uint8Array(n), { values } = column;
    if (column.type === "number") for (let k = 0; k < n; k++) stops[k] = !(values[k] >= wanted[0] && values[k] <= wanted[1]);
    else for (let k = 0; k < n; k++) stops[k] = !wanted.has(groupOf(column, k));
    for (let k = 0; k < n; k++) failed[k] += stops[k];
    filters.set(column, wanted);
    blocked.set(column, stops);
  }
  sayFilters();
  drawLegend();
  recolour();
  drawHistograms();
}

function toggleGroup(column, group) {
  const wanted = new Set(groupsShown(column));
  if (!wanted.delete(group)) wanted.add(group);
  filterBy(column, wanted.size ? wanted : null);
}

function sayFilters() {
  const list = element("filters"), count = passing();
  element("passing").value = filters.size ? `${counted(count)} of ${counted(n)} points pass the filters.` : "";
  element("filter-count").textContent = filters.size ? element("passing").value : `All ${counted(n)} points are shown. Drag over a histogram, or click a name, to filter.`;
  list.replaceChildren();
  for (const [column, wanted] of filters) {
    const words = column.type === "number"
      ? `${column.name}: ${short(wanted[0])} to ${short(wanted[1])}`
      : `${column.name}: ${[...wanted].map((group) => column.legend[group]).join(", ")}`;
    button(say(list, "li"), `${words} ✕`, () => filterBy(column, null), "forget this filter");
  }
  element("select-here").hidden = !filters.size;
  element("select-passing").disabled = element("clear-filters").disabled = !filters.size;
}

// Histograms -----------------------------------------------------------------------------------

function binned(column) { // the bin of each point, and the edges; missing numbers have none
  if (column.bins) return column;
  const known = ordered(column.values), { low, high } = scaleOf(column.values), width = (high - low) / BINS || 1;
  column.bins = new Uint8Array(n).fill(255);
  for (let k = 0; k < n; k++) {
    const x = column.values[k];
    if (Number.isFinite(x)) column.bins[k] = Math.min(BINS - 1, Math.max(0, Math.floor((x - low) / width)));
  }
  column.edges = [low, high];
  column.ends = [known[0], known[known.length - 1]];
  return column;
}

function countsOf(column) { // of all points, and of those that pass the filters of other columns
  const size = column.type === "number" ? BINS : column.legend.length, found = [new Float64Array(size), new Float64Array(size)];
  const own = blocked.get(column), bins = column.type === "number" ? binned(column).bins : null;
  for (let k = 0; k < n; k++) {
    const bin = bins ? bins[k] : groupOf(column, k);
    if (bin < 0 || bin >= size) continue;
    found[0][bin]++;
    if (failed[k] - (own ? own[k] : 0) === 0) found[1][bin]++;
  }
  return found;
}

function listColumn(column) {
  if (listedColumns.some((one) => one.column === column)) return;
  const place = say(element("histograms"), "section"), made = { column, place };
  place.className = "histogram";
  listedColumns.push(made);
  say(place, "h3", column.name);
  if (column.type === "number") brushable(made);
  drawHistogram(made);
}

function brushable(made) { // drag over the bars, or write the ends
  const { column, place } = made, { edges } = binned(column);
  made.bars = svg(place, "svg", { viewBox: `0 0 ${BINS * 4} ${HIGH}`, preserveAspectRatio: "none", class: "bars", role: "img" });
  made.bars.setAttribute("aria-label", `histogram of ${column.name}`);
  const line = say(place, "p"), at = (event) => {
    const box = made.bars.getBoundingClientRect(), share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return share;
  };
  // The first and last bars also have what lies beyond.
  const value = (share) => (share <= 0 ? column.ends[0] : share >= 1 ? column.ends[1] : edges[0] + share * (edges[1] - edges[0]));
  made.inputs = ["from", "to"].map((word, side) => {
    const input = say(say(line, "label", `${word} `), "input");
    input.type = "number";
    input.step = "any";
    input.addEventListener("change", () => {
      const [low, high] = made.inputs.map((one, k) => (one.value === "" ? column.ends[k] : Number(one.value)));
      filterBy(column, low <= column.ends[0] && high >= column.ends[1] ? null : [low, high]);
    });
    input.placeholder = short(column.ends[side]);
    return input;
  });
  let from = null, brushed = null;
  made.bars.addEventListener("pointerdown", (event) => {
    made.bars.setPointerCapture(event.pointerId);
    from = at(event);
  });
  made.bars.addEventListener("pointermove", (event) => {
    if (from === null || Math.abs(at(event) - from) < 0.01) return;
    brushing ??= requestAnimationFrame(() => {
      brushing = null;
      filterBy(column, brushed);
    });
    brushed = [Math.min(from, at(event)), Math.max(from, at(event))].map(value);
  });
  made.bars.addEventListener("pointerup", (event) => {
    if (from === null) return;
    cancelAnimationFrame(brushing);
    filterBy(column, brushed); // a click forgets
    from = brushed = brushing = null;
  });
}

function drawHistogram({ column, place, bars, inputs }) {
  const [all, some] = countsOf(column), most = Math.max(1, ...all);
  if (column.type === "number") {
    const wanted = filters.get(column), { edges } = column, share = (x) => Math.min(1, Math.max(0, (x - edges[0]) / (edges[1] - edges[0] || 1)));
    bars.replaceChildren();
    if (wanted) svg(bars, "rect", { class: "area", x: share(wanted[0]) * BINS * 4, width: Math.max(1, (share(wanted[1]) - share(wanted[0])) * BINS * 4), y: 0, height: HIGH });
    for (const [counts, kind] of [[all, "bar pale"], [some, "bar"]])
      svg(bars, "path", { class: kind, d: [...counts].map((count, k) => `M${4 * k} ${HIGH}v${(-HIGH * count) / most}h3.6V${HIGH}z`).join("") });
    inputs.forEach((input, side) => {
      const inside = wanted && wanted[side] > column.ends[0] && wanted[side] < column.ends[1];
      if (input !== document.activeElement) input.value = inside ? exact(wanted[side]) : "";
    });
    return;
  }
  while (place.children.length > 1) place.lastChild.remove();
  const list = say(place, "ul");
  list.className = "groups";
  column.legend.forEach((name, group) => {
    const entry = button(say(list, "li"), undefined, () => toggleGroup(column, group));
    entry.setAttribute("aria-pressed", String(groupsShown(column).has(group)));
    say(entry, "span", name);
    const meter = svg(entry, "svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "meter" });
    for (const [counts, kind] of [[all, "bar pale"], [some, "bar"]])
      svg(meter, "rect", { class: kind, x: 0, y: 0, height: 10, width: (100 * counts[group]) / most });
    say(entry, "span", counted(some[group]));
  });
}

const drawHistograms = () => {
  if (element("columns").open) listedColumns.forEach(drawHistogram);
};

function startFilters() {
  failed = new Uint8Array(n);
  const offered = element("add-column");
  element("columns").hidden = !columns.length;
  const list = () => {
    if (!element("columns").open || listedColumns.length) return;
    columns.filter((one) => one.type === "number" || one.names.length <= one.legend.length).slice(0, FIRST_SHOWN).forEach(listColumn);
  };
  element("columns").addEventListener("toggle", () => (list(), drawHistograms()));
  offered.addEventListener("change", () => {
    if (columns[offered.value]) listColumn(columns[offered.value]);
    offered.value = "";
  });
  columns.forEach(offerColumn);
  element("clear-filters").addEventListener("click", clearFilters);
  for (const id of ["select-passing", "select-here"])
    element(id).addEventListener("click", () => select([...failed.keys()].filter((k) => failed[k] === 0)));
  sayFilters();
  return list;
}

function offerColumn(column) {
  say(element("add-column"), "option", column.name).value = columns.indexOf(column);
}

function clearFilters() {
  for (const column of [...filters.keys()]) filterBy(column, null);
}
