/** Feature values by column, and where a value stands among the shown windows. */
function featureMatrix({ features, featureNames }) {
  if (!features) return null;
  const { values, shape } = unpack(features);
  const column = (j) => range(shape[0]).map((i) => (known(values[i * shape[1] + j]) ? values[i * shape[1] + j] : null));
  const columns = featureNames.map((_, j) => column(j));
  const place = (i, j) => {
    const value = columns[j][i];
    const all = columns[j].filter(known);
    const [below, upTo] = [all.filter((other) => other < value), all.filter((other) => other <= value)];
    return value === null ? null : (below.length + upTo.length) / (2 * all.length);
  };
  return { names: featureNames, columns, place };
}

/** The panel about one window: waveform, features, neighbours. */
class Detail {
  constructor(data, go) {
    Object.assign(this, { data, go, own: false, all: false });
    this.node = el("aside", { class: "detail", "aria-label": "The chosen window" });
  }

  show(i, pinned) {
    this.again = () => this.show(i, pinned);
    const { waves, matrix, neighbours } = this.data;
    this.node.replaceChildren(this.heading(i, pinned));
    if (waves) this.node.append(this.waveform(i));
    if (matrix) this.node.append(this.features(i));
    if (neighbours && neighbours[i].length) this.node.append(this.neighbours(i));
  }

  toggle(option) {
    this[option] = !this[option];
    this.again();
    this.node.querySelector(`[data-option=${option}]`).focus();
  }

  /** A button that turns an option on or off. */
  switch(option, on, off) {
    return button("quiet", () => this.toggle(option), this[option] ? off : on, { "data-option": option });
  }

  heading(i, pinned) {
    const { classes, group, nameOf, numbers } = this.data;
    const kind = classes ? el("span", { class: "entry" }, classMark(classes[i]), nameOf(i)) : null;
    const facts = el("div", { class: "facts" }, kind, group ? el("span", {}, `group ${group[i]}`) : null);
    const state = pinned ? button("quiet", () => this.go(null), "Kept · release") : el("span", { class: "hint" }, "Click a mark to keep it");
    return el("div", { class: "detail-head" }, el("h3", {}, `Window ${numbers[i]}`), state, facts);
  }

  waveform(i) {
    const { waves } = this.data;
    const size = { width: Math.max(220, this.node.clientWidth), height: clamp(240 / waves.channels.length, 26, 96), own: this.own };
    return block("Waveform", this.switch("own", "Its own scale", "Scale of all windows"), el("div", { class: "strips" }, waves.draw(i, size)));
  }

  features(i) {
    const { names, place } = this.data.matrix;
    const places = names.map((_, j) => place(i, j));
    const unusual = (j) => (places[j] === null ? -1 : Math.abs(places[j] - 0.5));
    const order = range(names.length).sort((a, b) => unusual(b) - unusual(a));
    const shown = this.all ? order : order.slice(0, 8);
    const more = this.switch("all", `Show all ${order.length}`, "Show fewer");
    const rows = shown.map((j) => this.feature(i, j, places[j], unusual(j) > 0.45));
    return block("Features, the most unusual first", order.length > 8 ? more : null, el("table", { class: "features" }, ...rows));
  }

  feature(i, j, place, strange) {
    const { names, columns } = this.data.matrix;
    const where = `higher than ${Math.round(100 * place)} % of the shown windows`;
    const dot = el("span", { class: strange ? "dot strange" : "dot", style: { left: `${100 * place}%` } });
    const track = place === null ? null : el("span", { class: "track", role: "img", "aria-label": where, title: where }, dot);
    const value = place === null ? el("span", { class: "hint" }, "missing") : short(columns[j][i], 4);
    const name = el("th", { scope: "row", title: names[j] }, names[j]);
    return el("tr", {}, name, el("td", { class: "number" }, value), el("td", { class: "where" }, track));
  }

  neighbours(i) {
    const { neighbours, classes } = this.data;
    const near = neighbours[i];
    const same = near.filter((j) => classes && classes[j] === classes[i]).length;
    const summary = classes && classes[i] >= 0 ? el("span", { class: "hint" }, `${same} of ${near.length} of its class`) : null;
    return block("Nearest neighbours", summary, el("div", {}, ...near.map((j, k) => this.neighbour(i, j, k))));
  }

  follow(j) {
    this.go(j);
    this.node.querySelector(".neighbour").focus({ preventScroll: true });
  }

  neighbour(i, j, k) {
    const { classes, nameOf, numbers, distance, typicalDistance, waves } = this.data;
    const share = known(typicalDistance) && typicalDistance > 0 ? `, ${short((100 * distance(i, k)) / typicalDistance, 2)} % of typical` : "";
    const far = known(distance(i, k)) ? `distance ${short(distance(i, k))}${share}` : "";
    const who = el("span", { class: "who" }, classes ? `${nameOf(j)} ` : "", el("span", { class: "hint" }, `Window ${numbers[j]}`));
    const wave = waves ? waves.draw(j, { width: 96, height: 32, axes: false, channels: 1, own: this.own }) : null;
    const mark = classMark(classes ? classes[j] : -1);
    return button("neighbour", () => this.follow(j), [mark, who, el("span", { class: "far hint" }, far), wave]);
  }
}

function block(title, side, content) {
  return el("div", { class: "block" }, el("div", { class: "block-head" }, el("h4", {}, title), side), content);
}
