// Build elements. Data reaches the page as text nodes and checked attributes only; there is no way to pass markup.

const SVG = "http://www.w3.org/2000/svg";
const FORBIDDEN = new Set(["style", "innerhtml", "outerhtml", "srcdoc", "srcset", "formaction", "action"]);

/** An element: `h("p", {class: "note"}, "text", child)`. A function under `onclick` and the like becomes a listener. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) setAttribute(element, name, value);
  append(element, children);
  return element;
}

function setAttribute(element, name, value) {
  const key = name.toLowerCase();
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith("on")) {
    if (typeof value !== "function") throw new TypeError(`${name} takes a function`);
    element.addEventListener(key.slice(2), value);
  } else if (FORBIDDEN.has(key)) {
    throw new TypeError(`${name} may not be set`);
  } else if (key === "href" || key === "src" || key === "xlink:href") {
    if (isLocalAddress(String(value))) element.setAttribute(name, String(value));
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Links lead to places in this page or on this server: `#/…` or `/…`, never to a scheme or another host. */
export function isLocalAddress(address) {
  return /^#/.test(address) || /^\/(?![/\\])/.test(address);
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** A number for CSS, by the object model: the content policy forbids style attributes. */
export function setVariable(element, name, value) {
  element.style.setProperty(name, String(value));
  return element;
}

let counter = 0;
export function uniqueId(prefix) {
  counter += 1;
  return `${prefix}-${counter}`;
}
