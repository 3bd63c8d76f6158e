// The pieces every page is made of: panels, figures, tables, notices, the dialog that asks for a typed word.
import { append, h, isLocalAddress, replace, uniqueId } from "./dom.js";
import { age, time, toDate } from "./format.js";

/** A titled box. `source` is `{href, at, text}`: where its numbers come from and how old they are. */
export function panel(title, { source, actions, wide, id } = {}, ...children) {
  const heading = uniqueId("panel");
  return h("section", { class: wide ? `panel ${wide}` : "panel", "aria-labelledby": heading, id },
    h("div", { class: "panel-head" }, h("h2", { id: heading }, title), actions ? h("div", { class: "panel-actions" }, actions) : null),
    children,
    source ? sourceLine(source) : null);
}

/** "source · 3 m ago", with the document the numbers were read from behind it. */
export function sourceLine({ href, at, text }) {
  const shown = [text || (at ? null : "document"), text && at ? " · " : null, at ? freshness(at) : null];
  return h("p", { class: "source" },
    href && isLocalAddress(href)
      ? h("a", { href, target: "_blank", rel: "noopener", title: at ? `as of ${time(at)}; shows the JSON document` : "shows the JSON document" }, shown)
      : h("span", { title: at ? `as of ${time(at)}` : null }, shown));
}

/** How old, or, of a clock that stands still (a simulated chain, a recorded market), the moment itself. */
export function freshness(at) {
  return timeAge(at, { far: true });
}

/** How long ago, which goes on counting. `far`: beyond two days the moment itself. */
export function timeAge(at, { far = false } = {}) {
  const date = toDate(at);
  if (!date) return far ? `as of ${time(at)}` : age(at);
  const shown = h("time", { datetime: date.toISOString(), "data-at": String(date.getTime()), "data-far": far });
  writeAge(shown);
  return shown;
}

function writeAge(shown) {
  const at = Number(shown.dataset.at);
  const near = !("far" in shown.dataset) || Math.abs(Date.now() - at) < 172800000;
  const text = near ? age(at) : `as of ${time(at)}`;
  if (shown.textContent !== text) shown.textContent = text;
}

/** One clock for all ages of a page. */
export function keepAges(root) {
  setInterval(() => {
    if (!document.hidden) for (const shown of root.querySelectorAll("time[data-at]")) writeAge(shown);
  }, 1000);
}

/** One figure with its name: a row of these opens each page. */
export function stat(name, value, { note, tone, href, title } = {}) {
  const figure = h("span", { class: `stat-value ${tone ?? ""}`, title }, value);
  return h("div", { class: "stat" },
    h("dt", null, name),
    h("dd", null, href ? h("a", { href, class: "stat-link" }, figure) : figure, note ? h("span", { class: "stat-note" }, note) : null));
}

/** A row of figures, and where they come from (`{href, at, text}`). */
export function stats(source, ...items) {
  return h("div", { class: "figures-strip" }, h("dl", { class: "stats" }, items), source ? sourceLine(source) : null);
}

/** A number without a title of its own gets, under the pointer, the source and age of the box it stands in. */
export function titleNumbers(root) {
  root.addEventListener("pointerover", (event) => {
    const figure = event.target.closest?.("td.number, dd, .stat-value, .verdict, .bullets li");
    if (!figure || (figure.title && !("sourced" in figure.dataset)) || figure.querySelector("[title]")) return;
    const source = figure.closest(".panel, .figures-strip")?.querySelector(".source");
    if (!source) return;
    figure.title = `source: ${source.textContent}`;
    figure.dataset.sourced = "";
  });
}

/** Whose money and which prices: one word, in the colour of the top. */
export function modeBadge(view) {
  const live = view.live === true || view.mode === "live";
  const word = live ? "LIVE" : view.synthetic ? "SYNTHETIC" : String(view.mode ?? "paper").toUpperCase();
  const meaning = { LIVE: "real money", SYNTHETIC: "invented prices, play money", PAPER: "real prices, play money", DEMO: "the exchange's demo account" }[word];
  return h("span", { class: `badge mode-badge ${word.toLowerCase()}`, title: meaning }, word);
}

/** A real table. Columns: `{name, cell(row), sort(row), number, title, hide, wrap}`; on a phone `hide` drops it and `wrap` breaks its numbers; `href(row)` links the first cell. */
export function table(caption, columns, rows, { empty = "Nothing here.", href, rowClass, showCaption } = {}) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  const region = h("div", { class: "table-wrap", tabindex: "0", role: "group", "aria-label": caption },
    h("table", null,
      h("caption", { class: showCaption ? null : "visually-hidden" }, caption),
      h("thead", null, h("tr", null, columns.map((column) =>
        h("th", { scope: "col", class: cellClass(column), title: column.title }, column.name)))),
      h("tbody", null, rows.map((row) => h("tr", { class: rowClass?.(row) }, columns.map((column, index) => {
        const content = column.cell(row);
        const inside = index === 0 && href ? h("a", { href: href(row) }, content) : content;
        return index === 0
          ? h("th", { scope: "row", class: cellClass(column), "data-sort": column.sort?.(row) }, inside)
          : h("td", { class: cellClass(column), "data-sort": column.sort?.(row) }, inside);
      }))))));
  return region;
}

