// Points at several times, drawn by WebGL: the card moves them, so that a step of the slider costs
// one number. While the picture moves, as many points are drawn as leave it smooth. Without WebGL
// they are drawn as squares. (Libraries that draw points compile code from text, as regl does, which
// the policy of the page refuses, or cannot draw between two times.)

const VERTEX = `#version 300 es
in vec3 here, there; in vec4 colour; in float state;
uniform float part, size, opacity; uniform bool small; uniform mat3 turn; uniform vec2 scale, shift; uniform float deep;
flat out vec4 paint;
void main() {
  vec3 p = turn * mix(here, there, part);
  bool faded = state < 0.5, lit = state > 1.5;
  float z = clamp(0.5 - 0.12 * p.z, 0.02, 0.98);
  gl_Position = vec4(p.xy * scale + shift, deep * (lit ? z - 0.02 : faded ? z + 0.02 : z), 1.0);
  gl_PointSize = (size * (lit ? 1.25 : 1.0) + (lit && small ? 0.8 : 0.0)) * (1.0 + deep * 0.25 * clamp(p.z, -2.0, 2.0) / 2.0);
  // Many faded points over each other would look like the others: they are greyer, and paler.
  vec3 rgb = faded && small ? mix(colour.rgb, vec3(0.6), 0.8) : colour.rgb;
  paint = vec4(rgb, faded ? min(0.08, 0.3 * opacity * opacity) : lit ? max(0.7, opacity) : opacity);
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
uniform bool small; flat in vec4 paint; out vec4 pixel;
void main() {
  float r = small ? 0.0 : length(gl_PointCoord - 0.5);
  if (r > 0.5) discard;
  float a = paint.a * (1.0 - smoothstep(0.38, 0.5, r));
  pixel = vec4(paint.rgb * a, a);
}`;
const FULL = 500; // pixels, the side of a picture from which on points have their full size
const FADED = 0, PLAIN = 1, LIT = 2;
const LEAST = 5_000, FIRST = 200_000; // points drawn while the picture moves
const SLOW = 45, FAST = 25, REST = 180; // milliseconds: of a frame, and until all points are drawn

class Scatter {
  constructor(canvas, frames, d) {
    this.canvas = canvas;
    this.d = d;
    this.frames = frames; // Float32Array (n, 3) for each time
    this.n = frames[0].length / 3;
    this.now = 0; // the time, as an index, with fractions between
    this.deep = false;
    this.angles = [0.5, -0.4];
    this.zoom = 1;
    this.enlarged = 1;
    this.denser = 1;
    this.centre = [0, 0];
    this.colours = new Uint8Array(4 * this.n).fill(128);
    this.states = new Uint8Array(this.n).fill(PLAIN);
    this.order = shuffled(this.n);
    this.few = Math.min(this.n, FIRST);
    this.kept = {}; // results that hold until the points or the window move
    this.after = () => {};
    this.start();
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
    this.fit();
  }

