// A plan that was made without a debate (collect, add, remove, close, revoke): how far it is, and what can be done with it.
import { h, replace } from "../dom.js";
import { clock } from "../format.js";
import { collapse, fillWith, loading, panel, sourceLine } from "../widgets.js";
import { headline } from "../documents.js";
import { statePart } from "./plan.js";

export async function showInstructed(root, params, api, at) {
  const first = await api.read(`${at}/status`);
  const slot = h("div", { class: "slot" }, loading());
  const result = h("div", { class: "slot", "aria-live": "polite" });
  const readAt = h("time", null, "…");
  replace(root,
    h("div", { class: "page-head" }, h("a", { href: "#/liquidity", class: "crumb" }, "Liquidity"), h("span", { class: "crumb", "aria-hidden": "true" }, "/"), headline(first.document, { title: `Plan ${params.id}` })),
    h("p", { class: "soft" }, "Made without a debate. Simulate shows what it would do on the latest block; nothing is signed before you approve it."),
    panel("Carry it out", { id: "carry-out" }, slot, sourceLine({ href: api.address(`${at}/status`), text: [`${first.view.chain}, the journal and the chain, read at `, readAt] })));
  const load = collapse(() => fillWith(slot, async () => {
    const status = await api.read(`${at}/status`);
    replace(readAt, `${clock(Date.now())} UTC`);
    return status;
  }, (status) => statePart(status, api, at, result, load), { keep: true }));
  await load();
  api.on("plan", (data) => { if (!data.planId || data.planId === params.id) load(); });
  api.onReturn(load);
  api.every(20_000, load);
}
