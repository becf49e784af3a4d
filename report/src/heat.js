// How much of each region changed in each epoch: a row for each region, a column for each epoch.
import { ticksOf } from "./chart.js";
import { el } from "./dom.js";
import * as words from "./words.js";

const STEPS = 6; // colours beside that of nothing
const AXIS = 20; // pixels for the numbers of the epochs

// Small shares must be seen: 0.1 % is something else than nothing.
export function step(perMille) {
  if (perMille <= 0) return perMille;
  if (perMille <= 5) return 1;
  if (perMille <= 20) return 2;
  if (perMille <= 80) return 3;
  if (perMille <= 250) return 4;
  return perMille <= 600 ? 5 : 6;
}

const WORDS = ["nothing", "to 0.5 %", "to 2 %", "to 8 %", "to 25 %", "to 60 %", "more"];

function tell(name, row, v) {
  return `${name}, ${words.span(row)}: ${v < 0 ? "not there" : v === 0 ? "nothing changed" : v <= 1 ? "up to 0.1 % changed" : `${(v / 10).toFixed(1)} % changed`}`;
}

export class Heat {
  constructor(changes, rows, label, height) {
    this.rows = rows;
    this.data = changes;
    this.at = [0, rows.length - 1];
    this.cell = height ?? Math.max(8, Math.min(26, Math.round(520 / Math.max(changes.length, 1))));
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
    const names = changes.map((c) =>
      el(
        "li",
        {
          title: c.name ?? "all others",
          style: { height: `${this.cell}px`, "line-height": `${this.cell}px`, "font-size": `${Math.min(12.5, this.cell - 1)}px` },
        },
        c.name ?? "all others",
      ),
    );
    const scale = WORDS.map((w, i) => el("li", {}, el("i.swatch", { style: { "--c": `var(--heat${i})` } }), w));
    this.node = el(
      "div.heat",
      {},
      el("div.grid", {}, el("ol.names", { "aria-hidden": "true" }, names), el("div.cells", {}, this.canvas)),
      el(
        "div.under",
        {},
        el("span.where", {}, `changed, by ${rows.length && rows[0].n > 1 ? "groups of epochs" : "epoch"}`),
        el("ul.legend", {}, scale),
      ),
      this.said,
    );
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
  }

  draw() {
    const width = this.canvas.parentElement.clientWidth;
    const height = this.cell * this.data.length + AXIS;
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
    this.data.forEach((row, y) =>
      row.per_mille.forEach((v, x) => {
        if (v < 0) return;
        const from = Math.round(x * this.step * k) / k; // on whole pixels: halves would show as stripes
        const to = Math.round((x + 1) * this.step * k) / k;
        c.fillStyle = fill[step(v)];
        c.fillRect(from, y * this.cell, Math.max(to - from - gap, 1 / k), this.cell - 1);
      }),
    );
    c.fillStyle = style.getPropertyValue("--quiet").trim();
    c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    for (const x of ticksOf(this.rows, Math.max(2, Math.floor(width / 64)))) {
      const text = String(this.rows[x].first);
      const half = c.measureText(text).width / 2;
      c.fillText(text, Math.min(Math.max((x + 0.5) * this.step - half, 0), width - 2 * half), height - 5);
    }
  }

  mark(y, x) {
    this.at = [y, x];
    this.draw();
    const c = this.canvas.getContext("2d");
    c.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
    c.lineWidth = 2;
    c.strokeRect(x * this.step, y * this.cell, Math.max(this.step - 1, 2), this.cell - 1);
    this.said.textContent = tell(this.data[y].name ?? "all others", this.rows[x], this.data[y].per_mille[x]);
  }

  point(event) {
    const y = Math.floor(event.offsetY / this.cell);
    const x = Math.floor(event.offsetX / this.step);
    if (this.data[y] && this.rows[x]) this.mark(y, x);
  }

  key(event) {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    this.mark(
      Math.min(Math.max(this.at[0] + move[0], 0), this.data.length - 1),
      Math.min(Math.max(this.at[1] + move[1], 0), this.rows.length - 1),
    );
  }
}
