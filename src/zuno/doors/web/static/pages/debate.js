// Ask the desk, and follow the argument while it is held.
import { loadSession } from "../api.js";
import { h, replace } from "../dom.js";
import { headline } from "../documents.js";
import { badge, notice } from "../widgets.js";
import { planLink, thoughtLine } from "./lp_parts.js";

/** Milliseconds for the events of an outage to be told before the record is asked. */
const SETTLE = 1500;
/** Milliseconds after which a debate is asked for, whatever was told of it. */
const ASK = 5000;
const CUT_OFF = "The server was stopped before the desk decided. Ask again.";
const PROFILES = ["conservative", "balanced", "aggressive"];
const ROLES = ["scout", "strategist", "critic", "arbiter"];
/** What the sim chain's wallet can open. With real money the field begins empty: no amount is put into anybody's mouth. */
const EXAMPLE = "2 ETH safely";

/** A form that starts a debate and shows it below itself: about a position, or (`create`) about opening one. */
export function recommendForm(api, { position, chain, create = false }) {
  const place = h("div", { class: "stack-tight" });
  const profile = h("select", { name: "profile", "aria-label": "Risk profile" }, PROFILES.map((name) => h("option", { value: name, selected: name === "balanced" }, name)));
  const wish = create ? h("input", { type: "text", name: "wish", placeholder: EXAMPLE, required: true, maxlength: "300", "aria-label": "What to open, in words" }) : null;
  if (wish) Promise.resolve(api.session().mode ? api.session() : loadSession()).then((session) => {
    if (session.liquidity === "synthetic") wish.value ||= EXAMPLE;
  }).catch(() => {});
  const go = h("button", { type: "submit", class: "button primary" }, create ? "Recommend" : "Recommend rebalance");
  const form = h("form", { class: "ask-desk", onsubmit: async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    const body = create ? { kind: "create", wish: wish.value.trim(), chain } : { kind: "rebalance", position, profile: profile.value, chain };
    await holdDebate(api, body, place);
    go.disabled = false;
  } }, wish, create ? null : h("label", { class: "field" }, "Profile", profile), go);
  return h("div", { class: "stack-tight" },
    h("p", { class: "hint" }, create ? "Say what to open: amounts, pair, fee, risk. Four agents argue; nothing is signed or sent." : "Scout, Strategist, Critic and Arbiter argue about this position. Nothing is signed or sent."),
    form, place);
}

/** Start a debate by `body` and show it in `place` until it has ended. */
export async function holdDebate(api, body, place) {
  const view = debateView();
  replace(place, view.element);
  const early = []; // events that overtake the answer which says whose they are
  let id = null;
  /** A server that was started again knows no job of the last one; what came of the debate stands in the journal. */
  const ask = async () => {
    if (id === null) return;
    try {
      const job = await api.get(`/jobs/${encodeURIComponent(id)}`);
      if (job.state === "failed") finish({ error: job.error });
      if (job.state === "ended") await readRecord();
    } catch (error) {
      if (error.status === 404) await readRecord();
    }
  };
  const readRecord = async () => {
    try {
      const record = await api.get(`/lp/debates/${encodeURIComponent(id)}`);
      if (record.plan) finish({ planId: record.plan.planId });
      else finish({ error: record.failed || CUT_OFF });
    } catch (error) {
      if (error.status) finish({ error: CUT_OFF });
    }
  };
  const take = {
    thought: view.hear,
    waiting: (data) => view.wait(data.text),
    debate: (data) => finish(data),
    job: (data) => { if (data.state === "failed") finish({ error: data.error }); },
  };
  const stops = Object.entries(take).map(([type, hear]) => api.on(type, (data) => {
    if (id === null) early.push([hear, data]);
    else if (data.id === id) hear(data);
  }));
  const asking = setInterval(ask, ASK);
  stops.push(api.onReturn(() => setTimeout(ask, SETTLE)), () => clearInterval(asking));
  api.leaving(() => clearInterval(asking));
  let done = () => {};
  const ended = new Promise((resolve) => { done = resolve; });
  let over = false;
  function finish(data) {
    if (over) return;
    over = true;
    view.finish(data);
    done();
    if (data.planId) tellDecision(api, data.planId, view);
  }
  try {
    ({ id } = await api.post("/lp/recommend", body));
    for (const [hear, data] of early.splice(0)) if (data.id === id) hear(data);
    await ended;
  } catch (error) {
    view.fail(error);
  } finally {
    for (const stop of stops) stop();
  }
}

/** What was decided, in the plan's own words, and why not the next best. */
async function tellDecision(api, planId, view) {
  try {
    const { view: plan, document } = await api.read(`/lp/plans/${encodeURIComponent(planId)}`);
    const runnerUp = document?.sections[0]?.facts.find((fact) => fact.label === "runner-up");
    view.decide([headline(document, { level: "h3" }), h("p", null, plan.because), runnerUp ? h("p", { class: "hint" }, `Runner-up: ${runnerUp.value.text}`) : null]);
  } catch { /* the plan's page says it */ }
}

/** Who speaks, which round, what was vetoed and why, as it comes. */
export function debateView() {
  const seats = Object.fromEntries(ROLES.map((role) => [role, h("li", { class: "seat" }, role)]));
  const list = h("ol", { class: "debate live", "aria-live": "polite", "aria-relevant": "additions", "aria-label": "The argument" });
  const state = h("p", { class: "debate-state", role: "status" }, "The desk is called together …");
  const waiting = h("p", { class: "hint debate-waiting" });
  const decision = h("div", { class: "debate-decision" });
  const told = new Set();
  let round = null;
  return {
    element: h("div", { class: "stack-tight" }, h("ul", { class: "seats", "aria-label": "At the desk" }, Object.values(seats)), state, decision, waiting, list),
    hear(thought) {
      if (told.has(thought.key)) return;
      told.add(thought.key);
      for (const [role, seat] of Object.entries(seats)) {
        seat.classList.toggle("speaking", role === thought.role);
        if (role === thought.role) seat.classList.add("heard");
      }
      if (thought.round !== round) {
        round = thought.round;
        list.append(h("li", { class: "round" }, round === 0 ? "First round" : `Revision ${round}`));
      }
      list.append(thoughtLine(thought));
      list.scrollTop = list.scrollHeight;
      replace(state, `${thought.role} speaks, ${round === 0 ? "first round" : `revision ${round}`}`);
    },
    wait(text) {
      replace(waiting, text);
    },
    finish(data) {
      replace(waiting);
      for (const seat of Object.values(seats)) seat.classList.remove("speaking");
      if (data.planId) replace(state, badge("decided", "good"), " ", h("a", { href: planLink(data.planId), class: "button primary" }, "Open the plan"));
      else replace(state, badge("no plan", "warn"), " ", data.error ?? "The debate ended without a plan.");
    },
    decide(words) {
      replace(decision, words);
    },
    fail(error) {
      replace(waiting);
      for (const seat of Object.values(seats)) seat.classList.remove("speaking");
      replace(state, notice(error.message, "bad"));
    },
  };
}

