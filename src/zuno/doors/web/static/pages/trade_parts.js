// What is done at the trading desk: close a trade, move its levels, cancel an entry, run the desk on paper, revoke its mandate.
import { act, actButton } from "../acts.js";
import { describeAccount } from "../accounts.js";
import { acts } from "../documents.js";
import { h, replace, uniqueId } from "../dom.js";
import { clock, isKnown, money, number, percent, shortTime, shorten, signed, time, tone, words } from "../format.js";
import { askForWord, button, facts, modeBadge, notice, panel, table } from "../widgets.js";

const MODES = ["swing", "position"];
const MOST_LINES = 12;
const PRICE = /^\+?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?$/;

/** What is on its way to the server, by what it is about: a table that is drawn anew meanwhile offers it no second time. */
const underWay = new Set();

/** A button of one row, which keeps the focus when its table is drawn anew. */
function rowAct(api, label, id, run, { kind = "", after, title } = {}) {
  const key = `${label} ${id}`;
  const pressed = actButton(api, label, async () => {
    if (underWay.has(key)) return null;
    underWay.add(key);
    try {
      return await run();
    } finally {
      underWay.delete(key);
    }
  }, { kind: `small ${kind}`, after, title });
  pressed.dataset.act = key;
  pressed.disabled = underWay.has(key);
  if (document.activeElement?.dataset?.act === key) queueMicrotask(() => pressed.focus());
  return pressed;
}

const describeAnswer = (answer) => answer && (answer.said.join("; ") || "Done.");

function shownFacts(api, view, more = []) {
  return [facts([["Account", describeAccount(api.account)], ["Mode", modeBadge(view)], ...more])];
}

// -- positions and orders

/** `levels`: of `levelsForm`. */
export function drawPositions(view, api, { refresh, levels }) {
  const close = (row) => rowAct(api, "Close", row.id, async () => describeAnswer(await act(api, "/trading/close", { which: row.id }, {
    title: `Close ${row.side} ${row.symbol}`, action: "Close at the market", content: shownFacts(api, view, [["Trade", `${row.side} ${number(row.quantity, 6)} ${row.symbol} at ${row.exchange}`], ["Unrealised", money(row.unrealised, row.currency)]]),
  })), { after: refresh, title: `zuno trade close ${row.id}` });
  const closeAll = actButton(api, "Close all", async () => {
    if (view.mode !== "live" && !(await askForWord({ title: "Close every trade", word: "close", action: "Close all", danger: true, content: [...shownFacts(api, view), h("p", null, `${view.positions.length} positions are closed at the market, and entries that wait are cancelled. The desk is not locked.`)] }))) return null;
    return describeAnswer(await act(api, "/trading/close", { which: "all" }, { title: "Close every trade", action: "Close all", content: shownFacts(api, view) }));
  }, { after: refresh, title: "zuno trade close all" });
  return panel("Open positions", { actions: view.positions.length > 1 ? closeAll : null, source: { href: api.address("/trading/positions"), at: null, text: `${view.origin} · ${view.account} · as of ${time(view.asOf)}` } },
    table("Open positions", [
      { name: "Trade", cell: (row) => [h("span", { class: "change" }, `${row.side.toUpperCase()} ${row.symbol}`), h("span", { class: "sub" }, row.exchange, row.sleeve === "debate" ? "" : ` · ${row.sleeve}`, row.exploration ? " · exploration" : "", row.manual ? " · by hand" : ""),
        h("span", { class: "sub phone change" }, `stop ${number(row.stop)}`), h("span", { class: "sub phone change" }, `target ${number(row.target)}`)] },
      { name: "Size", number: true, hide: true, cell: (row) => [number(row.quantity, 6), h("span", { class: "sub" }, `${number(row.leverage, 1)}×`)] },
      { name: "Entry", number: true, cell: (row) => [number(row.entry), h("span", { class: "sub", title: time(row.opened) }, shortTime(row.opened))] },
      { name: "Mark", number: true, hide: true, cell: (row) => number(row.mark) },
      { name: "Stop", number: true, hide: true, cell: (row) => number(row.stop) },
      { name: "Target", number: true, hide: true, cell: (row) => number(row.target) },
      { name: "PnL", number: true, cell: (row) => h("span", { class: tone(row.unrealised) }, money(row.unrealised, row.currency), h("span", { class: "sub" }, `${signed(row.gainPct, 2)}\u00a0% · ${signed(row.r, 2)}\u00a0R`)) },
      { name: "Hold until", hide: true, cell: (row) => h("span", { class: "change" }, shortTime(row.holdUntil)) },
      { name: "Decided by", hide: true, cell: (row) => row.decision ? h("a", { class: "change", href: `#/runs/${encodeURIComponent(row.decision)}` }, shorten(row.decision, 8, 4)) : "by hand" },
      { name: "", cell: (row) => h("span", { class: "row-acts" },
        row.hedge ? null : rowAct(api, "Levels …", row.id, () => { levels.open(row); }, { title: `Move stop or target: zuno trade set ${row.id}` }), close(row)) },
    ], view.positions, { empty: "No position is open." }));
}

