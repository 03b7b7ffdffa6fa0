// What stands over the points: the lasso, worst pairs, the points asked for, names, the scale.

const SCALE_HEIGHT = 36; // of the bar below the points
const MOST_NAMES = 300; // of a column whose names are written where the picture is enlarged
const MANY_POINTS = 1_000; // from where on names are not placed anew while the picture moves

function drawOver({ scatter: own, overlay }) {
  const ratio = window.devicePixelRatio || 1, pen = overlay.getContext("2d");
  const { width, height } = own, style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  if (overlay.width !== own.canvas.width || overlay.height !== own.canvas.height)
    [overlay.width, overlay.height] = [own.canvas.width, own.canvas.height];
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const ring = (k, r) => {
    pen.beginPath();
    pen.arc(...own.placed(k), r, 0, 7);
    pen.stroke();
  };
  const line = (points) => {
    pen.beginPath();
    points.forEach((k) => pen.lineTo(...own.placed(k)));
    pen.stroke();
  };
  const wanted = pressed("worst");
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
      ? `${counted(outside.length)} of ${counted(n)} points lie farther out, ringed at the edge; “all” shows them.` : "";
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
  if (pressed("names")) drawNames(pen, own, colour);
  pen.fillStyle = colour("--ink");
  if (path.length && path.own === own) {
    pen.beginPath();
    path.forEach(([x, y]) => pen.lineTo(x, y));
    pen.stroke();
  }
  if (own === scatter) drawScale(pen);
}

// The categories that are named: those of the colour, and where the picture is enlarged those of
// columns that divide the points into more: twice as large for each.
function namedColumn(own) {
  const column = shownColumn();
  if (column?.type === "number" && !reach) return null;
  const first = column?.type === "category" ? column.legend.length : 0;
  const finer = columns.filter((one) => one !== column && one.type === "category" && one.names.length > first && one.names.length <= MOST_NAMES);
  finer.sort((a, b) => a.names.length - b.names.length);
  const levels = [...(column?.type === "category" ? [column] : []), ...finer];
  if (!levels.length || (!first && !column)) return null;
  return levels[Math.min(levels.length - 1, Math.max(0, Math.floor(Math.log2(own.zoom / own.unzoomed))))];
}

function namesOf(column) { // names, and which of them each point has; beyond 20 those of the legend if it colours
  if (column.named) return column.named;
  const all = column === shownColumn() || column.names.length <= column.legend.length;
  const names = all ? column.legend : column.names, codes = new Int32Array(n);
  for (let k = 0; k < n; k++) codes[k] = all ? groupOf(column, k) : column.values[k];
  return all ? { names, codes } : (column.named = { names, codes });
}

function drawNames(pen, own, colour) {
  const column = namedColumn(own);
  if (!column) return;
  pen.font = "600 13px system-ui, sans-serif";
  // They are placed anew if the points or the window have moved, not whenever the pointer has.
  const key = [...own.view, own.size].join(), before = own.named, waits = own.moves && n > MANY_POINTS;
  if (waits && before?.column !== column) return;
  if (before?.column === column && before.key !== key && waits) followNames(own);
  else if (before?.column !== column || before.key !== key || before.followed) {
    const { names, codes } = namesOf(column), boxes = names.map((name) => [pen.measureText(name).width + 4, 14]);
    const places = placeNames(own.shown(), codes, boxes, [own.width, own.height - SCALE_HEIGHT]);
    own.named = { column, key, names, boxes, places, centre: [...own.centre], zoom: own.zoom };
  }
  const { names, places } = own.named;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillStyle = colour("--ink");
  pen.strokeStyle = colour("--page");
  pen.lineWidth = 3;
  for (const write of ["strokeText", "fillText"])
    places.forEach((place, group) => place && pen[write](names[group], ...place)); // the legend has all
  pen.textAlign = "start";
  pen.textBaseline = "alphabetic";
}

function followNames(own) { // move the names with the points, until the picture rests
  const { places, centre, zoom } = own.named, moved = ([x, y]) =>
    own.toScreen(centre[0] + (x - own.width / 2) / zoom, centre[1] - (y - own.height / 2) / zoom);
  const followed = places.map((place) => place && moved(place));
  Object.assign(own.named, { places: followed, centre: [...own.centre], zoom: own.zoom, followed: true });
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
