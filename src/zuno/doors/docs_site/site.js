// Search over search.json: every word must be found; a heading counts more than the words below it.
const root = document.currentScript.dataset.root;
const field = document.getElementById("search");
const found = document.getElementById("found");
let sections = null;

async function load() {
  sections ??= fetch(`${root}search.json`).then((answer) => answer.json());
  return sections;
}

function score(section, words) {
  let sum = 0;
  for (const word of words) {
    const heading = (section.heading ?? "").toLowerCase(), page = section.page.toLowerCase();
    const counted = section.text.toLowerCase().split(word).length - 1;
    const points = (heading.includes(word) ? 20 : 0) + (page.includes(word) ? 8 : 0) + Math.min(counted, 5);
    if (!points) return 0;
    sum += points;
  }
  return sum;
}

function cut(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  return `${at ? "… " : ""}${text.slice(at, at + 140)}`;
}

function line(section, word) {
  const item = document.createElement("li"), link = document.createElement("a"), about = document.createElement("small");
  link.href = root + section.url;
  link.textContent = section.heading === section.page ? section.page : `${section.page}: ${section.heading}`;
  about.textContent = cut(section.text, word);
  link.append(about);
  item.append(link);
  return item;
}

async function search() {
  const typed = field.value, words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  let lines = [];
  if (words.length) {
    try {
      const scored = (await load()).map((section) => [score(section, words), section]).filter(([points]) => points);
      if (field.value !== typed) return;
      lines = scored.sort((a, b) => b[0] - a[0]).slice(0, 20).map(([, section]) => line(section, words[0]));
      if (!lines.length) lines = [Object.assign(document.createElement("li"), { textContent: "Nothing found." })];
    } catch {
      sections = null;
      lines = [Object.assign(document.createElement("li"), { textContent: "Search needs these files on a web server." })];
    }
  }
  found.replaceChildren(...lines);
  found.hidden = !lines.length;
}

field.addEventListener("input", search);
field.form.addEventListener("submit", (event) => { event.preventDefault(); found.querySelector("a")?.click(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
  if (event.key === "Escape") { field.value = ""; search(); }
});
