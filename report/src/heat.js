// How much of each region changed in each epoch: a row for each region, a column for each epoch. Of a region whose parts differ there is a band of
// thin rows, from its first byte to its last.
import { drawMarks, markLegend } from "./chart.js";
import { el } from "./dom.js";
import { rowTicks } from "./scale.js";
import * as words from "./words.js";

const STEPS = 6; // colours beside that of nothing
const AXIS = 20; // pixels for the numbers of the epochs
const APART = 2; // between two regions
const ROW = { least: 13, most: 26, all: 520 }; // pixels: of a region's row, so that its name can be read
const THIN = 7; // of a part's
const LABEL = 17; // of a name above its row, where there is no room beside it
const NARROW = "(max-width: 560px)";

// Small shares must be seen: 0.1 % is something else than nothing.
export function step(perMille) {
  if (perMille <= 0) return perMille;
  if (perMille <= 5) return 1;
  if (perMille <= 20) return 2;
  if (perMille <= 80) return 3;
  if (perMille <= 250) return 4;
  return perMille <= 600 ? 5 : 6;
}

// Of a name that is too long for its place, the beginning and the end are seen: paths differ in their ends.
const END = 12;

function named(name) {
  const letters = [...name];
  const cut = letters.length > 2 * END ? letters.length - END : letters.length;
  return [el("span.head", {}, letters.slice(0, cut).join("")), cut < letters.length && el("span", {}, letters.slice(cut).join(""))];
}

const WORDS = ["nothing", "to 0.5 %", "to 2 %", "to 8 %", "to 25 %", "to 60 %", "more"];

function tell(name, row, v) {
  return `${name}, ${words.named(row)}: ${v < 0 ? "no data" : v === 0 ? "nothing changed" : v <= 1 ? "up to 0.1 % changed" : `${(v / 10).toFixed(1)} % changed`}`;
}

// Parts that would all have one colour say nothing.
function withoutDull(c) {
  const seen = c.bands?.some((band) => band.some((v, x) => step(v) !== step(c.bands[0][x])));
  return seen ? c : { ...c, bands: undefined };
}

// How high a region's rows are, each; room: for all regions, if that is given.
function heights(changes, room) {
  const row = Math.max(ROW.least, Math.min(ROW.most, Math.round(ROW.all / Math.max(changes.length, 1))));
  const wanted = changes.map((c) => (c.bands ? Math.max(THIN, row / c.bands.length) : row));
  const all = changes.reduce((n, c, i) => n + wanted[i] * (c.bands?.length ?? 1), 0);
  const scale = room ? (room - APART * changes.length) / all : 1;
  return wanted.map((h) => Math.max(scale < 1 ? 1 : 4, Math.floor(h * scale)));
}

// The rows as they are drawn, one below the other.
function layOut(changes, room, above) {
  const high = heights(changes, room && room - above * changes.length);
  const lines = [];
  let y = 0;
  changes.forEach((c, i) => {
    const name = c.name ?? "all others";
    y += above;
    (c.bands ?? [c.per_mille]).forEach((values, k) => {
      lines.push({ name: c.bands ? `${name}, part ${k + 1} of ${c.bands.length}` : name, values, y, high: high[i] });
      y += high[i];
    });
    y += APART;
  });
  return { lines, height: y, group: changes.map((c, i) => high[i] * (c.bands?.length ?? 1)) };
}

export class Heat {
  constructor(all, rows, label, room, marks) {
    const changes = all.map(withoutDull);
    const short = changes.map(words.changed);
    const shown = short.map((s, i) => (short.indexOf(s) === short.lastIndexOf(s) ? s : changes[i].name));
    this.rows = rows;
    this.changes = changes;
    this.room = room;
    this.marks = marks;
    this.at = [0, rows.length - 1];
    this.canvas = el("canvas", {
      tabindex: "0",
      role: "img",
      "aria-label": label,
      onpointermove: (e) => this.point(e),
      onkeydown: (e) => this.key(e),
      onfocus: () => this.mark(...this.at),
      onblur: () => this.draw(),
    });
    this.said = el("p.readout", { "aria-live": "polite" }, "\u00a0");
    this.names = changes.map((c, i) => el("li", { title: c.name ?? "all others" }, named(shown[i])));
    const scale = WORDS.map((w, i) => el("li", {}, el("i.swatch", { style: { "--c": `var(--heat${i})` } }), w));
    this.node = el(
      "div.heat",
      {},
      el("div.grid", {}, el("ol.names", { "aria-hidden": "true" }, this.names), el("div.cells", {}, this.canvas)),
      el(
        "div.under",
        {},
        el("span.where", {}, `changed, by ${rows.length && rows[0].n > 1 ? "groups of epochs" : "epoch"}`),
        el("ul.legend", {}, scale, markLegend(marks)),
      ),
      this.said,
    );
    this.layOut();
    new ResizeObserver(() => {
      this.layOut();
      this.draw();
    }).observe(this.canvas.parentElement);
  }

