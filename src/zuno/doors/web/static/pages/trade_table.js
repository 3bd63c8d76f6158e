// Every trade of an account in one table: open and closed, by sleeve, sorted, filtered, saved, and each on its candles.
import { candleChart } from "../charts_trading.js";
import { h, replace } from "../dom.js";
import { isKnown, money, number, shortTime, shorten, signed, span, time, toDate, tone } from "../format.js";
import { withTools } from "../list_tools.js";
import { badge, button, collapse, fillWith, loading, notice, panel, problemNotice, sourceLine, table } from "../widgets.js";

const STATES = ["all", "open", "closed"];
const PAGE = 200;
const MOST_PAGES = 5;

export function tradeTable(api) {
  const drawn = h("div", { class: "stack" });
  const place = h("div", { class: "stack" }, loading());
  const chosen = { state: "all", sleeve: "all" };
  const found = { open: [], closed: [], cursor: null, head: null };

  /** The newest thousand closed trades, or a thousand more. */
  const load = async () => {
    try {
      found.open = (await api.get("/trading/positions")).positions;
      for (let count = 0; count < MOST_PAGES; count += 1) {
        const page = await api.get("/trading/trades", { limit: PAGE, cursor: found.cursor });
        found.closed.push(...page.items);
        found.head = page.head;
        found.cursor = page.nextCursor;
        if (!found.cursor) break;
      }
      draw();
    } catch (error) {
      if (error.name !== "AbortError") replace(place, problemNotice(error, load));
    }
  };

  const again = collapse(() => {
    Object.assign(found, { closed: [], cursor: null });
    return load();
  });

  const draw = () => {
    const every = [...found.open.map((trade) => ({ state: "open", ...trade })), ...found.closed.map((trade) => ({ state: "closed", ...trade }))];
    const sleeves = [...new Set(every.map((row) => row.sleeve))];
    const rows = every.filter((row) => [row.state, "all"].includes(chosen.state) && [row.sleeve, "all"].includes(chosen.sleeve));
    replace(place,
      h("div", { class: "controls" }, choice("State", STATES, "state"), sleeves.length > 1 ? choice("Sleeve", ["all", ...sleeves], "sleeve") : null),
      withTools(table("Trades", columns(drawn, api), rows, { empty: every.length ? "None of these." : "No trade yet." }), { name: "trades", rows }),
      found.cursor ? button("Older trades", load) : null,
      sourceLine({ href: api.address("/trading/trades"), at: null, text: `${found.head.origin} · as of ${time(found.head.asOf)}${found.cursor ? ` · the newest ${found.closed.length} closed ones` : ""}` }));
  };

  const choice = (label, values, key) => h("span", { class: "choices", role: "group", "aria-label": label }, values.map((value) =>
    h("button", { type: "button", "aria-pressed": String(value === chosen[key]), "data-choice": `${key} ${value}`, onclick: () => {
      chosen[key] = value;
      draw();
      place.querySelector(`[data-choice="${CSS.escape(`${key} ${value}`)}"]`)?.focus();
    } }, value)));

  load();
  api.on("entry", (entry) => { if (entry.kind.startsWith("trade") && place.isConnected) again(); });
  return [drawn, place];
}

const result = (row) => (row.state === "open" ? row.unrealised : row.netPnl);
const moment = (text) => toDate(text)?.getTime() ?? "";

