// One lineage: headline figures, charts, tables.
import { Chart } from "./chart.js";
import { el } from "./dom.js";
import { Heat } from "./heat.js";
import * as lists from "./lists.js";
import * as words from "./words.js";

const PARTS = [
  // where the bytes of an epoch were found, those that cost something first
  { key: "bytes_new", label: "new", colour: "new" },
  { key: "bytes_dup_ranks", label: "on another rank", colour: "ranks" },
  { key: "bytes_dup_space", label: "twice in this epoch", colour: "space" },
  { key: "bytes_dup_time", label: "in an earlier epoch", colour: "time" },
  { key: "bytes_zero", label: "zero", colour: "zero" },
  { key: "bytes_unchanged", label: "unchanged", colour: "same" },
];

const STAGES = [
  { key: "bytes_memory", label: "in memory", colour: "ink" },
  { key: "bytes_dirty", label: "compared (dirty)", colour: "amber", dash: [2, 4] },
  { key: "bytes_new", label: "new", colour: "new" },
  { key: "bytes_stored", label: "compressed", colour: "blue" },
  { key: "bytes_layer", label: "whole layer", colour: "space", dash: [7, 4] },
];

const TIMES = [
  { key: "seconds_blocked", label: "program blocked", colour: "new" },
  { key: "seconds_flush", label: "background flush", colour: "blue" },
  { key: "seconds_faults", label: "in page faults", colour: "amber", dash: [2, 4] },
  { key: "seconds_waits", label: "waits in page faults", colour: "ranks", dash: [7, 4] },
  { key: "seconds_ranks", label: "asking other ranks", colour: "space", dash: [10, 4, 2, 4] },
];

const LEGIBLE = 28; // rows of the map that a picture has room for

// Of an epoch in a row; null where nothing is known of it.
const mean = (key) => (row) =>
  row.n > (row.damaged ?? 0) && (row.layers_told || lists.RECORDED.includes(key)) ? (row[key] ?? 0) / epochsOf([row]) : null;

// How many epochs rows are of, without those whose record cannot be read.
const epochsOf = (rows) => rows.reduce((n, r) => n + r.n - (r.damaged ?? 0), 0);

// How many epochs a restart reads from: the oldest are told together.
const epochsIn = (sources) => sources.reduce((n, s) => n + (s.epochs ?? 1), 0);

const meanOf = (row) => (row.n > 1 ? `mean of ${words.named(row)}` : words.named(row));

export const figures = { dedup: 1, stored: 1, time: 1, changes: 1, ranks: 1, restore: 1 };

function section(title, lead, ...nodes) {
  return el("section", {}, el("h2", {}, title), lead && el("p.lead", {}, lead), ...nodes);
}

function empty(text) {
  return el("p.empty", {}, text);
}

function tile(label, value, note, kind) {
  return el(`div.tile${kind ? "." + kind : ""}`, {}, el("dt", {}, label), el("dd", {}, el("b", {}, value), el("span", {}, note)));
}

// What a line would need a second epoch for.
function bars(label, list, show) {
  const most = Math.max(...list.map((b) => b.value));
  return el(
    "dl.bars",
    { "aria-label": label },
    list.map((b) =>
      el(
        "div",
        {},
        el("dt", {}, b.label),
        el("dd", {}, el("i", { style: { width: `${(100 * b.value) / most}%`, background: `var(--${b.colour})` } })),
        el("dd.value", {}, show(b.value)),
      ),
    ),
  );
}

function used(rows, list) {
  return list.filter((s) => rows.some((r) => r[s.key]));
}

export class Lineage {
  constructor(data, height) {
    this.d = data;
    this.rows = data.epochs ?? [];
    this.height = height ? height - 104 : 260;
    this.alone = height;
  }

  redraw() {
    this.heat?.draw();
  }

