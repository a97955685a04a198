/** kind -> {rows(data), draw(host, data, {width, label, id}), enhance(figure, data)}; see start.js. */
const kinds = {};

// Read from a parsed element, so that the page holds no address at all.
const SVG = (() => {
  const parsed = document.createElement("template");
  parsed.innerHTML = "<svg></svg>";
  return parsed.content.firstChild.namespaceURI;
})();

/** An HTML element; strings among the children become text, never markup. */
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Set attributes, `on...` listeners and style properties, and add the children that are there. */
function fill(node, attributes = {}, children = []) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.entries(value).forEach((pair) => node.style.setProperty(...pair));
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const button = (name, onclick, text, more = {}) =>
  el("button", { type: "button", class: name, onclick, ...more }, ...[text].flat());
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const known = (value) => Number.isFinite(value);
const range = (n) => Array.from({ length: n }, (_, i) => i);
const last = (list) => list[list.length - 1];
const lowest = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
const highest = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);

/** A number for reading: thousands apart, very small and large ones by powers of ten. */
function short(value, digits = 3) {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    const [factor, power] = value.toExponential(digits - 1).split("e").map(Number);
    const raised = [...String(power)].map((sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] || "⁻").join("");
    return signed(factor === 1 ? `10${raised}` : `${factor}·10${raised}`);
  }
  const text = String(Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size + 1))))));
  return signed(size >= 1e4 ? text.replace(/\B(?=(\d{3})+$)/g, "\u202f") : text);
}

const signed = (text) => text.replace("-", "−");

/** The array that payload.pack wrote, with its shape. */
function unpack({ type, shape, base64 }) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return { values: new { f4: Float32Array, i2: Int16Array }[type](bytes.buffer), shape };
}

function csv(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function download(name, text) {
  // The byte order mark tells spreadsheets that this is UTF-8.
  const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
