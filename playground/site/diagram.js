// The diagram of the editor: it shows the network of the .net file, and users change the text by
// mouse, touch and keyboard. plan.js makes the changes.

import { element, svg } from "./dom.js";
import * as plan from "./plan.js";

const most = 100; // number of nodes
const apart = [0.2, 0.14, 0.08]; // distances of two nodes, as shares of the diagram's width, the best first

/** layers places nodes by their distances in hops from the first host with one link. */
function layers({ nodes, links }) {
  const near = new Map(nodes.map((n) => [n.name, []]));
  for (const { a, b } of links) {
    near.get(a).push(b);
    near.get(b).push(a);
  }
  const depth = new Map(), columns = [];
  const first = nodes.find((n) => near.get(n.name).length === 1);
  for (const { name } of first ? [first, ...nodes] : nodes) {
    if (depth.has(name)) continue;
    depth.set(name, 0);
    for (const queue = [name]; queue.length;) {
      const n = queue.shift();
      (columns[depth.get(n)] ??= []).push(n);
      for (const m of near.get(n).filter((m) => !depth.has(m))) {
        depth.set(m, depth.get(n) + 1);
        queue.push(m);
      }
    }
  }
  return new Map(columns.flatMap((c, i) => c.map((name, k) =>
    [name, { x: (i + 0.5) / columns.length, y: (k + 0.5) / c.length }])));
}

export class Diagram {
  /** change(text) is called with each new text. */
  constructor(change) {
    this.change = change;
    this.places = new Map(); // by name, from 0 to 1
    this.chosen = ""; // "node A", "link 3" (its line) or nothing
    this.bad = new Set(); // numbers of lines with errors
    this.text = "";
    this.element = element(`<div class="diagram"><div class="row palette">
      <button data-role="host" title="Drag it into the diagram"><i class="host"></i>Host</button>
      <button data-role="router" title="Drag it into the diagram"><i class="router"></i>Router</button>
      <span class="hint">Drag a node onto another to link them, or to a free place to move it.</span></div>
      <div class="canvas"></div><form class="row" aria-label="The selected node or link"></form></div>`);
    this.form = this.element.querySelector("form");
    this.form.addEventListener("submit", (e) => e.preventDefault());
    this.canvas = this.element.querySelector(".canvas");
    this.svg = this.canvas.appendChild(svg("svg", { role: "group", "aria-label": "Diagram of the network" }));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.listen();
  }

  listen() {
    for (const b of this.element.querySelectorAll(".palette button")) {
      b.addEventListener("pointerdown", (e) => this.drag(e, { role: b.dataset.role, button: b }));
      // a click by keyboard
      b.addEventListener("click", (e) => e.detail === 0 && this.add(b.dataset.role));
    }
    const what = (e) => e.target.closest("[data-what]")?.dataset.what ?? "";
    this.svg.addEventListener("pointerdown", (e) => {
      const w = what(e);
      if (w.startsWith("node ")) this.drag(e, { node: w.slice(5) });
      else this.choose(w);
    });
    this.svg.addEventListener("keydown", (e) => this.key(e, what(e)));
    this.svg.addEventListener("focusin", (e) => what(e) !== this.chosen && !this.drawing && this.choose(what(e)));
  }

