/** value -> pixel, or null where there is none. */
function scale({ low, high, log }, from, to) {
  const f = log ? Math.log : (value) => value;
  const factor = (to - from) / (f(high) - f(low) || 1);
  return (value) => (known(value) && (!log || value > 0) ? from + (f(value) - f(low)) * factor : null);
}

/** An axis that holds these values, with some air; from 0 when they come close to it. */
function axisOf(values, log = false, air = 0.05) {
  const shown = values.filter((value) => known(value) && (!log || value > 0));
  if (!shown.length) return { low: 1, high: 10, log };
  const [low, high] = [lowest(shown), highest(shown)];
  if (log) {
    const factor = low < high ? (high / low) ** air : 2;
    return { low: low / factor, high: high * factor, log };
  }
  const margin = low < high ? (high - low) * air : (Math.abs(low) || 1) / 2;
  return { low: low >= 0 && low < margin ? 0 : low - margin, high: high + margin, log };
}

function ticks({ low, high, log }, count) {
  const found = log ? logTicks(low, high, count) : [];
  return found.length > 1 ? found : evenTicks(low, high, count);
}

function evenTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  return range(Math.floor(high / step + 1e-9) - first + 1).map((i) => Number(((first + i) * step).toPrecision(12)));
}

/** As many of 1, 2 and 5 in each decade as there is room for. */
function logTicks(low, high, count) {
  const start = Math.floor(Math.log10(low));
  const powers = range(Math.floor(Math.log10(high)) - start + 1).map((i) => 10 ** (start + i));
  const shown = (factors) =>
    powers
      .flatMap((power) => factors.map((factor) => Number((factor * power).toPrecision(12))))
      .filter((value) => value >= low * 0.999 && value <= high * 1.001);
  const whole = shown([1]);
  const every = Math.ceil(whole.length / count);
  return [shown([1, 2, 5]), shown([1, 3])].find((found) => found.length <= count) || whole.filter((_, i) => i % every === 0);
}

/** An svg with axes; returns it with its scales and the bounds of the plot inside the axes. */
function chart(host, width, height, { x, y, xLabel, yLabel, label, xTicks }) {
  const yTicks = ticks(y, 5);
  const left = 14 + 7 * highest(yTicks.map((tick) => short(tick).length));
  const plot = { left, right: width - 14, top: 30, bottom: height - 44 };
  const [sx, sy] = [scale(x, left, plot.right), scale(y, plot.bottom, plot.top)];
  const text = (name, at, anchor, content) => svg("text", { class: name, ...at, "text-anchor": anchor }, content);
  const root = svg("svg", { width, height, role: "img", "aria-label": label, tabindex: 0 });
  root.append(
    ...yTicks.flatMap((tick) => [
      svg("line", { class: "grid", x1: left, x2: plot.right, y1: sy(tick), y2: sy(tick) }),
      text("tick", { x: left - 8, y: sy(tick) + 4 }, "end", short(tick)),
    ]),
    ...(xTicks || ticks(x, clamp((width - left) / 80, 2, 10))).flatMap((tick) => [
      svg("line", { class: "notch", x1: sx(tick), x2: sx(tick), y1: plot.bottom, y2: plot.bottom + 5 }),
      text("tick", { x: sx(tick), y: plot.bottom + 19 }, "middle", short(tick, 4)),
    ]),
    svg("line", { class: "axis", x1: left, x2: plot.right, y1: plot.bottom, y2: plot.bottom }),
    text("label", { x: 0, y: 14 }, "start", yLabel),
    text("label", { x: plot.right, y: height - 6 }, "end", xLabel),
  );
  host.append(root);
  return { root, plot, sx, sy };
}

/** A small box of lines beside a place in the host. */
function tooltip(host) {
  const box = el("div", { class: "tooltip", role: "status" });
  host.append(box);
  const show = (left, top, lines) => {
    box.replaceChildren(...lines.map((line) => el("div", {}, ...[line].flat())));
    box.classList.add("shown");
    const room = host.clientWidth - box.offsetWidth - 4;
    const beside = left + 14 <= room ? left + 14 : left - box.offsetWidth - 14;
    fill(box, { style: { left: `${clamp(beside, 4, Math.max(4, room))}px`, top: `${Math.max(0, top)}px` } });
  };
  return { show, hide: () => box.classList.remove("shown") };
}

/** Pointing at a chart, or the arrow keys on it, show the nearest of `places` (pixels along x). */
function explore(root, places, show, hide) {
  let at = -1;
  const go = (i) => show((at = clamp(i, 0, places.length - 1)));
  const leave = () => hide((at = -1));
  const point = (event) => {
    const away = places.map((place) => Math.abs(place - event.clientX + root.getBoundingClientRect().left));
    go(away.indexOf(lowest(away)));
  };
  ["pointermove", "pointerdown"].forEach((name) => root.addEventListener(name, point));
  ["pointerleave", "blur"].forEach((name) => root.addEventListener(name, leave));
  root.addEventListener("keydown", ({ key }) => {
    if (key === "ArrowRight") go(at + 1);
    if (key === "ArrowLeft") go(at < 0 ? places.length - 1 : at - 1);
    if (key === "Escape") leave();
  });
}
