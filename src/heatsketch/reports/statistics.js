// What distinguishes two groups of numbers: the rank-sum test, as scipy.stats.mannwhitneyu has it.

function normalTails(z) { // the probability of a normal variable beyond z on either side, to 1e-12 of itself
  const x = Math.abs(z) / Math.SQRT2;
  if (x < 2) { // 1 - erf by its series
    let term = x, sum = x;
    for (let k = 1; k < 60; k++) sum += (term *= -x * x / k) / (2 * k + 1);
    return 1 - (2 / Math.sqrt(Math.PI)) * sum;
  }
  let tail = 0; // erfc by its continued fraction
  for (let k = 200; k > 0; k--) tail = k / 2 / (x + tail);
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + tail);
}

const middleOf = (sorted) => (sorted.length ? (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2 : NaN);

// Numbers a and b, sorted, without NaN: area under the curve, i.e. how often one of a is larger than
// one of b, medians, and the p-value of the normal approximation with ties.
function compareSorted(a, b) {
  const [m, n] = [a.length, b.length], total = m + n, medians = [middleOf(a), middleOf(b)];
  if (!m || !n) return { area: NaN, medians, p: NaN };
  let ranks = 0, ties = 0;
  for (let i = 0, j = 0; i < m || j < n; ) {
    const x = j >= n || (i < m && a[i] <= b[j]) ? a[i] : b[j], before = i + j, mine = i;
    while (i < m && a[i] === x) i++;
    while (j < n && b[j] === x) j++;
    const count = i + j - before;
    ranks += (i - mine) * (before + (count + 1) / 2);
    ties += count ** 3 - count;
  }
  const area = (ranks - (m * (m + 1)) / 2) / m / n;
  const deviation = Math.sqrt(((total + 1 - ties / total / (total - 1)) / 12 / m) / n);
  return { area, medians, p: deviation > 0 ? normalTails((area - 0.5) / deviation) : 1 };
}

function split(values, selected, against) { // the numbers of either side, sorted; of all others without `against`
  const sides = [0, 0], kind = values.constructor, side = (k) => (selected.has(k) ? 0 : !against || against.has(k) ? 1 : -1);
  for (let k = 0; k < values.length; k++) if (!Number.isNaN(values[k]) && side(k) >= 0) sides[side(k)]++;
  const found = sides.map((count) => new kind(count)), next = [0, 0];
  for (let k = 0; k < values.length; k++) if (!Number.isNaN(values[k]) && side(k) >= 0) found[side(k)][next[side(k)]++] = values[k];
  return found.map((numbers) => numbers.sort());
}

function corrected(p) { // Benjamini and Hochberg; NaN stays and counts for nothing
  const order = [...p.keys()].filter((k) => !Number.isNaN(p[k])).sort((a, b) => p[a] - p[b]), found = p.map(() => NaN);
  let least = 1;
  for (let r = order.length; r > 0; r--) found[order[r - 1]] = least = Math.min(least, (p[order[r - 1]] * order.length) / r);
  return found;
}
