// The formatting of numbers, durations and times.

/** Groups the digits of a whole number by thousands. */
export const grouped = (digits) => String(digits).replace(/\B(?=(\d{3})+$)/g, "\u202f");
/** Formats a count with its noun: "1 unit", "2 units". */
export const plural = (count, one, many = `${one}s`) => `${grouped(count)} ${String(count) === "1" ? one : many}`;
/** Formats a share of a whole. */
export const percent = (part, whole) => {
  if (!whole) return "–";
  const share = (100 * part) / whole;
  // An incomplete job never shows 100 %.
  if (part < whole && share > 99.9) return "99.9 %";
  if (part > 0 && share < 0.1) return "< 0.1 %";
  return `${share === 100 ? 100 : share.toFixed(1)} %`;
};
/** Formats a number to three significant digits. */
export const rounded = (value) => {
  if (!value) return "0";
  if (value >= 100_000) return value.toExponential(2).replace("e+", "e");
  if (value >= 100) return grouped(Math.round(value));
  return String(Number(value.toPrecision(value >= 1 ? 3 : 2)));
};
/** Formats a duration in its two largest units. */
export const duration = (seconds) => {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const at = units.findIndex(([, size]) => seconds >= size);
  const [word, size] = units[at];
  const first = Math.floor(seconds / size);
  const [small, smaller] = units[at + 1];
  const second = Math.floor((seconds - first * size) / smaller);
  return `${grouped(first)} ${word} ${String(second).padStart(2, "0")} ${small}`;
};
/** Formats a duration that is only an estimate. */
export const roughly = (seconds) => {
  const units = [["d", 86_400], ["h", 3600], ["min", 60]];
  const unit = units.find(([, size]) => seconds >= 3 * size);
  return unit ? `${grouped(Math.round(seconds / unit[1]))} ${unit[0]}` : duration(seconds);
};
/** Formats the moments after given times, in ms, from `begin`: with seconds within an hour, with minutes within a week, otherwise the dates. */
export const moments = (begin, durations) => {
  const HOUR = 3_600_000;
  const known = durations.filter((ms) => ms !== undefined);
  const [shortest, longest] = [Math.min(...known), Math.max(...known)];
  // Digits that the estimate does not have would only mislead.
  const fine = longest < HOUR ? { second: "2-digit" } : {};
  const day = new Date(begin).toDateString() === new Date(begin + longest).toDateString() ? {}
    : { weekday: "short", day: "numeric", month: "short", ...(longest > 180 * 24 * HOUR ? { year: "numeric" } : {}) };
  const time = shortest < 7 * 24 * HOUR ? { hour: "2-digit", minute: "2-digit", ...fine } : {};
  const parts = { ...day, ...time };
  return durations.map((ms) => {
    if (ms === undefined) return undefined;
    const moment = new Date(begin + ms);
    return Number.isNaN(moment.getTime()) ? "a date beyond all calendars" : moment.toLocaleString("en-GB", parts);
  });
};
/** Formats a time, in ms since 1970, as local date and time. */
export const clock = (ms) => new Date(ms).toLocaleString("en-GB", {
  month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
});
