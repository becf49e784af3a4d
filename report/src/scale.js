// Where an axis has its marks: numbers alone, nothing is drawn here.

// A logarithmic axis has no place for nothing, but an epoch that stored nothing must be seen: it is drawn on a floor below all others, which bears
// the mark 0. Powers of two for bytes, of ten for seconds. null: there is nothing above 0.
export function logScale(values, base) {
  const some = values.filter((v) => v > 0);
  if (!some.length) return null;
  const log = (v) => Math.log(v) / Math.log(base);
  const { least, most } = some.reduce((r, v) => ({ least: Math.min(r.least, v), most: Math.max(r.most, v) }), {
    least: Infinity,
    most: 0,
  });
  const low = Math.floor(log(least) + 1e-9);
  const high = Math.max(Math.ceil(log(most) + 1e-9), low + 1); // above the highest, which would be cut in half else
  const floor = values.some((v) => v === 0) ? low - Math.max(0.5, (high - low) / 6) : low;
  return { base, low, high, floor, nothing: floor < low ? base ** floor : null, range: [base ** floor, base ** high] };
}

// As many powers as there is room for, and the floor.
export function logTicks(scale, room) {
  const { base, low, high, nothing } = scale;
  const step = [1, 2, 5, 10, 20].find((s) => (high - low) / s <= room) ?? 40;
  const ticks = nothing === null ? [] : [nothing];
  for (let e = Math.ceil(low / step) * step; e <= high; e += step) ticks.push(base ** e);
  return ticks;
}

// The rows of a list that are marked, at most `room` of them and evenly apart, each with its mark: at round numbers, also where a row is of several
// epochs or ranks.
export function rowTicks(rows, room) {
  let step = 1;
  for (let k = 0; rows.length / step > room; k++) step = [1, 2, 5][(k + 1) % 3] * 10 ** Math.floor((k + 1) / 3);
  const unit = step * (rows[0]?.n ?? 1);
  const round = (row) => Math.ceil(row.first / unit) * unit;
  const begin = rows.slice(0, step).findIndex((row) => round(row) <= row.last);
  const ticks = new Map();
  for (let i = Math.max(begin, 0); i < rows.length; i += step)
    ticks.set(i, String(round(rows[i]) <= rows[i].last ? round(rows[i]) : rows[i].first));
  return ticks;
}