function cellClass(column) {
  return [column.number ? "number" : "", column.hide ? "spare" : "", column.wrap ? "wrap" : ""].filter(Boolean).join(" ") || null;
}

export function badge(text, kind = "") {
  return h("span", { class: `badge ${kind}` }, text);
}

export function button(label, onclick, { kind = "", disabled, title } = {}) {
  return h("button", { type: "button", class: `button ${kind}`, onclick, disabled, title }, label);
}

/** What went wrong, where the content would have been. */
export function problemNotice(error, retry) {
  return h("div", { class: "notice bad", role: "alert" },
    h("strong", null, error.title || "Not available"), h("span", null, error.message),
    retry ? button("Try again", retry) : null);
}

export function notice(text, kind = "") {
  return h("p", { class: `notice ${kind}` }, text);
}


export function loading(text = "Loading …") {
  return h("p", { class: "loading", role: "status" }, text);
}

const drawn = new WeakMap();

/**
 * Fill a place with what a promise brings, or with its problem. One part that fails leaves the others standing.
 * `keep`, for what is asked again and again: the same data are not drawn again (focus and open tables stay), and an outage
 * leaves what was there.
 */
export async function fillWith(place, load, draw, { keep = false } = {}) {
  const attempt = async () => {
    try {
      const data = await load();
      const text = keep ? JSON.stringify(data) : null;
      if (keep && drawn.get(place) === text) return;
      replace(place, draw(data));
      if (keep) drawn.set(place, text);
    } catch (error) {
      if (error.name === "AbortError" || (error.status === 0 && place.isConnected && !place.querySelector(".loading, .notice.bad"))) return;
      drawn.delete(place);
      replace(place, problemNotice(error, () => { replace(place, loading()); attempt(); }));
      if (error.status === undefined) console.error(error);
    }
  };
  await attempt();
}

/** However often it is asked for while it runs, the action is done once more at its end. */
export function collapse(action) {
  let running = null;
  let again = false;
  const run = async () => {
    do {
      again = false;
      await action();
    } while (again);
  };
  return () => {
    again = true;
    running ??= run().finally(() => { running = null; });
    return running;
  };
}

/** Names and values in two columns. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value, extra]) => [h("dt", null, name), h("dd", { class: extra }, value)]));
}

/** Ask for a word to be typed, as the terminal does. The answer is true when it was. */
export async function askForWord({ word, ...more }) {
  const label = ["Type ", h("code", null, word), " to go on"];
  return (await askForText({ ...more, label, fits: (text) => text === word, hint: "Nothing happens until the word is there and the button is pressed." })) !== null;
}

/** Ask for a code of the second factor; null where none was typed. */
export function askForCode(sentence) {
  return askForText({ title: "Second factor", action: "Go on", content: [h("p", null, sentence)], label: ["Code of your authenticator app"], hint: "Six digits; each code is good once.", fits: (text) => /^[0-9]{6}$/.test(text), field: { inputmode: "numeric", autocomplete: "one-time-code", maxlength: "6" } });
}

function askForText({ title, label, hint, fits, action, content, danger, field: more }) {
  return new Promise((resolve) => {
    const heading = uniqueId("ask");
    const field = uniqueId("word");
    const input = h("input", { id: field, type: "text", autocomplete: "off", autocapitalize: "none", spellcheck: "false", "aria-describedby": `${field}-hint`, ...more });
    const go = h("button", { type: "submit", class: `button primary ${danger ? "danger" : ""}`, disabled: true }, action);
    const dialog = h("dialog", { class: "ask", "aria-labelledby": heading },
      h("form", { method: "dialog", onsubmit: (event) => { event.preventDefault(); if (matches()) finish(input.value.trim()); } },
        h("h2", { id: heading }, title),
        h("div", { class: "ask-content", tabindex: "0", role: "region", "aria-label": "What will be done" }, content),
        h("label", { for: field }, label),
        input,
        h("p", { class: "hint", id: `${field}-hint` }, hint),
        h("div", { class: "ask-actions" }, button("Not now", () => finish(null)), go)));
    const matches = () => fits(input.value.trim());
    const leave = () => finish(null); // by the back button: what is asked belongs to the page that is left
    const finish = (answer) => {
      removeEventListener("hashchange", leave);
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    input.addEventListener("input", () => { go.disabled = !matches(); });
    dialog.addEventListener("cancel", leave);
    addEventListener("hashchange", leave);
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}

export function toast(text, kind = "") {
  const place = document.getElementById("toasts");
  const item = h("div", { class: `toast ${kind}` }, h("span", null, text),
    h("button", { type: "button", class: "icon-button", "aria-label": "Dismiss", onclick: () => item.remove() }, "×"));
  append(place, [item]);
  while (place.children.length > 4) place.firstChild.remove();
  setTimeout(() => item.remove(), kind === "bad" ? 15000 : 6000);
}
