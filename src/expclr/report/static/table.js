kinds.table = {
  rows: ({ columns, rows }) => [columns, ...rows],

  /** Headings become buttons that sort by their column. */
  enhance(figure, { rows }) {
    const body = figure.querySelector("tbody");
    const lines = [...body.rows];
    const headings = [...figure.querySelectorAll("th[data-column]")];
    const sort = (heading) => {
      const up = heading.getAttribute("aria-sort") === "descending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const values = rows.map((row) => row[heading.dataset.column]);
      body.append(...range(rows.length).sort((a, b) => compare(values[a], values[b], up)).map((i) => lines[i]));
    };
    for (const heading of headings) heading.replaceChildren(button("", () => sort(heading), heading.textContent));
  },
};

kinds.keyvalues = kinds.bars = { rows: kinds.table.rows };

/** Order of two cells; what is missing comes last either way. */
function compare(a, b, up) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = known(a) && known(b) ? a - b : String(a).localeCompare(String(b));
  return up ? order : -order;
}
