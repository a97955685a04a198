/**
 * How the points of a map can be coloured, each
 * {name, text(i), mark(i): [shape, colour], member(i, picked), legend(pick)}.
 */
function colourings({ classes, classNames, group, matrix, numbers }) {
  const groups = [...new Set(group || [])].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
  const all = [
    ...(classes ? [byName("class", classes, classNames)] : []),
    ...(matrix ? matrix.names.map((name, j) => byValue(name, matrix.columns[j])) : []),
    ...(group && groups.length <= 56 ? [byName("group", group.map((one) => groups.indexOf(one)), groups)] : []),
  ];
  return all.length ? all : [byName("nothing", numbers.map(() => 0), ["window"])];
}

function byName(name, codes, names) {
  const present = [...new Set(codes)].sort((a, b) => (a < 0) - (b < 0) || a - b);
  const nameOf = (code) => (code < 0 ? "not known" : names[code]);
  const count = (code) => codes.filter((other) => other === code).length;
  return {
    name,
    text: (i) => `${name} ${nameOf(codes[i])}`,
    mark: (i) => [codes[i]],
    member: (i, picked) => codes[i] === present[picked],
    legend: (pick) => legend(present.map((code) => ({ mark: classMark(code), name: nameOf(code), count: count(code) })), pick),
  };
}

/** Colours from the 2nd to the 98th percentile, so that one outlier does not make the rest alike. */
function byValue(name, values) {
  const sorted = values.filter(known).sort((a, b) => a - b);
  const [low, high] = [0.02, 0.98].map((share) => sorted[Math.round(share * (sorted.length - 1))]);
  const step = (value) => Math.round(31 * (high > low ? clamp((value - low) / (high - low), 0, 1) : 0.5));
  const missing = values.length - sorted.length;
  const end = (sign, value) => el("span", { class: "count" }, `${high > low ? sign : ""}${short(value)}`);
  const gap = missing ? [el("span", { class: "entry" }, classMark(-1), "missing", el("span", { class: "count" }, short(missing)))] : [];
  return {
    name,
    text: (i) => `${name} ${known(values[i]) ? short(values[i], 4) : "missing"}`,
    mark: (i) => (known(values[i]) ? [0, `var(--q${step(values[i])})`] : [-1]),
    member: () => true,
    legend: () => el("div", { class: "legend" }, end("≤ ", low), el("span", { class: "ramp" }), end("≥ ", high), ...gap),
  };
}
