"use strict";
// Points at several times, drawn by WebGL: the card moves them, so that a step of the slider costs
// one number. Without WebGL they are drawn as squares.

const VERTEX = `#version 300 es
in vec3 here, there; in vec4 colour; in float state;
uniform float part, size; uniform mat3 turn; uniform vec2 scale, shift; uniform float deep;
flat out vec4 paint;
void main() {
  vec3 p = turn * mix(here, there, part);
  bool faded = state < 0.5, lit = state > 1.5;
  float z = clamp(0.5 - 0.12 * p.z, 0.02, 0.98);
  gl_Position = vec4(p.xy * scale + shift, deep * (lit ? z - 0.02 : faded ? z + 0.02 : z), 1.0);
  gl_PointSize = size * (lit ? 1.25 : 1.0) * (1.0 + deep * 0.25 * clamp(p.z, -2.0, 2.0) / 2.0);
  paint = faded ? vec4(colour.rgb, 0.08) : vec4(colour.rgb, lit ? 1.0 : colour.a);
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec4 paint; out vec4 pixel;
void main() {
  float r = length(gl_PointCoord - 0.5);
  if (r > 0.5) discard;
  float a = paint.a * (1.0 - smoothstep(0.38, 0.5, r));
  pixel = vec4(paint.rgb * a, a);
}`;
const FULL = 500; // pixels, the side of a picture from which on points have their full size
const FADED = 0, PLAIN = 1, LIT = 2;

class Scatter {
  constructor(canvas, frames, d) {
    this.canvas = canvas;
    this.d = d;
    this.frames = frames; // Float32Array (m, 3) for each time
    this.n = frames[0].length / 3;
    this.now = 0; // the time, as an index, with fractions between
    this.deep = false;
    this.angles = [0.5, -0.4];
    this.zoom = 1;
    this.enlarged = 1;
    this.centre = [0, 0];
    this.colours = new Uint8Array(4 * this.n).fill(128);
    this.states = new Float32Array(this.n).fill(PLAIN);
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
    for (const name of ["part", "size", "turn", "scale", "shift", "deep"])
      this.place[name] = gl.getUniformLocation(program, name);
    this.buffers = this.frames.map((frame) => this.buffer(frame));
    this.colourBuffer = this.buffer(this.colours);
    this.stateBuffer = this.buffer(this.states);
    // In random order, so that no category is drawn over the others.
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, shuffled(this.n), gl.STATIC_DRAW);
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
    this.redraw();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, canvas = this.canvas;
    this.width = canvas.clientWidth || 300;
    this.height = canvas.clientHeight || 300;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    if (this.framed) this.fit(this.whole);
    else this.redraw();
  }

  fit(whole = false) { // the central points of this time, or all, with a margin
    const p = this.turned(), [low, high] = whole ? extent(p) : windowOf(p);
    const span = [high[0] - low[0] || 1, high[1] - low[1] || 1];
    this.centre = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
    this.zoom = 0.92 * Math.min(this.width / span[0], this.height / span[1]); // pixels for 1
    this.whole = whole;
    this.framed = true; // until it is moved by hand: points outside stand at the edge
    this.redraw();
  }

  outside() { // the points outside of a frame, each with its place at the edge, [k, x, y]
    if (!this.framed) return [];
    const p = this.onScreen(), found = [], [x0, y0] = [this.width / 2, this.height / 2];
    for (let k = 0; k < this.n; k++) {
      const x = p[2 * k] - x0, y = p[2 * k + 1] - y0;
      const beyond = Math.max(Math.abs(x) / x0, Math.abs(y) / y0);
      if (beyond > 1) found.push([k, x0 + (x / beyond) * (1 - 7 / x0), y0 + (y / beyond) * (1 - 7 / y0)]);
    }
    return found;
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
  }

  onScreen() { // the same in pixels from the upper left corner
    const p = this.turned();
    for (let k = 0; k < this.n; k++) {
      p[2 * k] = this.width / 2 + (p[2 * k] - this.centre[0]) * this.zoom;
      p[2 * k + 1] = this.height / 2 - (p[2 * k + 1] - this.centre[1]) * this.zoom;
    }
    return p;
  }

  shown() { // the same, with the points outside of a frame at its edge
    const p = this.onScreen();
    for (const [k, x, y] of this.outside()) [p[2 * k], p[2 * k + 1]] = [x, y];
    return p;
  }

  nearest(x, y, reach) {
    const p = this.shown();
    let best = -1, least = reach * reach;
    for (let k = 0; k < this.n; k++) {
      const d = (p[2 * k] - x) ** 2 + (p[2 * k + 1] - y) ** 2;
      if (d < least && this.states[k] !== FADED) [best, least] = [k, d];
    }
    return best;
  }

  inside(polygon) { // the points within a closed line of pixels
    const p = this.shown(), found = [];
    for (let k = 0; k < this.n; k++) {
      const x = p[2 * k], y = p[2 * k + 1];
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
    this.redraw();
  }

  redraw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      if (this.gl) this.draw();
      else this.drawFlat();
      this.after();
    });
  }

  get size() { // of a point, in pixels
    const small = Math.min(1, Math.min(this.width, this.height) / FULL); // on a phone
    return this.enlarged * Math.max(2, small * Math.min(11, Math.max(3, 370 / Math.sqrt(this.n))));
  }

  draw() {
    const gl = this.gl, at = this.place, [i, j, part] = this.between, m = this.matrix;
    const attribute = (name, buffer, count, kind, normalised) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.vertexAttribPointer(at[name], count, kind, normalised, 0, 0);
    };
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    if (this.deep) gl.enable(gl.DEPTH_TEST);
    else gl.disable(gl.DEPTH_TEST);
    attribute("here", this.buffers[i], 3, gl.FLOAT, false);
    attribute("there", this.buffers[j], 3, gl.FLOAT, false);
    attribute("colour", this.colourBuffer, 4, gl.UNSIGNED_BYTE, true);
    attribute("state", this.stateBuffer, 1, gl.FLOAT, false);
    const sx = (2 * this.zoom) / this.width, sy = (2 * this.zoom) / this.height;
    gl.uniform1f(at.part, part);
    gl.uniform1f(at.size, this.size * (window.devicePixelRatio || 1));
    gl.uniformMatrix3fv(at.turn, true, m);
    gl.uniform2f(at.scale, sx, sy);
    gl.uniform2f(at.shift, -this.centre[0] * sx, -this.centre[1] * sy);
    gl.uniform1f(at.deep, this.deep ? 1 : 0);
    gl.drawElements(gl.POINTS, this.n, gl.UNSIGNED_INT, 0);
  }

  drawFlat() {
    const ratio = window.devicePixelRatio || 1, p = this.onScreen(), pen = this.flat, size = this.size;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    for (const k of shuffled(this.n)) {
      const [r, g, b, a] = this.colours.subarray(4 * k, 4 * k + 4);
      pen.fillStyle = `rgba(${r},${g},${b},${this.states[k] === FADED ? 0.08 : a / 255})`;
      pen.fillRect(p[2 * k] - size / 2, p[2 * k + 1] - size / 2, size, size);
    }
  }
}