/** Entries that wait; stops and targets go with their position, and stand in its row. */
export function drawOrders(view, api, refresh) {
  const waiting = view.items.filter((row) => row.purpose === "entry");
  if (!waiting.length) return null;
  const cancel = (row) => rowAct(api, "Cancel", row.id, async () => describeAnswer(await api.post("/trading/cancel", { order: row.id })), { after: refresh, title: `zuno trade cancel ${row.id}` });
  return panel("Entries that wait", { source: { href: api.address("/trading/orders"), at: null, text: `${view.head.origin} · as of ${time(view.head.asOf)}` } },
    table("Entries that wait", [
      { name: "Order", cell: (row) => [h("span", { class: "change" }, `${words(row.purpose)}, ${row.side.toLowerCase()}`), h("span", { class: "sub mono", title: row.id }, shorten(row.id, 6, 4))] },
      { name: "Symbol", cell: (row) => [row.symbol, h("span", { class: "sub" }, row.exchange)] },
      { name: "Size", number: true, hide: true, cell: (row) => [number(row.quantity, 6), row.filled ? h("span", { class: "sub" }, `filled ${number(row.filled, 6)}`) : null] },
      { name: "Price", number: true, cell: (row) => (isKnown(row.price) ? number(row.price) : "market") },
      { name: "Expires", hide: true, cell: (row) => h("span", { class: "change" }, row.expires ? shortTime(row.expires) : "–") },
      { name: "", cell: (row) => h("span", { class: "row-acts" }, cancel(row)) },
    ], waiting));
}

/** The form that moves a trade's stop and target. It stays open while the table beside it is drawn anew. */
export function levelsForm(api, refresh) {
  const place = h("div", { class: "slot" });
  let trade = null;
  let note = null;

  const read = (field) => field.value.trim().replace(/^\+/, "");
  const shut = () => { trade = null; replace(place); };

  function open(row) {
    trade = row;
    const ids = { stop: uniqueId("stop"), target: uniqueId("target") };
    const fields = Object.fromEntries(["stop", "target"].map((name) => [name, h("input", { type: "text", id: ids[name], inputmode: "decimal", autocomplete: "off", maxlength: "30", value: isKnown(row[name]) ? String(row[name]) : "", oninput: () => describe(), "aria-describedby": `${ids.stop}-note` })]));
    note = h("ul", { class: "bullets", id: `${ids.stop}-note`, "aria-live": "polite" });
    const changed = () => Object.fromEntries(["stop", "target"].filter((name) => read(fields[name]) && Number(read(fields[name]).replaceAll(",", "")) !== trade[name]).map((name) => [name, read(fields[name])]));
    const describe = () => replace(note, ["stop", "target"].map((name) => h("li", null, describeLevel(trade, name, read(fields[name])))));
    const go = actButton(api, "Move", async () => {
      const moved = changed();
      const wrong = Object.entries(moved).find(([, text]) => !isPrice(text));
      if (wrong) {
        fields[wrong[0]].focus();
        throw new Error(`${wrong[1].slice(0, 40)} is no price; write plain digits such as 71500 or 71,500.5.`);
      }
      if (!Object.keys(moved).length) throw new Error("Neither stop nor target was changed.");
      const answer = await act(api, "/trading/levels", { position: trade.id, ...moved }, { title: `Move levels of ${trade.side} ${trade.symbol}`, action: "Move them", content: [facts([["Account", describeAccount(api.account)], ["Trade", `${trade.side} ${number(trade.quantity, 6)} ${trade.symbol}`]])] });
      if (answer && trade?.id === row.id) shut();
      return describeAnswer(answer);
    }, { kind: "primary", after: refresh });
    go.type = "submit"; // Enter presses it
    replace(place, panel(`Levels of ${row.side.toUpperCase()} ${row.symbol}`, {},
      h("form", { class: "stack-tight", onsubmit: (event) => event.preventDefault() },
        h("div", { class: "controls" },
          h("label", { class: "field", for: ids.stop }, "Stop", fields.stop),
          h("label", { class: "field", for: ids.target }, "Target", fields.target),
          go, button("Not now", shut)),
        note,
        h("p", { class: "hint" }, "A tighter level is moved at once; a looser one asks for the word ", h("code", null, "loosen"), ", as in the terminal."))));
    describe();
    place.scrollIntoView({ block: "nearest" });
    fields.stop.focus();
    fields.stop.select();
  }

  /** What is open now: the form follows its trade, and ends with it. */
  function follow(positions) {
    if (!trade) return;
    const now = positions.find((row) => row.id === trade.id);
    if (now) trade = now;
    else { shut(); replace(place, notice("The trade whose levels were being moved is closed.", "warn")); }
  }

  return { place, open, follow };
}

function isPrice(text) {
  return PRICE.test(text) && Number(text.replaceAll(",", "")) > 0;
}

