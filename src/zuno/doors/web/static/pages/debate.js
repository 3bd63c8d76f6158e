// Ask the desk, and follow the argument while it is held.
import { h, replace } from "../dom.js";
import { badge, notice } from "../widgets.js";
import { planLink, thoughtLine } from "./lp_parts.js";

/** Milliseconds for the events of an outage to be told before the record is asked. */
const SETTLE = 1500;
const CUT_OFF = "The server was stopped before the desk decided. Ask again.";
const PROFILES = ["conservative", "balanced", "aggressive"];
const ROLES = ["scout", "strategist", "critic", "arbiter"];

/** A form that starts a debate and shows it below itself: about a position, or (`create`) about opening one. */
export function recommendForm(api, { position, chain, create = false }) {
  const place = h("div", { class: "stack-tight" });
  const profile = h("select", { name: "profile", "aria-label": "Risk profile" }, PROFILES.map((name) => h("option", { value: name, selected: name === "balanced" }, name)));
  const wish = create ? h("input", { type: "text", name: "wish", value: "0.05 ETH passively", maxlength: "300", "aria-label": "What to open, in words" }) : null;
  const go = h("button", { type: "submit", class: "button primary" }, create ? "Recommend" : "Recommend rebalance");
  const form = h("form", { class: "ask-desk", onsubmit: async (event) => {
    event.preventDefault();
    go.disabled = true;
    const body = create ? { kind: "create", wish: wish.value.trim(), chain } : { kind: "rebalance", position, profile: profile.value, chain };
    await holdDebate(api, body, place);
    go.disabled = false;
  } }, wish, create ? null : h("label", { class: "field" }, "Profile", profile), go);
  return h("div", { class: "stack-tight" },
    h("p", { class: "hint" }, create ? "Say what to open: amounts, pair, fee, risk. Four agents argue; nothing is signed or sent." : "Scout, Strategist, Critic and Arbiter argue about this position. Nothing is signed or sent."),
    form, place);
}

async function holdDebate(api, body, place) {
  const view = debateView();
  replace(place, view.element);
  const heard = [];
  let id = null;
  /** A server that was started again knows no job of the last one; what came of the debate stands in the journal. */
  const ask = async () => {
    if (id === null) return;
    try {
      const job = await api.get(`/jobs/${encodeURIComponent(id)}`);
      if (job.state === "failed") finish({ error: job.error });
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
  const stops = [
    api.onReturn(() => setTimeout(ask, SETTLE)),
    api.on("thought", (data) => { if (id === null) heard.push(data); else if (data.id === id) view.hear(data); }),
    api.on("waiting", (data) => { if (data.id === id) view.wait(data.text); }),
    api.on("debate", (data) => { if (data.id === id) finish(data); }),
    api.on("job", (data) => { if (data.id === id && data.state === "failed") finish({ error: data.error }); }),
  ];
  let done = () => {};
  const ended = new Promise((resolve) => { done = resolve; });
  function finish(data) {
    view.finish(data);
    done();
  }
  try {
    ({ id } = await api.post("/lp/recommend", body));
    for (const data of heard.splice(0)) if (data.id === id) view.hear(data);
    await ended;
  } catch (error) {
    view.fail(error);
  } finally {
    for (const stop of stops) stop();
  }
}

/** Who speaks, which round, what was vetoed and why, as it comes. */
export function debateView() {
  const seats = Object.fromEntries(ROLES.map((role) => [role, h("li", { class: "seat" }, role)]));
  const list = h("ol", { class: "debate live", "aria-live": "polite", "aria-relevant": "additions", "aria-label": "The argument" });
  const state = h("p", { class: "debate-state", role: "status" }, "The desk is called together …");
  const waiting = h("p", { class: "hint debate-waiting" });
  const told = new Set();
  let round = null;
  return {
    element: h("div", { class: "stack-tight" }, h("ul", { class: "seats", "aria-label": "At the desk" }, Object.values(seats)), state, waiting, list),
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
    fail(error) {
      replace(waiting);
      for (const seat of Object.values(seats)) seat.classList.remove("speaking");
      replace(state, notice(error.message, "bad"));
    },
  };
}