  nodes() {
    const { d } = this;
    if (d.error) return [el("h2.lineage", {}, d.lineage), el("p.notice", {}, d.error)];
    if (!this.rows.length)
      return [
        el("h2.lineage", {}, d.lineage),
        empty("No epoch yet: the program has opened the lineage, but has not written a checkpoint."),
      ];
    if (!d.restore.epoch)
      return [
        this.title(),
        this.problems(),
        empty("No epoch has a readable record: 'varve verify' lists the damage."),
        section("Epochs", null, lists.epochs(this.rows, this.held(), this.packed())),
      ];
    return [
      this.title(),
      this.problems(),
      this.verified(),
      this.verdict(),
      this.headline(),
      this.untold(),
      section(
        "Origin of the bytes",
        `The ${this.what()} of each epoch, by the origin of the content. Only new content is compressed and stored.`,
        this.dedup(),
      ),
      section(
        this.packed() ? `From the ${this.what()} to the store` : "From memory to the store",
        this.rows.length > 1 ? "Bytes that remain after each step, on a logarithmic scale." : "Bytes that remain after each step.",
        this.stored(),
      ),
      section(
        "Time",
        this.packed()
          ? "The time to read, compress and store the data. Of several ranks, the longest time is shown."
          : "The program loses only the blocked time. The flush runs in the background. Of several ranks, the longest time is shown.",
        this.time(),
      ),
      section(`Changed ${this.part()}s by epoch`, this.heatLead(), this.changes()),
      section("Ranks", this.rankLead(), this.ranks(), lists.ranks(d)),
      section(
        { region: "Regions", variable: "Variables", segment: "Segments" }[this.part()],
        `In epoch ${d.restore.epoch}.`,
        this.packed() ? lists.variables(d, this.part()) : lists.regions(d),
      ),
      this.packed() && section("Files", this.fileLead(), lists.files(d)),
      section("Data that a restart reads", this.restoreLead(), this.restore(), lists.sources(this.sources()), lists.codecs(d)),
      section("Space that gc would free", null, this.gc()),
      section(
        "Epochs",
        this.perRow() > 1
          ? `${words.plural(this.rows.length, "row")}, each of up to ${this.perRow()} epochs: bytes and times are sums.`
          : null,
        lists.epochs(this.rows, this.held(), this.packed()),
      ),
    ].filter(Boolean);
  }

  figure(name) {
    const titles = {
      dedup: "Origin of the bytes",
      stored: "From memory to the store",
      time: "Time",
      changes: this.d.changes?.length > LEGIBLE ? `Changes: the ${LEGIBLE} that changed most of` : "Changes",
      ranks: "Stored by rank",
      restore: "Data that a restart reads",
    };
    return el(
      "figure",
      {},
      el("figcaption", {}, el("b", {}, titles[name]), " ", el("span", {}, this.d.lineage)),
      this.rows.length ? this[name]() : empty("No epoch yet."),
    );
  }

  perRow() {
    return Math.max(...this.rows.map((r) => r.n));
  }

  packed() {
    return this.d.variables !== undefined;
  }

  // What the epochs hold, in a word.
  what() {
    return !this.packed() ? "memory" : this.d.files.some((f) => f.format === "criu") ? "images" : "files";
  }

  // What they are made of.
  part() {
    return { memory: "region", files: "variable", images: "segment" }[this.what()];
  }

  // Where the program had restarted: before these rows.
  restarts(rows) {
    return { label: "restart", at: rows.flatMap((r, i) => (r.restarts ? [i] : [])) };
  }

  held() {
    return this.packed() ? `In the ${this.what()}` : "In memory";
  }

  title() {
    const { d, rows } = this;
    const t = d.totals;
    const range = `${words.plural(t.epochs_shown, "epoch")}, ${rows[0].first}–${rows.at(-1).last}`;
    const older = t.epochs - t.epochs_shown;
    const at = rows.filter((r) => r.time_ns);
    return el(
      "div.title",
      {},
      el("h2.lineage", {}, d.lineage),
      el(
        "p",
        {},
        `${rows.length > 1 || rows[0].n > 1 ? range : words.span(rows[0])}; ${words.plural(rows.at(-1).ranks, "rank")}`,
        at.length > 0 && `; ${words.time(at[0].time_ns)}${at.length > 1 ? ` to ${words.time(at.at(-1).time_ns)}` : ""}`,
        older > 0 && `. ${words.plural(older, "older epoch is", "older epochs are")} not included (--all includes them).`,
      ),
    );
  }

