// Elements that several views share: headings, lists, tables, figures.

import { h, type Child } from "./dom";
import type { Store } from "./store";

export interface Context {
  store: Store;
  go: (what: string) => void; // a link that selects something
}

/** prose sets the parts of a text between backticks as code. */
export const prose = (text: string): Child =>
  text.split("`").map((part, i) => (i % 2 ? h("code", null, part) : part));

export function heading(kind: string, title: string, ...rest: Child[]): Child {
  return h("header", { class: "head", "data-key": "head" },
    h("div", null, h("p", { class: "kind" }, kind), h("h2", { tabindex: -1 }, title)), rest);
}

export function section(key: string, title: string, ...children: Child[]): Child {
  return h("section", { "data-key": key, class: `part ${key}` }, h("h3", null, title), children);
}

export function table(caption: string, columns: string[], rows: Child[]): Child {
  return h("div", { class: "scroll" }, h("table", null,
    h("caption", { class: "hidden" }, caption),
    h("thead", null, h("tr", null, columns.map((c) => {
      const right = c.startsWith(">");
      return h("th", { scope: "col", class: right ? "num" : null }, right ? c.slice(1) : c);
    }))),
    h("tbody", null, rows)));
}

export const cell = (...c: Child[]): Child => h("td", null, c);
/** addresses is a cell with an address a line. Long ones break before the port, then after colons. */
export const addresses = (list: string[]): Child => h("td", { class: "addr" }, list.map((a) => {
  const [, addr = a, port = ""] = /^(.*\]:)(\d+)$/.exec(a) ?? [];
  return h("div", null, h("span", null, addr.split(/(?<=:)(?=[^:])/).map((part, i) => [i > 0 && h("wbr", null), part])), port);
}));
export const num = (...c: Child[]): Child => h("td", { class: "num" }, c);

export function figure(name: string, value: string, note = ""): Child {
  return h("div", { class: "figure", "data-key": name }, h("dt", null, name),
    h("dd", null, value, note && h("small", null, note)));
}

/** item is a button of a list that selects something. */
export function item(what: string, mark: Child, title: Child, note: Child): Child {
  return h("li", { "data-key": what }, h("button", { class: "item", "data-do": "go", "data-arg": what },
    mark, h("span", { class: "title" }, title), h("span", { class: "note" }, note)));
}

export function empty(text: string): Child {
  return h("p", { class: "empty" }, text);
}
