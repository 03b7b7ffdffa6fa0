// Cards with what is known of the embedding as a whole.

function card(id, line, note) {
  const found = element(id);
  found.hidden = false;
  for (const [name, text] of [[".line", line], [".note", note]])
    if (text) found.querySelector(name).textContent = text;
  return [...found.querySelectorAll(".chart")];
}

function showDistances(found, time) {
  if (found === distances && element("pairs").firstChild) return;
  element("distances-time").textContent = time === null ? "" : ` at time ${short(time)}`;
  [distances, pair] = [found, null];
  const { line, looked_at, histogram: [edges, counts], worst_pairs: worst, median } = found;
  const total = counts.reduce((a, b) => a + b, 0) || 1, [place] = card("distances", line, `Compared: ${looked_at}.`);
  const share = counts.map((count) => (100 * count) / total);
  place.replaceChildren();
  chart(place, {
    x: { low: edges[0], high: edges[edges.length - 1], log: true, label: "distance in the picture / diffusion distance, median 1", ticks: [0.125, 0.25, 0.5, 1, 2, 4, 8] },
    y: { low: 0, high: Math.max(...share) * 1.05, label: "pairs (%)" },
    bars: share.map((y, k) => [edges[k], edges[k + 1], y]),
    upright: [{ x: 1 }],
  });
  const list = element("pairs");
  list.replaceChildren();
  for (const [end, word] of [["expansion", "stretched"], ["contraction", "shrunk"]])
    worst[end].forEach((points, place) => {
      const button = say(say(list, "li"), "button"), ratio = found[end] / median;
      const size = place === 0 && Number.isFinite(ratio) && ratio > 0 ? ` × ${short(ratio)}` : "";
      button.type = "button";
      button.textContent = `${points.map(nameOf).join(" – ")} ${word}${size}`;
      button.addEventListener("click", () => {
        pair = pair === points ? null : points;
        refresh();
      });
    });
}

function showGaps(found) { // pairs of labels, the nearest first
  card("gaps");
  const made = element("gap-table"), head = say(made, "tr");
  ["labels", "true distance (95 %)", "in the picture", "place there (true)", ""].forEach((name) => say(head, "th", name));
  for (const gap of found) {
    const row = say(made, "tr"), [value, low, high] = gap.distance;
    [gap.labels.join(" – "), `${short(value)} (${short(low)} to ${short(high)})`, short(gap.picture),
      `${gap.rank} (${gap.true_ranks.join(" to ")})`, gap.believed ? "believed" : "not in its place"].forEach((text) => say(row, "td", text));
    if (!gap.believed) row.className = "wrong";
  }
}

function showGroups(found) { // torn and merged groups, each to be clicked
  card("groups");
  for (const [kind, groups] of Object.entries(found)) {
    const list = element(kind);
    if (!groups.length) say(say(list, "li"), "span", "none");
    for (const members of groups) {
      const button = say(say(list, "li"), "button", `${counted(members.length)} points`);
      button.type = "button";
      button.addEventListener("click", () => select([...members]));
    }
  }
}

function showScales(found) {
  const t = found.times, x = { low: t[0], high: t[t.length - 1], log: true, label: "diffusion time" };
  const [below] = card("scales", "", "How many directions are left at a time, the effective rank of the heat kernel.");
  const now = found.time >= t[0] && found.time <= t[t.length - 1] ? [{ x: found.time, text: `time ${short(found.time)}` }] : [];
  const k = facts.n_coordinates, [low, high] = [Math.min(1, ...found.low), Math.max(...found.high, k + 2)];
  const level = [{ y: k + 1, text: `${k} coordinates and the trivial one` }];
  if (found.components > 1) level.push({ y: found.components, text: `${found.components} components` });
  chart(below, {
    x, y: { low: Math.max(low, 0.9), high: 1.2 * high, log: true, label: "effective rank" },
    bands: [{ x: t, low: found.low, high: found.high }], lines: [{ x: t, y: found.effective_rank }], level, upright: now,
  });
}

function showExplained({ line, ratio, cumulative, cumulative_low: low, cumulative_high: high }) {
  const [place] = card("explained", line), hundred = (values) => values.map((share) => 100 * share);
  const x = ratio.map((_, k) => k + 1), whole = x.length < 6 ? x : undefined;
  chart(place, {
    x: { low: 0.4, high: x.length + 0.6, label: "coordinates", ticks: whole },
    y: { low: 0, high: 104, label: "%" },
    bars: x.map((k) => [k - 0.4, k + 0.4, 100 * ratio[k - 1]]),
    bands: x.length > 1 ? [{ x, low: hundred(low), high: hundred(high) }] : [],
    lines: [{ x, y: hundred(cumulative) }],
    dots: x.map((k) => ({ x: k, y: 100 * cumulative[k - 1] })),
  });
}

function showKsum(found) {
  if (found.why_not) return card("ksum", `There is no Ksum test: ${found.why_not}`);
  const line = `Ksum: ε ${short(found.epsilon)}, dimension ${short(found.dimension)}`;
  const note = found.used === null
    ? "The embedding has a bandwidth for each pair of points, not this one."
    : `The embedding was made with ε ${short(found.used)}.`;
  const [place] = card("ksum", line, note), x = found.epsilons, y = found.slopes;
  const upright = [{ x: found.epsilon, text: `ε ${short(found.epsilon)}` }];
  if (found.used !== null && found.used >= x[0] && found.used <= x[x.length - 1] && Math.abs(Math.log(found.used / found.epsilon)) > 0.01)
    upright.push({ x: found.used, text: "used" });
  chart(place, {
    x: { low: x[0], high: x[x.length - 1], log: true, label: "bandwidth ε" },
    y: { low: Math.min(0, ...y), high: 1.2 * Math.max(found.dimension / 2, ...y), label: "slope d log S / d log ε" },
    lines: [{ x, y }], dots: [{ x: found.epsilon, y: found.dimension / 2, best: true }], upright,
  });
}
