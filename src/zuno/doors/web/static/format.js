// Numbers and times as people read them. Amounts come as decimal strings and are rounded for the eye alone.

const DASH = "–";

export function isKnown(value) {
  return value !== null && value !== undefined && value !== "" && Number.isFinite(Number(value));
}

/** A number with as many digits as its size deserves: 22,561.83 · 0.4536 · 0.00001234. */
export function number(value, digits) {
  if (!isKnown(value)) return DASH;
  const n = Number(value);
  const size = Math.abs(n);
  const places = digits ?? (size >= 1000 ? 2 : size >= 1 ? 2 : size >= 0.01 ? 4 : size === 0 ? 0 : 8);
  return n.toLocaleString("en-US", { minimumFractionDigits: digits ?? (size >= 1 ? 2 : 0), maximumFractionDigits: places });
}

export function money(value, unit = "USD", digits = 2) {
  if (!isKnown(value)) return DASH;
  const n = Number(value);
  const sign = n < 0 ? "−" : "";
  const text = number(Math.abs(n), Math.abs(n) >= 100000 ? 0 : digits);
  return unit === "USD" ? `${sign}$${text}` : `${sign}${text} ${unit}`;
}

/** With its sign always: +353.38, −7.53. */
export function signed(value, digits) {
  if (!isKnown(value)) return DASH;
  const n = Number(value);
  return `${n > 0 ? "+" : n < 0 ? "−" : ""}${number(Math.abs(n), digits)}`;
}

/** `max_open_trades` as a person writes it. */
export function words(name) {
  return String(name ?? "").replaceAll("_", " ");
}

/** A share of one as percent: 0.225 → 22.5 %. */
export function percent(share, digits = 1) {
  if (!isKnown(share)) return DASH;
  const n = Number(share) * 100;
  return `${n < 0 ? "−" : ""}${Math.abs(n).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} %`;
}

export function signedPercent(share, digits = 1) {
  if (!isKnown(share)) return DASH;
  return `${Number(share) > 0 ? "+" : ""}${percent(share, digits)}`;
}

/** 1,234,567 → 1.23 M, for axes. */
export function compact(value) {
  if (!isKnown(value)) return DASH;
  const n = Number(value);
  const size = Math.abs(n);
  if (size >= 1e15) return n.toExponential(1);
  for (const [scale, letter] of [[1e12, " T"], [1e9, " B"], [1e6, " M"], [1e4, " k"]])
    if (size >= scale) return `${trim(n / (letter === " k" ? 1e3 : scale))}${letter}`;
  return trim(n);
}

function trim(n) {
  return n.toLocaleString("en-US", { maximumSignificantDigits: Math.abs(n) >= 1000 ? 5 : 4 });
}

/** Class of a signed number: colour never speaks alone, the sign is there too. */
export function tone(value) {
  if (!isKnown(value) || Number(value) === 0) return "";
  return Number(value) > 0 ? "up" : "down";
}

/** Seconds or milliseconds since 1970, or an ISO time, as a Date. */
export function toDate(moment) {
  if (moment === null || moment === undefined || moment === "") return null;
  if (typeof moment === "number" || /^\d+$/.test(moment)) {
    const n = Number(moment);
    return new Date(n < 1e11 ? n * 1000 : n);
  }
  const date = new Date(moment);
  return Number.isNaN(date.getTime()) ? null : date;
}

export function time(moment) {
  const date = toDate(moment);
  return date ? `${date.toISOString().slice(0, 16).replace("T", " ")} UTC` : DASH;
}

export function shortTime(moment) {
  const date = toDate(moment);
  return date ? date.toISOString().slice(5, 16).replace("T", " ") : DASH;
}

export function clock(moment) {
  const date = toDate(moment);
  return date ? date.toISOString().slice(11, 19) : DASH;
}

/** Seconds as a span: 45 s, 12 m, 5 h, 3 d. */
export function span(seconds) {
  if (!isKnown(seconds)) return DASH;
  const n = Math.max(0, Number(seconds));
  if (n < 90) return `${Math.round(n)} s`;
  if (n < 5400) return `${Math.round(n / 60)} m`;
  if (n < 172800) return `${Math.round(n / 3600)} h`;
  return `${Math.round(n / 86400)} d`;
}

export function age(moment, now = Date.now()) {
  const date = toDate(moment);
  return date ? `${span((now - date.getTime()) / 1000)} ago` : DASH;
}

export function shorten(text, head = 6, tail = 4) {
  const value = String(text ?? "");
  return value.length <= head + tail + 1 ? value : `${value.slice(0, head)}…${value.slice(-tail)}`;
}
