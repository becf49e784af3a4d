// Numbers in words, as the command writes them.
const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

// As printf rounds: a half to the even digit, where toFixed takes the larger one.
function fixed(v, n) {
  const exact = v.toFixed(60);
  const cut = exact.length - 60 + n;
  const half = /^50*$/.test(exact.slice(cut));
  return half && "02468".includes(exact[n ? cut - 1 : cut - 2]) ? exact.slice(0, n ? cut : cut - 1) : v.toFixed(n);
}

function digits(v) {
  return fixed(v, v < 9.995 ? 2 : v < 99.95 ? 1 : 0);
}

export function bytes(n) {
  if (n === undefined || n === null) return "–";
  if (n < 1024) return `${Math.round(n)} B`;
  let v = n / 1024;
  let u = 0;
  for (; v >= 999.5 && u < 5; u++) v /= 1024;
  return `${digits(v)} ${UNITS[u]}`;
}

// Short enough for an axis.
export function tickBytes(n) {
  if (n < 1024) return `${Math.round(n)} B`;
  let v = n / 1024;
  let u = 0;
  for (; v >= 999.5 && u < 5; u++) v /= 1024;
  return `${Number(v.toPrecision(3))} ${UNITS[u]}`;
}

function figures(v) {
  return String(Number(v.toPrecision(3)));
}

export function seconds(s) {
  if (s === undefined || s === null) return "–";
  if (s === 0) return "0 s";
  if (s < 1e-3) return `${figures(s * 1e6)} µs`;
  if (s < 1) return `${figures(s * 1e3)} ms`;
  if (s < 120) return `${figures(s)} s`;
  if (s < 7200) return `${(s / 60).toFixed(0)} min`;
  if (s < 172800) return `${(s / 3600).toFixed(0)} h`;
  return `${(s / 86400).toFixed(0)} days`;
}

export function percent(part, whole) {
  if (!whole) return "–";
  const p = (100 * part) / whole;
  return part && p < 0.05 ? "< 0.1 %" : `${fixed(p, 1)} %`;
}

export function ratio(a, b) {
  return b ? `${digits(a / b)}×` : "–";
}

export function count(n) {
  return n === undefined ? "–" : n.toLocaleString("en-US").replace(/,/g, "\u202f");
}

export function plural(n, one, many = one + "s") {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function time(ns) {
  if (!ns) return "–";
  const d = new Date(ns / 1e6);
  const two = (v) => String(v).padStart(2, "0");
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export function span(row, one = "epoch", many = "epochs") {
  return row.first === row.last ? `${one} ${row.first}` : `${many} ${row.first}–${row.last}`;
}

// The labels of the epochs in a row; "" if there are none.
export function labels(row) {
  const more = (row.labels_total ?? 0) - (row.labels?.length ?? 0);
  return `${(row.labels ?? []).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

// The epochs of a row, with their labels.
export function named(row) {
  return `${span(row)}${row.labels ? ` (${labels(row)})` : ""}`;
}

// The name of a region, or of a variable without its type; two variables may differ in the type alone.
export function changed(c) {
  if (c.name === null) return "all others";
  return c.variable ? c.name.replace(/_(?:[IUFC]\d+(?:[LB]E)?|Bytes\d+)_(?:Scalar|Array\d+D)$/, "") : c.name;
}

export function shape(dims) {
  return dims.length ? dims.join(" × ") : "–";
}
