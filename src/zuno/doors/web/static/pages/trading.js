// The trading desk: the account, the market with its trades, the books, and the switches that stop it.
import { candleChart, dailyChart, drawdownChart, equityChart, styled } from "../charts_trading.js";
import { accountChoice, describeAccount, openAccount } from "../accounts.js";
import { acts, figures, headline, notes, opening, urgent, wordPairs } from "../documents.js";
import { h, replace } from "../dom.js";
import { isKnown, money, number, percent, shortTime, shorten, signed, span, time, tone, words } from "../format.js";
import { sleevesPart } from "./sleeve_parts.js";
import { tradeTable } from "./trade_table.js";
import { deskPanel, drawOrders, drawPositions, levelsForm } from "./trade_parts.js";
import { askForWord, badge, button, collapse, facts, fillWith, loading, modeBadge, panel, problemNotice, sourceLine, stat, table } from "../widgets.js";

const INTERVALS = ["1h", "4h", "1d"];
const LAYERS = [["heat", "Heat map"], ["levels", "Levels"], ["averages", "Averages"], ["profile", "Profile"], ["closed", "Closed trades"]];
const MOST_MARKETS = 60;
const LIFTED = new Set(["kill_switch"]);
const REFRESH = 20000;
const REFRESH_CHART = 60000;

