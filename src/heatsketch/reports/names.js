// Where names stand: as plot.labels.place_names, which says how.

const CELLS = 4, HALVINGS = 3, REACH = 2, FEW_NAMES = 5;
const ENOUGH = 20_000; // points from which homes are found

function median(values) { // a Float64Array
  const sorted = values.slice().sort(), middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2;
}

function placeNames(points, codes, sizes, window) { // points (2 n); the middle of each name, or null
  const members = sizes.map(() => []), places = sizes.map(() => null), sample = [];
  for (let k = 0; k < codes.length; k += Math.ceil(codes.length / ENOUGH)) {
    sample.push(k);
    members[codes[k]]?.push(k);
  }
  const apart = (k, [x, y]) => (points[2 * k] - x) ** 2 + (points[2 * k + 1] - y) ** 2;
  const nearestToMedian = (own) => {
    const middle = [0, 1].map((j) => median(Float64Array.from(own, (k) => points[2 * k + j])));
    const nearest = own.reduce((best, k) => (apart(k, middle) < apart(best, middle) ? k : best));
    return [points[2 * nearest], points[2 * nearest + 1]];
  };
  const cell = Math.min(...sizes.map(([, height]) => height)) / CELLS;
  const order = sizes.map((_, name) => name).sort((a, b) => members[b].length - members[a].length);
  let complete = true;
  for (const name of order.filter((name) => members[name].length)) {
    let own = members[name], home = nearestToMedian(own);
    for (let k = 0; k < HALVINGS; k++) {
      const squares = Float64Array.from(own, (k) => apart(k, home)), half = median(squares);
      own = own.filter((_, place) => squares[place] <= half);
      home = nearestToMedian(own);
    }
    const radius = Math.max(...own.map((k) => apart(k, home)));
    const near = sample.reduce((sum, k) => sum + (codes[k] !== name && apart(k, home) <= radius), 0);
    if (home.some((at, j) => at < 0 || at > window[j])) continue;
    const size = sizes[name], inside = (at, j) => at >= size[j] / 2 && at <= window[j] - size[j] / 2;
    home = home.map((at, j) => Math.min(Math.max(at, size[j] / 2), window[j] - size[j] / 2));
    const isFree = (spot) => spot.every(inside) && places.every((place, other) =>
      !place || spot.some((at, j) => Math.abs(at - place[j]) >= (size[j] + sizes[other][j]) / 2));
    const count = Math.floor((REACH * Math.sqrt(radius) + size[1]) / cell);
    let best = null, least = Infinity;
    if (near <= (sample.length - members[name].length) / 2 ** (HALVINGS + 1))
      for (let i = -count; i <= count; i++)
        for (let j = -count; j <= count; j++) {
          const spot = [home[0] + cell * i, home[1] + cell * j];
          if (i * i + j * j < least && isFree(spot)) [best, least] = [spot, i * i + j * j];
        }
    places[name] = best;
    complete &&= best !== null;
  }
  return complete || sizes.length >= FEW_NAMES ? places : sizes.map(() => null);
}
