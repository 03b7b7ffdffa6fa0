// The distance that is asked for: one click, a second one.

function choose(k) {
  if (!sketch && facts.sketch) element("asked").textContent = "The distances are still being read; click again.";
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
  sayColour();
  showNear();
  drawLegend();
  showSelected(); // its table has the distance, too
}

const near = () => sketch.nearest(source, Math.max(1, Number(element("near-count").value)));

function showNear() {
  const column = columns[painted], made = element("near-table"), points = near();
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
      refresh();
    });
  }
}

function forget() {
  [source, target, route, reach] = [-1, -1, [], null];
  element("asked").textContent = "";
  element("near").hidden = true;
  sayColour();
  drawLegend();
  showSelected();
}

function interval(i, j) {
  if (!sketch.joined(i, j)) return "in two components of the graph, between which nothing diffuses";
  const [value, low, high] = sketch.distance(i, j).map(short);
  return `${value} (${facts.sketch.level} %: ${low} to ${high})`;
}

function sayColour() { // the choice of colour says what colours the points
  const choice = element("colour"), own = [...choice.options].find((option) => option.value === "reach");
  if (own && !reach) own.remove();
  if (reach) (own ?? Object.assign(say(choice, "option"), { value: "reach" })).textContent = reach.name;
  choice.value = reach ? "reach" : painted;
}
