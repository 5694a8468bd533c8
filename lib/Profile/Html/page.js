// What all pages are made with. Text only ever becomes text nodes, so that no
// name of a kernel is markup.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// --- elements ---------------------------------------------------------------

/** An element with attributes; children are elements or text. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/**
 * A table whose first column says what a row is of; columns: [title, "text" or nothing]. Where there is little room, a
 * row is a card whose cells bring their titles; the roles say to screen readers that it still is a table.
 */
function table(caption, columns, rows) {
  const cell = (tag, index, content, attributes) => {
    const kinds = [index ? columns[index][1] : "text", content === "-" && "unknown", content.length > 12 && "wide"];
    const names = kinds.filter(Boolean).join(" ");
    return el(tag, names ? { ...attributes, class: names } : attributes, ...[content].flat());
  };
  const head = columns.map(([title], index) => cell("th", index, title, { scope: "col", role: "columnheader" }));
  const body = rows.map((row) =>
    el("tr", { role: "row" }, ...row.map((content, index) =>
      index ? cell("td", index, content, { role: "cell", "data-title": columns[index][0] })
        : cell("th", 0, content, { scope: "row", role: "rowheader" }))));
  const made = el("table", { role: "table" }, el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...head)), el("tbody", { role: "rowgroup" }, ...body));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made);
}

/** A name as the cell of a table; long ones unfold. */
function nameCell(name) {
  if (name.length <= 120) return el("div", { class: "long" }, name);
  return el("details", { class: "long" }, el("summary", {}, shorten(name, 100)), name);
}

/** A section that the navigation leads to. */
function section(id, title, ...children) {
  document.querySelector("nav").append(el("a", { href: "#" + id }, title));
  const made = el("section", { id }, el("h2", {}, title), ...children);
  document.getElementById("page").append(made);
  return made;
}

function startPage(title, ...subtitle) {
  document.getElementById("page").append(
    el("header", {}, el("h1", {}, title), el("p", { class: "muted" }, ...subtitle)),
    el("nav", { "aria-label": "Sections" }));
}

/** Entries: [name, colour variable]. */
function legend(entries) {
  return el("ul", { class: "legend" }, ...entries.map(([name, color]) =>
    el("li", {}, el("span", { style: `background: var(${color})` }), name)));
}

/** Entries: [term, text]; those without text are left out. */
function definitions(entries) {
  return el("dl", {}, ...entries.filter(([, text]) => text)
    .flatMap(([term, text]) => [el("dt", {}, term), el("dd", {}, text)]));
}

/** A command line with a button that copies it. */
function command(text) {
  const button = el("button", { type: "button" }, "Copy");
  button.addEventListener("click", () =>
    navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; },
      () => { button.textContent = "Select and copy it"; }));
  return [el("pre", {}, text), el("p", {}, button)];
}

/** A button that saves the JSON of this page. */
function saveButton(name) {
  const button = el("button", { type: "button" }, "Save the data");
  button.addEventListener("click", () => {
    const text = document.getElementById("data").textContent;
    const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    el("a", { href: address, download: name }).click();
    URL.revokeObjectURL(address);
  });
  return button;
}

// --- text -------------------------------------------------------------------

/** Three digits, in the unit that fits. */
function scaled(value, units) {
  const [factor, unit] = units.find(([factor]) => Math.abs(value) >= factor) ?? units[units.length - 1];
  const number = value / factor;
  const digits = Math.abs(number) >= 99.95 ? 0 : Math.abs(number) >= 9.995 ? 1 : 2;
  return `${number.toFixed(digits)} ${unit}`;
}

/** For an axis of times up to `us`: what to divide by, and the unit. */
const timeUnit = (us) => us >= 2e6 ? [1e6, "s"] : us >= 2e3 ? [1e3, "ms"] : [1, "us"];

