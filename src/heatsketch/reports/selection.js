// The points selected: their table, what distinguishes them, names for them.

const LISTED = 200; // rows of a selection in the table; the file has all
const FEATURES = 20, SHARES = 6; // listed of what distinguishes a selection
let against = null; // the points kept to compare with, in place of all others
let notes = null; // the column of the names given to selections

const known = () => (reach ? [reach, ...columns] : columns);
const heads = () => ["row", ...idNames, ...known().map((column) => column.name)];
const cells = (k) => [String(rowOf(k)), ...idNames.map((name) => facts.ids[name][k]), ...known().map((column) => column.text(k))];
const idsOf = (found) => found.map((k) => nameOf(k)).join("\n") + "\n";

function select(found) {
  selected = new Set(found);
  showSelected();
  compare();
  tellKernel({ selected: Array.from(found, rowOf) });
}

function showSelected() {
  element("selection").hidden = !selected.size;
  element("count").textContent = `${counted(selected.size)} of ${counted(n)} points` +
    (selected.size > LISTED ? `, the first ${LISTED} here` : "");
  const made = element("selected");
  made.replaceChildren();
  const head = say(made, "tr");
  heads().forEach((name) => say(head, "th", name));
  let left = LISTED;
  for (const k of selected) {
    if (!left--) break;
    const row = say(made, "tr");
    cells(k).forEach((text) => say(row, "td", text));
  }
  recolour();
}

async function copy(found, pressedButton) {
  const area = element("by-hand"), words = pressedButton.textContent;
  area.hidden = true;
  try {
    await navigator.clipboard.writeText(idsOf(found));
  } catch { // not allowed here, as in some frames: the older way, or by hand
    area.value = idsOf(found);
    area.hidden = false;
    pressedButton.closest("p").after(area);
    area.select();
    area.hidden = document.execCommand("copy");
  }
  pressedButton.textContent = area.hidden ? "copied" : "press Ctrl+C";
  setTimeout(() => (pressedButton.textContent = words), 2000);
}

