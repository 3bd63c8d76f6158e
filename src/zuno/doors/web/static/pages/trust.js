// What the desks can be relied on for: calibration, vetoes, memory, the journal, what models cost, who is reachable.
import { barChart, reliabilityChart, styled } from "../charts_trading.js";
import { actButton } from "../acts.js";
import { acts } from "../documents.js";
import { h, replace } from "../dom.js";
import { isKnown, money, number, percent, shortTime, shorten, signed, time, tone } from "../format.js";
import { askForWord, badge, button, facts, fillWith, loading, notice, panel, problemNotice, table } from "../widgets.js";
import { drawReplay } from "./run.js";

export async function show(root, params, api) {
  await styled;
  const places = Object.fromEntries(["calibration", "vetoes", "memory", "journal", "costs", "mesh"].map((name) => [name, h("div", null, loading())]));
  replace(root,
    h("div", { class: "page-head" }, h("h1", null, "Trust"), h("span", { class: "soft" }, "what was claimed, what came, and the record of both")),
    places.calibration, places.vetoes,
    h("div", { class: "grid" }, h("div", { class: "half stack" }, places.memory, places.costs, places.mesh, sessionsPanel(api), backupPanel(api)), h("div", { class: "half stack" }, places.journal)));
  replace(places.memory, memoryPanel(api));
  replace(places.journal, journalPanel(api));
  await Promise.all([
    fillWith(places.calibration, () => api.get("/trust/calibration"), (view) => drawCalibration(view, api)),
    fillWith(places.vetoes, () => api.get("/trust/vetoes"), (view) => drawVetoes(view, api)),
    fillWith(places.costs, () => Promise.all([api.get("/trust/costs"), api.get("/trust/agents")]), ([costs, agents]) => drawCosts(costs, agents, api)),
    drawMesh(places.mesh, api),
  ]);
}

// -- calibration

function drawCalibration(view, api) {
  const whole = view.agents.filter((agent) => agent.regime === "all");
  const regimes = view.agents.filter((agent) => agent.regime !== "all");
  return panel("Calibration", { source: { href: api.address("/trust/calibration"), at: null, text: `${view.account} · ${view.outcomes} closed trades scored · as of ${time(view.asOf)}` } },
    view.said && whole.length ? notice(view.said, "warn") : null,
    view.notes.map((text) => notice(text)),
    whole.length ? h("div", { class: "diagrams" }, whole.map((agent) => h("div", null,
      h("h3", null, `${agent.role.replaceAll("_", " ")} (${agent.source})`),
      reliabilityChart(agent),
      facts([["Claims", String(agent.n)], ["Brier score", number(agent.brier, 3)], ["Skill", isKnown(agent.skill) ? signed(agent.skill, 2) : "–", tone(agent.skill)], ["Error (ECE)", percent(agent.ece)]]),
      agent.enough ? null : h("p", { class: "hint" }, "Too few outcomes for a verdict.")))) : h("p", { class: "empty" }, "Close a few trades, and what each agent claimed is drawn here against what came."),
    regimes.length ? h("details", null, h("summary", null, "By regime"), table("Calibration by regime", [
      { name: "Agent", cell: (row) => row.role.replaceAll("_", " ") },
      { name: "Regime", cell: (row) => row.regime },
      { name: "Claims", number: true, cell: (row) => String(row.n) },
      { name: "Brier", number: true, cell: (row) => number(row.brier, 3) },
      { name: "Skill", number: true, cell: (row) => signed(row.skill, 2) },
      { name: "Error", number: true, cell: (row) => percent(row.ece) },
      { name: "", cell: (row) => (row.enough ? "" : badge("too few")) },
    ], regimes)) : null);
}

// -- vetoes