function columns(drawn, api) {
  return [
    { name: "Trade", cell: (row) => [row.state === "open" ? h("span", { class: "change" }, `${row.side.toUpperCase()} ${row.symbol}`)
      : h("button", { type: "button", class: "link-button", title: "Show entry and exit on the candles", onclick: () => showTrade(row, drawn, api) }, h("span", { class: "change" }, `${row.side.toUpperCase()} ${row.symbol}`)),
    h("span", { class: "sub" }, row.exchange, row.sleeve === "debate" ? "" : ` · ${row.sleeve}`, row.exploration ? " · exploration" : "", row.manual ? " · by hand" : "")] },
    { name: "Opened", hide: true, cell: (row) => h("span", { class: "change", title: time(row.opened) }, shortTime(row.opened)), sort: (row) => moment(row.opened) },
    { name: "Closed", cell: (row) => (row.state === "open" ? badge("open", "info") : [h("span", { class: "change", title: time(row.closed) }, shortTime(row.closed)), h("span", { class: "sub" }, span(row.durationHours * 3600))]), sort: (row) => (row.state === "open" ? Number.MAX_SAFE_INTEGER : moment(row.closed)) },
    { name: "Entry", number: true, hide: true, cell: (row) => number(row.entry), sort: (row) => row.entry },
    { name: "Exit", number: true, hide: true, title: "of an open trade its mark", cell: (row) => number(row.exit ?? row.mark), sort: (row) => row.exit ?? row.mark ?? "" },
    { name: "By", cell: (row) => row.exitReason ?? "–" },
    { name: "Fees", number: true, hide: true, cell: (row) => money(row.fees, row.currency), sort: (row) => row.fees },
    { name: "Net PnL", number: true, title: "of an open trade before fees", cell: (row) => h("span", { class: tone(result(row)) }, money(result(row), row.currency), h("span", { class: "sub phone" }, isKnown(row.r) ? `${signed(row.r, 2)} R` : "")), sort: (row) => result(row) ?? "" },
    { name: "R", number: true, hide: true, cell: (row) => (isKnown(row.r) ? h("span", { class: tone(row.r) }, signed(row.r, 2)) : "–"), sort: (row) => row.r ?? "" },
    { name: "Run", hide: true, cell: (row) => row.decision ? h("a", { class: "change", href: `#/runs/${encodeURIComponent(row.decision)}` }, shorten(row.decision, 8, 4)) : "by hand" },
  ];
}

/** Entry and exit on the candles of the trade's own time. */
async function showTrade(trade, place, api) {
  const long = trade.durationHours > 24 * 8;
  const interval = trade.durationHours < 4 ? "1m" : long ? "4h" : "1h";
  const bar = { "1m": 60000, "1h": 3600000, "4h": 14400000 }[interval];
  const margin = Math.max(20 * bar, (Date.parse(trade.closed) - Date.parse(trade.opened)) * 0.6);
  replace(place, loading());
  await fillWith(place, async () => {
    const from = String(Math.round(Date.parse(trade.opened) - margin));
    const to = String(Math.round(Date.parse(trade.closed) + margin));
    const ask = (until) => api.get("/trading/candles", { symbol: trade.symbol, interval, from, to: until });
    try {
      return await ask(to);
    } catch (error) {
      if (error.status !== 400 && error.status !== 422) throw error;
      return ask(null); // the market ends before the margin does
    }
  }, (view) => {
    const dollars = trade.currency === "USD";
    const chart = candleChart(toChart(view, bar), { trades: dollars ? [trade] : [], newest: "last" });
    return panel(`${trade.side.toUpperCase()} ${trade.symbol}: ${money(trade.netPnl, trade.currency)}, ${signed(trade.r, 2)} R, closed by ${trade.exitReason}`,
      { actions: [trade.decision ? h("a", { class: "button", href: `#/runs/${encodeURIComponent(trade.decision)}` }, "Its run") : null, button("Close", () => replace(place))],
        source: { href: api.address(`/trading/candles?symbol=${trade.symbol}&interval=${interval}&from=${Date.parse(trade.opened)}`), at: null, text: `${view.origin} · ${view.source} · as of ${time(view.asOf)}` } },
      dollars ? null : notice("This trade was in won at Upbit; the candles are Binance's, so its prices are not drawn."), chart);
  });
  place.scrollIntoView({ block: "nearest" });
}

/** A list of candles in the shape of a market chart. */
function toChart(view, bar) {
  const bars = view.candles;
  const first = bars.length ? bars[0].at : 0;
  const places = bars.map((candle) => Math.round((candle.at - first) / bar));
  const column = (name) => bars.map((candle) => candle[name]);
  return {
    ...view, first, places, intervalMs: bar, width: places.length ? places.at(-1) + 1 : 0,
    price: bars.length ? { candles: { open: column("open"), high: column("high"), low: column("low"), close: column("close") } } : { why: "No candle of that time is stored." },
    panels: [{ name: "volume", values: column("volume") }],
  };
}
