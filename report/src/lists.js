// The tables of a lineage.
import { el } from "./dom.js";
import { table } from "./table.js";
import * as words from "./words.js";

// What commit records say; all else only the layers can tell.
export const RECORDED = ["bytes_memory", "bytes_stored", "bytes_layer", "bytes_stored_all"];

// A column of figures; layers(row): how many could have told.
const figures =
  (layers) =>
  (head, key, show = words.bytes) => {
    const silent = (r) => (RECORDED.includes(key) ? 0 : layers(r) - r.layers_told);
    return {
      head,
      value: (r) => (silent(r) && !r.layers_told ? null : (r[key] ?? 0)),
      show: (r) => (silent(r) && !r.layers_told ? "–" : `${silent(r) ? "≥ " : ""}${show(r[key] ?? 0)}`),
    };
  };

export function ranks(d) {
  const { per_rank: ranks } = d;
  if (ranks.reduce((sum, r) => sum + r.n, 0) <= 1) return null;
  const col = figures((r) => r.n);
  return table(
    `Ranks in epoch ${d.restore.epoch}`,
    [
      { head: "Rank", value: (r) => r.first, show: (r) => (r.n > 1 ? `${r.first}–${r.last}` : String(r.first)) },
      col("In memory", "bytes_memory"),
      col("New", "bytes_new"),
      col("On other ranks", "bytes_dup_ranks"),
      col("Stored", "bytes_stored"),
      col("For others", "bytes_lent"),
      col("Blocked", "seconds_blocked", words.seconds),
      col("Flush", "seconds_flush", words.seconds),
      col("Stored, all epochs", "bytes_stored_all"),
    ],
    ranks,
  );
}

export function regions(d) {
  if (!d.regions.length) return el("p.empty", {}, "No region could be read.");
  const changed = new Map(d.changes.filter((c) => c.name !== null).map((c) => [c.name, c]));
  const last = (r) => changed.get(r.name)?.per_mille.at(-1);
  const codecs = (r) =>
    [...Object.entries(r.codecs), ...(r.bytes_zero ? [["zero", r.bytes_zero]] : [])].sort((a, b) => b[1] - a[1]);
  const rest = d.regions_total - d.regions.length;
  const among = d.regions.some((r) => !changed.has(r.name)) && d.changes.some((c) => c.name === null);
  return el(
    "div",
    {},
    table(
      "Regions, the largest first",
      [
        { head: "Region", text: true, value: (r) => r.name },
        { head: "Type", text: true, value: (r) => r.type },
        { head: "Shape", text: true, value: (r) => (r.differs ? "differs by rank" : words.shape(r.shape)) },
        { head: "Bytes", value: (r) => r.bytes, show: (r) => words.bytes(r.bytes) },
        { head: "Ranks", value: (r) => r.ranks },
        {
          head: "Changed last",
          value: (r) => last(r) ?? -1,
          show: (r) =>
            last(r) === undefined || last(r) < 0 ? "–" : last(r) === 1 ? "≤ 0.1 %" : `${(last(r) / 10).toFixed(1)} %`,
        },
        {
          head: "Changed in total",
          value: (r) => changed.get(r.name)?.bytes_changed ?? 0,
          show: (r) => words.bytes(changed.get(r.name)?.bytes_changed),
        },
        { head: "Runs", value: (r) => r.runs, show: (r) => words.count(r.runs) },
        {
          head: "Stored as",
          text: true,
          wrap: true,
          value: (r) =>
            codecs(r)
              .map(([c, n]) => `${c} ${words.percent(n, r.bytes)}`)
              .join(", ") || "–",
        },
      ],
      d.regions,
      [3, -1],
    ),
    among && el("p.note", {}, "The last row of the map sums up the regions with a –."),
    rest > 0 &&
      el(
        "p.note",
        {},
        `${words.plural(rest, "smaller region")} more, ${words.bytes(d.bytes_in_other_regions)} together; 'varve show --json' lists all.`,
      ),
  );
}