function drawVetoes(view, api) {
  return panel("Veto ledger", { source: { href: api.address("/trust/vetoes"), at: null, text: `${view.account} · ${view.outcomes} decisions scored · as of ${time(view.asOf)}` } },
    view.said && view.rules.length ? notice(view.said, "warn") : null,
    table("What each rule saved or cost", [
      { name: "Rule", cell: (row) => [row.rule.replaceAll("_", " "), h("span", { class: "sub" }, row.owner)] },
      { name: "Decisions", number: true, cell: (row) => [String(row.n), h("span", { class: "sub" }, `${row.vetoes} vetoed, ${row.cuts} cut`)] },
      { name: "Saved", number: true, hide: true, title: "trades it kept from a loss", cell: (row) => String(row.savedTrades) },
      { name: "Cost", number: true, hide: true, title: "trades it kept from a gain", cell: (row) => String(row.costTrades) },
      { name: "Saved or cost, R", number: true, title: "above zero is saved, below zero is cost", cell: (row) => h("span", { class: tone(row.totalR) }, signed(row.totalR, 2)) },
      { name: "Mean, R", number: true, hide: true, cell: (row) => `${signed(row.meanR, 2)}${isKnown(row.errorR) ? ` ± ${number(row.errorR, 2)}` : ""}` },
      { name: "", cell: (row) => (row.enough ? "" : badge("too few")) },
    ], view.rules, { empty: "No rule has vetoed or cut a decision that is over yet." }),
    view.scores.length ? h("details", null, h("summary", null, `The newest ${view.scores.length} decisions`), table("Decisions that were vetoed or cut", [
      { name: "Run", cell: (row) => h("a", { href: `#/runs/${encodeURIComponent(row.run)}` }, shorten(row.run, 8, 4)) },
      { name: "Trade", cell: (row) => `${row.side} ${row.symbol}` },
      { name: "Decided", hide: true, cell: (row) => shortTime(row.decided) },
      { name: "Would have ended", cell: (row) => row.exit },
      { name: "R", number: true, cell: (row) => h("span", { class: tone(row.r) }, signed(row.r, 2)) },
      { name: "Rules", hide: true, cell: (row) => row.rules.map((rule) => `${rule.rule} ${percent(rule.share, 0)}`).join(", ") },
    ], view.scores)) : null);
}

// -- memory

function memoryPanel(api) {
  const found = h("div", { class: "stack" });
  const lessons = h("div", { class: "stack" });
  const field = h("input", { type: "search", id: "memory-search", class: "grow", placeholder: "failed breakout with high funding", maxlength: "400" });
  const list = () => fillWith(found, () => api.get("/trust/memories", { limit: 12 }), (page) => drawMemories(page.items, api, "No closed trade has been learned from yet."));
  const search = (event) => {
    event.preventDefault();
    const query = field.value.trim();
    if (!query) return list();
    replace(found, loading("Searching …"));
    return fillWith(found, () => api.get("/trust/search", { query, lines: 10 }), (view) => [
      h("p", { class: "hint" }, `nearest to “${view.query}” by ${view.source}${view.note ? `: ${view.note}` : ""}`), drawMemories(view.memories, api, "Nothing is alike.")]);
  };
  list();
  fillWith(lessons, () => api.get("/trust/lessons"), (view) => view.lessons.length ? view.lessons.map(drawLesson) : h("p", { class: "empty" }, "No lesson yet: one is drawn when enough cases of a setup agree."));
  return panel("Memories and lessons", { source: { href: api.address("/trust/memories"), at: null, text: "post-mortems in the journal of this home" } },
    h("form", { class: "controls", role: "search", onsubmit: search }, h("label", { class: "visually-hidden", for: "memory-search" }, "Search memories"), field, h("button", { type: "submit", class: "button" }, "Search")),
    found, h("h3", null, "Lessons"), lessons);
}

function drawMemories(memories, api, empty) {
  if (!memories.length) return h("p", { class: "empty" }, empty);
  return memories.map((note) => {
    const more = h("div", { class: "prose" });
    const details = h("details", { class: "memory" },
      h("summary", null, badge(note.verdict, { SUCCESS: "good", FAILURE: "bad" }[note.verdict] ?? ""), " ", h("strong", null, `${note.side} ${note.symbol}`), " ", h("span", { class: tone(note.r) }, `${signed(note.r, 2)} R`), " ",
        h("span", { class: "hint" }, `closed ${shortTime(note.closed)}`, isKnown(note.similarity) ? ` · similarity ${percent(note.similarity, 0)}` : "")),
      h("p", { class: "prose" }, note.constraint), more);
    details.addEventListener("toggle", () => {
      if (!details.open || more.firstChild) return;
      replace(more, loading());
      fillWith(more, () => api.get(`/trust/memories/${encodeURIComponent(note.id)}`), (view) => [
        h("p", null, view.outcome),
        h("p", { class: "hint" }, view.setup),
        facts([["First touch", view.path.firstTouch ?? "neither"], ["Best", `${signed(view.path.mfePct, 2)} %`], ["Worst", `${signed(view.path.maePct, 2)} %`], ["Held", `${number(view.path.holdHours, 1)} h`], ["Net PnL", view.netPnl], ["Written by", view.source]]),
        view.runId ? h("p", null, h("a", { href: `#/runs/${encodeURIComponent(view.runId)}` }, "The run that opened it")) : null]);
    });
    return details;
  });
}

