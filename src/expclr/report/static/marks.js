const circle = (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
const polygon = (...corners) => (r) => `M${corners.map(([x, y]) => `${(x * r).toFixed(2)} ${(y * r).toFixed(2)}`).join("L")}Z`;
const turned = (corners, times) => (times ? [...corners, ...turned(corners.map(([x, y]) => [-y, x]), times - 1)] : []);
const SHAPES = [
  circle,
  polygon(...turned([[0.9, 0.9]], 4)),
  polygon([0, -1.25], [1.2, 0.85], [-1.2, 0.85]),
  polygon(...turned([[0, 1.3]], 4)),
  polygon([0, 1.25], [1.2, -0.85], [-1.2, -0.85]),
  polygon(...turned([[-0.42, -1.2], [0.42, -1.2], [0.42, -0.42]], 4)),
  polygon([-0.6, -1.1], [0.6, -1.1], [1.25, 0], [0.6, 1.1], [-0.6, 1.1], [-1.25, 0]),
];

/** Mark i at a place: 7 shapes by 8 colours tell 56 apart; below 0 a hollow ring, "not known". */
function pointMark(i, x, y, r, colour = `var(--c${i % 8})`) {
  const d = i < 0 ? circle(r * 0.85) : SHAPES[i % SHAPES.length](r);
  return svg("path", { class: i < 0 ? "point unknown" : "point", d, transform: `translate(${x} ${y})`, style: { "--c": colour } });
}

/** The mark of class i for a legend. */
const classMark = (i) => svg("svg", { width: 14, height: 14, class: "mark", "aria-hidden": "true" }, pointMark(i, 7, 7, 5));

/** A short stroke with the marker of line i. */
function lineMark(i) {
  const stroke = svg("line", { class: "line", x1: 1, x2: 25, y1: 7, y2: 7, style: { "--c": `var(--c${i % 8})` } });
  return svg("svg", { width: 26, height: 14, class: "mark", "aria-hidden": "true" }, stroke, pointMark(i, 13, 7, 4));
}

/**
 * Names with their marks; picking one isolates it, picking it again shows all.
 * @param entries [{mark, name, count}]
 * @param pick (index or null) => void
 */
function legend(entries, pick) {
  let picked = null;
  const choose = (i) => {
    picked = picked === i ? null : i;
    buttons.forEach((entry, j) => {
      entry.setAttribute("aria-pressed", String(picked === j));
      entry.classList.toggle("faded", picked !== null && picked !== j);
    });
    pick(picked);
  };
  const content = ({ mark, name, count }) => [mark, el("span", {}, name), el("span", { class: "count" }, known(count) ? short(count) : "")];
  const buttons = entries.map((entry, i) => button("entry", () => choose(i), content(entry), { "aria-pressed": "false" }));
  return el("div", { class: "legend", role: "group", "aria-label": "Legend" }, ...buttons);
}
