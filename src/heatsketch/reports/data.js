"use strict";
// The facts of the page: its arrays are deflated bytes in base64, and become typed arrays.

const KINDS = { f4: Float32Array, f8: Float64Array, i1: Int8Array, i2: Int16Array, i4: Int32Array, u1: Uint8Array, u2: Uint16Array };

function bytesFrom(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64); // new in 2025, and faster
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return bytes;
}

async function inflated(data) {
  const bytes = bytesFrom(data);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function unpack({ kind, shape, data }) {
  const bytes = await inflated(data);
  if (kind === "json") return JSON.parse(new TextDecoder().decode(bytes));
  const Kind = KINDS[kind], size = Kind.BYTES_PER_ELEMENT, count = bytes.length / size;
  const whole = new Uint8Array(bytes.length); // the lowest bytes of all numbers come first
  for (let j = 0; j < size; j++) for (let k = 0; k < count; k++) whole[size * k + j] = bytes[count * j + k];
  return Object.assign(new Kind(whole.buffer), { shape });
}

async function unpacked(facts) { // the same facts, with every packed array read
  if (facts === null || typeof facts !== "object") return facts;
  if (typeof facts.data === "string" && facts.kind) return unpack(facts);
  if (Array.isArray(facts)) return Promise.all(facts.map(unpacked));
  const entries = Object.entries(facts).map(async ([name, value]) => [name, await unpacked(value)]);
  return Object.fromEntries(await Promise.all(entries));
}

// Columns ------------------------------------------------------------------------------------

const exact = (value, none) => (Number.isNaN(value) ? none : String(Number(value.toPrecision(6))));

function read(column) { // the values or codes of a column, and the text of each
  if (column.type === "number") {
    const { values } = column;
    return { ...column, text: (k) => exact(values[k], "missing") };
  }
  const values = column.codes;
  return { ...column, values, text: (k) => (values[k] < 0 ? "missing" : column.names[values[k]]) };
}

// The points of a frame, (n, 3): whole steps of a window, and the places of the few beyond it.
function placesOf({ steps, low, unit, far, places }) {
  const [n, width] = steps.shape, frame = new Float32Array(3 * n);
  for (let k = 0; k < n; k++) for (let j = 0; j < width; j++) frame[3 * k + j] = low[j] + unit[j] * steps[width * k + j];
  far.forEach((k, place) => {
    for (let j = 0; j < width; j++) frame[3 * k + j] = places[width * place + j];
  });
  if (width === 1) // points of a line stand side by side
    for (let k = 0; k < n; k++) frame[3 * k + 1] = ((k * 0.6180339887) % 1) * 0.7 - 0.35;
  return frame;
}
