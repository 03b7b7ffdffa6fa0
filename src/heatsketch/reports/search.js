// Search by id, number of the row, or the text of a column; colours by name.

function search(words) { // the points with exactly these words, else those that contain them
  const wanted = words.trim().toLowerCase(), level = new Uint8Array(n);
  if (!wanted) return [];
  const rank = (text) => (text === wanted ? 2 : text.includes(wanted) ? 1 : 0);
  const look = (of) => {
    for (let k = 0; k < n; k++) level[k] = Math.max(level[k], of(k));
  };
  for (const name of idNames) look((k) => rank(facts.ids[name][k].toLowerCase()));
  if (!idNames.length) look((k) => rank(String(rowOf(k))));
  for (const { values, names } of columns.filter((column) => column.type === "category")) {
    const ranks = [...names, "missing"].map((name) => rank(name.toLowerCase()));
    look((k) => ranks[values[k] < 0 ? names.length : values[k]]);
  }
  const best = level.includes(2) ? 2 : 1, found = [];
  for (let k = 0; k < n; k++) if (level[k] === best) found.push(k);
  return found;
}

function find(words) {
  const found = search(words);
  element("found").value = !words.trim() ? "" : found.length ? `${counted(found.length)} found` : "nothing found";
  select(found);
  return found;
}

// Of the page, and of a notebook's kernel, which is asked for others (widget.js)

let kernel = null, offered = []; // the window that speaks for it, and the names of its columns

function tellKernel(what) {
  if (kernel) kernel.postMessage(what, "*");
}

function offer(words) { // the first names that begin with the words, then those that contain them
  const wanted = words.trim().toLowerCase(), list = element("column-names");
  const fitting = [...new Set([...columns.map((column) => column.name), ...offered])].filter((name) => name.toLowerCase().includes(wanted));
  const rank = (name) => (name === words ? 0 : name.toLowerCase().startsWith(wanted) ? 1 : 2);
  const found = fitting.sort((a, b) => rank(a) - rank(b)).slice(0, 50);
  list.replaceChildren();
  if (wanted) found.forEach((name) => (say(list, "option").value = name));
  return wanted ? found : [];
}

function colourBy(name) {
  const k = columns.findIndex((column) => column.name === name);
  element("found").value = k < 0 ? `asking the kernel for ${name} …` : "";
  if (k < 0) return tellKernel({ wanted: name });
  paintBy(k);
}

function paintBy(k) { // the number of a column, -1 for none
  painted = Number(k);
  forget();
}

function addColumn(column) { // from the kernel, or made in the page
  columns.push(column);
  say(element("colour"), "option", column.name).value = columns.length - 1;
  offerColumn(column);
}

async function listenToKernel({ source: from, data }) {
  if (from === window || from !== window.parent || !data) return;
  await opened; // it may speak before the page has read its facts
  if (data.names) {
    [kernel, offered] = [from, data.names];
    element("column").hidden = false;
    sayAgain(data.can);
  }
  if (data.missing) element("found").value = data.missing;
  if (data.column) {
    addColumn(read(await unpacked(data.column)));
    colourBy(data.column.name);
  }
  if (data.markers) showMarkers(data.markers, "columns of the kernel", data.of);
}
