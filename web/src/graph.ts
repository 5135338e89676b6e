// The picture of the network.

import { lay, s, type Child } from "./dom";
import { bitRate, percent, plural } from "./format";
import { layBeside, layOut } from "./layout";
import type { Flow, LinkState, Store } from "./store";
import { read } from "./words";

export type Mode = "load" | "queue" | "loss";

/** Highlight is what the picture stresses: a way, or a tree of next hops. */
export interface Highlight {
  links: Set<number>;
  nodes: Set<string>;
  hops: { from: string; to: string; label: string }[];
  target: string; // a node
}

interface Spot { id: string; x: number; y: number }

const hub = (id: number): string => `link ${id}`;

/** grade is how much of a thing there is, in five steps that have a colour and a width each. */
export function grade(store: Store, f: Flow, mode: Mode): number {
  if (mode === "loss") {
    const set = f.packets > 0 ? f.lost : configured(store, f);
    return set <= 0 ? 0 : set < 0.01 ? 1 : set < 0.05 ? 2 : set < 0.2 ? 3 : 4;
  }
  if (mode === "queue") {
    const limit = read(words(store, f)).limit;
    const share = f.waiting / limit;
    return f.waiting === 0 ? 0 : share < 0.1 ? 1 : share < 0.5 ? 2 : share < 0.9 ? 3 : 4;
  }
  const capacity = store.capacity(f);
  if (capacity === Infinity) {
    return f.bits < 2e3 ? 0 : f.bits < 1e6 ? 1 : f.bits < 1e8 ? 2 : 3;
  }
  const share = f.bits / capacity;
  return share < 0.01 ? 0 : share < 0.3 ? 1 : share < 0.6 ? 2 : share < 0.9 ? 3 : 4;
}

function words(store: Store, f: Flow): string {
  return store.nodes.get(f.from.node)?.faces.get(f.from.iface)?.out?.words ?? "nothing";
}

function configured(store: Store, f: Flow): number {
  return read(words(store, f)).loss ?? 0;
}

export const legends: Record<Mode, { title: string; steps: string[] }> = {
  load: { title: "Load", steps: ["idle", "< 30 %", "< 60 %", "< 90 %", "full"] },
  queue: { title: "Queue", steps: ["empty", "< 10 %", "< 50 %", "< 90 %", "full"] },
  loss: { title: "Loss", steps: ["none", "< 1 %", "< 5 %", "< 20 %", "more"] },
};

/** steps are the legend's words. Load is a share of a link's rate, where it has one. */
export function steps(store: Store, mode: Mode): string[] {
  const capacities = mode === "load" ? store.links.flatMap((l) => l.flows.map((f) => store.capacity(f))) : [];
  const some = capacities.some((c) => c !== Infinity);
  if (!capacities.includes(Infinity)) return legends[mode].steps;
  const plain = ["idle", "< 1 Mbit/s", "< 100 Mbit/s", "more"];
  return some ? plain.map((t, i) => (i ? `${legends.load.steps[i]}, ${t}` : t)).concat("full") : plain;
}

export class Graph {
  readonly element: SVGSVGElement;
  mode: Mode = "load";
  highlight: Highlight | null = null;
  selected = "";
  private spots: Spot[] = [];
  private place = new Map<string, [number, number]>();
  private size: [number, number] = [800, 600];
  private zoom = 1; // of the nodes
  private edges = s("g", null);
  private marks = s("g", null);
  private heads = s("g", null);
  private current = ""; // where the Tab key arrives

  constructor(private readonly store: Store, private readonly select: (what: string) => void) {
    this.element = s("svg", {
      class: "graph", role: "group", "aria-label": "Topology", "aria-describedby": "graph-help",
    },
    s("defs", null,
      s("marker", {
        id: "arrow", viewBox: "0 0 10 10", refX: "8.5", refY: "5", markerWidth: "5.5",
        markerHeight: "5.5", orient: "auto-start-reverse",
      }, s("path", { d: "M0 0.8 9.4 5 0 9.2z", class: "arrowhead" }))),
    this.edges, this.marks, this.heads);
    new ResizeObserver(() => this.resize()).observe(this.element);
    this.element.addEventListener("click", (e) => this.click(e));
    this.element.addEventListener("keydown", (e) => this.key(e));
    this.element.addEventListener("focusin", (e) => {
      const what = (e.target as Element).getAttribute("data-what");
      if (what) this.roam(what);
    });
    this.element.addEventListener("pointerdown", (e) => this.grab(e));
  }

