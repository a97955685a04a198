kinds.histogram = {
  rows: ({ edges, counts, yLabel, marks }) => [
    ["from", "to", yLabel],
    ...counts.map((count, i) => [edges[i], edges[i + 1], count]),
    ...marks.map(({ value, label }) => [value, null, label]),
  ],

  draw(host, data, { width, label }) {
    const { edges, counts, logX, yLabel } = data;
    const marks = data.marks.filter(({ value }) => known(value) && (!logX || value > 0)).sort((a, b) => a.value - b.value);
    const x = axisOf([...edges, ...marks.map(({ value }) => value)], logX, 0.02);
    const y = { low: 0, high: (highest(counts) || 1) * (marks.length ? 1.18 : 1.05) };
    const { root, sx, sy, plot } = chart(host, width, clamp(width * 0.4, 240, 340), { ...data, x, y, label });
    const bars = counts.map((count, i) => {
      const size = sx(edges[i + 1]) - sx(edges[i]);
      return svg("rect", { class: "bar", x: sx(edges[i]), width: size > 4 ? size - 1 : size, y: sy(count), height: plot.bottom - sy(count) });
    });
    root.append(...bars, ...marks.flatMap((mark, i) => limit(mark, sx(mark.value), plot, i === 0 && marks.length > 1)));
    const total = counts.reduce((a, b) => a + b, 0) || 1;
    const tip = tooltip(host);
    const light = (active) => bars.forEach((bar, i) => bar.classList.toggle("active", i === active));
    const show = (i) => {
      light(i);
      const share = `${short(counts[i], 6)} ${yLabel} (${short((100 * counts[i]) / total)} %)`;
      tip.show(sx(edges[i + 1]), plot.top, [`${short(edges[i])} to ${short(edges[i + 1])}`, share]);
    };
    const hide = () => {
      light(-1);
      tip.hide();
    };
    explore(root, counts.map((_, i) => (sx(edges[i]) + sx(edges[i + 1])) / 2), show, hide);
  },
};

/** A vertical line with its name beside it, on the wanted side if that has room. */
function limit({ value, label }, at, plot, wantLeft) {
  const left = wantLeft ? at - plot.left > 100 : plot.right - at < 100;
  const place = { x: at + (left ? -6 : 6), y: plot.top + 10, "text-anchor": left ? "end" : "start" };
  return [
    svg("line", { class: "limit", x1: at, x2: at, y1: plot.top, y2: plot.bottom }),
    svg("text", { class: "limit-name", ...place }, `${label} = ${short(value)}`),
  ];
}
