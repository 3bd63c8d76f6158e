// Sort, filter and save a table of `widgets.js`. What was chosen outlives a table that is drawn anew: it is kept by the list's name.
//
//   withTools(table(…), { name: "plans", rows: plans })    all three, as one element to show in the table's place
//   makeSortable(table, name)                               headers become buttons; a column's `sort(row)` is what it is sorted by
//   addFilter(table, name)                                  a field that hides the rows without its words
//   addCsv(table, name, rows)                               a button that saves the documents behind the rows, in full digits
//
// `table` is what `table()` returned; where it is empty there is nothing to do.
import { h } from "./dom.js";
import { button } from "./widgets.js";

const chosen = new Map();

function recall(name) {
  if (!chosen.has(name)) chosen.set(name, { column: -1, down: false, words: "" });
  return chosen.get(name);
}

/** The table with its field and its button above it. */
export function withTools(table, { name, rows }) {
  if (!table.querySelector("tbody")) return table;
  makeSortable(table, name);
  return h("div", { class: "listed" }, h("div", { class: "list-tools" }, rows.length > 1 ? addFilter(table, name) : null, addCsv(table, name, rows)), table);
}

export function makeSortable(table, name) {
  const body = table.querySelector("tbody");
  if (!body) return table;
  const kept = recall(name);
  const rows = [...body.rows];
  const heads = [...table.querySelectorAll("thead th")];
  const draw = () => {
    heads.forEach((head, place) => head.setAttribute("aria-sort", place !== kept.column ? "none" : kept.down ? "descending" : "ascending"));
    body.append(...(kept.column < 0 ? rows : [...rows].sort((one, other) => (kept.down ? -1 : 1) * compare(one.cells[kept.column], other.cells[kept.column]) || rows.indexOf(one) - rows.indexOf(other))));
  };
  heads.forEach((head, place) => {
    if (!head.textContent) return;
    const id = `${name}/${place}`;
    const focused = document.activeElement?.dataset?.sorts === id;
    const sorts = h("button", { type: "button", class: "sorts", "data-sorts": id, onclick: () => {
      // the figures that are large are looked for first, then those that are small, then the list's own order
      const first = head.classList.contains("number");
      if (kept.column !== place) [kept.column, kept.down] = [place, first];
      else if (kept.down === first) kept.down = !first;
      else kept.column = -1;
      draw();
    } }, ...head.childNodes);
    head.replaceChildren(sorts);
    if (focused) queueMicrotask(() => sorts.focus());
  });
  draw();
  return table;
}

/** Unknown figures come last when the smallest is first. */
function compare(one, other) {
  const [a, b] = [sortKey(one), sortKey(other)];
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b, "en", { numeric: true });
}

function sortKey(cell) {
  const text = cell?.dataset.sort ?? cell?.innerText.split("\n")[0] ?? "";
  const figure = /^[+−-]?\$?\d[\d,]*(\.\d+)?/.exec(text.trim());
  if (cell?.dataset.sort !== undefined) return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  return figure && cell.classList.contains("number") ? Number(figure[0].replaceAll(/[,$]/g, "").replace("−", "-")) : text;
}

export function addFilter(table, name) {
  const body = table.querySelector("tbody");
  if (!body) return null;
  const kept = recall(name);
  const rows = [...body.rows];
  const count = h("span", { class: "soft", role: "status" });
  const field = h("input", { type: "search", value: kept.words, placeholder: "Filter", maxlength: "100", "data-filters": name, "aria-label": `Filter ${name}`, autocomplete: "off", spellcheck: "false" });
  const draw = () => {
    const words = kept.words.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = words.length ? `${shown} of ${rows.length}` : "";
  };
  field.addEventListener("input", () => { kept.words = field.value; draw(); });
  const before = document.activeElement;
  if (before?.dataset?.filters === name) {
    const caret = before.selectionStart;
    queueMicrotask(() => { field.focus(); field.setSelectionRange(caret, caret); });
  }
  draw();
  return h("span", { class: "list-filter" }, field, count);
}

export function addCsv(table, name, rows) {
  if (!table.querySelector("tbody")) return null;
  return button("CSV", () => save(`zuno-${name}-${new Date().toISOString().slice(0, 10)}.csv`, toCsv(rows)), { title: `Save these ${name} with all their digits` });
}

/** One line per document, a column per field: `pool.label`, `capital.0.amount`. */
export function toCsv(documents) {
  const lines = documents.map((item) => flatten(item));
  const columns = [...new Set(lines.flatMap((line) => Object.keys(line)))];
  return [columns, ...lines.map((line) => columns.map((column) => line[column] ?? ""))].map((cells) => cells.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function flatten(value, at = "", into = {}) {
  if (value === null || typeof value !== "object") into[at] = value ?? "";
  else for (const [key, inside] of Object.entries(value)) flatten(inside, at ? `${at}.${key}` : key, into);
  return into;
}

/** A stranger's text (a token's name) that a spreadsheet would take for a formula gets an apostrophe before it. */
function csvCell(value) {
  const text = String(value);
  const safe = /^[=+\-@\t\r]/.test(text) && !/^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function save(file, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = file;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
