// The page that the lab wrote with a report: somebody's HTML, shown in a frame that runs nothing and is of no origin.
import { BASE } from "../api.js";
import { h, replace } from "../dom.js";
import { fillWith, loading } from "../widgets.js";

export async function show(root, { id }, api) {
  const at = encodeURIComponent(id);
  const place = h("div", { class: "stack" }, loading());
  replace(root, h("div", { class: "page-head" }, h("a", { href: "#/lab", class: "crumb" }, "Lab"), h("span", { class: "crumb", "aria-hidden": "true" }, "/"), h("a", { href: `#/lab/${at}`, class: "crumb" }, id), h("h1", null, "Its own page")), place);
  await fillWith(place, () => api.getText(`/lab/reports/${at}/page`), drawFrame);
}

/**
 * Two frames: the outer one is an empty document of ours whose policy allows a page's own styles and pictures and no
 * script; the inner one inherits that policy, and its `sandbox` takes scripts, forms, links out and its origin away.
 */
function drawFrame(page) {
  const outer = h("iframe", { class: "report", src: `${BASE}report.html`, title: "Report" });
  outer.addEventListener("load", () => {
    const inner = outer.contentDocument.createElement("iframe");
    inner.setAttribute("sandbox", "");
    inner.setAttribute("title", "Report");
    inner.srcdoc = page;
    outer.contentDocument.body.replaceChildren(inner);
  }, { once: true });
  return outer;
}