  problems() {
    const { d } = this;
    if (!d.problems_total) return null;
    return el(
      "div.notice",
      { role: "note" },
      el("p", {}, el("b", {}, `${words.plural(d.problems_total, "problem")} found while reading; 'varve verify' lists all.`)),
      el(
        "ul",
        {},
        d.problems.map((p) => el("li", {}, `epoch ${p.epoch}: ${p.text}`)),
        d.problems_total > d.problems.length && el("li", {}, `and ${d.problems_total - d.problems.length} more`),
      ),
    );
  }

  // What the last 'varve verify' found; epochs may be newer than that.
  verified() {
    const v = this.d.verified;
    const newest = this.rows.at(-1).last;
    if (!v) return el("p.note", {}, "Not verified yet: 'varve verify' reads and checks every byte.");
    const since = newest > v.newest ? ` Epochs above ${v.newest} are newer.` : "";
    const found = v.n_problems
      ? `${words.plural(v.n_problems, "problem")} in ${words.plural(v.epochs, "epoch")}`
      : `no problem in ${words.plural(v.epochs, "epoch")}`;
    return el(v.n_problems ? "p.notice" : "p.note", {}, `Last verify: ${words.time(v.time_ns)}, ${found}.${since}`);
  }

  // Of some layers only the commit records are known.
  untold() {
    const { layers, layers_told: told } = this.d.totals;
    return (
      told < layers &&
      el(
        "p.note",
        {},
        `${words.count(told)} of ${words.plural(layers, "layer")} have statistics. The others are in stores of other hosts, cannot be read, or have none. Sizes in memory, stored sizes and layer sizes cover all layers.`,
      )
    );
  }

  // What a checkpoint costs, and why: of those after the first, which has everything to store, and of those of which all is known, if there are any.
  verdict() {
    const { d, rows } = this;
    const after = rows.length > 1 ? rows.slice(1) : rows;
    const full = after.filter((r) => r.layers && r.layers_told === r.layers);
    const later = full.length ? full : after;
    const sum = (key) => later.reduce((n, r) => n + (r[key] ?? 0), 0);
    const n = epochsOf(later);
    if (!n) return null;
    const each = (key) => words.bytes(sum(key) / n);
    const cause = d.changes.filter((c) => c.name !== null)[0];
    const all = d.changes.reduce((k, c) => k + c.bytes_changed, 0);
    const most = cause && all > 0 && cause.bytes_changed > all / 2;
    return el(
      "p.verdict",
      {},
      this.packed() ? "An epoch" : "A checkpoint",
      rows.length > 1 && " after the first",
      ` holds ${each("bytes_memory")}`,
      full.length > 0 && [
        ", of which ",
        el("b", {}, each("bytes_new")),
        ` (${words.percent(sum("bytes_new"), sum("bytes_memory"))}) is new,`,
      ],
      " and its layers take ",
      el("b", {}, each("bytes_layer")),
      ". ",
      full.length > 0 && this.stopped(sum("seconds_blocked") / n, epochsOf(after)),
      d.changes.length > 1 &&
        most && [
          `Most ${this.packed() ? "new" : "changed"} data is in `,
          el("b", {}, words.changed(cause)),
          ` (${words.percent(cause.bytes_changed, all)}).`,
        ],
    );
  }

  // A checkpoint's share of the time from one epoch to the next, which is all that the store knows of how long the program ran; n: epochs after the first.
  stopped(blocked, n) {
    const at = this.rows.filter((r) => r.time_ns);
    const between = at.length > 1 ? (at.at(-1).time_ns - at[0].time_ns) / 1e9 / n : 0;
    if (!blocked) return null;
    if (this.packed()) return ["Packing it took ", el("b", {}, words.seconds(blocked)), ". "];
    return [
      "The program waits ",
      el("b", {}, words.seconds(blocked)),
      between > 0 && blocked < between ? `, ${words.percent(blocked, between)} of the time between two checkpoints. ` : ". ",
    ];
  }

