// Draws the figures of the page, in the colours of the reader's light or dark mode.
(function () {
  "use strict";
  const root = document.documentElement;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const palette = read("palette"); // light colour, as the figures write it -> CSS variable
  const plots = Array.from(document.querySelectorAll(".plot"));
  const specs = new Map(plots.map((div) => [div, read(div.id + "-spec")]));

  // The palette as it stands now: light colour -> colour of the current mode.
  function currentColours() {
    const style = getComputedStyle(root);
    const colours = new Map();
    for (const [light, variable] of Object.entries(palette)) {
      colours.set(light, style.getPropertyValue(variable).trim());
    }
    return colours;
  }

  // A copy of a figure in which every palette colour is replaced by the current one.
  function recoloured(value, colours) {
    if (typeof value === "string") return colours.get(value) || value;
    if (Array.isArray(value)) return value.map((item) => recoloured(item, colours));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, recoloured(item, colours)])
    );
  }

  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [["toImage", "resetScale2d"]],
  };

  function drawOne(div) {
    const { data, layout } = recoloured(specs.get(div), currentColours());
    // Paper does not answer resize events, so a printed figure is given its width outright.
    if (root.classList.contains("printing")) layout.width = div.clientWidth;
    const file = { format: "svg", filename: div.id };
    Plotly.react(div, data, layout, { ...config, toImageButtonOptions: file });
  }

  const draw = () => plots.forEach(drawOne);

  // What is in view is drawn at once, the rest one by one, so that the page can be read meanwhile.
  function drawNext(waiting) {
    if (waiting.length === 0) return;
    drawOne(waiting[0]);
    setTimeout(() => drawNext(waiting.slice(1)));
  }

  const inView = new Set(plots.filter((div) => div.getBoundingClientRect().top < innerHeight));
  inView.forEach(drawOne);
  setTimeout(() => drawNext(plots.filter((div) => !inView.has(div))));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => { root.classList.add("printing"); draw(); });
  addEventListener("afterprint", () => { root.classList.remove("printing"); draw(); });
})();
