// SPDX-License-Identifier: Apache-2.0
//
// Elements. Names of jobs, hosts and files become text here, and never markup.

const SVG = "http://www.w3.org/2000/svg";  // a name, from which nothing is
                                           // loaded

export const $ = (selector, root = document) => root.querySelector(selector);

// h("p", {class: "hint", style: {width: "3%"}, onclick: f}, "text", other)
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Makes an element of a drawing.
export function svg(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// A number and its text: the number for programs, the text for people.
export const data = (value, text) => h("data", { value }, text);

// Makes the children of `parent` one for each item, in this order. Existing
// ones stay, with their focus: a browser takes it from an element that moves,
// so that it is given back. No two items have the same key.
export function keyed(parent, items, keyOf, create, update) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  let before = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let child = known.get(key);
    if (child === undefined) {
      child = create(item);
      child.dataset.key = key;
    }
    known.delete(key);
    if (child === before) before = before.nextElementSibling;
    else parent.insertBefore(child, before);
    update(child, item);
  }
  for (const child of known.values()) child.remove();
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

// Sets a text if it has changed, so that screen readers do not repeat it.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Returns the current colours of the style sheet.
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Makes a canvas of `width` x `height` in CSS pixels, sharp on every screen.
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}