  headline() {
    const { d } = this;
    const t = d.totals;
    const told = epochsOf(this.rows.filter((r) => r.layers_told));
    const read = this.sources().reduce((n, s) => n + s.bytes_read, 0);
    const newest = this.rows.find((r) => r.n === 1 && r.first === d.restore.epoch);
    const least = d.restore.partial || d.restore.ranks_not_told ? "at least, " : "";
    const freed = d.gc.error ? null : d.gc.bytes_before - d.gc.bytes_after;
    return el(
      "dl.tiles",
      {},
      tile(
        this.packed() ? "Packed" : "Checkpointed",
        words.bytes(t.bytes_memory ?? 0),
        `in ${words.plural(epochsOf(this.rows), "epoch")}, size ${this.packed() ? `of the ${this.what()}` : "in memory"}`,
      ),
      tile(
        "Layers",
        words.bytes(t.bytes_layer ?? 0),
        `when written; ${words.bytes(t.bytes_on_disk)} on disk now`,
        "hot",
      ),
      tile(
        "Reduction",
        words.ratio(t.bytes_memory ?? 0, t.bytes_layer),
        `${words.percent(t.bytes_layer ?? 0, t.bytes_memory)} of the bytes are stored`,
      ),
      tile(
        this.packed() ? "Packing took" : "Program blocked",
        told && t.seconds_blocked ? words.seconds(t.seconds_blocked / told) : "–",
        told && !t.seconds_blocked
          ? "not known"
          : told
            ? `per epoch; ${words.seconds(t.seconds_blocked ?? 0)} in total, ${words.seconds(t.seconds_blocked_most)} at most`
            : "the layers hold no statistics",
      ),
      tile(
        "A restart reads",
        words.bytes(read),
        `${least}from ${words.plural(epochsIn(this.sources()), "epoch")}, for ${words.bytes(newest ? (newest.bytes_memory ?? 0) : this.restoreBytes())}`,
      ),
      tile(
        "gc would free",
        freed === null ? "–" : words.bytes(freed),
        freed === null ? "not known" : `of ${words.bytes(d.gc.bytes_before)}`,
      ),
    );
  }

  line(list, unit, label, missing) {
    const series = used(this.rows, list).map((s) => ({ ...s, value: mean(s.key) }));
    if (!series.length) return empty(missing);
    if (this.rows.length === 1)
      return bars(
        label,
        series.map((s) => ({ label: s.label, colour: s.colour, value: s.value(this.rows[0]) ?? 0 })),
        words[unit],
      );
    return new Chart({ label, rows: this.rows, name: meanOf, series, unit, log: true, marks: this.restarts(this.rows), axis: this.alone && "epoch" }, this.height)
      .node;
  }

  dedup() {
    const rows = this.rows.filter((r) => r.layers_told);
    if (!rows.length) return empty("The layers of these epochs hold no statistics, cannot be read, or lie in other stores.");
    const series = used(rows, PARTS);
    const spec = (share) => ({
      unit: share ? "share" : "bytes",
      series: series.map((s) => ({
        ...s,
        value: (r) => (share ? (r[s.key] ?? 0) / (PARTS.reduce((n, p) => n + (r[p.key] ?? 0), 0) || 1) : (mean(s.key)(r) ?? 0)),
      })),
    });
    const chart = new Chart(
      {
        label: "Bytes of each epoch by origin",
        rows,
        name: meanOf,
        stacked: true,
        marks: this.restarts(rows),
        axis: this.alone && "epoch",
        ...spec(false),
      },
      this.height,
    );
    const pick = (share) => (event) => {
      for (const b of event.target.parentElement.children) b.setAttribute("aria-pressed", String(b === event.target));
      chart.change(spec(share));
    };
    return el(
      "div",
      {},
      !this.alone &&
        el(
          "div.switch",
          { role: "group", "aria-label": "scale" },
          el("button", { type: "button", "aria-pressed": "true", onclick: pick(false) }, "bytes"),
          el("button", { type: "button", "aria-pressed": "false", onclick: pick(true) }, "share"),
        ),
      chart.node,
    );
  }