function csv(lines) { // RFC 4180
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return new Blob([lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n"], { type: "text/csv;charset=utf-8" });
}

// What distinguishes them ------------------------------------------------------------------------

let comparison = 0; // the last one that was begun
async function compare() {
  const mine = ++comparison, others = against && [...against].filter((k) => !selected.has(k)).length;
  element("against").textContent = against ? `${counted(others)} points kept before` : `the ${counted(n - selected.size)} others`;
  element("keep").textContent = against ? "compare with all others" : "compare the next selection with these";
  element("differences").hidden = !selected.size || (against ? others : n - selected.size) === 0;
  for (const id of ["markers", "shares"]) element(id).replaceChildren(); // those of the selection before
  if (element("differences").hidden) return;
  const found = [];
  for (const column of columns.filter((one) => one.type === "number")) {
    await new Promise((resume) => setTimeout(resume)); // the page stays alive
    if (mine !== comparison) return;
    const { area, medians, p } = compareSorted(...split(column.values, selected, against));
    if (!Number.isNaN(area)) found.push({ name: column.name, area, medians, p, column });
  }
  const p = corrected(found.map((one) => one.p));
  showMarkers(found.map((one, k) => ({ ...one, p: p[k] })), "columns of numbers in the page");
  showShares();
}

function showMarkers(found, of, count = found.length) { // features by effect
  const made = element("markers"), kept = found.slice().sort((a, b) => Math.abs(b.area - 0.5) - Math.abs(a.area - 0.5)).slice(0, FEATURES);
  made.replaceChildren();
  element("markers-of").textContent = found.length
    ? `${count > kept.length ? `The ${kept.length} that differ most of ${counted(count)}` : `Compared: ${counted(count)}`} ${count === 1 ? of.replace("columns", "column") : of}. The area under the curve is how often one of these points has a larger number than one of the others. ` +
      "p is of Wilcoxon's rank-sum test, corrected for all columns (Benjamini and Hochberg). It is too small for a group that was drawn in the picture, because the picture was made of the same numbers."
    : "The page has no columns of numbers to compare.";
  if (!kept.length) return;
  const head = say(made, "tr");
  ["", "area", "median", "of others", "p", ""].forEach((name) => say(head, "th", name));
  for (const { name, area, medians, p, column } of kept) {
    const row = say(made, "tr");
    const first = say(row, "td");
    button(first, name, () => colourBy(name), `colour by ${name}`);
    [area.toFixed(3), ...medians.map(short), p < 1e-300 ? "< 1e-300" : short(p)].forEach((text) => say(row, "td", text));
    if (column) drawBoth(say(row, "td"), column);
  }
}

function drawBoth(place, column) { // histograms of the selection, and of the others as a line
  const { bins } = binned(column), counts = [new Float64Array(BINS), new Float64Array(BINS)];
  for (let k = 0; k < n; k++) {
    if (bins[k] === 255) continue;
    if (selected.has(k)) counts[0][bins[k]]++;
    else if (!against || against.has(k)) counts[1][bins[k]]++;
  }
  const shares = counts.map((each) => each.map((count) => count / (each.reduce((a, b) => a + b, 0) || 1)));
  const most = Math.max(...shares[0], ...shares[1]), up = (share) => 20 - (19 * share) / most;
  const made = svg(place, "svg", { viewBox: `0 0 ${BINS} 20`, preserveAspectRatio: "none", class: "both" });
  svg(made, "path", { class: "best", d: `M0 20${[...shares[0]].map((share, k) => `L${k} ${up(share)}h1`).join("")}L${BINS} 20Z` });
  svg(made, "path", { class: "outline", d: `M0 20${[...shares[1]].map((share, k) => `L${k} ${up(share)}h1`).join("")}L${BINS} 20` });
}

function showShares() { // categories that are more, or less, frequent than among the others
  const list = element("shares"), found = [];
  list.replaceChildren();
  for (const column of columns.filter((one) => one.type === "category" && one !== notes)) {
    const counts = [0, 1].map(() => new Float64Array(column.legend.length)), totals = [0, 0];
    for (let k = 0; k < n; k++) {
      const side = selected.has(k) ? 0 : !against || against.has(k) ? 1 : -1, group = groupOf(column, k);
      if (side < 0) continue;
      totals[side]++;
      if (group >= 0) counts[side][group]++;
    }
    column.legend.forEach((name, group) => {
      const [here, there] = [0, 1].map((side) => counts[side][group] / totals[side]);
      found.push({ words: `${column.name} = ${name}: ${Math.round(100 * here)} % here, ${Math.round(100 * there)} % there`, size: here - there });
    });
  }
  found.sort((a, b) => b.size - a.size).slice(0, SHARES).filter(({ size }) => size >= 0.01).forEach(({ words }) => say(list, "li", words));
}

function keep() {
  against = against ? null : selected;
  compare();
}

// Names for selections -----------------------------------------------------------------------------

function annotate(given) {
  const name = given.trim();
  if (!name || !selected.size) return;
  if (!notes) {
    let title = "annotation";
    while (columns.some((column) => column.name === title)) title += " again";
    notes = categoryColumn(title, new Int32Array(n).fill(-1), []);
    addColumn(notes);
  }
  let code = notes.names.indexOf(name);
  if (code < 0) {
    code = notes.names.push(name) - 1;
    notes.groups.push(code);
    notes.colours.push(facts.palette[code % facts.palette.length]);
  }
  for (const k of selected) notes.values[k] = code;
  for (const view of views) view.scatter.named = null;
  if (filters.has(notes)) filterBy(notes, filters.get(notes));
  drawHistograms();
  paintBy(columns.indexOf(notes));
  element("save-notes").hidden = false;
  const members = notes.names.map(() => []);
  notes.values.forEach((own, k) => own >= 0 && members[own].push(rowOf(k)));
  tellKernel({ annotations: Object.fromEntries(notes.names.map((own, place) => [own, members[place]])) });
}

function saveNotes() {
  const named = [...notes.values.keys()].filter((k) => notes.values[k] >= 0);
  save(csv([["row", ...idNames, notes.name], ...named.map((k) => [String(rowOf(k)), ...idNames.map((name) => facts.ids[name][k]), notes.text(k)])]), "annotations.csv");
}

// The selection embedded again ---------------------------------------------------------------------

function sayAgain(can = []) { // by the kernel where there is one, else by a command
  element("again").hidden = !can.includes("again");
  element("back").hidden = !can.includes("back");
  element("all-markers").hidden = !can.includes("compare");
  element("again-command").hidden = can.includes("again") || !facts.again;
  element("again-lines").textContent = facts.again ?? "";
}

function startSelection() {
  const on = (id, action) => element(id).addEventListener("click", action);
  on("save", () => save(csv([heads(), ...[...selected].map(cells)]), "selected.csv"));
  on("copy", (event) => copy([...selected], event.target));
  on("list", () => save(new Blob([idsOf([...selected])], { type: "text/plain;charset=utf-8" }), "ids.txt"));
  on("rows", () => save(new Blob([[...selected].map(rowOf).join("\n") + "\n"], { type: "text/plain" }), "rows.txt"));
  on("near-copy", (event) => copy(near(), event.target));
  on("near-select", () => select(near()));
  element("near-count").addEventListener("input", showNear);
  on("keep", keep);
  on("name", () => annotate(element("new-name").value));
  element("new-name").addEventListener("keydown", (event) => {
    if (event.key === "Enter") annotate(event.target.value);
  });
  on("save-notes", saveNotes);
  on("again", () => {
    element("again").textContent = "the kernel embeds them …";
    tellKernel({ again: [...selected].map(rowOf) });
  });
  on("back", () => tellKernel({ back: true }));
  on("all-markers", () => {
    element("markers-of").textContent = "The kernel compares all its columns …";
    const rest = against ?? (facts.subset ? Array.from({ length: n }, (_, k) => k) : null); // of this page
    tellKernel({ compare: { selected: [...selected].map(rowOf), against: rest && [...rest].filter((k) => !selected.has(k)).map(rowOf) } });
  });
  sayAgain();
}
