// Where names stand: as plot.labels.place_names, which says how.

const CELLS = 4, REACH = 2, MOST_OTHERS = 0.25, OFF_CENTRE = 0.1;
const ENOUGH = 20_000; // points from which homes are found; all points stay free of names

function median(values) { // a Float64Array
  const sorted = values.slice().sort(), middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2;
}

function placeNames(points, codes, sizes, window, radius) { // points (2 n); { place or null, home } of each name
  const members = sizes.map(() => []), found = sizes.map(() => null);
  const every = Math.ceil(codes.length / ENOUGH), sample = codes.filter((_, k) => k % every === 0);
  for (let k = 0; k < codes.length; k += every) members[codes[k]]?.push(k);
  const cell = Math.min(...sizes.map(([, height]) => height)) / CELLS;
  const [across, up] = window.map((length) => Math.max(Math.floor(length / cell), 1));
  const taken = new Uint8Array(across * up), sums = new Int32Array((across + 1) * (up + 1));
  const middle = (k) => cell * (k + 0.5);
  const span = (home, reach, count) => [Math.max(Math.floor((home - reach) / cell), 0), Math.min(Math.ceil((home + reach) / cell), count)];
  const take = (x, y) => {
    if (x >= 0 && y >= 0 && x < across * cell && y < up * cell) taken[Math.floor(x / cell) * up + Math.floor(y / cell)] = 1;
  };
  for (let k = 0; k < points.length; k += 2) take(points[k], points[k + 1]);
  const order = sizes.map((_, name) => name).sort((a, b) => members[b].length - members[a].length);
  for (const name of order.filter((name) => members[name].length)) {
    const [x, y] = [0, 1].map((j) => median(Float64Array.from(members[name], (k) => points[2 * k + j])));
    const extent = median(Float64Array.from(members[name], (k) => Math.hypot(points[2 * k] - x, points[2 * k + 1] - y)));
    found[name] = { home: [x, y], place: null };
    let near = 0;
    sample.forEach((code, place) => {
      const k = every * place;
      near += code !== name && Math.hypot(points[2 * k] - x, points[2 * k + 1] - y) <= extent;
    });
    if (near > MOST_OTHERS * (sample.length - members[name].length)) continue;
    const [width, height] = sizes[name], [a, b] = sizes[name].map((size) => Math.ceil((size / 2 + radius) / cell));
    for (let i = 0; i < across; i++)
      for (let j = 0, column = 0; j < up; j++) {
        column += taken[i * up + j];
        sums[(i + 1) * (up + 1) + j + 1] = sums[i * (up + 1) + j + 1] + column;
      }
    const limit = REACH * (extent + height);
    const [left, right] = span(x, limit + width / 2, across), [low, high] = span(y, limit + height / 2, up);
    const below = (i, j) => sums[Math.min(Math.max(i, 0), across) * (up + 1) + Math.min(Math.max(j, 0), up)];
    let best = null, least = Infinity;
    for (let i = left; i < right; i++)
      for (let j = low; j < high; j++) {
        const [u, v] = [middle(i), middle(j)];
        if (u < width / 2 || v < height / 2 || u > window[0] - width / 2 || v > window[1] - height / 2) continue;
        const [dx, dy] = [Math.abs(u - x), Math.abs(v - y)];
        const away = Math.hypot(Math.max(dx - width / 2, 0), Math.max(dy - height / 2, 0));
        const cost = away + OFF_CENTRE * Math.hypot(dx, dy);
        if (cost >= least || away > limit || below(i + a + 1, j + b + 1) - below(i - a, j + b + 1) - below(i + a + 1, j - b) + below(i - a, j - b)) continue;
        [best, least] = [[i, j], cost];
      }
    if (!best) continue;
    const place = found[name].place = best.map(middle);
    for (let i = Math.max(best[0] - a, 0); i <= Math.min(best[0] + a, across - 1); i++)
      taken.fill(1, i * up + Math.max(best[1] - b, 0), i * up + Math.min(best[1] + b, up - 1) + 1);
    const steps = Math.floor((2 * Math.hypot(x - place[0], y - place[1])) / cell) + 1;
    for (let s = 0; s <= steps; s++) take(place[0] + ((x - place[0]) * s) / steps, place[1] + ((y - place[1]) * s) / steps);
  }
  return found;
}