export function variables(d, part) {
  const rest = d.variables_total - d.variables.length;
  return el(
    "div",
    {},
    table(
      `${part === "variable" ? "Kinds of variables" : "Segments"}, the largest first`,
      [
        { head: part === "variable" ? "Variable" : "Segment", text: true, value: (v) => v.name },
        {
          head: "Type",
          text: true,
          value: (v) => `${v.type === "bytes" && v.width > 1 ? `${v.width} bytes` : v.type}${v.big_endian ? " be" : ""}`,
        },
        { head: "Shape", text: true, value: (v) => words.shape(v.shape) },
        { head: "Instances", value: (v) => v.instances, show: (v) => words.count(v.instances) },
        { head: "Bytes", value: (v) => v.bytes, show: (v) => words.bytes(v.bytes) },
        { head: "New", value: (v) => v.bytes_new, show: (v) => words.bytes(v.bytes_new) },
        { head: "Stored", value: (v) => v.bytes_stored, show: (v) => words.bytes(v.bytes_stored) },
        { head: "Ratio", value: (v) => v.ratio, show: (v) => words.ratio(v.bytes_new, v.bytes_stored) },
        { head: "Compressed by", text: true, value: (v) => v.coded },
      ],
      d.variables,
      [4, -1],
    ),
    rest > 0 && el("p.note", {}, `${words.plural(rest, "smaller kind")} more; 'varve show' lists all.`),
  );
}

export function files(d) {
  return table(
    "Files",
    [
      { head: "File", text: true, value: (f) => f.name },
      { head: "Bytes", value: (f) => f.bytes, show: (f) => words.bytes(f.bytes) },
      { head: "Format", text: true, value: (f) => f.format },
    ],
    d.files,
  );
}

export function sources(list) {
  return (
    list.length > 0 &&
    table(
      "Layers that a restart reads, by epoch",
      [
        { head: "Epoch", value: (s) => s.epoch, show: (s) => (s.older ? `≤ ${s.epoch}` : String(s.epoch)) },
        { head: "Layers", value: (s) => s.layers, show: (s) => words.count(s.layers) },
        { head: "Bytes of the regions", value: (s) => s.bytes, show: (s) => words.bytes(s.bytes) },
        { head: "Blocks", value: (s) => s.blocks, show: (s) => words.count(s.blocks) },
        { head: "Stored bytes of these blocks", value: (s) => s.bytes_read, show: (s) => words.bytes(s.bytes_read) },
      ],
      list,
      [0, -1],
      true,
    )
  );
}

export function codecs(d) {
  const { codecs } = d.restore;
  return codecs.length
    ? table(
        "These blocks, by codec",
        [
          { head: "Codec", text: true, value: (c) => c.codec },
          { head: "Blocks", value: (c) => c.blocks, show: (c) => words.count(c.blocks) },
          { head: "Bytes", value: (c) => c.bytes, show: (c) => words.bytes(c.bytes) },
          { head: "Stored", value: (c) => c.bytes_stored, show: (c) => words.bytes(c.bytes_stored) },
          { head: "Reduction", value: (c) => c.bytes / (c.bytes_stored || 1), show: (c) => words.ratio(c.bytes, c.bytes_stored) },
        ],
        codecs,
        [3, -1],
        true,
      )
    : null;
}

export function epochs(rows, held, packed) {
  const col = (head, key, show) => {
    const c = figures((r) => r.layers)(head, key, show);
    return { ...c, show: (r) => (r.damaged === r.n ? "–" : c.show(r)) };
  };
  const optional = (list) => list.filter(([, key]) => rows.some((r) => r[key])).map(([head, key, show]) => col(head, key, show));
  return table(
    "Epochs",
    [
      {
        head: "Epoch",
        value: (r) => r.first,
        show: (r) => `${r.n > 1 ? `${r.first}–${r.last}` : r.first}${r.damaged ? " (damaged)" : ""}`,
      },
      ...(rows.some((r) => r.labels) ? [{ head: "Labels", text: true, wrap: true, value: words.labels }] : []),
      { head: "Written", value: (r) => r.time_ns ?? 0, show: (r) => words.time(r.time_ns) },
      col(held, "bytes_memory"),
      ...optional([
        ["Dirty", "bytes_dirty"],
        ["Zero", "bytes_zero"],
        ["Earlier epoch", "bytes_dup_time"],
        ["Duplicate", "bytes_dup_space"],
        ["Other ranks", "bytes_dup_ranks"],
      ]),
      col("New", "bytes_new"),
      col("Compressed", "bytes_stored"),
      col("Layer", "bytes_layer"),
      ...optional([
        ...(packed ? [] : [["Blocked", "seconds_blocked", words.seconds]]),
        [packed ? "Packing" : "Flush", "seconds_flush", words.seconds],
        ["Waits", "seconds_waits", words.seconds],
      ]),
    ],
    rows,
    [0, -1],
  );
}