  key(e, w) {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key] ?? [];
    if (w.startsWith("node ") && dx !== undefined) {
      const p = this.places.get(w.slice(5));
      this.move(w.slice(5), { x: p.x + dx / 20, y: p.y + dy / 10 });
    } else if (w && (e.key === "Delete" || e.key === "Backspace")) {
      this.remove(w);
    } else if (w && e.key === "Enter") {
      this.form.querySelector("input, select")?.focus();
    } else {
      return;
    }
    e.preventDefault();
  }

  // Changing the text.

  edit(text) { this.change(text); }

  add(role, at = this.free({ x: 0.5, y: 0.5 })) {
    const name = plan.unused(this.text, role);
    this.places.set(name, at);
    this.chosen = `node ${name}`;
    this.edit(plan.addNode(this.text, name, role));
  }

  link(a, b) {
    const text = plan.addLink(this.text, a, b);
    const made = plan.read(text).links.findLast((l) => l.a === a && l.b === b);
    this.chosen = `link ${made.line}`;
    this.edit(text);
  }

  remove(w) {
    const [kind, id] = w.split(" ");
    this.chosen = "";
    this.edit(kind === "node" ? plan.removeNode(this.text, id) : plan.removeLink(this.text, Number(id)));
  }

  // Dragging a node, or a new one from the palette.

  drag(e, from) {
    if (e.button !== 0) return;
    e.preventDefault();
    e.target.releasePointerCapture?.(e.pointerId); // of a touch
    this.stop?.();
    const until = new AbortController(), how = { signal: until.signal };
    const start = { x: e.clientX, y: e.clientY };
    this.stop = () => {
      until.abort();
      this.trace?.remove();
    };
    addEventListener("pointermove", (m) => {
      if (m.pointerId === e.pointerId && Math.hypot(m.clientX - start.x, m.clientY - start.y) > 4) this.trail(m, from);
    }, how);
    addEventListener("pointercancel", () => this.stop(), how);
    addEventListener("pointerup", (u) => {
      if (u.pointerId !== e.pointerId) return;
      this.stop();
      const moved = Math.hypot(u.clientX - start.x, u.clientY - start.y) > 4;
      this.drop(u, from, moved);
    }, how);
  }

  trail(e, { node, role }) {
    const { x, y } = this.at(e);
    const target = this.under(e, node);
    this.trace?.remove();
    this.trace = svg("g", { class: "trace" });
    const from = this.places.get(node);
    if (node) this.trace.append(svg("line", { x1: from.x * this.width, y1: from.y * this.height, x2: x * this.width, y2: y * this.height }));
    if (!target) this.trace.append(this.shape(role ?? this.plan.nodes.find((n) => n.name === node).role, x, y));
    this.svg.append(this.trace);
    for (const g of this.svg.querySelectorAll(".node")) g.classList.toggle("target", g.dataset.what === `node ${target}`);
  }

  drop(e, { node, role, button }, moved) {
    const p = this.at(e), inside = p.x >= 0 && p.x <= 1 && p.y >= 0 && p.y <= 1;
    const target = this.under(e, node);
    if (role && inside) this.add(role, p);
    else if (role && button.contains(document.elementFromPoint(e.clientX, e.clientY))) this.add(role);
    else if (node && moved && target) this.link(node, target);
    else if (node && moved && inside) this.move(node, p);
    else if (node) this.choose(`node ${node}`);
    this.draw();
  }

  at(e) {
    const r = this.svg.getBoundingClientRect();
    return { x: (e.clientX - r.left) / r.width, y: (e.clientY - r.top) / r.height };
  }

  /** under returns the node at a pointer, other than this one. */
  under(e, node) {
    const w = document.elementsFromPoint(e.clientX, e.clientY).map((x) => x.closest(".diagram .node")?.dataset.what)
      .find((w) => w && w !== `node ${node}`);
    return w?.slice(5);
  }

  move(node, { x, y }) {
    const within = (v) => Math.min(Math.max(v, 0.06), 0.94);
    this.places.set(node, { x: within(x), y: within(y) });
    this.draw();
  }

  /** free returns the free place that is nearest to another. */
  free(near) {
    for (const distance of apart) {
      let best, least = Infinity;
      for (let x = 0.08; x < 0.93; x += 0.07) {
        for (let y = 0.15; y < 0.9; y += 0.14) {
          const taken = [...this.places.values()].some((p) => Math.hypot(p.x - x, (p.y - y) / 2) < distance);
          const far = Math.hypot(near.x - x, (near.y - y) / 2);
          if (!taken && far < least) [best, least] = [{ x, y }, far];
        }
      }
      if (best) return best;
    }
    return near;
  }

  // Drawing.

  /** show draws a text. fresh forgets the places of its nodes. */
  show(text, fresh = false) {
    this.text = text;
    this.lnx = /^-- .*\.lnx --\s*$/m.test(text);
    this.plan = plan.read(this.lnx ? "" : text);
    for (const b of this.element.querySelectorAll(".palette button")) b.disabled = this.lnx;
    const { nodes, links } = this.plan;
    const names = new Set(nodes.map((n) => n.name));
    for (const name of this.places.keys()) if (!names.has(name)) this.places.delete(name);
    if (fresh || this.places.size === 0) this.places = layers(this.plan);
    for (const { name } of nodes) {
      if (this.places.has(name)) continue;
      const link = links.find((l) => (l.a === name && this.places.has(l.b)) || (l.b === name && this.places.has(l.a)));
      this.places.set(name, this.free(this.places.get(link?.a) ?? this.places.get(link?.b) ?? { x: 0.5, y: 0.5 }));
    }
    this.draw();
    this.choose(this.chosen);
  }

  /** errors marks the lines that have errors. */
  errors(lines) {
    this.bad = new Set(lines);
    this.mark();
  }

  /** mark shows what is chosen and what is wrong. */
  mark() {
    for (const g of this.svg.querySelectorAll("[data-what]")) {
      const [kind, id] = g.dataset.what.split(" "), chosen = g.dataset.what === this.chosen;
      g.classList.toggle("chosen", chosen);
      g.setAttribute("aria-pressed", chosen);
      g.classList.toggle("wrong", kind === "link" && this.bad.has(Number(id) + 1));
    }
  }

  choose(w) {
    const [kind, id] = w.split(" ");
    const there = kind === "node" ? this.places.has(id) : this.plan.links.some((l) => `link ${l.line}` === w);
    this.chosen = there ? w : "";
    this.mark();
    this.fields();
  }

  shape(role, x, y) {
    const [cx, cy] = [x * this.width, y * this.height];
    return role === "router" ? svg("circle", { cx, cy, r: 20 })
      : svg("rect", { x: cx - 20, y: cy - 16, width: 40, height: 32, rx: 5 });
  }

  draw() {
    if (!this.plan || !this.canvas.clientWidth) return;
    const focused = this.svg.contains(document.activeElement) ? document.activeElement.dataset.what : null;
    [this.width, this.height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    const { nodes, links } = this.plan;
    const not = this.lnx ? "The diagram does not show .lnx files." : nodes.length > most ? `The diagram shows networks of up to ${most} nodes.` : "";
    if (not) {
      this.svg.replaceChildren(svg("text", { x: this.width / 2, y: 24 }, not));
      return;
    }
    const part = (w, label, ...of) => svg("g", {
      "data-what": w, class: w.split(" ")[0], tabindex: 0, role: "button", "aria-label": label,
    }, ...of);
    const lines = links.map((l) => {
      const [a, b] = [this.places.get(l.a), this.places.get(l.b)];
      const ends = { x1: a.x * this.width, y1: a.y * this.height, x2: b.x * this.width, y2: b.y * this.height };
      return part(`link ${l.line}`, `Link ${l.a} ${l.b} ${l.words.join(" ")}`, svg("line", { ...ends, class: "wide" }), svg("line", ends),
        svg("text", { x: (ends.x1 + ends.x2) / 2, y: (ends.y1 + ends.y2) / 2 - 5 }, this.label(l.words, ends)));
    });
    const boxes = nodes.map((n) => {
      const p = this.places.get(n.name);
      const linked = links.flatMap((l) => (l.a === n.name ? [l.b] : l.b === n.name ? [l.a] : []));
      return part(`node ${n.name}`, `${n.role} ${n.name}, ${linked.length ? `linked to ${linked.join(", ")}` : "not linked"}`,
        this.shape(n.role, p.x, p.y), svg("text", { x: p.x * this.width, y: p.y * this.height + 5 }, n.name.length > 6 ? `${n.name.slice(0, 5)}…` : n.name));
    });
    this.svg.replaceChildren(...lines, ...boxes);
    this.mark();
    this.drawing = true; // focusing an element must not count as a change
    if (focused) this.svg.querySelector(`[data-what="${CSS.escape(focused)}"]`)?.focus();
    this.drawing = false;
  }

  /** label is the words of a link as far as there is room. */
  label(words, { x1, y1, x2, y2 }) {
    const text = words.filter((w) => w !== "delay" && w !== "rate").join(" "), room = Math.max(10, Math.floor(Math.hypot(x1 - x2, y1 - y2) / 7));
    return text.length > room ? `${text.slice(0, room - 1)}…` : text;
  }

  /** fields shows the fields of the chosen node or link. They stay while it is the same, and so does the focus. */
  fields() {
    const [kind, id] = this.chosen.split(" ");
    const link = kind === "link" ? this.plan.links.find((l) => l.line === Number(id)) : null;
    const of = `${this.chosen} ${link ? [link.a, link.b] : [...this.places.keys()]}`;
    if (of !== this.shown) {
      this.form.replaceChildren(...(kind === "node" ? this.nodeFields(id) : link ? this.linkFields(link) : []));
    }
    this.shown = of;
    for (const input of link && !this.plan.course ? this.form.querySelectorAll("input") : []) {
      const value = plan.setting(link.words, input.name);
      Object.assign(input, { value: value ?? "", placeholder: value === null ? "see text" : "", disabled: value === null });
    }
  }

  remover() {
    const b = element('<button type="button" name="remove">Remove</button>');
    b.addEventListener("click", () => this.remove(this.chosen));
    return b;
  }

  nodeFields(name) {
    const field = element('<label>Name <input name="name" size="6" spellcheck="false" autocomplete="off"></label>');
    const input = field.querySelector("input");
    input.value = name;
    input.addEventListener("change", () => {
      const to = input.value.trim();
      const taken = this.places.has(to);
      input.setCustomValidity(taken && to !== name ? `another node is called ${to}` : /^\w[\w.-]{0,63}$/.test(to) ? "" : "use letters, digits, dots, - and _");
      if (!input.reportValidity() || to === name) return;
      this.places.set(to, this.places.get(name));
      this.chosen = `node ${to}`;
      this.edit(plan.rename(this.text, name, to));
    });
    const others = [...this.places.keys()].filter((n) => n !== name);
    if (!others.length) return [field, this.remover()];
    const to = element('<label>Link to <select name="to"></select></label>');
    to.querySelector("select").append(...others.map((n) => new Option(n)));
    const add = element('<button type="button" name="link">Add link</button>');
    add.addEventListener("click", () => this.link(name, to.querySelector("select").value));
    return [field, to, add, this.remover()];
  }

  linkFields({ line, a, b }) {
    const title = Object.assign(document.createElement("strong"), { textContent: `${a} – ${b}` });
    if (this.plan.course) return [title, this.remover()];
    const inputs = [["delay", "Delay", "20ms"], ["loss", "Loss", "1%"], ["rate", "Rate", "10mbit"]].map(([key, name, example]) => {
      const label = element('<label><span></span> <input size="7" spellcheck="false" autocomplete="off"></label>');
      const input = label.querySelector("input");
      label.querySelector("span").textContent = name;
      Object.assign(input, { name: key, title: `For example ${example}` });
      input.addEventListener("change", () => this.edit(plan.set(this.text, line, key, input.value)));
      return label;
    });
    return [title, ...inputs, this.remover()];
  }
}
