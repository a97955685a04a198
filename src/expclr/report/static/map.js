const maps = new Map(); // section id -> PointMap

kinds.map = {
  rows(data) {
    const { projections, classes, classNames, group, numbers, neighbours, matrix } = prepare(data);
    const near = neighbours ? neighbours[0] : [];
    const head = ["window", "class", "group", ...projections.flatMap(({ name }) => [`${name} 1`, `${name} 2`])];
    const row = (i) => [
      numbers[i],
      classes && classNames[classes[i]],
      group && group[i],
      ...projections.flatMap(({ at }) => [at[2 * i], at[2 * i + 1]]),
      ...near.map((_, k) => numbers[neighbours[i][k]]),
      ...(matrix ? matrix.columns.map((column) => column[i]) : []),
    ];
    return [[...head, ...near.map((_, k) => `neighbour ${k + 1}`), ...(matrix ? matrix.names : [])], ...range(numbers.length).map(row)];
  },

  draw(host, data, { label, id }) {
    if (maps.has(id)) maps.get(id).resize();
    else maps.set(id, new PointMap(host, prepare(data), label, id));
  },
};

function prepare(data) {
  const far = data.distances ? unpack(data.distances) : null;
  return {
    ...data,
    waves: data.waveforms ? new Waves(data.waveforms) : null,
    matrix: featureMatrix(data),
    distance: (i, k) => (far ? far.values[i * far.shape[1] + k] : NaN),
    nameOf: (i) => (data.classes[i] < 0 ? "class not known" : data.classNames[data.classes[i]]),
    projections: data.projections.map(({ name, note, points }) => ({ name, note, at: unpack(points).values })),
  };
}

class PointMap {
  constructor(host, data, label, id) {
    const zoom = { k: 1, x: 0, y: 0 };
    Object.assign(this, { data, id, zoom, selected: 0, pinned: null, hovered: null, picked: null });
    this.all = range(data.numbers.length);
    this.colours = colourings(data);
    this.colour = this.colours[0];
    this.view = data.projections[0];
    this.root = svg("svg", { class: "map", tabindex: 0, role: "application", "aria-roledescription": "map", "aria-label": label });
    [this.links, this.layer, this.over] = ["links", "marks", "over"].map((name) => svg("g", { class: name }));
    this.root.append(this.links, this.layer, this.over);
    this.stage = el("div", { class: "stage" }, this.root, zoomButtons(this));
    this.tip = tooltip(this.stage);
    [this.key, this.note] = [el("div"), el("p", { class: "hint" })];
    this.detail = new Detail(data, (i) => this.pin(i));
    const left = el("div", { class: "map-side" }, this.controls(), this.stage, this.key, this.note);
    host.append(el("div", { class: "map-grid" }, left, this.detail.node));
    listen(this);
    this.resize();
  }

  controls() {
    const colour = choice("Colour by", this.colours, (i) => {
      this.colour = this.colours[i];
      this.recolour();
    });
    const project = choice("Projection", this.data.projections, (i) => {
      this.view = this.data.projections[i];
      this.zoomBy(0);
    });
    return el("div", { class: "controls" }, colour, project);
  }

  resize() {
    this.width = this.stage.clientWidth;
    this.height = Math.round(clamp(1.08 * this.width, 300, 660));
    fill(this.root, { width: this.width, height: this.height });
    this.recolour();
    this.select(this.selected);
  }

  recolour() {
    const r = this.all.length > 1500 || this.width < 480 ? 3.2 : 4.2;
    this.marks = this.all.map((i) => {
      const [shape, colour] = this.colour.mark(i);
      return pointMark(shape, 0, 0, r, colour);
    });
    this.layer.replaceChildren(...this.marks);
    this.picked = null;
    this.key.replaceChildren(this.colour.legend((picked) => this.isolate(picked)));
    this.place();
  }

  isolate(picked) {
    this.picked = picked;
    this.marks.forEach((mark, i) => mark.classList.toggle("faded", !this.visible(i)));
    // Painted last, so that nothing hides what was asked for.
    this.layer.append(...this.marks.filter((_, i) => picked !== null && this.visible(i)));
  }

  visible(i) {
    return this.picked === null || this.colour.member(i, this.picked);
  }

  /** Put every mark where the projection and the zoom want it. */
  place() {
    this.spots = spots(this.view.at, this.width, this.height, this.zoom);
    this.marks.forEach((mark, i) => mark.setAttribute("transform", `translate(${this.spots[i].map((v) => v.toFixed(1)).join(" ")})`));
    this.note.textContent = this.view.note;
    this.root.classList.toggle("zoomed", this.zoom.k > 1);
    this.ring();
  }