function drawLesson(lesson) {
  return h("div", { class: "memory" },
    h("div", { class: "controls" }, badge(lesson.state, { active: "good", contradicted: "bad" }[lesson.state] ?? "warn"), h("strong", null, `${lesson.side}: ${lesson.verdict}`), h("span", { class: "hint" }, `${lesson.cases.length} cases, ${lesson.confirmed.length} confirmed, ${lesson.contradicted.length} against · until ${shortTime(lesson.expires)}`)),
    h("p", { class: "prose" }, lesson.text), lesson.condition ? h("p", { class: "hint" }, lesson.condition) : null, lesson.review ? h("p", { class: "prose" }, lesson.review) : null);
}

// -- the journal

function journalPanel(api) {
  const verdict = h("div", { class: "stack" });
  const opened = h("div", { class: "stack" });
  const list = h("div", { class: "stack" }, loading());
  const about = { kind: "", request: "" };
  let rows = [];
  const verify = button("Verify the journal", async () => {
    verify.disabled = true;
    replace(verdict, loading("Walking every entry: hash, signature, number, place …"));
    await fillWith(verdict, () => api.get("/trust/journal/verify"), drawVerdict);
    verify.disabled = false;
  }, { kind: "primary" });
  const replay = async (id) => {
    replace(opened, loading(`Replaying ${id} …`));
    await fillWith(opened, () => api.get(`/trust/replay/${encodeURIComponent(id)}`), drawReplay);
  };
  const open = async (seq) => {
    replace(opened, loading());
    await fillWith(opened, () => api.get(`/trust/journal/${seq}`), (entry) => drawEntry(entry, () => replace(opened), api));
  };
  const more = async (cursor) => {
    try {
      const page = await api.get("/trust/journal", { cursor, limit: 14, ...about });
      rows = cursor ? [...rows, ...page.items] : page.items;
      replace(list, table("Entries of the journal, newest first", [
        { name: "No.", cell: (row) => h("button", { type: "button", class: "link-button", title: "Show the entry as it was written", onclick: () => open(row.seq) }, String(row.seq)) },
        { name: "Time", cell: (row) => [h("span", { class: "change" }, shortTime(row.at)), h("span", { class: "sub" }, row.role)] },
        { name: "Kind", cell: (row) => row.kind.replaceAll("_", " ") },
        { name: "Request", hide: true, cell: (row) => (row.requestId?.startsWith("run_") ? h("a", { href: `#/runs/${encodeURIComponent(row.requestId)}` }, shorten(row.requestId, 8, 4)) : row.requestId ? shorten(row.requestId, 8, 4) : "–") },
        { name: "Hash", hide: true, cell: (row) => h("span", { class: "mono", title: row.hash }, shorten(row.hash, 6, 4)) },
        { name: "", cell: (row) => (row.kind === "cycle_ended" && row.requestId ? h("button", { type: "button", class: "link-button", onclick: () => replay(row.requestId) }, "replay") : "") },
      ], rows, { empty: about.kind || about.request ? "No entry is of that kind and request." : "The journal is empty." }), page.nextCursor ? button("Older entries", () => more(page.nextCursor)) : null);
    } catch (error) {
      if (error.name !== "AbortError") replace(list, problemNotice(error, () => more(cursor)));
    }
  };
  const kind = h("input", { type: "search", "aria-label": "Kind of entry", placeholder: "kind: cycle_ended", maxlength: "64" });
  const request = h("input", { type: "search", "aria-label": "Request or run", placeholder: "request: run_…", maxlength: "64", class: "grow" });
  const search = (event) => {
    event.preventDefault();
    Object.assign(about, { kind: kind.value.trim().replaceAll(" ", "_"), request: request.value.trim() });
    more();
  };
  more();
  return panel("Journal", { actions: verify, source: { href: api.address("/trust/journal"), at: null, text: "hash-chained and signed, in this home" } }, verdict, opened,
    h("form", { class: "controls", role: "search", onsubmit: search }, kind, request, h("button", { type: "submit", class: "button" }, "Find")), list);
}

const MOST_TEXT = 20000;

