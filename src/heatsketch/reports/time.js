// The slider of time.

// How distances are kept at a time, where that is known.
const distancesAt = (time) => (time === chosen ? facts.distortion : facts.frames.distances[time]);

const labelled = () => facts.frames.labels; // places before and after, in place of times

function moveTo(at) {
  const before = scatter.now;
  scatter.now = Math.min(times.length - 1, Math.max(0, at));
  element("slider").value = scatter.now;
  const [i, j, part] = scatter.between, near = part < 0.5 ? i : j, still = Math.min(part, 1 - part) < 1e-6;
  let text = still ? `time ${short(times[near])}` : `between ${short(times[i])} and ${short(times[j])}`;
  if (labelled()) text = still ? labelled()[near] : `between ${labelled()[i]} and ${labelled()[j]}`;
  if (still && near === chosen && !labelled()) text += ", that of the embedding";
  if (distancesAt(near)) {
    const share = `${Math.round(100 * distancesAt(near).within["1.5"])} % of distances kept within a factor of 1.5`;
    if (still || !labelled()) text += still ? `: ${share}` : `; time ${short(times[near])}: ${share}`;
    showDistances(distancesAt(near), times[near]);
  }
  element("now").value = text;
  if (scatter.now !== before) scatter.move();
  else redraw();
}

let playing = null;
function play(wanted) {
  playing = wanted ? { since: performance.now(), from: scatter.now >= times.length - 1 ? 0 : scatter.now } : null;
  element("play").textContent = wanted ? "❚❚" : "▶";
  element("play").setAttribute("aria-label", wanted ? "stop" : "move through the times");
  if (wanted) requestAnimationFrame(advance);
}

function pause() { // at the nearest time: between two, points are on no embedding
  play(false);
  moveTo(Math.round(scatter.now));
}

function advance(now) {
  if (!playing) return;
  const u = playing.from + Math.max(0, now - playing.since) / 1200, whole = Math.floor(u), x = u - whole;
  moveTo(whole + x * x * (3 - 2 * x)); // slow at the times, faster between
  if (u >= times.length - 1) play(false);
  else requestAnimationFrame(advance);
}