  stored() {
    return this.line(
      this.packed() ? STAGES.map((s) => (s.key === "bytes_memory" ? { ...s, label: `in the ${this.what()}` } : s)) : STAGES,
      "bytes",
      "Bytes in memory, dirty, new, compressed and stored, by epoch",
      "Nothing was stored in these epochs.",
    );
  }

  time() {
    return this.line(
      this.packed() ? TIMES.filter((s) => s.key !== "seconds_blocked").map((s) => (s.key === "seconds_flush" ? { ...s, label: "packing" } : s)) : TIMES,
      "seconds",
      "Seconds blocked, flushing and waiting, by epoch",
      "The layers of these epochs hold no times.",
    );
  }

  heatLead() {
    return this.packed()
      ? `Of each ${this.part()}, over all ${this.what()}, the share that was new to the lineage.`
      : `Of each region, over all ranks, the share that changed since the epoch before. Regions with the most changes come first.${this.d.changes.some((c) => c.bands) ? " A region with differing parts has several rows, from its first byte (top) to its last." : ""}`;
  }

  changes() {
    if (!this.d.changes.length) return empty("The changes are not known.");
    this.heat = new Heat(
      this.alone ? this.d.changes.slice(0, LEGIBLE) : this.d.changes,
      this.rows,
      "Share of each region that changed, by epoch",
      this.alone && this.alone - 124,
      this.restarts(this.rows),
    );
    return this.heat.node;
  }

  rankLead() {
    const { per_rank: ranks } = this.d;
    const n = ranks.reduce((sum, r) => sum + r.n, 0);
    const stored = ranks.reduce((sum, r) => sum + (r.bytes_stored ?? 0), 0);
    const most = Math.max(...ranks.map((r) => (r.bytes_stored ?? 0) / r.n));
    if (n <= 1) return "One rank wrote this lineage: there is nothing to balance.";
    if (!stored) return `${words.plural(n, "rank")}; no rank stored data in epoch ${this.d.restore.epoch}.`;
    return `Data that each of ${words.plural(n, "rank")} stored in epoch ${this.d.restore.epoch}. The largest amount is ${((most * n) / stored).toFixed(2)} times the average${ranks[0].n > 1 ? ", of groups of ranks" : ""}.`;
  }

  ranks() {
    const { per_rank: ranks } = this.d;
    const n = ranks.reduce((sum, r) => sum + r.n, 0);
    if (n <= 1) return this.alone ? empty("One rank: there is nothing to balance.") : null;
    const mean = ranks.reduce((sum, r) => sum + (r.bytes_stored ?? 0), 0) / n;
    const series = [{ label: "stored", colour: "blue", value: (r) => (r.bytes_stored ?? 0) / r.n }];
    return new Chart(
      {
        label: "Bytes stored by each rank",
        rows: ranks,
        name: (r) => words.span(r, "rank", "ranks"),
        series,
        unit: "bytes",
        bars: true,
        axis: this.alone && "rank",
        reference: { label: "average", value: mean },
      },
      this.alone ? this.height : 200,
    ).node;
  }

  fileLead() {
    const rest = this.d.files_total - this.d.files.length;
    return `${words.plural(this.d.files_total, "file")}, scheme ${this.d.scheme}, level ${this.d.level}.${rest > 0 ? ` The first ${this.d.files.length} are listed; 'varve unpack --list' has all.` : ""}`;
  }

  sources() {
    const { restore } = this.d;
    return [...(restore.older ?? []).map((s) => ({ ...s, older: true })), ...restore.sources];
  }

  restoreBytes() {
    return this.sources().reduce((n, s) => n + s.bytes, this.d.restore.bytes_zero);
  }

  restoreLead() {
    const { restore } = this.d;
    const parts = [
      `Epoch ${restore.epoch} needs ${words.plural(restore.heads, "head")}, and blocks of ${words.plural(epochsIn(this.sources()), "epoch")}${restore.bytes_zero ? `; ${words.bytes(restore.bytes_zero)} of its bytes are zeros, which are not stored` : ""}.`,
    ];
    if (restore.ranks > 1) parts.push("Bytes that several ranks read are counted once for each rank.");
    if (restore.ranks_not_told) parts.push(`${words.plural(restore.ranks_not_told, "rank")} could not be read.`);
    if (restore.partial) parts.push("Some layers could not be counted.");
    return parts.join(" ");
  }