  start() {
    this.gl = this.canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true });
    if (!this.gl) {
      this.flat = this.canvas.getContext("2d");
      return;
    }
    this.canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    this.canvas.addEventListener("webglcontextrestored", () => this.load());
    this.load();
  }

  load() {
    const gl = this.gl;
    const program = (this.program = gl.createProgram());
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    this.place = {};
    for (const name of ["here", "there", "colour", "state"]) {
      this.place[name] = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(this.place[name]);
    }
    for (const name of ["part", "size", "opacity", "small", "turn", "scale", "shift", "deep"])
      this.place[name] = gl.getUniformLocation(program, name);
    this.buffers = this.frames.map((frame) => this.buffer(frame));
    this.colourBuffer = this.buffer(this.colours);
    this.stateBuffer = this.buffer(this.states);
    // In random order, so that no category is drawn over the others, and the first are a sample.
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, this.order, gl.STATIC_DRAW);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.redraw();
  }

  buffer(values) {
    const gl = this.gl, made = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, made);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
    return made;
  }

  paint(colours, states) { // (4 n) bytes, (n) of FADED, PLAIN, LIT
    this.colours = colours;
    this.states = states;
    const gl = this.gl;
    if (gl) {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.colourBuffer);
      gl.bufferData(gl.ARRAY_BUFFER, colours, gl.DYNAMIC_DRAW);
      gl.bindBuffer(gl.ARRAY_BUFFER, this.stateBuffer);
      gl.bufferData(gl.ARRAY_BUFFER, states, gl.DYNAMIC_DRAW);
    }
    this.move();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, canvas = this.canvas;
    const [width, height] = [canvas.clientWidth || 300, canvas.clientHeight || 300];
    if (width === this.width && height === this.height && canvas.width === Math.round(width * ratio)) return;
    [this.width, this.height] = [width, height];
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    if (this.framed) this.fit(this.whole);
    else this.redraw();
  }

  fit(whole = false) { // the central points of this time, or all, with a margin
    const p = this.turned();
    const [low, high] = this.keep(`corners ${whole}`, this.plane, () => (whole ? extent(p) : windowOf(p)));
    const span = [high[0] - low[0] || 1, high[1] - low[1] || 1];
    this.centre = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
    this.zoom = this.unzoomed = 0.92 * Math.min(this.width / span[0], this.height / span[1]); // pixels for 1
    this.whole = whole;
    this.framed = true; // until it is moved by hand: points outside stand at the edge
    this.redraw();
  }

  keep(name, given, make) { // what `make` returned for what is given, made again if that changes
    const key = String(given), before = this.kept[name];
    return (before?.key === key ? before : (this.kept[name] = { key, value: make() })).value;
  }

  get plane() { // what the places on the plane depend on
    return [this.now, ...(this.deep ? this.angles : [])];
  }

  get view() { // and those on the screen
    return [...this.plane, this.zoom, ...this.centre, this.width, this.height, this.framed];
  }

  outside() { // the points outside of a frame, each with its place at the edge, [k, x, y]
    if (!this.framed) return [];
    return this.keep("outside", this.view, () => {
      const found = [], [x0, y0] = [this.width / 2, this.height / 2], p = this.turned(), { zoom, centre } = this;
      for (let k = 0; k < this.n; k++) {
        const x = (p[2 * k] - centre[0]) * zoom, y = -(p[2 * k + 1] - centre[1]) * zoom;
        const beyond = Math.max(Math.abs(x) / x0, Math.abs(y) / y0);
        if (beyond > 1) found.push([k, x0 + (x / beyond) * (1 - 7 / x0), y0 + (y / beyond) * (1 - 7 / y0)]);
      }
      return found;
    });
  }

  get matrix() { // rows: right, up, towards the reader
    if (!this.deep) return [1, 0, 0, 0, 1, 0, 0, 0, 1];
    const [a, b] = this.angles, [ca, sa, cb, sb] = [Math.cos(a), Math.sin(a), Math.cos(b), Math.sin(b)];
    return [ca, 0, sa, sa * sb, cb, -ca * sb, -sa * cb, sb, ca * cb];
  }

  get between() {
    const first = Math.min(Math.floor(this.now), Math.max(0, this.frames.length - 2));
    return [first, Math.min(first + 1, this.frames.length - 1), this.now - first];
  }

  turned() { // where the points are on the plane of the picture, (2 n)
    return this.keep("turned", this.plane, () => {
      const [i, j, part] = this.between, a = this.frames[i], b = this.frames[j], m = this.matrix;
      const p = new Float32Array(2 * this.n);
      for (let k = 0; k < this.n; k++) {
        const x = a[3 * k] + (b[3 * k] - a[3 * k]) * part;
        const y = a[3 * k + 1] + (b[3 * k + 1] - a[3 * k + 1]) * part;
        const z = a[3 * k + 2] + (b[3 * k + 2] - a[3 * k + 2]) * part;
        p[2 * k] = m[0] * x + m[1] * y + m[2] * z;
        p[2 * k + 1] = m[3] * x + m[4] * y + m[5] * z;
      }
      return p;
    });
  }

  toScreen(x, y) { // from the plane to pixels from the upper left corner
    return [this.width / 2 + (x - this.centre[0]) * this.zoom, this.height / 2 - (y - this.centre[1]) * this.zoom];
  }

  placed(k) { // where a point is on the screen
    const p = this.turned();
    return this.toScreen(p[2 * k], p[2 * k + 1]);
  }

  onScreen() { // all of them, (2 n)
    return this.keep("screen", this.view, () => {
      const p = this.turned().slice();
      for (let k = 0; k < this.n; k++) {
        p[2 * k] = this.width / 2 + (p[2 * k] - this.centre[0]) * this.zoom;
        p[2 * k + 1] = this.height / 2 - (p[2 * k + 1] - this.centre[1]) * this.zoom;
      }
      return p;
    });
  }

  shown() { // the same, with the points outside of a frame at its edge
    const p = this.onScreen().slice();
    for (const [k, x, y] of this.outside()) [p[2 * k], p[2 * k + 1]] = [x, y];
    return p;
  }

  nearest(x, y, reach) { // the point on the screen that is nearest to a place, -1 without one within reach
    let best = -1, least = reach * reach;
    const look = (k, dx, dy) => {
      const d = dx * dx + dy * dy;
      if ((d < least || (d === least && k < best)) && this.states[k] !== FADED) [best, least] = [k, d];
    };
    for (const [k, u, v] of this.outside()) look(k, u - x, v - y);
    const p = this.turned(), { zoom } = this;
    const u = this.centre[0] + (x - this.width / 2) / zoom, v = this.centre[1] - (y - this.height / 2) / zoom;
    const grid = this.keep("grid", this.plane, () => new Grid(p));
    grid.around(u, v, reach / zoom, (k) => look(k, (p[2 * k] - u) * zoom, (p[2 * k + 1] - v) * zoom));
    return best;
  }

  inside(polygon) { // the points within a closed line of pixels
    const p = this.shown(), found = [], [low, high] = extent(Float64Array.from(polygon.flat()));
    for (let k = 0; k < this.n; k++) {
      const x = p[2 * k], y = p[2 * k + 1];
      if (x < low[0] || x > high[0] || y < low[1] || y > high[1]) continue;
      let odd = false;
      for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
        const [xi, yi] = polygon[i], [xj, yj] = polygon[j];
        if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
      }
      if (odd) found.push(k);
    }
    return found;
  }

  zoomAt(x, y, factor) {
    this.framed = false;
    const dx = (x - this.width / 2) / this.zoom, dy = -(y - this.height / 2) / this.zoom;
    this.zoom *= factor;
    this.centre[0] += dx * (1 - 1 / factor);
    this.centre[1] += dy * (1 - 1 / factor);
    this.move();
  }

  move() { // draw as many points as leave the picture smooth, and all of them when it rests
    if (this.n <= LEAST) return this.redraw();
    this.moves = true;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      this.moves = false;
      this.redraw();
    }, REST);
    this.redraw();
  }

  redraw() {
    this.stale = true;
    this.refresh();
  }

  refresh() { // what stands over the points, and the points if they are stale
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame((now) => {
      this.asked = false;
      const count = this.stale && this.moves ? this.pace(now) : this.n;
      if (this.stale && this.gl) this.draw(count);
      else if (this.stale) this.drawFlat(count);
      this.stale = false;
      this.after();
    });
  }

  pace(now) { // how many points to draw: fewer after a slow frame, more after a fast one
    const passed = now - (this.last ?? now);
    this.last = now;
    if (passed > SLOW && passed < 4 * REST) this.few = Math.max(Math.min(LEAST, this.n), this.few / 2);
    else if (passed > 0 && passed < FAST) this.few = Math.min(this.n, this.few * 1.2);
    return Math.round(this.few);
  }

  get crowd() { // how many points there would be, as dense as here, in a picture of all
    return this.n / Math.max(1, this.zoom / this.unzoomed);
  }

  get size() { // of a point, in pixels
    const small = Math.min(1, Math.min(this.width, this.height) / FULL), least = this.n > 50_000 ? 1.2 : 2; // on a phone
    return this.enlarged * Math.max(least, small * Math.min(11, Math.max(this.n > 50_000 ? least : 3, 370 / Math.sqrt(this.crowd))));
  }

  get opacity() {
    const n = Math.log10(this.crowd), usual = Math.min(0.95, Math.max(0.45, 1.5 - 0.2 * n), 2.3 - 0.34 * n);
    return Math.min(1, Math.max(0.02, usual * this.denser));
  }

  draw(count = this.n) {
    const gl = this.gl, at = this.place, [i, j, part] = this.between, m = this.matrix;
    const attribute = (name, buffer, width, kind, normalised) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.vertexAttribPointer(at[name], width, kind, normalised, 0, 0);
    };
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    if (this.deep) gl.enable(gl.DEPTH_TEST);
    else gl.disable(gl.DEPTH_TEST);
    attribute("here", this.buffers[i], 3, gl.FLOAT, false);
    attribute("there", this.buffers[j], 3, gl.FLOAT, false);
    attribute("colour", this.colourBuffer, 4, gl.UNSIGNED_BYTE, true);
    attribute("state", this.stateBuffer, 1, gl.UNSIGNED_BYTE, false);
    const sx = (2 * this.zoom) / this.width, sy = (2 * this.zoom) / this.height, size = this.size * (window.devicePixelRatio || 1);
    gl.uniform1f(at.part, part);
    gl.uniform1f(at.size, size);
    gl.uniform1f(at.opacity, this.opacity);
    gl.uniform1i(at.small, size < 2.5 ? 1 : 0);
    gl.uniformMatrix3fv(at.turn, true, m);
    gl.uniform2f(at.scale, sx, sy);
    gl.uniform2f(at.shift, -this.centre[0] * sx, -this.centre[1] * sy);
    gl.uniform1f(at.deep, this.deep ? 1 : 0);
    gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 0);
  }

  drawFlat(count = this.n) {
    const ratio = window.devicePixelRatio || 1, p = this.onScreen(), pen = this.flat, size = this.size;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    const { opacity, colours } = this, ratios = [Math.min(0.08, 0.3 * opacity ** 2), opacity, Math.max(0.7, opacity)];
    for (const k of this.order.subarray(0, count)) {
      pen.fillStyle = `rgba(${colours[4 * k]},${colours[4 * k + 1]},${colours[4 * k + 2]},${ratios[this.states[k]]})`;
      pen.fillRect(p[2 * k] - size / 2, p[2 * k + 1] - size / 2, size, size);
    }
  }
}

