// Tables that sort by any column, and show a few rows until all are asked for.
import { el } from "./dom.js";
import { plural } from "./words.js";

const FEW = 12;

function compare(a, b) {
  if (a === b) return 0;
  if (a === undefined || a === null) return -1;
  if (b === undefined || b === null) return 1;
  return typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
}

// columns: [{ head, value(row), show(row), text: true for words, wrap: they may take several lines }]; sorted: [number of the column, 1 or -1]; captioned: the caption is
// seen, not only heard
export function table(caption, columns, rows, sorted = [0, 1], captioned = false) {
  let [by, way] = sorted;
  let all = rows.length <= FEW + 3;
  const body = el("tbody");
  const more = el(
    "button.more",
    { type: "button", onclick: () => ((all = true), fill()) },
    `show all ${plural(rows.length, "row")}`,
  );
  const cut = el("p.cut", {}, `${FEW} of ${plural(rows.length, "row")}; the page shows the others on a screen.`);
  const heads = columns.map((c, i) =>
    el(`th${c.text ? ".text" : ""}`, { scope: "col" }, el("button", { type: "button", onclick: () => sort(i) }, c.head)),
  );

  function sort(i) {
    way = i === by ? -way : columns[i].text ? 1 : -1;
    by = i;
    fill();
  }

  function fill() {
    const order = [...rows].sort((a, b) => way * compare(columns[by].value(a), columns[by].value(b)));
    heads.forEach((h, i) => h.setAttribute("aria-sort", i !== by ? "none" : way > 0 ? "ascending" : "descending"));
    body.replaceChildren(
      ...(all ? order : order.slice(0, FEW)).map((row) =>
        el(
          "tr",
          {},
          columns.map((c, i) =>
            el(
              `${i ? "td" : "th"}${c.text ? ".text" : ""}${c.wrap ? ".wrap" : ""}`,
              i ? {} : { scope: "row" },
              c.show ? c.show(row) : String(c.value(row) ?? "–"),
            ),
          ),
        ),
      ),
    );
    more.hidden = cut.hidden = all;
  }

  fill();
  return el(
    "div",
    {},
    el(
      "div.scroll",
      { tabindex: "0", role: "region", "aria-label": caption },
      el("table", {}, el(captioned ? "caption" : "caption.hidden", {}, caption), el("thead", {}, el("tr", {}, heads)), body),
    ),
    more,
    cut,
  );
}
