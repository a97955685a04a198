/** Mouse, fingers and keys on a PointMap. */
function listen(map) {
  const { root } = map;
  const down = new Map();
  let moved = 0;
  const place = ({ clientX, clientY }) => {
    const box = root.getBoundingClientRect();
    return [clientX - box.left, clientY - box.top];
  };
  const near = (event) => map.nearest(...place(event), event.pointerType === "mouse" ? 20 : 30);
  const on = (name, act, options) => root.addEventListener(name, act, options);

  on("pointerdown", (event) => {
    down.set(event.pointerId, place(event));
    if (event.pointerType === "mouse") root.setPointerCapture(event.pointerId);
    moved = 0;
  });
  on("pointermove", (event) => {
    const [before, now] = [down.get(event.pointerId), place(event)];
    if (!before) return map.hover(near(event));
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    const others = [...down].filter(([id]) => id !== event.pointerId);
    if (others.length) pinch(map, before, now, others[0][1]);
    else if (moved > 3) map.moveTo(map.zoom.k, map.zoom.x + now[0] - before[0], map.zoom.y + now[1] - before[1]);
    return down.set(event.pointerId, now);
  });
  on("pointerup", (event) => {
    if (down.size === 1 && moved <= 3) map.pin(near(event));
    down.delete(event.pointerId);
  });
  on("pointercancel", (event) => down.delete(event.pointerId));
  on("pointerleave", () => map.hover(null));
  on("wheel", (event) => wheel(map, event, place(event)), { passive: false });
  on("keydown", (event) => key(map, event));
}

/** One of two fingers moves: their distance zooms, about the other finger. */
function pinch(map, before, now, other) {
  const apart = ([x, y]) => Math.hypot(x - other[0], y - other[1]) || 1;
  map.zoomBy(apart(now) / apart(before), other);
}

// The page scrolls on over a map that nobody has clicked.
function wheel(map, event, at) {
  if (!event.ctrlKey && !event.metaKey && document.activeElement !== map.root) return;
  event.preventDefault();
  map.zoomBy(Math.exp(-clamp(event.deltaY, -200, 200) / (event.ctrlKey ? 100 : 400)), at);
}

function key(map, event) {
  const acts = {
    ArrowRight: () => map.step(1, 0),
    ArrowLeft: () => map.step(-1, 0),
    ArrowDown: () => map.step(0, 1),
    ArrowUp: () => map.step(0, -1),
    Enter: () => map.pin(map.selected),
    Escape: () => map.pin(null),
    "+": () => map.zoomBy(1.5),
    "-": () => map.zoomBy(1 / 1.5),
    0: () => map.zoomBy(0),
  };
  if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  acts[event.key]();
}