class Grid { // points on the plane (2 n) in cells, to find those near to a place
  constructor(p) {
    const n = p.length / 2, [low, high] = windowOf(p);
    this.side = Math.max(1, Math.min(1024, Math.round(Math.sqrt(n / 4))));
    this.low = low;
    this.per = low.map((x, j) => this.side / (high[j] - x || 1)); // cells for 1
    this.starts = new Int32Array(this.side ** 2 + 1);
    this.members = new Int32Array(n);
    const cells = Int32Array.from({ length: n }, (_, k) => this.cell(0, p[2 * k]) * this.side + this.cell(1, p[2 * k + 1]));
    for (const cell of cells) this.starts[cell + 1]++;
    for (let c = 0; c < this.side ** 2; c++) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice();
    cells.forEach((cell, k) => (this.members[next[cell]++] = k));
  }

  cell(j, x) { // points beyond the central window are in the cells at its edge
    return Math.min(this.side - 1, Math.max(0, Math.floor((x - this.low[j]) * this.per[j])));
  }

  around(x, y, reach, visit) {
    const first = this.cell(1, y - reach), last = this.cell(1, y + reach);
    for (let i = this.cell(0, x - reach); i <= this.cell(0, x + reach); i++)
      for (let k = this.starts[i * this.side + first]; k < this.starts[i * this.side + last + 1]; k++) visit(this.members[k]);
  }
}