  // Names are beside their rows, or, on a narrow screen, above them.
  layOut() {
    const narrow = !this.room && matchMedia(NARROW).matches;
    const { lines, height, group } = layOut(this.changes, this.room, narrow ? LABEL : 0);
    this.lines = lines;
    this.height = height;
    this.node.classList.toggle("narrow", narrow);
    this.names.forEach((n, i) => {
      const high = narrow ? LABEL : group[i];
      n.style.setProperty("height", `${high}px`);
      n.style.setProperty("line-height", `${high}px`);
      n.style.setProperty("margin-bottom", `${APART + (narrow ? group[i] : 0)}px`);
      n.style.setProperty("font-size", `${Math.min(12.5, high - 1)}px`);
    });
  }

  draw() {
    const width = this.canvas.parentElement.clientWidth;
    const height = this.height + AXIS;
    const k = devicePixelRatio;
    const style = getComputedStyle(document.documentElement);
    const fill = Array.from({ length: STEPS + 1 }, (_, i) => style.getPropertyValue(`--heat${i}`).trim());
    const c = this.canvas.getContext("2d");
    if (width <= 0) return;
    this.canvas.width = Math.round(width * k);
    this.canvas.height = Math.round(height * k);
    this.canvas.style.height = `${height}px`;
    c.scale(k, k);
    this.step = width / this.rows.length;
    const gap = this.step > 7 ? 1 : 0;
    this.lines.forEach(({ values, y, high }) =>
      values.forEach((v, x) => {
        if (v < 0) return;
        const from = Math.round(x * this.step * k) / k; // on whole pixels: halves would show as stripes
        const to = Math.round((x + 1) * this.step * k) / k;
        c.fillStyle = fill[step(v)];
        c.fillRect(from, y, Math.max(to - from - gap, 1 / k), high);
      }),
    );
    c.save();
    c.setTransform(1, 0, 0, 1, 0, 0);
    if (this.marks) drawMarks(c, this.marks, (i) => Math.round(i * this.step * k), [0, this.height * k]);
    c.restore();
    c.fillStyle = style.getPropertyValue("--quiet").trim();
    c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    for (const [x, text] of rowTicks(this.rows, Math.max(2, Math.floor(width / 64)))) {
      const half = c.measureText(text).width / 2;
      c.fillText(text, Math.min(Math.max((x + 0.5) * this.step - half, 0), width - 2 * half), height - 5);
    }
  }

  mark(i, x) {
    const { name, values, y, high } = this.lines[i];
    this.at = [i, x];
    this.draw();
    const c = this.canvas.getContext("2d");
    c.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
    c.lineWidth = 2;
    c.strokeRect(x * this.step, y, Math.max(this.step - 1, 2), high);
    this.said.textContent = tell(name, this.rows[x], values[x]);
  }

  point(event) {
    const i = this.lines.findIndex((line) => event.offsetY < line.y + line.high);
    const x = Math.floor(event.offsetX / this.step);
    if (this.lines[i] && this.rows[x]) this.mark(i, x);
  }

  key(event) {
    const last = [this.lines.length - 1, this.rows.length - 1];
    const [i, x] = this.at;
    const to = {
      ArrowLeft: [i, x - 1],
      ArrowRight: [i, x + 1],
      ArrowUp: [i - 1, x],
      ArrowDown: [i + 1, x],
      PageUp: [i, x - 10],
      PageDown: [i, x + 10],
      Home: [i, 0],
      End: [i, last[1]],
    }[event.key];
    if (!to) return;
    event.preventDefault();
    this.mark(...to.map((v, k) => Math.min(Math.max(v, 0), last[k])));
  }
}
