// Lines and stacks over epochs or ranks, by uPlot: with a legend that tells the values at the cursor, and a cursor that keys move, too.
import uPlot from "uplot";
import { colour, el } from "./dom.js";
import { logScale, logTicks, rowTicks } from "./scale.js";
import * as words from "./words.js";

const MARK = [3, 3]; // dashes of a restart
const REFERENCE = [6, 5];
const BAR_MOST = 80; // above, a bar would be thinner than the gap beside it

const alive = new Set();

export function forgetAll() {
  for (const c of alive) c.destroy();
  alive.clear();
}

export function redrawAll() {
  for (const c of alive) c.draw();
}

const units = {
  bytes: { value: words.bytes, tick: words.tickBytes, steps: binarySteps() },
  seconds: { value: words.seconds, tick: words.seconds, steps: decimalSteps() },
  share: {
    value: (v) => (v === null || v === undefined ? "–" : `${(100 * v).toFixed(1)} %`),
    tick: (v) => `${Math.round(100 * v)} %`,
    steps: [0.05, 0.1, 0.2, 0.25, 0.5, 1],
  },
};

function binarySteps() {
  const steps = [];
  for (let unit = 1; unit < 2 ** 61; unit *= 1024) for (let k = 1; k < 1024; k *= 2) steps.push(unit * k);
  return steps;
}

function decimalSteps() {
  const steps = [];
  for (let e = -7; e < 7; e++) for (const k of [1, 2, 5]) steps.push(k * 10 ** e);
  return steps;
}

// A line as it is drawn, for the legend; dash: as for a canvas.
function lineSwatch(name, dash) {
  let at = 0;
  const stops = (dash ?? []).map((n, i) => `${i % 2 ? "transparent" : "var(--c)"} ${at}px ${(at += n)}px`);
  return el("i.swatch.line", {
    style: { "--c": `var(--${name})`, background: dash ? `repeating-linear-gradient(90deg, ${stops.join(", ")})` : "var(--c)" },
  });
}

// Vertical lines before these rows; at: the place of a row's left border. High in pixels.
export function drawMarks(c, marks, at, high) {
  c.save();
  c.strokeStyle = colour("ink");
  c.lineWidth = devicePixelRatio;
  c.setLineDash(MARK.map((n) => n * devicePixelRatio));
  for (const i of marks.at) {
    c.beginPath();
    c.moveTo(at(i), high[0]);
    c.lineTo(at(i), high[1]);
    c.stroke();
  }
  c.restore();
}

export function markLegend(marks) {
  return marks?.at.length > 0 && el("li", {}, el("i.swatch.mark"), el("span", {}, marks.label), el("b", {}, words.count(marks.at.length)));
}

function stack(series) {
  const sums = series[0].values.map(() => 0);
  return series.map((s) => s.values.map((v, i) => (sums[i] += v ?? 0))).reverse(); // the uppermost is drawn first, the others over it
}