function extent(p, chosen = () => true) { // corners of the points on the plane, (2 n), that are chosen
  const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
  for (let k = 0; k < p.length / 2; k++)
    for (let j = 0; j < 2 && chosen(k); j++) {
      low[j] = Math.min(low[j], p[2 * k + j]);
      high[j] = Math.max(high[j], p[2 * k + j]);
    }
  return [low, high];
}

function windowOf(p) { // corners of the central points, or of all where these fit well: as plot.scatter
  const n = p.length / 2, all = extent(p), size = ([low, high]) => Math.max(high[0] - low[0], high[1] - low[1]);
  const middle = [0, 1].map((j) => {
    const x = Float64Array.from({ length: n }, (_, k) => p[2 * k + j]).sort();
    return (x[Math.floor((n - 1) / 2)] + x[Math.ceil((n - 1) / 2)]) / 2;
  });
  const far = Float64Array.from({ length: n }, (_, k) => Math.hypot(p[2 * k] - middle[0], p[2 * k + 1] - middle[1]));
  const radius = 1.3 * far.slice().sort()[Math.ceil(0.98 * (n - 1))];
  const near = extent(p, (k) => far[k] <= radius);
  return 1e-6 * size(all) < size(near) && size(near) < size(all) / 1.4 ? near : all;
}

function shuffled(n) { // the same order at every call
  const order = Uint32Array.from({ length: n }, (_, k) => k);
  let seed = 12345;
  for (let k = n - 1; k > 0; k--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const other = seed % (k + 1);
    [order[k], order[other]] = [order[other], order[k]];
  }
  return order;
}