function extent(p, chosen = () => true) { // corners of the points on the plane, (2 n), that are chosen
  const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
  for (let k = 0; k < p.length / 2; k++) {
    if (!chosen(k)) continue;
    const x = p[2 * k], y = p[2 * k + 1];
    if (x < low[0]) low[0] = x;
    if (x > high[0]) high[0] = x;
    if (y < low[1]) low[1] = y;
    if (y > high[1]) high[1] = y;
  }
  return [low, high];
}

function windowOf(p) { // corners of the central points, or of all where these fit well: as plot.scatter
  const n = p.length / 2, all = extent(p), size = ([low, high]) => Math.max(high[0] - low[0], high[1] - low[1]);
  const x = new Float32Array(n), far = new Float64Array(n);
  const middle = [0, 1].map((j) => {
    for (let k = 0; k < n; k++) x[k] = p[2 * k + j];
    x.sort();
    return (x[Math.floor((n - 1) / 2)] + x[Math.ceil((n - 1) / 2)]) / 2;
  });
  for (let k = 0; k < n; k++) far[k] = Math.sqrt((p[2 * k] - middle[0]) ** 2 + (p[2 * k + 1] - middle[1]) ** 2);
  const radius = 1.3 * far.slice().sort()[Math.ceil(0.98 * (n - 1))];
  const near = extent(p, (k) => far[k] <= radius);
  return 1e-6 * size(all) < size(near) && size(near) < size(all) / 1.4 ? near : all;
}

function shuffled(n) { // the same order at every call
  const order = new Uint32Array(n);
  for (let k = 0; k < n; k++) order[k] = k;
  let seed = 12345;
  for (let k = n - 1; k > 0; k--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const other = seed % (k + 1), last = order[k];
    order[k] = order[other];
    order[other] = last;
  }
  return order;
}
