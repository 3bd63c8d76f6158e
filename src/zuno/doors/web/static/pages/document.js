// A document of the interface as it was sent: where the numbers of a box come from.
import { h, replace } from "../dom.js";
import { fillWith, loading } from "../widgets.js";

export async function show(root, { path }, api) {
  const place = h("div", { class: "stack" }, loading());
  replace(root, h("div", { class: "page-head" }, h("h1", null, "Document"), h("code", { class: "long" }, `/api/v1${path}`)), place);
  await fillWith(place, () => api.getText(path), (text) => h("pre", { class: "document", tabindex: "0", role: "region", "aria-label": "JSON document" }, text));
}