  zoomBy(factor, [px, py] = [this.width / 2, this.height / 2]) {
    const k = clamp(this.zoom.k * factor, 1, 40);
    const ratio = k / this.zoom.k;
    this.moveTo(k, px - (px - this.zoom.x) * ratio, py - (py - this.zoom.y) * ratio);
  }

  moveTo(k, x, y) {
    this.zoom = { k, x: clamp(x, this.width * (1 - k), 0), y: clamp(y, this.height * (1 - k), 0) };
    this.place();
  }

  /** The visible point of least cost, or null when none costs less than the limit. */
  best(cost, limit) {
    const shown = this.all.filter((i) => this.visible(i));
    const costs = shown.map((i) => cost(...this.spots[i], i));
    const least = lowest(costs);
    return least < limit ? shown[costs.indexOf(least)] : null;
  }

  nearest(px, py, reach) {
    return this.best((x, y) => Math.hypot(x - px, y - py), reach);
  }

  /** From the chosen point to the nearest in a direction. */
  step(dx, dy) {
    const [x, y] = this.spots[this.selected];
    const cost = (px, py) => {
      const [along, aside] = [(px - x) * dx + (py - y) * dy, Math.abs((px - x) * dy + (py - y) * dx)];
      return along > 0.01 && aside <= 2 * along ? along + 2 * aside : Infinity;
    };
    const found = this.best(cost, Infinity);
    if (found !== null) this.pin(found);
  }

  hover(i) {
    if (i === this.hovered) return;
    this.hovered = i;
    if (i !== null && this.pinned === null) this.select(i);
    this.ring();
  }

  /** Keep a window in the panel and in the page's address; null lets go of it. */
  pin(i) {
    this.pinned = i;
    this.select(i === null ? this.selected : i);
    const first = maps.keys().next().value === this.id;
    const link = i === null ? "" : `#point=${this.data.numbers[i]}${first ? "" : `&in=${this.id}`}`;
    history.replaceState(null, "", location.pathname + location.search + link);
  }

  select(i) {
    this.selected = i;
    this.detail.show(i, this.pinned === i);
    this.ring();
  }

  /** Rings around the chosen and the hovered point, and lines to the chosen one's neighbours. */
  ring() {
    const { selected, pinned, hovered, spots: at, data } = this;
    const ring = (i, name) => svg("circle", { class: name, cx: at[i][0], cy: at[i][1], r: 9 });
    const link = (j) => svg("line", { x1: at[selected][0], y1: at[selected][1], x2: at[j][0], y2: at[j][1] });
    this.links.replaceChildren(...(data.neighbours ? data.neighbours[selected].map(link) : []));
    this.over.replaceChildren(ring(selected, pinned === null ? "chosen" : "pinned"));
    const named = hovered === null ? pinned : hovered;
    const [x, y] = named === null ? [-1, -1] : at[named];
    if (x < 0 || y < 0 || x > this.width || y > this.height) return this.tip.hide();
    if (named !== selected) this.over.append(ring(named, "hovered"));
    return this.tip.show(x, y - 14, [`Window ${data.numbers[named]} · ${this.colour.text(named)}`]);
  }
}

/** Pixel places of the points: one scale for both axes, centred, then zoomed. */
function spots(at, width, height, zoom) {
  const [xs, ys] = [0, 1].map((side) => Array.from(at.filter((_, i) => i % 2 === side)));
  const size = (values) => highest(values) - lowest(values) || 1;
  const middle = (values) => (highest(values) + lowest(values)) / 2;
  const unit = Math.min((width - 36) / size(xs), (height - 36) / size(ys));
  const [cx, cy] = [middle(xs), middle(ys)];
  const place = (x, i) => [width / 2 + (x - cx) * unit, height / 2 - (ys[i] - cy) * unit];
  return xs.map(place).map(([x, y]) => [zoom.x + zoom.k * x, zoom.y + zoom.k * y]);
}

function choice(name, options, pick) {
  if (options.length < 2) return null;
  const select = el("select", { onchange: () => pick(Number(select.value)) }, ...options.map((one, value) => el("option", { value }, one.name)));
  return el("label", {}, name, select);
}

function zoomButtons(map) {
  const all = [["+", "Zoom in", 1.5], ["−", "Zoom out", 1 / 1.5], ["⟲", "Show everything", 0]];
  const one = ([text, title, factor]) => button("", () => map.zoomBy(factor), text, { title, "aria-label": title });
  return el("div", { class: "zoom" }, ...all.map(one));
}