  /** shape lays the nodes out anew. Those that stay keep their places, and others come beside them. */
  shape(): void {
    const ids = [...this.store.nodes.keys()];
    const index = new Map(ids.map((id, i) => [id, i]));
    const edges: [number, number][] = [];
    for (const l of this.store.links) {
      const ends = l.ends.map((e) => index.get(e.node)!);
      if (ends.length === 2) edges.push([ends[0]!, ends[1]!]);
      else if (ends.length > 2) {
        for (const e of ends) edges.push([e, ids.length]);
        ids.push(hub(l.id));
      }
    }
    const keep = ids.map((id) => this.place.get(id) ?? null);
    const some = keep.some(Boolean);
    const at = some ? layBeside(keep, edges, this.size) : layOut(ids.length, edges);
    const hop = some ? 110 * this.zoom : 1; // pixels become hops again, for when the window changes
    this.spots = ids.map((id, i) => ({ id, x: at[i]![0] / hop, y: at[i]![1] / hop }));
    if (!some) {
      this.resize();
      return;
    }
    this.place = new Map(ids.map((id, i) => [id, at[i]!]));
    this.draw();
  }

  private resize(): void {
    const box = this.element.getBoundingClientRect();
    if (box.width < 10 || box.height < 10) return;
    this.size = [box.width, box.height];
    this.element.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    this.settle();
    this.draw();
  }

  /** settle turns the picture so that its long side lies along the window's, and makes it fit. */
  private settle(): void {
    const spots = this.spots;
    if (spots.length === 0) return;
    const [w, h] = this.size;
    const mx = mean(spots.map((d) => d.x)), my = mean(spots.map((d) => d.y));
    const widest = 240; // pixels a hop
    let best: { turned: [string, number, number][]; scale: number } | null = null;
    let most = -Infinity;
    const under = w < 500 ? 84 : 60; // the legend's
    const room = [Math.max(60, w - (w < 500 ? 84 : 130)), Math.max(60, h - under - 84)] as const;
    for (let step = 0; step < 36; step++) {
      const a = (step / 36) * Math.PI;
      const turned = spots.map((d): [string, number, number] => {
        const x = d.x - mx, y = d.y - my;
        return [d.id, x * Math.cos(a) - y * Math.sin(a), x * Math.sin(a) + y * Math.cos(a)];
      });
      const wide = span(turned.map((t) => t[1])), high = span(turned.map((t) => t[2]));
      const scale = Math.min(room[0] / Math.max(wide, 1), room[1] / Math.max(high, 1));
      const good = Math.min(scale, widest) - high * 4; // lying rather than standing
      if (good > most + 1e-6) [best, most] = [{ turned, scale }, good];
    }
    const { turned } = best!;
    const scale = Math.min(best!.scale, widest);
    // The first node stands at the left, and above: as people write.
    const first = turned[0]!;
    const fx = first[1] > 1 ? -1 : 1, fy = first[2] > 1 ? -1 : 1;
    const cx = (Math.max(...turned.map((t) => t[1])) + Math.min(...turned.map((t) => t[1]))) / 2;
    const cy = (Math.max(...turned.map((t) => t[2])) + Math.min(...turned.map((t) => t[2]))) / 2;
    this.zoom = clamp(scale / 110, 0.62, 1);
    this.place.clear();
    for (const [id, x, y] of turned) {
      this.place.set(id, [w / 2 + (x - cx) * fx * scale, (h - under) / 2 + 6 + (y - cy) * fy * scale]);
    }
  }

