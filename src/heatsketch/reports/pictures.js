// The picture as a file.

function savePNG() { // as it is on the screen
  const { canvas } = scatter, made = document.createElement("canvas"), pen = made.getContext("2d");
  [made.width, made.height] = [canvas.width, canvas.height];
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--page");
  pen.fillRect(0, 0, made.width, made.height);
  if (scatter.gl) scatter.draw();
  pen.drawImage(canvas, 0, 0);
  pen.drawImage(element("overlay"), 0, 0);
  made.toBlob((blob) => save(blob, "picture.png"));
}

function saveSVG() {
  const place = scatter.onScreen(), { width, height } = scatter, r = scatter.size / 2;
  const dots = Array.from({ length: n }, (_, k) => {
    const [red, green, blue] = scatter.colours.subarray(4 * k, 4 * k + 3);
    const opacity = scatter.states[k] === FADED ? Math.min(0.08, 0.3 * scatter.opacity ** 2) : scatter.opacity, [x, y] = [place[2 * k], place[2 * k + 1]];
    return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${r.toFixed(1)}" fill="rgb(${red},${green},${blue})" fill-opacity="${opacity.toFixed(2)}"/>`;
  });
  const text = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}">\n${dots.join("\n")}\n</svg>\n`;
  save(new Blob([text], { type: "image/svg+xml" }), "picture.svg");
}
