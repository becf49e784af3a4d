// The page of `varve report`: reads its data out of itself, and shows a lineage, or one chart alone, for pictures (#figure=NAME&height=PIXELS&theme=dark).
import { forgetAll, redrawAll } from "./chart.js";
import { el } from "./dom.js";
import { figures, Lineage } from "./lineage.js";
import { table } from "./table.js";
import * as words from "./words.js";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const wanted = new URLSearchParams(location.hash.slice(1));
let shown = null;

const dark = matchMedia("(prefers-color-scheme: dark)");

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  shown?.redraw();
  redrawAll();
}

function themeButton() {
  const other = () => (document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  const button = el("button.quiet", { type: "button", onclick: () => setTheme(other()) });
  const label = () => (button.textContent = other() === "dark" ? "Dark" : "Light");
  new MutationObserver(label).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  label();
  return button;
}

function choose(name, place) {
  forgetAll();
  shown = new Lineage(data.lineages.find((l) => l.lineage === name));
  place.replaceChildren(...shown.nodes());
  for (const b of document.querySelectorAll("button.link")) mark(b);
}

// Which of the lineages is shown.
function mark(link) {
  link.setAttribute("aria-current", String(link.textContent === shown?.d.lineage));
  return link;
}

function goTo(name, place) {
  choose(name, place);
  place.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function overview(place) {
  const rows = data.lineages.map((l) => ({ ...l, t: l.totals ?? {} }));
  const link = (r) => mark(el("button.link", { type: "button", onclick: () => goTo(r.lineage, place) }, r.lineage));
  return el(
    "section",
    {},
    el("h2", {}, "Lineages"),
    table(
      "Lineages of this store",
      [
        { head: "Lineage", text: true, value: (r) => r.lineage, show: link },
        { head: "Epochs", value: (r) => r.t.epochs, show: (r) => (r.error ? r.error : words.count(r.t.epochs)) },
        { head: "Newest", value: (r) => r.epochs?.at(-1)?.time_ns ?? 0, show: (r) => words.time(r.epochs?.at(-1)?.time_ns) },
        { head: "In memory, all epochs", value: (r) => r.t.bytes_memory ?? 0, show: (r) => words.bytes(r.t.bytes_memory ?? 0) },
        { head: "On disk now", value: (r) => r.t.bytes_on_disk ?? 0, show: (r) => words.bytes(r.t.bytes_on_disk ?? 0) },
        {
          head: "Reduction",
          value: (r) => (r.t.bytes_memory ?? 0) / (r.t.bytes_layer || 1),
          show: (r) => words.ratio(r.t.bytes_memory ?? 0, r.t.bytes_layer),
        },
      ],
      rows,
    ),
    data.lineages_total > data.lineages.length &&
      el(
        "p.note",
        {},
        `${words.plural(data.lineages_total - data.lineages.length, "lineage")} more in the store; 'varve report STORE LINEAGE' shows one.`,
      ),
  );
}

function newest() {
  const last = (l) => l.epochs?.at(-1)?.time_ns ?? 0;
  return data.lineages.reduce((a, b) => (last(b) > last(a) ? b : a));
}

function whole() {
  const place = el(data.lineages.length > 1 ? "div.choice" : "div");
  const many = data.lineages.length > 1;
  document.title = `varve report: ${data.store}`;
  page.replaceChildren(
    el("header", {}, el("div", {}, el("h1", {}, "varve report"), el("p.store", {}, data.store)), themeButton()),
    el(
      "main",
      {},
      many && overview(place),
      place,
      data.lineages.length === 0 &&
        el("p.empty", {}, "There is no lineage in this store yet: nothing was checkpointed or packed."),
    ),
    el(
      "footer",
      {},
      `Made ${words.time(data.made_ns)} by varve ${data.varve}. Sizes are in binary units. Times in the time zone of this browser.`,
    ),
  );
  if (data.lineages.length) choose(newest().lineage, place);
}

function alone(name) {
  const l = data.lineages[0];
  document.body.classList.add("alone");
  page.replaceChildren(
    Object.hasOwn(figures, name) && l
      ? new Lineage(l, Number(wanted.get("height")) || innerHeight).figure(name)
      : el("p.empty", {}, `no figure '${name}'`),
  );
}

// Paper is light, and narrower than a window: charts are drawn anew for it.
let before = null;
addEventListener("beforeprint", () => {
  before = document.documentElement.dataset.theme;
  document.body.classList.add("paper");
  setTheme("light");
});
addEventListener("afterprint", () => {
  document.body.classList.remove("paper");
  setTheme(before);
});
addEventListener("hashchange", () => location.reload());
setTheme(wanted.get("theme") ?? (!wanted.has("figure") && dark.matches ? "dark" : "light"));
if (wanted.has("figure")) {
  alone(wanted.get("figure"));
} else {
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  whole();
}