  draw(): void {
    if (this.place.size === 0) return;
    if (!this.current && this.store.nodes.size) {
      this.current = `node:${[...this.store.nodes.keys()][0]}`;
    }
    this.element.classList.toggle("stressed", this.highlight !== null);
    lay(this.edges, this.store.links.map((l) => this.link(l)));
    lay(this.marks, (this.highlight?.hops ?? []).map((hop) => this.hop(hop)));
    lay(this.heads, [...this.store.nodes.values()].map((n) => this.node(n.name)));
  }

  private at(id: string): [number, number] {
    return this.place.get(id) ?? [0, 0];
  }

  private link(l: LinkState): Child {
    const what = `link:${l.id}`;
    const cut = this.store.cut(l), broken = this.store.broken(l);
    const middle: [number, number] = l.ends.length === 2
      ? mid(this.at(l.ends[0]!.node), this.at(l.ends[1]!.node)) : this.at(hub(l.id));
    const worst = l.flows.reduce((a, f) =>
      grade(this.store, f, this.mode) > grade(this.store, a, this.mode) ? f : a, l.flows[0]!);
    const g = cut || broken ? 0 : grade(this.store, worst, this.mode);
    const impaired = this.store.impaired(l);
    const lines: Child[] = [], flows: Child[] = [];
    const ends = l.ends.length === 2 ? [l.ends] : l.ends.map((e) => [e, null]);
    for (const [from, to] of ends) {
      const [x1, y1] = this.at(from!.node);
      const [x2, y2] = to ? this.at(to.node) : middle;
      const d = `M${fix(x1)} ${fix(y1)}L${fix(x2)} ${fix(y2)}`;
      lines.push(s("path", { class: "hit", d }), s("path", { class: "halo", d }),
        s("path", { class: "line", d }));
    }
    if (!cut && !broken && l.ends.length === 2) {
      for (const f of l.flows) {
        const [x1, y1] = this.at(f.from.node), [x2, y2] = this.at(f.to!.node);
        const len = Math.hypot(x2 - x1, y2 - y1) || 1;
        const ox = (-(y2 - y1) / len) * 4.5, oy = ((x2 - x1) / len) * 4.5;
        const pace = f.bits < 2e3 ? 0 : f.bits < 1e6 ? 1 : f.bits < 1e8 ? 2 : 3;
        if (pace === 0) continue;
        flows.push(s("path", {
          class: `flow pace${pace}`, "data-key": f.from.node,
          d: `M${fix(x1 + ox)} ${fix(y1 + oy)}L${fix(x2 + ox)} ${fix(y2 + oy)}`,
        }));
      }
    }
    const label = cut ? "cut" : broken ? "" : this.figure(worst, g);
    const stressed = this.highlight?.links.has(l.id);
    return s("g", {
      "data-key": what, "data-what": what, tabindex: this.current === what ? 0 : -1,
      role: "button", "aria-pressed": this.selected === what ? "true" : "false",
      "aria-label": this.describe(l),
      class: `edge g${g}${cut ? " cut" : ""}${broken ? " broken" : ""}` +
        `${impaired ? " impaired" : ""}${this.selected === what ? " selected" : ""}` +
        `${stressed ? " stress" : ""}`,
    },
    lines, flows,
    l.ends.length > 2 && s("circle", { class: "hub", cx: fix(middle[0]), cy: fix(middle[1]), r: 6 }),
    cut && s("g", { class: "cross" }, s("path", {
      d: `M${fix(middle[0] - 7)} ${fix(middle[1] - 7)}l14 14m0-14l-14 14`,
    })),
    this.label(l, middle, label, cut ? "" : impaired));
  }

