// True distances, from the sketch inside the page: values with intervals, and paths of neighbours.

class Sketch {
  constructor({ values, scale, mean, low, high, near }) {
    [this.n, this.k] = values.shape;
    this.values = Float32Array.from(unpack(values), halfToNumber);
    this.scale = scale; // by which values were divided before they were rounded
    this.factors = [1 / mean, low, high]; // of a distance in the sketch: estimate, ends of interval
    this.near = unpack(near); // (n, near.shape[1])
    this.count = near.shape[1];
  }

  length(i, j) {
    let sum = 0;
    for (let c = 0; c < this.k; c++) sum += (this.values[i * this.k + c] - this.values[j * this.k + c]) ** 2;
    return this.scale * Math.sqrt(sum);
  }

  distance(i, j) { // the estimate, and the ends of its interval
    const length = this.length(i, j);
    return this.factors.map((factor) => factor * length);
  }

  from(i) {
    return Float32Array.from({ length: this.n }, (_, j) => this.factors[0] * this.length(i, j));
  }

  links() { // of each point: its neighbours, and those whose neighbour it is
    if (this.linked) return this.linked;
    this.linked = Array.from({ length: this.n }, () => []);
    for (let i = 0; i < this.n; i++)
      for (let c = 0; c < this.count; c++) {
        const j = this.near[i * this.count + c];
        this.linked[i].push(j);
        this.linked[j].push(i);
      }
    return this.linked;
  }

  path(from, to) { // the shortest way through neighbours (Dijkstra), or [] if there is none
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

function halfToNumber(bits) { // IEEE 754 binary16
  const exponent = (bits >> 10) & 31, fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
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
