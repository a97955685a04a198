kinds.lines = {
  rows: ({ series, xLabel, yLabel }) => [
    ["series", xLabel, yLabel, "low", "high"],
    ...series.flatMap(({ name, x, y, low, high }) => x.map((at, i) => [name, at, y[i], low && low[i], high && high[i]])),
  ],

  draw(host, data, { width, label }) {
    const { series, logX, logY } = data;
    const xs = [...new Set(series.flatMap(({ x }) => x).filter(known))].sort((a, b) => a - b);
    const ys = series.flatMap(({ y, low, high }) => [...y, ...(low || []), ...(high || [])]);
    const few = xs.length <= 8; // then each of them is a tick, and the marks need air beside them
    const x = few || logX ? axisOf(xs, logX, 0.04) : { low: xs[0], high: last(xs) };
    const frame = chart(host, width, clamp(width * 0.45, 240, 380), { ...data, x, y: axisOf(ys, logY), label, xTicks: few ? xs : null });
    const groups = series.map((one, i) => drawSeries(frame, one, i, series.length));
    frame.root.append(...groups);
    const isolate = (picked) => groups.forEach((group, i) => group.classList.toggle("faded", picked !== null && picked !== i));
    host.append(legend(series.map(({ name }, i) => ({ name, mark: lineMark(i) })), isolate));
    if (xs.length) readAlong(host, frame, data, xs);
  },
};

function drawSeries({ sx, sy }, { x, y, low, high }, i, count) {
  // Whiskers of several lines at one x are set beside each other.
  const shift = low && x.length <= 20 ? (i - (count - 1) / 2) * 4 : 0;
  const at = (j, value) => (sx(x[j]) === null || sy(value) === null ? null : [sx(x[j]) + shift, sy(value)]);
  const places = y.map((value, j) => at(j, value));
  const group = svg("g", { class: "series", style: { "--c": `var(--c${i % 8})` } });
  if (low && high) group.append(...interval(low.map((v, j) => at(j, v)), high.map((v, j) => at(j, v))));
  group.append(svg("path", { class: "line", d: path(places) }));
  if (x.length <= 40) group.append(...places.filter(Boolean).map((place) => pointMark(i, ...place, 4.5)));
  return group;
}

/** Whiskers for a few points, a band for many. */
function interval(low, high) {
  const inside = range(low.length).filter((j) => low[j] && high[j]);
  if (low.length <= 20) {
    const whisker = (j) => `M${high[j][0] - 3} ${high[j][1]}h6m-3 0V${low[j][1]}m-3 0h6`;
    return inside.map((j) => svg("path", { class: "whisker", d: whisker(j) }));
  }
  const edge = [...inside.map((j) => high[j]), ...inside.reverse().map((j) => low[j])];
  return [svg("path", { class: "band", d: path(edge) })];
}

/** An svg path through the places; null breaks the line. */
function path(places) {
  const step = (place, i) => (place ? `${places[i - 1] ? "L" : "M"}${place[0].toFixed(1)} ${place[1].toFixed(1)}` : "");
  return places.map(step).join("");
}

function readAlong(host, { root, plot, sx }, { series, xLabel }, xs) {
  const rule = svg("line", { class: "rule", y1: plot.top, y2: plot.bottom, visibility: "hidden" });
  const tip = tooltip(host);
  root.append(rule);
  const line = ({ name, x, y, low, high }, k, wanted) => {
    const j = x.indexOf(wanted);
    const bounds = low && high && known(low[j]) ? ` (${short(low[j])} to ${short(high[j])})` : "";
    return j < 0 ? [] : [[lineMark(k), `${name}: ${short(y[j], 4)}${bounds}`]];
  };
  const show = (i) => {
    fill(rule, { x1: sx(xs[i]), x2: sx(xs[i]), visibility: "visible" });
    tip.show(sx(xs[i]), plot.top, [`${xLabel}: ${short(xs[i], 4)}`, ...series.flatMap((one, k) => line(one, k, xs[i]))]);
  };
  const hide = () => {
    fill(rule, { visibility: "hidden" });
    tip.hide();
  };
  explore(root, xs.map(sx), show, hide);
}
