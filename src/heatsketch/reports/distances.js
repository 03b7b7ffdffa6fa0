// True distances, from the sketch inside the page: values with intervals, and paths of neighbours.

class Sketch {
  constructor({ steps, halvings, unit, before, near, mean, low, high }) {
    [this.n, this.k] = steps.shape;
    this.unit = unit; // of the values, as a distance
    this.factors = [1 / mean, low, high]; // of a distance in the sketch: estimate, ends of interval
    this.before = before; // the row from which a step leads to a row; the first one of a component has none
    this.near = near; // (n, near.shape[1])
    this.count = near.shape[1];
    this.steps = steps;
    this.halvings = halvings;
  }

  get values() { // (n, k)
    this.walk();
    return this.values;
  }

  get component() { // (n,), the first row of the component of each
    this.walk();
    return this.component;
  }

  walk() { // sum the steps to each row; only when a distance is asked for
    const { n, k, steps, halvings, before } = this, known = (name, value) => Object.defineProperty(this, name, { value });
    // Steps of 8 bits are of many points, and known to less than single precision.
    const values = new (steps instanceof Int8Array ? Float32Array : Float64Array)(n * k);
    const component = new Int32Array(n).fill(-1), way = new Int32Array(n);
    for (let i = 0; i < n; i++) {
      let length = 0;
      for (let at = i; component[at] < 0; at = before[at]) {
        way[length++] = at;
        if (before[at] === at) component[at] = at;
      }
      while (length) {
        const at = way[--length], from = before[at], part = 2 ** -halvings[at];
        component[at] = component[from];
        for (let c = 0; c < k; c++) values[at * k + c] = values[from * k + c] + part * steps[at * k + c];
      }
    }
    known("values", values);
    known("component", component);
  }

  joined(i, j) { // nothing diffuses between components
    return this.component[i] === this.component[j];
  }

  length(i, j) {
    const { k, values } = this;
    let sum = 0;
    for (let c = 0, a = i * k, b = j * k; c < k; c++) sum += (values[a + c] - values[b + c]) ** 2;
    return this.unit * Math.sqrt(sum);
  }

  distance(i, j) { // the estimate, and the ends of its interval
    const length = this.length(i, j);
    return this.factors.map((factor) => factor * length);
  }

  from(i) {
    const found = new Float32Array(this.n).fill(NaN), { component } = this;
    for (let j = 0; j < this.n; j++) if (component[j] === component[i]) found[j] = this.factors[0] * this.length(i, j);
    return found;
  }

  nearest(i, count) { // the other points of its component, the nearest first
    const length = this.from(i);
    length[i] = NaN;
    const last = Float32Array.from(length.filter((x) => !Number.isNaN(x))).sort()[count - 1] ?? Infinity;
    const found = [];
    for (let j = 0; j < this.n; j++) if (length[j] <= last) found.push(j);
    return found.sort((a, b) => length[a] - length[b]).slice(0, count);
  }

  links(i) { // its neighbours, those whose neighbour it is, and those beside it in the tree
    this.linked ??= this.linkAll();
    const { starts, ends } = this.linked;
    return ends.subarray(starts[i], starts[i + 1]);
  }

  linkAll() {
    const { n, count, near, before } = this, starts = new Int32Array(n + 1);
    const each = (visit) => {
      for (let i = 0; i < n; i++) {
        visit(i, before[i]);
        for (let c = 0; c < count; c++) visit(i, near[i * count + c]);
      }
    };
    each((i, j) => (starts[i + 1]++, starts[j + 1]++));
    for (let i = 0; i < n; i++) starts[i + 1] += starts[i];
    const ends = new Int32Array(starts[n]), next = starts.slice(0, n);
    each((i, j) => ((ends[next[i]++] = j), (ends[next[j]++] = i)));
    return { starts, ends };
  }

  path(from, to) { // the shortest way through neighbours (Dijkstra), or [] between components
    const best = new Float64Array(this.n).fill(Infinity), before = new Int32Array(this.n).fill(-1);
    const heap = [[0, from]];
    best[from] = 0;
    while (heap.length) {
      const [length, i] = pop(heap);
      if (i === to) break;
      if (length > best[i]) continue;
      for (const j of this.links(i)) {
        const other = length + this.length(i, j);
        if (other >= best[j]) continue;
        [best[j], before[j]] = [other, i];
        push(heap, [other, j]);
      }
    }
    if (before[to] < 0) return [];
    const found = [to];
    while (found[found.length - 1] !== from) found.push(before[found[found.length - 1]]);
    return found.reverse();
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
