// True distances, from the sketch inside the page: values with intervals, and paths of neighbours.

const KINDS = { f4: Float32Array, f8: Float64Array, i1: Int8Array, i2: Int16Array, i4: Int32Array, u1: Uint8Array, u2: Uint16Array };

function unpack({ kind, data }) {
  const text = atob(data), bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return new KINDS[kind](bytes.buffer);
}

class Sketch {
  constructor({ steps, halvings, unit, before, near, mean, low, high }) {
    [this.n, this.k] = steps.shape;
    this.unit = unit; // of the values, as a distance
    this.factors = [1 / mean, low, high]; // of a distance in the sketch: estimate, ends of interval
    this.before = unpack(before); // the row from which a step leads to a row; the first one of a component has none
    this.near = unpack(near); // (n, near.shape[1])
    this.count = near.shape[1];
    this.walk(unpack(steps), unpack(halvings));
  }

  walk(steps, halvings) { // sum the steps to each row: its values, and the first row of its component
    this.values = new Float64Array(this.n * this.k);
    this.component = new Int32Array(this.n).fill(-1);
    for (let i = 0; i < this.n; i++) {
      const way = [];
      for (let at = i; this.component[at] < 0; at = this.before[at]) {
        way.push(at);
        if (this.before[at] === at) this.component[at] = at;
      }
      for (const at of way.reverse()) {
        const from = this.before[at], part = 2 ** -halvings[at];
        this.component[at] = this.component[from];
        for (let c = 0; c < this.k; c++)
          this.values[at * this.k + c] = this.values[from * this.k + c] + part * steps[at * this.k + c];
      }
    }
  }

  joined(i, j) { // nothing diffuses between components
    return this.component[i] === this.component[j];
  }

  length(i, j) {
    let sum = 0;
    for (let c = 0; c < this.k; c++) sum += (this.values[i * this.k + c] - this.values[j * this.k + c]) ** 2;
    return this.unit * Math.sqrt(sum);
  }

  distance(i, j) { // the estimate, and the ends of its interval
    const length = this.length(i, j);
    return this.factors.map((factor) => factor * length);
  }

  from(i) {
    return Float32Array.from({ length: this.n }, (_, j) => (this.joined(i, j) ? this.factors[0] * this.length(i, j) : NaN));
  }

  nearest(i, count) { // the other points of its component, the nearest first
    const length = this.from(i), others = [...length.keys()].filter((j) => j !== i && this.joined(i, j));
    return others.sort((a, b) => length[a] - length[b]).slice(0, count);
  }

  links() { // of each point: its neighbours, those whose neighbour it is, and those beside it in the tree
    if (this.linked) return this.linked;
    this.linked = Array.from({ length: this.n }, () => []);
    for (let i = 0; i < this.n; i++)
      for (const j of [this.before[i], ...this.near.subarray(i * this.count, (i + 1) * this.count)]) {
        this.linked[i].push(j);
        this.linked[j].push(i);
      }
    return this.linked;
  }

  path(from, to) { // the shortest way through neighbours (Dijkstra), or [] between components
    const links = this.links(), best = new Float64Array(this.n).fill(Infinity), before = new Int32Array(this.n).fill(-1);
    const heap = [[0, from]];
    best[from] = 0;
    while (heap.length) {
      const [length, i] = pop(heap);
      if (i === to) break;
      if (length > best[i]) continue;
      for (const j of links[i]) {
        const other = length + this.length(i, j);
        if (other >= best[j]) continue;
        [best[j], before[j]] = [other, i];
        push(heap, [other, j]);
      }
    }
    if (before[to] < 0) return [];
    const found = [to];
    while (found[0] !== from) found.unshift(before[found[0]]);
    return found;
  }
}

function push(heap, entry) {
  let k = heap.push(entry) - 1;
  for (let up = (k - 1) >> 1; k > 0 && heap[up][0] > heap[k][0]; k = up, up = (k - 1) >> 1)
    [heap[up], heap[k]] = [heap[k], heap[up]];
}

function pop(heap) {
  const first = heap[0], last = heap.pop();
  if (!heap.length) return first;
  heap[0] = last;
  for (let k = 0; ; ) {
    let least = k;
    for (const below of [2 * k + 1, 2 * k + 2]) if (below < heap.length && heap[below][0] < heap[least][0]) least = below;
    if (least === k) return first;
    [heap[k], heap[least]] = [heap[least], heap[k]];
    k = least;
  }
}
