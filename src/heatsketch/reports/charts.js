// Small charts in SVG. All text is set as text.

const WIDTH = 380, HEIGHT = 210, LEFT = 44, RIGHT = 12, TOP = 10, BOTTOM = 36;

function svg(parent, tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function short(value) { // three digits that matter
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(1).replace("e+", "e");
  return String(Number(value.toPrecision(3)));
}

function axis(low, high, log) { // value -> 0 … 1, and the ticks
  if (log) {
    const a = Math.log10(low), b = Math.log10(high), ticks = [];
    const span = b - a || 1, every = Math.max(1, Math.ceil(span / 5));
    for (let e = Math.ceil(a - 1e-9); e <= b + 1e-9; e += every) ticks.push(10 ** e);
    if (ticks.length < 2) ticks.splice(0, ticks.length, low, Math.sqrt(low * high), high);
    return { to: (x) => (Math.log10(x) - a) / span, ticks };
  }
  const span = high - low || 1, rough = span / 4, ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * [1, 2, 5, 10].find((f) => f * ten >= rough), ticks = [];
  for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + 1e-9 * span; x += step) ticks.push(x);
  return { to: (x) => (x - low) / span, ticks };
}

// A chart of the series in `what`: lines, bands and bars by their x and y, marks at one x or y.
function chart(parent, what) {
  const root = svg(parent, "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  root.setAttribute("aria-label", `${what.y.label} against ${what.x.label}`);
  const across = axis(what.x.low, what.x.high, what.x.log), up = axis(what.y.low, what.y.high, what.y.log);
  const w = WIDTH - LEFT - RIGHT, h = HEIGHT - TOP - BOTTOM;
  const X = (x) => LEFT + w * across.to(x), Y = (y) => TOP + h * (1 - Math.min(1.02, Math.max(-0.02, up.to(y))));
  const bottom = HEIGHT - BOTTOM;
  for (const x of what.x.ticks || across.ticks)
    svg(root, "text", { x: X(x), y: bottom + 14, "text-anchor": "middle" }, short(x));
  for (const y of up.ticks) {
    svg(root, "text", { x: LEFT - 5, y: Y(y) + 4, "text-anchor": "end" }, short(y));
    svg(root, "path", { class: "axis pale", d: `M${LEFT} ${Y(y)}H${WIDTH - RIGHT}` });
  }
  svg(root, "path", { class: "axis", d: `M${LEFT} ${TOP}V${bottom}H${WIDTH - RIGHT}` });
  svg(root, "text", { x: LEFT + w / 2, y: HEIGHT - 4, "text-anchor": "middle" }, what.x.label);
  const side = svg(root, "text", { "text-anchor": "middle", transform: `translate(11 ${TOP + h / 2}) rotate(-90)` });
  side.textContent = what.y.label;
  for (const [a, b, y] of what.bars || [])
    svg(root, "rect", { class: "bar", x: X(a), width: Math.max(0.5, X(b) - X(a) - 0.5), y: Y(y), height: Math.max(0, bottom - Y(y)) });
  for (const { x, low, high } of what.bands || []) {
    const there = x.map((t, k) => `${X(t)} ${Y(high[k])}`), back = x.map((t, k) => `${X(t)} ${Y(low[k])}`);
    svg(root, "path", { class: "area", d: `M${there.join("L")}L${back.reverse().join("L")}Z` });
  }
  for (const { x, y } of what.lines || [])
    svg(root, "path", { class: "line", d: `M${x.map((t, k) => `${X(t)} ${Y(y[k])}`).join("L")}` });
  for (const { x, y, best } of what.dots || [])
    svg(root, "circle", { class: best ? "best" : "spot", cx: X(x), cy: Y(y), r: best ? 5 : 2.5 });
  (what.level || []).forEach(({ y, text }, place) => {
    svg(root, "path", { class: "dotted", d: `M${LEFT} ${Y(y)}H${WIDTH - RIGHT}` });
    const side = place ? { x: LEFT + 4 } : { x: WIDTH - RIGHT, "text-anchor": "end" };
    if (text) svg(root, "text", { ...side, y: Y(y) - 3 }, text);
  });
  for (const { x, text } of what.upright || []) {
    svg(root, "path", { class: "chosen", d: `M${X(x)} ${TOP}V${bottom}` });
    const right = across.to(x) > 0.6;
    if (text) svg(root, "text", { x: X(x) + (right ? -4 : 4), y: TOP + 10, "text-anchor": right ? "end" : "start" }, text);
  }
  return root;
}