export async function show(root, params, pageApi) {
  await styled;
  const api = await openAccount(pageApi);
  const { markets } = api.session();
  const state = {
    symbol: markets.includes(params.symbol) ? params.symbol : markets[0],
    interval: INTERVALS.includes(params.interval) ? params.interval : "4h",
    layers: { heat: true, levels: true, averages: true, profile: false, closed: true },
    positions: [],
    closed: [],
    account: null,
  };
  const glance = h("div", { class: "stack" }, loading());
  const chart = h("div", null, loading());
  const chartActions = h("span", { class: "controls" });
  const chartSource = h("p", { class: "source" });
  const positions = h("div", { class: "stack fill" }, loading());
  const orders = h("div", { class: "slot" });
  const risk = h("div", { class: "stack fill" });
  const results = h("div", { class: "grid" }, loading());
  const controls = h("span", { class: "controls" });
  const head = h("span", { class: "row wrap" }, h("h1", null, "Trading"));
  const next = h("div", null);
  const refresh = collapse(() => Promise.all([loadAccount(), loadPositions(), loadOrders(), loadResults()]).then(() => { redrawChart(); return sleeves.load(state.account); }));
  const levels = levelsForm(api, refresh);
  const desk = deskPanel(api, refresh);
  const receipt = h("div", { class: "slot", "aria-live": "polite" }); // of the kill switch: what is being closed, then what was
  const sleeves = sleevesPart(api);
  replace(root,
    h("div", { class: "page-head" }, head, accountChoice(api), h("div", { class: "end" }, runForm(api, pageApi), controls)),
    receipt,
    glance,
    next,
    panel("Market", { actions: chartActions }, chart, chartSource),
    h("div", { class: "grid" }, h("div", { class: "three-quarters stack" }, positions, levels.place, orders), h("div", { class: "quarter stack" }, risk, desk.place)),
    results,
    sleeves.place,
    books(api));

  const loadAccount = () => fillWith(glance, () => {
    state.account = null;
    return api.read("/trading/account");
  }, ({ view, document: words }) => {
    state.account = view;
    const focused = controls.contains(document.activeElement);
    replace(head, headline(words, { title: "Trading" }));
    replace(controls, switches(view, api, refresh, receipt));
    if (focused) controls.firstChild.focus();
    replace(risk, drawRisk(view, api));
    desk.draw(view);
    replace(next, acts(words, { "trade positions": positions, "trade profit": results, "trade balance": root.querySelector("#book") }));
    return drawAccount(view, words, api);
  }, { keep: true });
  const loadPositions = () => fillWith(positions, async () => {
    const view = await api.get("/trading/positions");
    state.positions = await Promise.all(view.positions.map((position) => addLiquidation(position, api)));
    return view;
  }, (view) => {
    levels.follow(view.positions);
    return drawPositions(view, api, { refresh, levels });
  }, { keep: true });
  const loadOrders = () => fillWith(orders, () => api.get("/trading/orders"), (view) => drawOrders(view, api, refresh), { keep: true });
  const loadChart = async () => {
    await fillWith(chart, async () => {
      const { symbol, interval } = state;
      const view = await api.get("/trading/chart", { symbol, interval });
      if (symbol !== state.symbol || interval !== state.interval) throw new DOMException("another chart was chosen", "AbortError");
      return view;
    }, (view) => {
      state.chart = view;
      chartSource.replaceChildren(...sourceLine({ href: api.address(`/trading/chart?symbol=${encodeURIComponent(state.symbol)}&interval=${state.interval}`), at: null,
        text: `${view.origin} · ${view.source} · as of ${time(view.asOf)}${view.ageSeconds === null ? "" : `, ${span(view.ageSeconds)} old`}${view.stale ? ", STALE" : ""}${view.price.heat?.note ? ` · heat map ${view.price.heat.origin}: ${view.price.heat.note}` : ""}` }).childNodes);
      return [key(state.layers, view), drawCandles()];
    }, { keep: true });
  };
  const drawCandles = () => candleChart(state.chart, { show: state.layers,
    trades: pickTrades(state.positions).map((position) => ({ ...position, label: `open ${position.side}` })),
    closed: state.layers.closed ? pickTrades(state.closed).filter((trade) => Date.parse(trade.closed) > state.chart.first).map((trade) => ({ ...trade, label: `closed ${trade.side}` })) : [] });
  /** Of the symbol that is shown, in the currency of its candles. */
  const pickTrades = (trades) => trades.filter((trade) => trade.symbol === state.symbol && trade.currency === "USD");
  const redrawChart = () => { if (state.chart) replace(chart, key(state.layers, state.chart), drawCandles()); };
  const drawChartActions = () => replace(chartActions,
    choices("Symbol", markets, state.symbol, (symbol) => { state.symbol = symbol; drawChartActions(); loadChart(); }),
    choices("Bars", INTERVALS, state.interval, (interval) => { state.interval = interval; drawChartActions(); loadChart(); }),
    h("span", { class: "choices", role: "group", "aria-label": "Layers" }, LAYERS.map(([name, text]) =>
      h("button", { type: "button", "aria-pressed": String(state.layers[name]), onclick: (event) => {
        state.layers[name] = !state.layers[name];
        event.currentTarget.setAttribute("aria-pressed", String(state.layers[name]));
        redrawChart();
      } }, text))));
  const loadResults = () => fillWith(results, async () => {
    const [equity, daily, closed] = await Promise.all([api.get("/trading/equity"), api.get("/trading/daily"), api.get("/trading/trades", { limit: 200 })]);
    state.closed = closed.items;
    return { equity, daily, closed: closed.items };
  }, (found) => drawResults(found, api), { keep: true });

  drawChartActions();
  await Promise.all([loadAccount(), loadPositions(), loadOrders(), loadChart(), loadResults()]);
  redrawChart();
  sleeves.load(state.account);
  api.every(REFRESH, refresh);
  api.every(REFRESH_CHART, loadChart);
  api.on("run_ended", refresh);
  api.onReturn(() => Promise.all([refresh(), loadChart()]));
  api.on("entry", (entry) => { if (entry.kind.startsWith("trade")) refresh(); });
}

function choices(label, values, current, choose) {
  return h("span", { class: "choices", role: "group", "aria-label": label }, values.map((value) =>
    h("button", { type: "button", "aria-pressed": String(value === current), onclick: () => choose(value) }, value)));
}

function key(layers, view) {
  return h("ul", { class: "chart-key", "aria-label": "Key" },
    layers.heat && view.price.heat?.columns ? [h("li", { class: "heat-key", title: view.price.heat.note }, "liquidation pools (modelled)"), h("li", { class: "forced-key" }, "forced out (observed)")] : null,
    layers.averages ? [h("li", { class: "ema" }, "EMA200"), h("li", { class: "vwap" }, "day VWAP")] : null,
    layers.levels ? h("li", { class: "pivot" }, "levels") : null,
    layers.closed ? h("li", { class: "closed-key" }, "closed trades, in to out") : null);
}

// -- the account

