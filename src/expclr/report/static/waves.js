/** The waveforms of a figure, decoded when the first is asked for. */
class Waves {
  constructor(packed) {
    const { channels, step, unit, values } = packed;
    Object.assign(this, { packed, channels, step, size: values.shape[2], unit: unit === "s" ? "seconds" : "timepoints" });
  }

  /** Values of one channel of window i; null where there is none. */
  channel(i, c) {
    if (!this.decoded) this.decoded = ["values", "scale", "offset"].map((name) => unpack(this.packed[name]).values);
    const [values, scales, offsets] = this.decoded;
    const row = i * this.channels.length + c;
    const part = Array.from(values.subarray(row * this.size, (row + 1) * this.size));
    return part.map((value) => (value === -32768 ? null : value * scales[row] + offsets[row]));
  }

  /** Window i, its channels below each other, to the scale of all windows or to its `own`. */
  draw(i, { width, height, axes = true, own = false, channels = this.channels.length }) {
    const [left, right, top] = axes ? [46, width - 8, 16] : [0, width, 3];
    const time = { low: 0, high: (this.size - 1) * this.step || 1 };
    const sx = scale(time, left, right);
    const bottom = (height + top) * channels;
    const label = `Waveform of ${this.channels.slice(0, channels).join(", ")}`;
    const root = svg("svg", { width, height: bottom + (axes ? 34 : 2), class: "wave", role: "img", "aria-label": label });
    for (const c of range(channels)) root.append(...this.strip(i, c, sx, { left, right, top: (height + top) * c + top, height, axes, own }));
    if (axes) {
      root.append(...ticks(time, clamp(width / 90, 2, 6)).map((tick) => small(sx(tick), bottom + 14, "middle", short(tick))));
      root.append(small(right, bottom + 29, "end", this.unit));
    }
    return root;
  }

  strip(i, c, sx, { left, right, top, height, axes, own }) {
    const values = this.channel(i, c);
    const y = axisOf(own ? values : [...values, ...this.packed.range[c]], false, 0);
    const sy = scale(y, top + height - 2, top + 2);
    const places = values.map((value, t) => (value === null ? null : [sx(t * this.step), sy(value)]));
    const line = svg("path", { class: "signal", d: path(places) });
    if (!axes) return [line];
    const back = svg("rect", { class: "strip", x: left, y: top, width: right - left, height });
    const ends = [small(left - 6, top + 9, "end", short(y.high, 2)), small(left - 6, top + height, "end", short(y.low, 2))];
    return [back, small(left, top - 4, "start", this.channels[c]), ...(height > 25 ? ends : []), line];
  }
}

const small = (x, y, anchor, content) => svg("text", { class: "tick small", x, y, "text-anchor": anchor }, content);

kinds.gallery = {
  rows({ rows, labels, waveforms }) {
    const waves = new Waves(waveforms);
    const lines = ({ name, windows }) =>
      windows.flatMap((i) => waves.channels.map((channel, c) => [name, labels[i], channel, ...waves.channel(i, c)]));
    const times = range(waves.size).map((t) => `${Number((t * waves.step).toPrecision(6))} ${waves.unit}`);
    return [["row", "window", "channel", ...times], ...rows.flatMap(lines)];
  },

  draw(host, { rows, labels, waveforms }, { label, width: room }) {
    const waves = new Waves(waveforms);
    const columns = clamp(Math.floor(room / 170), 2, 6);
    const size = { width: Math.floor((room - 14 * (columns - 1)) / columns), height: clamp(84 / waves.channels.length, 14, 40), axes: false };
    const card = (i) => el("div", { class: "card" }, el("div", { class: "hint" }, labels[i]), waves.draw(i, size));
    const length = `${short((waves.size - 1) * waves.step)} ${waves.unit}`;
    host.append(el("p", { class: "hint" }, `Channels from above: ${waves.channels.join(", ")}. Each strip is ${length} long.`));
    for (const { name, windows } of rows) {
      const cards = el("div", { class: "cards", style: { "--columns": columns } }, ...windows.map(card));
      host.append(el("div", { class: "row" }, el("h3", {}, name), cards));
    }
    fill(host, { role: "group", "aria-label": label });
  },
};