  /** label writes beside a link, on the side that looks out of the picture. */
  private label(l: LinkState, [x, y]: [number, number], main: string, sub: string): Child {
    const small = this.size[0] < 500 && this.selected !== `link:${l.id}`;
    const texts = [main, small ? "" : sub].filter(Boolean);
    if (texts.length === 0) return null;
    let nx = 0, ny = -1;
    const long = Math.max(...texts.map((t) => t.length)) * 7.4;
    if (l.ends.length === 2) {
      const [x1, y1] = this.at(l.ends[0]!.node), [x2, y2] = this.at(l.ends[1]!.node);
      const len = Math.hypot(x2 - x1, y2 - y1) || 1;
      [nx, ny] = [-(y2 - y1) / len, (x2 - x1) / len];
      const out = (x - this.size[0] / 2) * nx + (y - this.size[1] / 2) * ny;
      if (out < -4 || (out <= 4 && ny > 0)) [nx, ny] = [-nx, -ny];
      const tight = Math.abs(nx) <= 0.4 && len < long + 64 * this.zoom;
      if (tight && this.selected !== `link:${l.id}`) return null;
    }
    const anchor = nx > 0.4 ? "start" : nx < -0.4 ? "end" : "middle";
    const reach = { start: [0, long], middle: [-long / 2, long / 2], end: [-long, 0] }[anchor];
    x = clamp(x + nx * 16, 4 - reach[0]!, this.size[0] - 4 - reach[1]!);
    const top = y + ny * 16 + 5 - (texts.length - 1) * 8 * (1 - ny);
    return texts.map((t, i) => s("text", {
      class: t === main ? "figure" : "setting", x: fix(x), y: fix(top + i * 16),
      "text-anchor": anchor,
    }, t));
  }

  private figure(f: Flow, g: number): string {
    if (this.mode === "load") return g > 0 ? bitRate(f.bits) : "";
    if (this.mode === "queue") return f.waiting > 0 ? plural(f.waiting, "packet") : "";
    return f.lost > 0 ? `${percent(f.lost)} lost` : "";
  }

  /** describe is a link in words. */
  private describe(l: LinkState): string {
    const name = `Link ${this.store.linkName(l)}`;
    if (this.store.cut(l)) return `${name}, cut`;
    if (this.store.broken(l)) return `${name}, a node is down`;
    const impaired = this.store.impaired(l);
    const busy = l.flows.filter((f) => f.bits > 2e3)
      .map((f) => `${bitRate(f.bits)} from ${f.from.node}`).join(", ");
    return [name, busy || "idle", impaired].filter(Boolean).join(", ");
  }

  private node(name: string): Child {
    const n = this.store.nodes.get(name)!;
    const what = `node:${name}`;
    const [x, y] = this.at(name);
    const faces = [...n.faces.values()];
    const dead = n.heard && !n.up;
    const dim = this.highlight && !this.highlight.nodes.has(name);
    return s("g", {
      "data-key": what, "data-what": what, tabindex: this.current === what ? 0 : -1,
      role: "button", "aria-pressed": this.selected === what ? "true" : "false",
      "aria-label": `${n.router ? "Router" : "Host"} ${name}, ` + (dead ? "down"
        : `${plural(faces.length, "interface")}, ${plural(n.routes.length, "route")}`),
      class: `node ${n.router ? "router" : "host"}${dead ? " dead" : ""}${dim ? " dim" : ""}` +
        `${this.selected === what ? " selected" : ""}` +
        `${this.highlight?.target === name ? " target" : ""}`,
      transform: `translate(${fix(x)} ${fix(y)}) scale(${this.zoom.toFixed(2)})`,
    },
    n.router ? s("circle", { class: "ring", r: 33 })
      : s("rect", { class: "ring", x: -37, y: -28, width: 74, height: 56, rx: 13 }),
    n.router ? s("circle", { class: "body", r: 26 })
      : s("rect", { class: "body", x: -30, y: -21, width: 60, height: 42, rx: 8 }),
    s("text", {
      class: `name${name.length > 3 ? " long" : ""}${name.length > 6 ? " longer" : ""}`, y: name.length > 6 ? 4 : 6,
      "text-anchor": "middle",
    }, name),
    dead && s("text", { class: "setting", y: 46, "text-anchor": "middle" }, "down"));
  }