function drawAccount(view, words, api) {
  const first = words?.sections[0];
  return [
    opening(words),
    urgent(words),
    figures({ facts: words?.sections.flatMap((section) => section.facts) }, { href: api.address("/trading/account"), at: view.asOf, text: [view.account, ...(view.marks ?? []).map((mark) => `${mark.symbol} ${mark.source}, ${span(mark.ageSeconds)} old`)].join(" · ") },
      stat("Delta", money(view.risk.deltaUsd), { note: "trading and LP together" })),
    facts(wordPairs(first)),
    notes(words),
  ];
}

const coins = (quantity) => signed(quantity, Math.abs(quantity) < 1 ? 5 : 2);

/** Positions, pending entries and LP inventory of each symbol taken together. */
function drawRisk(view, api) {
  return panel("Risk book", { source: { href: api.address("/trading/account"), at: null, text: `${view.origin} · as of ${time(view.asOf)}` } },
    table("Exposure by symbol", [
      { name: "Symbol", cell: (row) => row.symbol },
      { name: "Trading", number: true, cell: (row) => [coins(row.positions), row.pending ? h("span", { class: "sub" }, `${coins(row.pending)} pending`) : null] },
      { name: "LP", number: true, cell: (row) => coins(row.lp) },
      { name: "Delta", number: true, cell: (row) => [money(row.deltaUsd), h("span", { class: "sub" }, coins(row.delta))] },
    ], view.risk.rows, { empty: view.mode === "paper" || view.exchanges?.every((answer) => answer.unknown === null && !answer.unbooked.length) ? "Nothing is held." : "The log holds nothing." }));
}

/** Pause and kill: what changes state asks as the terminal does. */
function switches(view, api, refresh, receipt) {
  const paused = view.protections.some((lock) => lock.protection === "paused");
  const act = async (path, title, action, danger, more) => {
    if (await postWithWord(api, path, { view, title, action, danger, ...more })) await refresh();
  };
  const pause = () => act("/trading/pause");
  const resume = () => act("/trading/resume", "Open trades again", "Resume");
  const kill = () => act("/trading/kill", "Kill switch", "Close everything", true, { receipt });
  const lifted = view.protections.find((lock) => LIFTED.has(lock.protection));
  const unlock = async () => {
    if (await postWithWord(api, "/trading/unlock", { view, title: "Unlock the desk", action: "Unlock", body: { protection: lifted.protection } })) await refresh();
  };
  return [paused ? button("Resume", resume) : button("Pause", pause, { title: "No new trades; open ones keep their stops" }), lifted ? button("Unlock", unlock) : null, button("Kill switch", kill, { kind: "danger" })];
}

/** Post, and where the server asks for a word, ask for it in its own sentence. The answer is whether it was done. */
async function postWithWord(api, path, { view, title, action, danger, receipt, body = {} } = {}) {
  const send = async (word) => {
    if (receipt) replace(receipt, word ? loading(`Closing every position and cancelling every order of ${describeAccount(api.account)} …`) : null);
    const answer = await api.post(path, word ? { ...body, word } : body);
    if (receipt) replace(receipt, drawReceipt(answer));
    api.toast(answer?.said?.join("; ") || "Done", "good");
    return true;
  };
  try {
    return await send();
  } catch (error) {
    const word = error.document?.word;
    if (!word) {
      api.toast(error.message, "bad");
      return false;
    }
    if (!(await askForWord({ title, word, action, danger, content: [facts([["Account", describeAccount(api.account)], ["Mode", modeBadge(view)]]), h("p", null, error.message)] }))) return false;
    try {
      return await send(word);
    } catch (refused) {
      if (receipt) replace(receipt, problemNotice(refused));
      api.toast(refused.message, "bad");
      return true;
    }
  }
}

function drawReceipt({ said, positions, orders, asOf }) {
  const left = positions.length || orders.length ? `Still there: ${positions.length} positions, ${orders.length} orders.` : "No position and no order is left.";
  return h("div", { class: `notice ${positions.length ? "warn" : "good"}`, role: "status" }, h("strong", null, `Kill switch, ${time(asOf)}`), h("ul", { class: "bullets" }, said.map((text) => h("li", null, text))), h("span", null, left));
}