/** Its hash and signature were checked as it was read. */
function drawEntry(entry, shut, api) {
  const text = JSON.stringify(entry.payload, null, 2);
  return h("div", { class: "stack-tight" },
    h("div", { class: "row" }, h("h3", null, `Entry ${entry.seq}: ${entry.kind.replaceAll("_", " ")}`), button("Close", shut, { kind: "small" })),
    h("dl", { class: "facts narrow" }, [["hash", entry.hash], ["after", entry.prev], ["signed", entry.signature], ["by", `${entry.role} ${entry.key}`.trim()], ["at", time(entry.at)], ["written by", entry.code], ["bundle", entry.bundle ?? "–"]].map(([name, value]) => [h("dt", null, name), h("dd", { class: "long mono" }, value)])),
    h("pre", { class: "document entry", tabindex: "0", "aria-label": "What was written" }, text.slice(0, MOST_TEXT)),
    text.length > MOST_TEXT ? h("p", { class: "hint" }, `the first ${MOST_TEXT.toLocaleString("en-US")} of ${text.length.toLocaleString("en-US")} characters`) : null,
    h("p", { class: "hint" }, "Hash and signature were checked as it was read. ", h("a", { href: api.address(`/trust/journal/${entry.seq}`) }, "The whole entry")));
}

function drawVerdict(view) {
  if (view.ok) return h("div", { class: "notice good", role: "status" }, h("strong", null, `${view.entries.toLocaleString("en-US")} entries hold.`), h("span", null, view.unchecked ? `Checked just now; not checked: ${view.unchecked}.` : "Every hash, signature and place was checked just now."), (view.notes ?? []).map((text) => h("span", { class: "hint" }, text)));
  const fault = view.firstBad ?? {};
  return h("div", { class: "notice bad", role: "alert" }, h("strong", null, `Broken after ${view.entries} entries.`), h("span", null, Object.entries(fault).map(([name, value]) => `${name} ${value}`).join(", ")));
}

// -- logins and backup

/** Browsers that are logged in. The own one is ended last, and by name. */
function sessionsPanel(api) {
  const place = h("div", { class: "slot" }, loading());
  const load = () => fillWith(place, () => Promise.all([api.get("/session"), api.get("/sessions")]), ([session, view]) => draw(session.login, view.logins));
  const end = (id) => async () => {
    await api.post("/sessions/end", { id });
    return id === "all" ? null : `The session ${id} is ended.`;
  };
  const draw = (own, logins) => [
    table("Browsers that are logged in", [
      { name: "Session", cell: (row) => [h("span", { class: "mono" }, row.name), row.name === own ? h("span", { class: "sub" }, "this browser") : null] },
      { name: "May", cell: (row) => badge(row.scope, row.scope === "act" ? "info" : "") },
      { name: "Began", hide: true, cell: (row) => h("span", { class: "change" }, time(row.made)) },
      { name: "Last used", cell: (row) => h("span", { class: "change" }, shortTime(row.seen), h("span", { class: "sub" }, row.client ?? "")) },
      { name: "", cell: (row) => (row.name === own ? "" : actButton(api, "End", end(row.name), { kind: "small", after: load, title: `zuno web sessions --end ${row.name}` })) },
    ], logins),
    h("div", { class: "actions" }, actButton(api, "End all, this one too", async () => {
      const asked = await askForWord({ title: "End every session", word: "end", action: "End all", danger: true, content: [h("p", null, `${logins.length} browsers are logged out, this one too. `, h("code", null, "zuno web link"), " prints a link for the next login.")] });
      return asked ? end("all")() : null;
    }, { kind: "danger", after: load })),
  ];
  load();
  return panel("Sessions", { source: { href: api.address("/sessions"), text: "logins of this home" } }, place);
}

/** A backup names a file of this machine, and stays the terminal's. */
function backupPanel(api) {
  return panel("Backup", { source: { href: api.address("/status"), text: "made in a terminal" } },
    h("p", { class: "prose" }, "One signed file of the whole home while everything runs, without private keys. It is restored into an empty home, where its journal is verified."),
    acts({ acts: [{ label: "Back up", command: "backup ~/zuno-{date}.zip --keep 7" }, { label: "Restore", command: "restore FILE" }] }));
}

// -- costs