  private hop(hop: { from: string; to: string; label: string }): Child {
    const [x1, y1] = this.at(hop.from), [x2, y2] = this.at(hop.to);
    const len = Math.hypot(x2 - x1, y2 - y1) || 1;
    const ux = (x2 - x1) / len, uy = (y2 - y1) / len;
    const r = 40 * this.zoom;
    const a = [x1 + ux * r, y1 + uy * r], b = [x2 - ux * r, y2 - uy * r];
    return s("g", { "data-key": `${hop.from}>${hop.to}`, class: "hop" },
      s("path", { class: "halo", d: `M${fix(a[0]!)} ${fix(a[1]!)}L${fix(b[0]!)} ${fix(b[1]!)}` }),
      s("path", {
        class: "line", "marker-end": "url(#arrow)",
        d: `M${fix(a[0]!)} ${fix(a[1]!)}L${fix(b[0]!)} ${fix(b[1]!)}`,
      }),
      s("g", { transform: `translate(${fix(x1 + ux * (r + 16))} ${fix(y1 + uy * (r + 16))})` },
        s("circle", { class: "cost", r: 11 }),
        s("text", { class: "costText", y: 4, "text-anchor": "middle" }, hop.label)));
  }

  private click(e: MouseEvent): void {
    const g = (e.target as Element).closest("[data-what]");
    this.select(g?.getAttribute("data-what") ?? "");
  }

  private key(e: KeyboardEvent): void {
    const what = (e.target as Element).getAttribute("data-what");
    if (!what) return;
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    if (step) {
      e.preventDefault();
      const next = this.nearest(what, step[0]!, step[1]!);
      if (next) this.focus(next);
    } else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      this.select(what);
    } else if (e.key === "Home") {
      e.preventDefault();
      this.focus(`node:${[...this.store.nodes.keys()][0]}`);
    }
  }

  private middle(what: string): [number, number] {
    if (what.startsWith("node:")) return this.at(what.slice(5));
    const l = this.store.link(what.slice(5))!;
    return l.ends.length === 2 ? mid(this.at(l.ends[0]!.node), this.at(l.ends[1]!.node))
      : this.at(hub(l.id));
  }

  /** nearest is what lies next in a direction. */
  private nearest(from: string, dx: number, dy: number): string {
    const [x, y] = this.middle(from);
    let best = "", least = Infinity;
    const all = [...[...this.store.nodes.keys()].map((n) => `node:${n}`),
      ...this.store.links.map((l) => `link:${l.id}`)];
    for (const what of all) {
      if (what === from) continue;
      const [px, py] = this.middle(what);
      const along = (px - x) * dx + (py - y) * dy;
      const aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (along <= 1 || aside > along * 2.2) continue;
      const d = along + aside * 1.5;
      if (d < least) [best, least] = [what, d];
    }
    return best;
  }

  focus(what: string): void {
    this.roam(what);
    this.element.querySelector<SVGElement>(`[data-what="${CSS.escape(what)}"]`)?.focus();
  }

  private roam(what: string): void {
    if (this.current === what) return;
    this.current = what;
    for (const g of this.element.querySelectorAll("[data-what]")) {
      g.setAttribute("tabindex", g.getAttribute("data-what") === what ? "0" : "-1");
    }
  }

  /** grab lets a node be put elsewhere. */
  private grab(e: PointerEvent): void {
    const what = (e.target as Element).closest(".node")?.getAttribute("data-what");
    if (!what || e.button !== 0) return;
    const id = what.slice(5);
    const start = this.at(id);
    let moved = false;
    const move = (m: PointerEvent): void => {
      const x = start[0] + m.clientX - e.clientX, y = start[1] + m.clientY - e.clientY;
      if (!moved && Math.hypot(x - start[0], y - start[1]) < 5) return;
      moved = true;
      this.place.set(id, [clamp(x, 36, this.size[0] - 36), clamp(y, 36, this.size[1] - 36)]);
      this.draw();
    };
    const up = (): void => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", up);
      if (moved) {
        const swallow = (c: Event): void => c.stopPropagation();
        this.element.addEventListener("click", swallow, { capture: true, once: true });
        setTimeout(() => this.element.removeEventListener("click", swallow, true), 50);
      }
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", up);
  }
}

const mean = (list: number[]): number => list.reduce((a, b) => a + b, 0) / Math.max(1, list.length);
const span = (list: number[]): number => Math.max(...list) - Math.min(...list);
const fix = (n: number): string => n.toFixed(1);
const clamp = (n: number, low: number, high: number): number => Math.min(high, Math.max(low, n));
const mid = (a: [number, number], b: [number, number]): [number, number] =>
  [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