function runForm(api, pageApi) {
  const symbol = h("select", { "aria-label": "Symbol of the cycle" }, pageApi.session().markets.map((name) => h("option", null, name)));
  const exchange = api.account.mode !== "paper"; // a cycle that acts at an exchange is run at a terminal
  const execute = h("input", { type: "checkbox", id: "execute", disabled: exchange });
  const go = button("Run a cycle", null, { kind: "primary" });
  go.addEventListener("click", async () => {
    go.disabled = true;
    try {
      const begun = await pageApi.post("/trading/analyze", { symbol: symbol.value, execute: execute.checked, account: exchange ? null : api.account.name });
      location.hash = `#/runs/${begun.id}`;
    } catch (error) {
      api.toast(error.message, "bad");
      go.disabled = false;
    }
  });
  return h("span", { class: "controls" }, symbol, h("label", { class: "field", for: "execute", title: exchange ? "Orders at an exchange are placed by zuno trade run --execute, at a terminal" : "Place the orders of its ruling on the paper account" }, execute, "execute"), go);
}

// -- positions

/** The liquidation price is on the trade card of the run that opened it. */
async function addLiquidation(position, api) {
  if (position.liquidation !== undefined || !position.decision || position.leverage <= 1) return position;
  try {
    const run = await api.get(`/trading/runs/${encodeURIComponent(position.decision)}`);
    return { ...position, liquidation: run.run?.ruling?.card?.liquidation ?? null };
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return position;
  }
}

// -- results

function drawResults({ equity, daily, closed }, api) {
  const whole = equity.whole;
  const source = (path, at) => ({ href: api.address(path), at: null, text: `${equity.origin} · as of ${time(at)}` });
  const days = { ...daily, groups: daily.groups.slice(-60) };
  return [
    panel("Equity", { wide: "two-thirds", source: source("/trading/equity", equity.asOf) },
      equity.points.length > 1 ? [equityChart(equity, closed), h("ul", { class: "chart-key" }, equity.lines.map((line) => h("li", { class: line.name },
        `${line.name} ${signed(line.returnPct, 2)} %, drawdown ${number(line.maxDrawdownPct, 1)} %, Sharpe ${isKnown(line.sharpe) ? signed(line.sharpe, 2) : "–"}`))), h("h3", null, "Drawdown"), drawdownChart(equity)]
        : h("p", { class: "empty" }, "No trade yet. Equity and drawdown are drawn from the first one on; “Run a cycle” with “execute” opens one on paper.")),
    panel("Results", { wide: "third", source: source("/trading/daily?by=day", daily.asOf) },
      days.groups.length ? [h("h3", null, "Daily PnL, net"), dailyChart(days)] : null,
      facts([
        ["Trades", String(whole.trades)],
        ["Won", whole.trades ? `${whole.wins} (${percent(whole.winRate, 0)})` : "–"],
        ["Profit factor", number(whole.profitFactor, 2)],
        ["Expectancy", isKnown(whole.expectancyUsd) ? `${money(whole.expectancyUsd)} a trade` : "–", tone(whole.expectancyUsd)],
        ["in R, each trade alike", isKnown(whole.expectancyR) ? `${signed(whole.expectancyR, 3)} R of ${whole.rTrades} with a stop` : "–"],
        ["Return", isKnown(equity.returnPct) ? `${signed(equity.returnPct, 2)} %` : "–", tone(equity.returnPct)],
        ["Max drawdown", isKnown(equity.maxDrawdownUsd) ? `${money(equity.maxDrawdownUsd)} (${number(equity.maxDrawdownPct, 2)} %)` : "–"],
        ["Fees", money(whole.fees)],
        ["Funding", money(whole.funding)],
        ["Model cost", money(whole.modelCost)],
      ])),
  ];
}

// -- the books, each read when it is looked at

function books(api) {
  const place = h("div", { class: "books stack", role: "tabpanel", id: "book", tabindex: "0" });
  const list = h("div", { class: "tablist", role: "tablist", "aria-label": "Books" });
  const tabs = [
    ["Trades", () => tradeTable(api)],
    ["Orders", () => paged(api, "/trading/orders", { everything: true }, "Orders", ORDER_COLUMNS)],
    ["Fills", () => paged(api, "/trading/fills", {}, "Fills", FILL_COLUMNS)],
    ["Ledger", () => ledger(api)],
    ["Runs", () => paged(api, "/trading/runs", { limit: 25 }, "Runs", RUN_COLUMNS, (row) => `#/runs/${encodeURIComponent(row.runId)}`)],
    ["Markets", () => listMarkets(api)],
    ["Logs", () => logs(api)],
  ];
  const choose = (chosen) => {
    [...list.children].forEach((tab, index) => {
      tab.setAttribute("aria-selected", String(index === chosen));
      tab.tabIndex = index === chosen ? 0 : -1;
    });
    place.setAttribute("aria-label", tabs[chosen][0]);
    replace(place, tabs[chosen][1]());
  };
  tabs.forEach(([name], index) => list.append(h("button", { type: "button", role: "tab", "aria-controls": "book", onclick: () => choose(index), onkeydown: (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (index + step + tabs.length) % tabs.length;
    choose(next);
    list.children[next].focus();
  } }, name)));
  choose(0);
  return h("section", { class: "panel", "aria-label": "Books" }, h("div", { class: "panel-head" }, list), place);
}