/** How far a level is, and what it means before fees. */
function describeLevel(trade, name, text) {
  if (!text || Number(text.replaceAll(",", "")) === trade[name]) return `${name}: as it is`;
  if (!isPrice(text)) return `${name}: “${text.slice(0, 40)}” is no price`;
  const level = Number(text.replaceAll(",", ""));
  const sign = trade.side.toUpperCase() === "LONG" ? 1 : -1;
  const ahead = name === "stop" ? -sign : sign;
  if (isKnown(trade.mark) && (level - trade.mark) * ahead <= 0) return `${name} ${number(level)}: on the wrong side of the mark, ${number(trade.mark)}; it is refused`;
  const far = isKnown(trade.mark) ? `${percent(Math.abs(level / trade.mark - 1), 2)} from the mark` : "the mark is not known";
  const looser = isKnown(trade[name]) && (level - trade[name]) * ahead > 0;
  return `${name} ${number(level)}: ${far}, ${signed((level - trade.entry) * sign * trade.quantity, 2)} ${trade.currency} from the entry${looser ? "; looser than it is" : ""}`;
}

// -- the desk and its mandate

/** The desk that runs by itself: what is said of it, its start and its end, and what it may do with money. */
export function deskPanel(api, refresh) {
  const place = h("div", { class: "stack" });
  const lines = h("ul", { class: "log desk-log", tabindex: "0", "aria-label": "What the desk says", hidden: true });
  const paper = api.account.mode === "paper";
  const { market, markets } = api.session();
  const symbol = h("select", { "aria-label": "Markets of the desk" }, h("option", { value: "" }, "all markets"), markets.map((name) => h("option", null, name)));
  const mode = h("select", { "aria-label": "Mode of the desk" }, MODES.map((name) => h("option", null, name)));

  const say = (event) => {
    lines.hidden = false;
    lines.prepend(h("li", { class: "log-line" }, h("span", { class: "soft" }, clock(event.at)), h("span", { class: "soft" }, event.what), h("span", null, [event.symbol, event.said].filter(Boolean).join(" "))));
    while (lines.children.length > MOST_LINES) lines.lastChild.remove();
  };
  api.on("desk", (event) => { if (event.account === api.account.name) say(event); });
  api.on("job", (job) => {
    if (job.what !== "desk" || job.about !== api.account.name || job.state === "running") return;
    say({ at: Date.now(), what: job.state, said: job.error ?? "The desk has ended." });
    refresh();
  });

  const start = actButton(api, market === "recorded" ? "Run its last day" : "Start the desk", async () => {
    const job = await api.post("/trading/start", { symbols: symbol.value ? [symbol.value] : [], mode: mode.value });
    return job.state === "running" ? "The desk runs on paper." : "The desk has run.";
  }, { kind: "primary", after: refresh, title: "zuno trade start" });
  const stop = actButton(api, "Stop the desk", async () => (await api.post("/trading/stop")).said, { after: refresh, title: "zuno trade stop" });
  const revoke = actButton(api, "Revoke", async () => {
    const asked = await askForWord({ title: "Revoke the mandate", word: "revoke", action: "Revoke", danger: true, content: [facts([["Account", describeAccount(api.account)]]), h("p", null, "No order is placed under it any more, and entries that wait are cancelled. Open trades keep their stops. A new one is granted in a terminal.")] });
    return asked ? (await api.post("/trading/revoke")).said : null;
  }, { kind: "danger", after: refresh, title: "zuno trade mandate revoke" });

  function draw(view) {
    const focused = place.contains(document.activeElement) ? document.activeElement : null;
    const account = paper ? "" : ` --account ${api.account.name}`;
    replace(place, panel("Desk", { source: { href: api.address("/trading/account"), at: null, text: `${view.account} · as of ${time(view.asOf)}` } },
      h("p", null, view.running ?? (paper ? "Not running: nothing is decided by itself." : "Not running.")),
      paper && !view.running ? h("div", { class: "controls" }, symbol, mode, start) : null,
      view.running ? h("div", { class: "actions" }, stop) : null,
      paper ? null : drawMandate(view.mandate, revoke, account),
      !paper && !view.running ? acts({ acts: [{ label: "Start", command: `trade start${api.account.mode === "live" ? " --live" : ""}${account}` }] }) : null,
      paper && market === "recorded" && !view.running ? h("p", { class: "hint" }, "The market here is a recording: its desk runs through the last day at once. An account that has come to its end already is not written a second time.") : null,
      lines));
    focused?.focus();
  }

  return { place, draw };
}

function drawMandate(mandate, revoke, account) {
  if (!mandate) return [h("p", null, "No mandate: the desk places no order there."), acts({ acts: [{ label: "Grant", command: `trade mandate grant${account}` }] })];
  return [
    h("h3", null, mandate.active ? "Mandate" : "Mandate, expired"),
    facts([["Symbols", mandate.symbols.join(", ")], ["Exchanges", mandate.venues.join(", ")], ["A trade", `${money(mandate.maxMarginPerTradeUsd)} of margin`], ["A day", `${money(mandate.maxMarginPerDayUsd)} of margin`], ["Loss of a day", money(mandate.maxDailyLossUsd)], ["Until", time(mandate.expires)]]),
    h("div", { class: "actions" }, revoke),
  ];
}
