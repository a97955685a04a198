/** Hand out one figure's numbers, and draw it now and whenever its width changes. */
function begin(figure) {
  const kind = kinds[figure.dataset.kind];
  const data = JSON.parse(figure.querySelector("script.data").textContent);
  const { id } = figure.closest("section");
  figure.querySelector(".tools").append(button("quiet", () => download(`${id}.csv`, csv(kind.rows(data))), "Download CSV"));
  if (kind.enhance) kind.enhance(figure, data);
  if (!kind.draw) return;
  const host = figure.querySelector(".plot");
  const label = host.textContent.trim();
  let drawn = 0;
  const draw = () => {
    const width = Math.floor(host.clientWidth);
    if (width === drawn || width < 120) return; // hidden, or not yet laid out
    drawn = width;
    if (!maps.has(id)) host.replaceChildren();
    kind.draw(host, data, { width, label, id });
  };
  draw();
  new ResizeObserver(draw).observe(host);
}

/** A figure that cannot be drawn says so and leaves the others alone. */
function beginSafely(figure) {
  try {
    begin(figure);
  } catch (error) {
    figure.prepend(el("p", { class: "failed", role: "alert" }, `This figure could not be drawn: ${error.message}`));
    console.error(error);
  }
}

/** Follow #point=12 or #point=12&in=section to that window. */
function followLink() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const id = wanted.get("in") || maps.keys().next().value;
  const i = maps.has(id) && wanted.has("point") ? maps.get(id).data.numbers.indexOf(Number(wanted.get("point"))) : -1;
  if (i < 0) return;
  maps.get(id).pin(i);
  document.getElementById(id).scrollIntoView();
}

/** The contents mark the section that is being read. */
function followReading() {
  const links = [...document.querySelectorAll(".contents a")];
  const top = (link) => document.getElementById(link.hash.slice(1)).getBoundingClientRect().top;
  const mark = () => {
    const read = last(links.filter((link) => top(link) < innerHeight / 3)) || links[0];
    links.forEach((link) => link.setAttribute("aria-current", String(link === read)));
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
}

document.querySelectorAll("figure[data-kind]").forEach(beginSafely);
followLink();
followReading();
addEventListener("hashchange", followLink);
