// Elements. A view builds its elements again for each change. lay merges them into the document and
// keeps elements that are equal, with their focus, scroll position and the position of a screen
// reader. The attribute data-do names an element's action, so no handler has to be attached again.

export type Child = Node | string | number | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | null | undefined>;

const svgSpace = "http://www.w3.org/2000/svg";

function fill(e: Element, attributes: Attributes | null, children: Child[]): void {
  if (attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) e.setAttribute(name, "");
      else if (value !== false && value != null) e.setAttribute(name, String(value));
    }
  }
  append(e, children);
}

function append(e: Element, children: Child[]): void {
  for (const c of children) {
    if (Array.isArray(c)) append(e, c);
    else if (c instanceof Node) e.append(c);
    else if (c !== null && c !== undefined && c !== false) e.append(String(c));
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes | null, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  fill(e, attributes, children);
  return e;
}

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K, attributes: Attributes | null, ...children: Child[]
): SVGElementTagNameMap[K] {
  const e = document.createElementNS(svgSpace, tag);
  fill(e, attributes, children);
  return e;
}

function keyOf(n: Node): string | null {
  return n instanceof Element ? n.getAttribute("data-key") : null;
}

function alike(a: Node, b: Node): boolean {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

/** lay replaces the children of an element by those of a list and keeps equal ones. */
export function lay(into: Element, children: Child[]): void {
  const fresh = document.createElement("div");
  append(fresh, children);
  morphChildren(into, fresh);
}

function morphChildren(old: Element, fresh: Element): void {
  let at: ChildNode | null = old.firstChild;
  for (const want of [...fresh.childNodes]) {
    let have: ChildNode | null = at;
    if (keyOf(want) !== null) {
      while (have && !alike(have, want)) have = have.nextSibling;
    } else if (have && !alike(have, want)) {
      have = null;
    }
    if (!have) {
      old.insertBefore(want, at);
      continue;
    }
    if (have === at) at = at!.nextSibling;
    else old.insertBefore(have, at);
    morph(have, want);
  }
  while (at) {
    const next: ChildNode | null = at.nextSibling;
    at.remove();
    at = next;
  }
}

function morph(old: Node, want: Node): void {
  if (!(old instanceof Element) || !(want instanceof Element)) {
    if (old.nodeValue !== want.nodeValue) old.nodeValue = want.nodeValue;
    return;
  }
  if (old.hasAttribute("data-own")) return; // the element's owner updates it
  for (const a of [...old.attributes]) {
    if (!want.hasAttribute(a.name)) old.removeAttribute(a.name);
  }
  for (const a of want.attributes) {
    if (old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
  }
  if (old instanceof HTMLInputElement && want instanceof HTMLInputElement) {
    if (old.type === "checkbox") old.checked = want.hasAttribute("checked");
    else if (old.dataset["held"] === undefined && document.activeElement !== old) {
      old.value = want.value;
    }
    return;
  }
  if (old instanceof HTMLSelectElement) {
    const chosen = old.value, before = old.querySelector<HTMLOptionElement>("option[selected]")?.value;
    morphChildren(old, want);
    const now = (want as HTMLSelectElement).value;
    // keep the user's choice, unless the view chooses another value
    old.value = now === before ? chosen : now;
    if (old.selectedIndex < 0) old.selectedIndex = 0;
    return;
  }
  morphChildren(old, want);
}