  // The newest epochs apart, those before them together; the older, the paler.
  restore() {
    const list = this.sources().reverse();
    const total = this.restoreBytes();
    const few = list.slice(0, 7);
    const rest = list.slice(7);
    const bits = few.map((s, i) => ({ label: `epoch ${s.epoch}`, bytes: s.bytes, colour: `--age${i}` }));
    if (rest.length)
      bits.push({
        label: words.plural(epochsIn(rest), "older epoch"),
        bytes: rest.reduce((n, s) => n + s.bytes, 0),
        colour: "--age7",
      });
    if (this.d.restore.bytes_zero) bits.push({ label: "zeros", bytes: this.d.restore.bytes_zero, colour: "--zero" });
    if (!total) return empty("The regions are empty: a restart reads nothing.");
    return el(
      "div.chart",
      {},
      el(
        "div.bar",
        {
          role: "img",
          "aria-label": `Where the bytes come from: ${bits.map((b) => `${b.label} ${words.percent(b.bytes, total)}`).join(", ")}`,
        },
        bits.map((b) =>
          el("i", {
            title: `${b.label}: ${words.bytes(b.bytes)}`,
            style: { "flex-grow": String(b.bytes / total), background: `var(${b.colour})` },
          }),
        ),
      ),
      el(
        "ul.legend",
        {},
        bits.map((b) =>
          el(
            "li",
            {},
            el("i.swatch", { style: { "--c": `var(${b.colour})` } }),
            el("span", {}, b.label),
            el("b", {}, `${words.bytes(b.bytes)}, ${words.percent(b.bytes, total)}`),
          ),
        ),
      ),
    );
  }

  gc() {
    const g = this.d.gc;
    if (g.error) return el("p.notice", {}, g.error);
    const freed = g.bytes_before - g.bytes_after;
    const sentence = freed
      ? `'varve gc' would free ${words.bytes(freed)} of ${words.bytes(g.bytes_before)} (${words.percent(freed, g.bytes_before)}): ${words.plural(g.removed, "layer")} removed, ${g.rewritten} rewritten, ${g.kept} kept.`
      : `Nothing: all data is needed (${words.plural(g.kept, "layer")}, ${words.bytes(g.bytes_before)}).`;
    const slack = g.bytes_after - g.bytes_needed;
    return el(
      "div",
      {},
      el(
        "p.lead",
        {},
        sentence,
        100 * slack > g.bytes_before
          ? ` ${words.bytes(slack)} more is not needed, but lies in layers that gc does not rewrite yet.`
          : "",
      ),
      g.bytes_before > 0 &&
        el(
          "div.bar",
          { role: "img", "aria-label": sentence },
          el("i", {
            title: `needed: ${words.bytes(g.bytes_needed)}`,
            style: { "flex-grow": String(g.bytes_needed / g.bytes_before), background: "var(--blue)" },
          }),
          slack > 0 &&
            el("i", {
              title: `not rewritten yet: ${words.bytes(slack)}`,
              style: { "flex-grow": String(slack / g.bytes_before), background: "var(--age4)" },
            }),
          freed > 0 &&
            el("i.free", { title: `free: ${words.bytes(freed)}`, style: { "flex-grow": String(freed / g.bytes_before) } }),
        ),
      g.bytes_before > 0 &&
        el(
          "ul.legend",
          {},
          el("li", {}, el("i.swatch", { style: { "--c": "var(--blue)" } }), "needed", el("b", {}, words.bytes(g.bytes_needed))),
          slack > 0 &&
            el(
              "li",
              {},
              el("i.swatch", { style: { "--c": "var(--age4)" } }),
              "not rewritten yet",
              el("b", {}, words.bytes(slack)),
            ),
          freed > 0 && el("li", {}, el("i.swatch.free"), "would be free", el("b", {}, words.bytes(freed))),
        ),
    );
  }
}
