import { h, replace } from "../dom.js";

export async function show(root, params, api) {
  replace(root, h("h1", null, "Home"), h("p", { class: "empty" }, "Not drawn yet."));
}