function drawCosts(costs, agents, api) {
  const days = new Map();
  for (const row of costs.rows) days.set(row.day, (days.get(row.day) ?? 0) + row.usd);
  const bars = [...days].sort(([a], [b]) => (a < b ? -1 : 1)).slice(-30).map(([day, usd]) => ({ name: day.slice(5), title: day, value: usd }));
  const roles = new Map();
  for (const chair of agents.chairs) roles.set(chair.role, { desk: chair.desk, role: chair.role, models: chair.models, why: chair.why, attempts: 0, tokens: 0, usd: 0 });
  for (const row of costs.rows) {
    const role = roles.get(row.role) ?? { desk: "", role: row.role, models: row.models, why: "", attempts: 0, tokens: 0, usd: 0 };
    roles.set(row.role, { ...role, attempts: role.attempts + row.attempts, tokens: role.tokens + row.tokensIn + row.tokensOut, usd: role.usd + row.usd });
  }
  const asked = [...roles.values()].filter((role) => role.models.length || role.attempts);
  const silent = [...roles.values()].filter((role) => !asked.includes(role));
  return panel("Model cost", { source: { href: api.address("/trust/costs"), at: null, text: `the journal${costs.asOf ? `, newest ${time(costs.asOf)}` : ""} · ${costs.attempts} attempts${costs.cut ? ", older ones left out" : ""}${costs.unpriced ? `, ${costs.unpriced} without a known price` : ""}` } },
    facts([["Spent", money(costs.usd, "USD", 4)]]),
    bars.length ? barChart({ label: `Model cost by day, ${money(costs.usd, "USD", 4)} in all`, rows: bars, format: (value) => money(value, "USD", 4) }) : h("p", { class: "empty" }, "No model was asked: rules spoke for every role, at no cost."),
    asked.length ? rolesTable(asked) : null,
    silent.length ? h("details", null, h("summary", null, `${silent.length} roles on rules alone`), rolesTable(silent)) : null,
    costs.rows.length ? h("details", null, h("summary", null, "By role and day"), table("Model cost by role and day", [
      { name: "Day", cell: (row) => row.day },
      { name: "Role", cell: (row) => row.role },
      { name: "Attempts", number: true, cell: (row) => `${row.attempts}${row.failed ? ` (${row.failed} failed)` : ""}` },
      { name: "Tokens", number: true, hide: true, cell: (row) => `${row.tokensIn} in, ${row.tokensOut} out` },
      { name: "USD", number: true, cell: (row) => money(row.usd, "USD", 4) },
    ], costs.rows)) : null);
}

function rolesTable(rows) {
  return table("Roles", [
    { name: "Role", cell: (row) => [row.role.replaceAll("_", " "), h("span", { class: "sub" }, row.desk)] },
    { name: "Model", cell: (row) => (row.models.length ? row.models.join(", ") : h("span", { class: "soft" }, row.why || "rules")) },
    { name: "Attempts", number: true, cell: (row) => String(row.attempts) },
    { name: "Tokens", number: true, hide: true, cell: (row) => row.tokens.toLocaleString("en-US") },
    { name: "USD", number: true, cell: (row) => money(row.usd, "USD", 4) },
  ], rows);
}

// -- the mesh

async function drawMesh(place, api) {
  const load = async () => {
    try {
      const view = await api.get("/trust/mesh");
      replace(place, panel("Mesh", { actions: button("Ask again", () => { replace(place, loading("Asking every peer …")); load(); }), source: { href: api.address("/trust/mesh"), at: null, text: `over ${view.transport}, asked just now` } },
        table("Peers", [
          { name: "Role", cell: (row) => h("span", { class: row.answers ? "peer answers" : "peer" }, h("i", { "aria-hidden": "true" }), row.role) },
          { name: "Reachable", cell: (row) => (row.answers ? badge("answers", "good") : badge(row.answers === null ? "not asked" : "silent", "bad")) },
          { name: "Round trip", number: true, cell: (row) => (isKnown(row.roundTripMs) ? `${number(row.roundTripMs, 0)} ms` : "–") },
          { name: "Where", hide: true, cell: (row) => h("span", { class: "mesh-where" }, row.here ? "this home" : "elsewhere", row.pid ? h("span", { class: "sub" }, `process ${row.pid}`) : null) },
          { name: "Heard / said / rejected", number: true, hide: true, cell: (row) => (row.heard === null ? "–" : `${row.heard} / ${row.said} / ${row.rejected}`) },
          { name: "Version", hide: true, cell: (row) => (row.version ? h("span", { class: "mesh-where", title: row.version }, row.version.split("+")[0], h("span", { class: "sub" }, `edition ${row.edition}`)) : "–") },
        ], view.peers, { empty: ["No mesh is set up in this home: every agent runs in this process. ", h("code", null, "zuno mesh init"), " sets one up."] })));
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(place, panel("Mesh", {}, problemNotice(error, load)));
    }
  };
  await load();
}