/** A list that grows: the next page is asked for by its cursor. */
function paged(api, path, query, name, columns, href) {
  const place = h("div", { class: "stack" }, loading());
  const rows = [];
  const more = async (cursor) => {
    try {
      const page = await api.get(path, { limit: 50, ...query, cursor });
      rows.push(...page.items);
      replace(place, table(name, columns, rows, { empty: `No ${name.toLowerCase()} yet.`, href }),
        page.nextCursor ? button("More", () => more(page.nextCursor)) : null,
        sourceLine({ href: api.address(path), at: null, text: page.head?.asOf ? `${page.head.origin} · as of ${time(page.head.asOf)}` : "the journal of this home" }));
    } catch (error) {
      if (error.name !== "AbortError") replace(place, problemNotice(error, () => more(cursor)));
    }
  };
  more();
  return place;
}

const ORDER_COLUMNS = [
  { name: "Order", cell: (row) => [`${row.purpose}, ${row.side.toLowerCase()}`, h("span", { class: "sub mono change", title: row.id }, shorten(row.id, 6, 4))] },
  { name: "Symbol", cell: (row) => [row.symbol, h("span", { class: "sub" }, row.exchange)] },
  { name: "Type", hide: true, cell: (row) => `${row.type} ${row.timeInForce}` },
  { name: "Size", number: true, hide: true, cell: (row) => [number(row.quantity, 6), h("span", { class: "sub" }, `filled ${number(row.filled, 6)}`)] },
  { name: "Price", number: true, cell: (row) => number(row.price) },
  { name: "Status", cell: (row) => badge(row.status, { FILLED: "good", OPEN: "info", REJECTED: "bad" }[String(row.status).toUpperCase()] ?? "") },
  { name: "Planned", hide: true, cell: (row) => shortTime(row.planned) },
  { name: "Reason", hide: true, cell: (row) => row.reason || "–" },
];

const FILL_COLUMNS = [
  { name: "Time", cell: (row) => h("span", { class: "change" }, shortTime(row.at)) },
  { name: "Fill", cell: (row) => [`${row.side.toLowerCase()} ${row.symbol}`, h("span", { class: "sub" }, row.exchange)] },
  { name: "Size", number: true, cell: (row) => number(row.quantity, 6) },
  { name: "Price", number: true, cell: (row) => number(row.price) },
  { name: "Fee", number: true, hide: true, cell: (row) => money(row.fee, row.currency, 4) },
  { name: "", hide: true, cell: (row) => [badge(row.maker ? "maker" : "taker"), row.liquidation ? badge("liquidation", "bad") : null] },
];

const MARKET_COLUMNS = [
  { name: "Market", cell: (row) => [row.name, row.trading ? null : h("span", { class: "sub down" }, "not traded")] },
  { name: "Tick", number: true, cell: (row) => number(row.tick) },
  { name: "Lot", number: true, cell: (row) => number(row.lot) },
  { name: "Least order", number: true, cell: (row) => `${number(row.minNotional)} ${row.quote}` },
  { name: "Maker", number: true, hide: true, cell: (row) => percent(row.maker / 100, 3) },
  { name: "Taker", number: true, hide: true, cell: (row) => percent(row.taker / 100, 3) },
  { name: "Funding", number: true, hide: true, cell: (row) => (row.fundingHours ? `${row.fundingHours} h` : "–") },
];

const LIST_COLUMNS = [
  { name: "Venue", cell: (row) => row.venue.toLowerCase() },
  { name: "List", cell: (row) => row.source },
  { name: "Age", number: true, cell: (row) => h("span", { class: row.stale ? "down" : null }, isKnown(row.ageSeconds) ? span(row.ageSeconds) : "–") },
  { name: "Markets", number: true, cell: (row) => number(row.markets) },
  { name: "Limits", hide: true, cell: (row) => row.limits.join("; ") },
];