const known = (value) => value !== null && value !== undefined;
const duration = (us) => !known(us) ? "-" : us === 0 ? "0 us"
  : scaled(us, [[1e6, "s"], [1e3, "ms"], [1, "us"], [1e-3, "ns"]]);
const bytes = (count) => {
  if (!known(count)) return "-";
  const found = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([factor]) => count >= 0.9995 * factor);
  return found ? `${(count / found[0]).toFixed(1)} ${found[1]}` : `${Math.round(count)} B`;
};
const flops = (count) => !known(count) ? "-" : count === 0 ? "0"
  : scaled(count, [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]]).trim();
const fixed = (value, digits) => known(value) ? value.toFixed(digits) : "-";
const percent = (fraction) => known(fraction) ? `${(100 * fraction).toFixed(1)} %` : "-";
const ratio = (value) => known(value) ? `${value.toFixed(2)} x` : "-";
const integer = (value) => known(value) ? String(value) : "-";
const sizes = (list) => known(list) ? list.join("x").replace(/(x1)+$/, "") : "-";
/** "8", "0.5" */
const perCall = (value) => Number.isInteger(value) ? String(value) : value.toFixed(1);
/** "1 kernel", "5 kernels", "no copies" */
const counted = (value, one, many) => value === 0 ? `no ${many}` : `${perCall(value)} ${value === 1 ? one : many}`;

/** Names of templates run to thousands of characters. */
function shorten(name, length) {
  return name.length <= length ? name : name.slice(0, length - 1) + "\u2026";
}

// --- charts -----------------------------------------------------------------

const figures = [];

function color(variable) {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

const isNarrow = () => window.innerWidth < 600;

/** Short labels of categories where there is little room. */
const labelTicks = () => ({
  callback(value) { return shorten(this.getLabelForValue(value), isNarrow() ? 14 : 32); },
  autoSkip: false,
});

/**
 * A chart and, for who doesn't see it, its numbers as a table. `config` is
 * called again whenever colours or the width change.
 */
function figure(title, height, config, numbers) {
  const canvas = el("canvas", { role: "img", "aria-label": title });
  const box = el("div", { class: "chart", style: `height: ${height}px` }, canvas);
  figures.push({ canvas, config, chart: null });
  const made = el("figure", {}, box);
  if (numbers) made.append(el("details", {}, el("summary", {}, "As a table"), numbers));
  return made;
}

function drawFigures() {
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.color = color("--muted");
  Chart.defaults.borderColor = color("--grid");
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.plugins.legend.display = false;
  Chart.defaults.plugins.tooltip.displayColors = false;
  for (const entry of figures) {
    entry.chart?.destroy();
    entry.chart = new Chart(entry.canvas, entry.config());
  }
  document.documentElement.dataset.charts = figures.length;
}

function finishPage() {
  drawFigures();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawFigures);
  // On paper the light theme's colours hold.
  matchMedia("print").addEventListener("change", drawFigures);
}

/** Black or white, whichever is easier to read on a colour. */
function inkOn(background) {
  const [r, g, b] = [1, 3, 5].map((at) => (parseInt(background.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
}

/** Writes the label of a bar's segment into it, where there is room. */
const segmentLabels = {
  id: "segmentLabels",
  afterDatasetsDraw(chart) {
    const context = chart.ctx;
    context.save();
    context.font = `11px ${Chart.defaults.font.family}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    chart.data.datasets.forEach((dataset, index) => {
      chart.getDatasetMeta(index).data.forEach((bar, point) => {
        const label = dataset.segmentLabels?.[point];
        if (!label) return;
        const { x, base, y } = bar.getProps(["x", "base", "y"]);
        const room = Math.abs(x - base) - 8;
        let text = label;
        while (text.length > 3 && context.measureText(text).width > room) text = text.slice(0, -2) + "\u2026";
        if (context.measureText(text).width > room) return;
        context.fillStyle = inkOn(bar.options.backgroundColor);
        context.fillText(text, (x + base) / 2, y);
      });
    });
    context.restore();
  },
};
