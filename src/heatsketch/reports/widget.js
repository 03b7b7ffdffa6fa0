// A report in a notebook: what its page and the kernel say to each other.

function render({ model, el }) {
  const frame = document.createElement("iframe");
  const tell = (what) => frame.contentWindow.postMessage(what, "*");
  const hear = ({ source, data }) => {
    if (source !== frame.contentWindow) return;
    if (data.wanted) model.send(data.wanted);
    for (const name of ["compare", "annotations", "again", "back"])
      if (data[name]) model.send({ [name]: data[name] });
    if (data.selected) {
      model.set("selected", data.selected);
      model.save_changes();
    }
  };
  frame.setAttribute("sandbox", "allow-scripts allow-downloads"); // it reaches nothing of the notebook
  frame.allow = "clipboard-write";
  frame.style.cssText = "width: 100%; height: 900px; border: 0";
  frame.addEventListener("load", () => tell({ names: model.get("names"), can: model.get("can") }));
  window.addEventListener("message", hear);
  model.on("msg:custom", tell);
  const show = () => (frame.srcdoc = model.get("page"));
  model.on("change:page", show); // of the points embedded again
  show();
  el.append(frame);
  return () => {
    window.removeEventListener("message", hear);
    model.off("msg:custom", tell);
    model.off("change:page", show);
  };
}

export default { render };
