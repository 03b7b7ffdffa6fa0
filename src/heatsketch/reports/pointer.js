// The pointer: hover, move, turn, zoom, circle, click; and the keys of the picture.

function hover({ scatter: own, stage, tip }, x, y) {
  const k = own.nearest(x, y, 14);
  if (k !== hovered) {
    hovered = k;
    refresh();
  }
  tip.hidden = k < 0;
  if (k < 0) return;
  tip.replaceChildren();
  const line = (name, value) => {
    const row = say(tip, "div");
    say(row, "b", name);
    row.append(` ${value}`);
  };
  if (facts.images) drawImage(say(tip, "canvas"), k);
  if (!idNames.length) line("row", String(rowOf(k)));
  for (const name of idNames) line(name, facts.ids[name][k]);
  if (source >= 0 && k !== source) line(`to ${nameOf(source)}`, interval(source, k));
  const listed = new Set([columns[painted], ...columns].filter(Boolean)); // the colour first
  [...listed].slice(0, 10).forEach((column) => line(column.name, column.text(k)));
  if (columns.length > 10) say(tip, "div", `and ${columns.length - 10} more`);
  const { offsetLeft: left, offsetTop: top } = stage; // on a phone the tip stands below
  tip.style.left = `${left + (x > own.width / 2 ? Math.max(0, x - tip.offsetWidth - 14) : x + 14)}px`;
  tip.style.top = `${top + Math.max(0, Math.min(y + 14, own.height - tip.offsetHeight))}px`;
}

function drawImage(canvas, k) { // bright on dark
  const [, height, width] = facts.images.shape, pen = canvas.getContext("2d");
  [canvas.width, canvas.height, canvas.className] = [width, height, "image"];
  const image = pen.createImageData(width, height);
  for (let p = 0; p < width * height; p++) {
    const grey = facts.images[k * width * height + p];
    image.data.set([grey, grey, grey, 255], 4 * p);
  }
  pen.putImageData(image, 0, 0);
}

function listen(view) {
  const { scatter: own, stage, tip } = view, pointers = new Map();
  let drag = null;
  const at = (event) => {
    const box = own.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  stage.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    stage.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, at(event));
    const circling = event.shiftKey || pressed("lasso");
    drag = { from: at(event), kind: circling ? "lasso" : own.deep && !event.ctrlKey ? "turn" : "move" };
    path = Object.assign(circling ? [at(event)] : [], { own });
  });

  stage.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (!pointers.has(event.pointerId)) return hover(view, x, y);
    const before = pointers.get(event.pointerId);
    pointers.set(event.pointerId, [x, y]);
    if (pointers.size === 2) { // two fingers zoom
      const [[ax, ay], [bx, by]] = [...pointers.values()];
      const gap = Math.hypot(ax - bx, ay - by);
      if (drag && drag.gap) own.zoomAt((ax + bx) / 2, (ay + by) / 2, gap / drag.gap);
      drag = { kind: "zoom", gap };
      path = [];
      return;
    }
    const [dx, dy] = [x - before[0], y - before[1]];
    if (drag.kind === "lasso") path.push([x, y]);
    else if (drag.kind === "turn") {
      own.angles[0] += dx / 150;
      own.angles[1] += dy / 150;
    } else if (drag.kind === "move" && Math.hypot(x - drag.from[0], y - drag.from[1]) > 3) {
      own.framed = false;
      own.centre[0] -= dx / own.zoom;
      own.centre[1] += dy / own.zoom;
    }
    if (drag.kind === "lasso") own.refresh();
    else own.move();
  });

  for (const kind of ["pointerup", "pointercancel"])
    stage.addEventListener(kind, (event) => {
      if (!pointers.delete(event.pointerId) || pointers.size) return;
      const [x, y] = at(event), still = drag.from && Math.hypot(x - drag.from[0], y - drag.from[1]) <= 3;
      if (drag.kind === "lasso" && path.length > 2) select(own.inside(path).filter((k) => failed[k] === 0));
      else if (drag.kind !== "zoom") {
        if (still && kind === "pointerup") choose(own.nearest(x, y, 14));
        hover(view, x, y); // a tap on a screen without a mouse
      }
      path = [];
      refresh();
    });

  stage.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "touch") return; // a finger leaves after each tap, whose tip is to be read
    hovered = -1;
    tip.hidden = true;
    refresh();
  });
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    own.zoomAt(...at(event), Math.exp(-event.deltaY / 500));
  }, { passive: false });
  stage.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -0.1, ArrowRight: 0.1 }[event.key], zoom = { "+": 1.2, "-": 1 / 1.2 }[event.key];
    if (step && times.length > 1) moveTo(scatter.now + step);
    if (zoom) own.zoomAt(own.width / 2, own.height / 2, zoom);
    if (step || zoom) event.preventDefault();
  });
}