// spec: { label, rows, name(row), series: [{ label, colour, dash, value(row) }], unit, stacked, log, axis: a name for it,
// reference: { label, value }, marks: { label, at: numbers of rows } }
export class Chart {
  constructor(spec, height) {
    this.spec = spec;
    this.height = height;
    this.legend = el("ul.legend");
    this.where = el("span.where");
    this.said = el("p.hidden", { "aria-live": "polite" });
    this.plot = el("div.plot", {
      tabindex: "0",
      role: "img",
      "aria-label": spec.label,
      onkeydown: (e) => this.key(e),
      onblur: () => this.rest(),
    });
    this.node = el("div.chart", {}, this.plot, el("div.under", {}, this.where, this.legend), this.said);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.plot);
    alive.add(this);
  }

  change(spec) {
    Object.assign(this.spec, spec);
    this.draw();
  }

  destroy() {
    this.observer.disconnect();
    this.u?.destroy();
    this.u = null;
  }

  resize() {
    const width = Math.floor(this.plot.clientWidth);
    if (width <= 0) return;
    if (!this.u) this.draw();
    else if (width !== this.u.width) this.u.setSize({ width, height: this.height });
  }

  draw() {
    const { spec } = this;
    const width = Math.floor(this.plot.clientWidth);
    if (width <= 0) return;
    this.u?.destroy();
    this.values = spec.series.map((s) => ({ ...s, values: spec.rows.map(s.value) }));
    const x = spec.rows.map((_, i) => i);
    this.scale = spec.log && logScale(this.values.map((s) => s.values).flat(), spec.unit === "bytes" ? 2 : 10);
    const columns = spec.stacked
      ? stack(this.values)
      : this.values.map((s) => s.values.map((v) => (this.scale && v === 0 ? this.scale.nothing : (v ?? null))));
    const drawn = spec.stacked ? [...this.values].reverse() : this.values;
    const data = [x, ...columns];
    if (spec.reference) data.push(x.map(() => spec.reference.value));
    this.u = new uPlot(this.options(drawn, width), data, this.plot);
    this.tell(this.last());
  }

  last() {
    return this.spec.rows.length - 1;
  }

  options(drawn, width) {
    const { spec } = this;
    const n = spec.rows.length;
    const unit = units[spec.unit];
    const ink = colour("quiet");
    const grid = { stroke: colour("line"), width: 1 };
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const { scale } = this;
    const log = scale && { distr: 3, log: scale.base, range: () => scale.range };
    const marks = (u) => rowTicks(spec.rows, Math.max(2, Math.floor(u.bbox.width / devicePixelRatio / 64)));
    const linear = { range: (u, min, max) => [0, spec.unit === "share" ? 1 : max > 0 ? max * 1.04 : 1] };
    const reference = spec.reference && [{ stroke: colour("ink"), width: 1.5, dash: REFERENCE, points: { show: false } }];
    return {
      width,
      height: this.height,
      padding: [10, 24, 0, 0], // on the right, room for half of the last mark
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: !spec.bars, size: 7 } },
      scales: { x: { time: false, range: () => [-0.5, Math.max(n - 0.5, 0.5)] }, y: log || linear },
      series: [{}, ...drawn.map((s) => this.series(s, n)), ...(reference ?? [])],
      axes: [
        {
          stroke: ink,
          font,
          grid: { show: false },
          ticks: { show: false },
          gap: 6,
          size: 30,
          ...(spec.axis ? { label: spec.axis, labelSize: 20, labelFont: font } : {}),
          splits: (u) => [...marks(u).keys()],
          values: (u) => [...marks(u).values()],
        },
        {
          stroke: ink,
          font,
          grid,
          ticks: { show: false },
          gap: 6,
          size: 74,
          ...(log ? { splits: (u) => logTicks(scale, Math.max(2, u.bbox.height / devicePixelRatio / 42)), filter: (u, splits) => splits } : { incrs: unit.steps }),
          values: (u, ticks) => ticks.map((t) => unit.tick(t === scale?.nothing ? 0 : t)),
        },
      ],
      hooks: {
        setCursor: [(u) => this.tell(u.cursor.idx ?? this.last())],
        draw: [(u) => spec.marks && drawMarks(u.ctx, spec.marks, (i) => u.valToPos(i - 0.5, "x", true), [u.bbox.top, u.bbox.top + u.bbox.height])],
      },
    };
  }

  series(s, n) {
    const { spec } = this;
    const stroke = colour(s.colour);
    if (spec.stacked || spec.bars) {
      const bars = n <= BAR_MOST;
      return {
        fill: stroke,
        stroke,
        width: bars ? 0 : 1,
        points: { show: false },
        paths: bars ? uPlot.paths.bars({ size: [0.84, 56] }) : uPlot.paths.stepped({ align: 1 }),
      };
    }
    return { stroke, width: 2, dash: s.dash, points: { show: n <= 40, size: 6, fill: stroke } };
  }

  // What the legend says: of the epoch under the cursor, or of the last one.
  tell(i) {
    const { spec } = this;
    const row = spec.rows[i];
    const unit = units[spec.unit];
    if (!row) return;
    this.at = i;
    this.where.textContent = spec.name(row);
    this.legend.replaceChildren(
      ...this.values.map((s) =>
        el(
          "li",
          {},
          spec.stacked || spec.bars ? el("i.swatch", { style: { "--c": `var(--${s.colour})` } }) : lineSwatch(s.colour, s.dash),
          el("span", {}, s.label),
          el("b", {}, unit.value(s.values[i])),
        ),
      ),
      ...(spec.reference
        ? [
            el(
              "li",
              {},
              lineSwatch("ink", REFERENCE),
              el("span", {}, spec.reference.label),
              el("b", {}, unit.value(spec.reference.value)),
            ),
          ]
        : []),
      ...[markLegend(spec.marks)].filter(Boolean),
    );
  }

  key(event) {
    const step = {
      ArrowLeft: this.at - 1,
      ArrowRight: this.at + 1,
      PageUp: this.at - 10,
      PageDown: this.at + 10,
      Home: 0,
      End: this.last(),
    }[event.key];
    if (step === undefined || !this.u) return;
    event.preventDefault();
    const i = Math.min(Math.max(step, 0), this.last());
    this.u.setCursor({ left: this.u.valToPos(i, "x"), top: 0 });
    this.tell(i);
    this.said.textContent = `${this.where.textContent}: ${this.values.map((s) => `${s.label} ${units[this.spec.unit].value(s.values[i])}`).join(", ")}`;
  }

  rest() {
    this.u?.setCursor({ left: -10, top: -10 });
  }
}