const RUN_COLUMNS = [
  { name: "Run", cell: (row) => h("span", { class: "change" }, shorten(row.runId, 8, 4)) },
  { name: "Symbol", cell: (row) => [row.symbol, h("span", { class: "sub" }, row.mode), h("span", { class: "sub phone change" }, shortTime(row.asOf))] },
  { name: "As of", hide: true, cell: (row) => [shortTime(row.asOf), row.synthetic ? h("span", { class: "sub" }, "SYNTHETIC") : null] },
  { name: "Regime", hide: true, cell: (row) => row.regime ?? "–" },
  { name: "Judge", cell: (row) => callBadge(row.decision) },
  { name: "Ruling", cell: (row) => row.ruling ? [callBadge(row.ruling), row.veto ? h("span", { class: "sub" }, `by ${words(row.veto)}`) : null] : badge(row.state, "warn") },
  { name: "Margin", number: true, hide: true, cell: (row) => row.allocationPct ? `${number(row.allocationPct, 1)} %` : "–" },
];

export function callBadge(call) {
  return call ? badge(call, { LONG: "good", SHORT: "bad", CANCEL_AND_CLOSE: "warn" }[call] ?? "") : "–";
}

function ledger(api) {
  const balances = h("div", { class: "stack" });
  fillWith(balances, () => api.get("/trading/ledger", { limit: 1 }), (page) => table("Balances of the ledger", [
    { name: "Exchange", cell: (row) => row.exchange },
    { name: "Assets", number: true, cell: (row) => `${row.assets} ${row.currency}` },
    { name: "Debits", number: true, hide: true, cell: (row) => row.debits },
    { name: "Credits", number: true, hide: true, cell: (row) => row.credits },
    { name: "", cell: (row) => row.balanced ? badge("balanced", "good") : badge("NOT BALANCED", "bad") },
  ], page.head.ledgers));
  return [balances, paged(api, "/trading/ledger", {}, "Postings", [
    { name: "No.", cell: (row) => String(row.number) },
    { name: "Time", hide: true, cell: (row) => shortTime(row.at) },
    { name: "What", cell: (row) => row.what },
    { name: "Lines", cell: (row) => row.lines.map((line) => h("span", { class: "sub" }, `${line.account} ${line.amount} ${row.currency}`)) },
  ])];
}

/** What venues list, by a coin or a part of a name; at first the desk's first coin. */
function listMarkets(api) {
  const place = h("div", { class: "stack" }, loading());
  const load = (search) => fillWith(place, () => api.read("/trading/markets", { search }), ({ view, document: words }) => [
    urgent(words),
    table("Markets", MARKET_COLUMNS, view.markets.slice(0, MOST_MARKETS)),
    table("Lists", LIST_COLUMNS, view.lists),
    notes(words),
    sourceLine({ href: api.address(`/trading/markets?search=${encodeURIComponent(search)}`), at: null, text: words.headline.text }),
  ]);
  const field = h("input", { type: "search", "aria-label": "Search markets", placeholder: "SOL", maxlength: "40", onchange: () => load(field.value.trim()) });
  load(api.session().markets[0].replace(/USDT$/, ""));
  return [h("span", { class: "controls" }, field), place];
}

function logs(api) {
  const place = h("div", { class: "stack" }, loading());
  const load = (level) => fillWith(place, () => api.get("/logs", { lines: 200, level }), (view) => [
    choices("Level", ["debug", "info", "warning", "error"], level, load),
    view.lines.length ? h("div", { class: "log", tabindex: "0", role: "log", "aria-label": "Log" }, [...view.lines].reverse().map((line) =>
      h("div", { class: "log-line" }, h("span", { class: "soft", title: line.where }, line.at.slice(0, 19)), h("span", { class: line.level === "error" || line.level === "critical" ? "down" : line.level === "warning" ? "warn" : "soft" }, line.level), h("span", null, line.text))))
      : h("p", { class: "empty" }, `Nothing of level ${level} was logged.`),
    sourceLine({ href: api.address("/logs"), at: null, text: view.file }),
  ]);
  load("info");
  return place;
}
