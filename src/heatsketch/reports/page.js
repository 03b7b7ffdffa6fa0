// What all parts of the page share: the facts, the points chosen, and a few helpers.
// Nothing from the facts is ever read as HTML.

let facts = JSON.parse(document.getElementById("facts").textContent); // packed until `open` has read them
const element = (id) => document.getElementById(id);
const counted = (number) => number.toLocaleString("en");
const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));

let columns, idNames, rows, times, sizes, chosen, n, d, scatter, views, sketch = null;
let selected = new Set(), pair = null, path = [], hovered = -1;
let source = -1, target = -1, route = [], reach = null; // points clicked, the way between, a column
let painted = -1; // the number of the column that colours the points, when no distance does
let distances; // how they are kept at the time shown: those of the nearest time that has some

const rowOf = (k) => (rows ? rows[k] : k);
const nameOf = (k) => (idNames.length ? facts.ids[idNames[0]][k] : String(rowOf(k)));
const shownColumn = () => reach || columns[painted];
const refresh = () => views.forEach((view) => view.scatter.refresh()); // what stands over the points
const redraw = () => views.forEach((view) => view.scatter.redraw()); // and the points
const pressed = (id) => element(id).getAttribute("aria-pressed") === "true";

function say(parent, tag, text) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function button(parent, text, action, title = "") {
  const button = say(parent, "button", text);
  button.type = "button";
  if (title) button.title = title;
  button.addEventListener("click", action);
  return button;
}

function pairs(list, entries) {
  for (const [name, value] of entries) {
    say(list, "dt", name);
    say(list, "dd", value);
  }
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
