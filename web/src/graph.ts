// The map of the network.

import { abbreviated, shared } from "./address";
import { h, lay, s, type Child } from "./dom";
import { bitRate, percent, plural } from "./format";
import { crosses, placeLabels, type Box, type Line, type Wanted } from "./labels";
import { layBeside, layOut, regular, type Point } from "./layout";
import type { Flow, LinkState, NodeState, Store } from "./store";
import { read } from "./words";

export type Mode = "load" | "queue" | "loss";

/** Highlight is what the map emphasizes: a path, or a tree of next hops. */
export interface Highlight {
  links: Set<number>;
  nodes: Set<string>;
  hops: { from: string; to: string }[];
  costs: Map<string, number>; // cost of each node
  target: string; // name of a node
}

interface Spot { id: string; x: number; y: number }

/** quiet is the rate, in bits per second, below which a link counts as idle: routing updates never stop. */
export const quiet = 10e3;

/** pace is the speed of the dots along a link; 0: no traffic, no dots. */
const pace = (f: Flow): number => (f.bits < 200 ? 0 : f.bits < 1e6 ? 1 : f.bits < 1e8 ? 2 : 3);

const longest = 6; // characters of a name that fits in its node
const shownOf = 18; // characters shown of a long name

/** beside is the number of label lines next to a node. */
const beside = (n: NodeState): number => Number(n.name.length > longest) + Number(n.heard && !n.up);

/** short removes the middle of a long name. */
export const short = (name: string, most = shownOf): string =>
  name.length <= most ? name : `${name.slice(0, most >> 1)}…${name.slice(1 - (most >> 1))}`;

/** Text is a line of a link's label, after its class. */
type Text = [sort: string, text: string];

/** versions returns a label, then shorter ones: with abbreviated prefixes, and with fewer lines. */
function versions(texts: Text[], groups: number): Text[][] {
  const brief = texts.map(([sort, x]): Text => [sort, sort === "prefix" ? abbreviated(x, groups) : x]);
  return texts.flatMap((_, i) => [texts, brief].map((all) => all.slice(0, texts.length - i)));
}

/** half is half the width of a character of link labels, by class. */
const half: Record<string, number> = { figure: 3.8, setting: 3.5, prefix: 3.3 };

const hub = (id: number): string => `link ${id}`;

/** grade maps a flow's load, queue or loss to one of five colors and widths. */
export function grade(store: Store, f: Flow, mode: Mode): number {
  if (mode === "loss") {
    const set = f.packets > 0 ? f.lost : configured(store, f);
    return set <= 0 ? 0 : set < 0.01 ? 1 : set < 0.05 ? 2 : set < 0.2 ? 3 : 4;
  }
  if (mode === "queue") {
    const limit = read(store.words(f)).limit;
    const share = f.waiting / limit;
    return f.waiting === 0 ? 0 : share < 0.1 ? 1 : share < 0.5 ? 2 : share < 0.9 ? 3 : 4;
  }
  const capacity = store.capacity(f);
  if (capacity === Infinity) {
    return f.bits < quiet ? 0 : f.bits < 1e6 ? 1 : f.bits < 1e8 ? 2 : 3;
  }
  const share = f.bits / capacity;
  return share < 0.01 ? 0 : share < 0.3 ? 1 : share < 0.6 ? 2 : share < 0.9 ? 3 : 4;
}

function configured(store: Store, f: Flow): number {
  return read(store.words(f)).loss ?? 0;
}

export const legends: Record<Mode, { title: string; steps: string[] }> = {
  load: { title: "Load", steps: ["idle", "< 30 % of its rate", "< 60 %", "< 90 %", "full"] },
  queue: { title: "Queue", steps: ["empty", "< 10 %", "< 50 %", "< 90 %", "full"] },
  loss: { title: "Loss", steps: ["none", "< 1 %", "< 5 %", "< 20 %", "20 % and more"] },
};

/** steps returns the legend's labels. Load is a share of a link's rate, if it has one. */
export function steps(store: Store, mode: Mode): string[] {
  const capacities = mode === "load" ? store.links.flatMap((l) => l.flows.map((f) => store.capacity(f))) : [];
  const some = capacities.some((c) => c !== Infinity);
  if (!capacities.includes(Infinity)) return legends[mode].steps;
  return some ? ["idle", "< 30 % of its rate (or 1 Mbit/s)", "< 60 % (or 100 Mbit/s)", "< 90 % (or more)", "full"]
    : ["idle", "< 1 Mbit/s", "< 100 Mbit/s", "100 Mbit/s and more"];
}

export class Graph {
  readonly element: SVGSVGElement;
  /** dots move along the links, above the element. The browser can move HTML without painting it again, but not SVG. */
  readonly dots = h("div", { class: "dots", "aria-hidden": "true" });
  mode: Mode = "load";
  highlight: Highlight | null = null;
  selected = "";
  private spots: Spot[] = [];
  private joined: [number, number][] = []; // pairs of indexes
  private straight = false; // a regular layout, rotated only by right angles
  private place = new Map<string, Point>();
  private lines: Line[][] = []; // one list for each link
  private size: [number, number] = [800, 600];
  private zoom = 1; // scale of the nodes
  private foot = 66; // the legend's height
  private reserved = 0; // height left free for the legend
  private edges = s("g", null);
  private marks = s("g", null);
  private heads = s("g", null);
  private current = ""; // the element that the Tab key focuses

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

  /** shape updates the layout. Nodes that stay keep their positions. */
  shape(): void {
    const ids = [...this.store.nodes.keys()];
    const index = new Map(ids.map((id, i) => [id, i]));
    const edges: [number, number][] = [];
    for (const l of this.store.links) {
      const ends = l.ends.map((e) => index.get(e.node)!);
      if (ends.length === 2) edges.push([ends[0]!, ends[1]!]);
      else {
        for (const e of ends) edges.push([e, ids.length]);
        ids.push(hub(l.id));
      }
    }
    const keep = ids.map((id) => this.place.get(id) ?? null);
    const some = keep.some(Boolean);
    const straight = some ? null : regular(ids.length, edges);
    const at = straight ?? (some ? layBeside(keep, edges, this.size) : layOut(ids.length, edges));
    const hop = some ? 110 * this.zoom : 1; // convert back to hops, so that a resize can scale them
    this.joined = edges;
    this.straight = straight !== null;
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

  /** settle rotates the layout to fill the window, and prefers horizontal links and names in reading order. */
  private settle(): void {
    const spots = this.spots;
    if (spots.length === 0) return;
    this.reserved = this.foot;
    const [w, h] = this.size;
    const under = h - this.bottom(), around = w < 500 ? 72 : 84;
    const room = [Math.max(60, w - (w < 500 ? 84 : 130)), Math.max(60, h - under - around)] as const;
    const widest = 240; // pixels per hop
    const upright = this.upright();
    let best: { at: Point[]; scale: number } = { at: [], scale: 1 };
    let most = -Infinity;
    const angles = this.straight ? [0, Math.PI / 2] : [upright.angle, upright.angle + Math.PI / 2,
      ...Array.from({ length: 36 }, (_, i) => (i / 36) * Math.PI)];
    for (const a of angles) {
      const at = turned(spots, a);
      const wide = span(at.map((p) => p[0])), high = span(at.map((p) => p[1]));
      const scale = Math.min(room[0] / Math.max(wide, 1), room[1] / Math.max(high, 1), widest);
      const good = scale * (1 + 0.4 * upright.share * Math.cos(4 * (a - upright.angle)) +
        0.03 * inRows(at)) - high * 4; // prefer wide layouts to tall ones
      if (good > most + 1e-6) [best, most] = [{ at, scale }, good];
    }
    const { at, scale } = best;
    const cx = middle(at.map((p) => p[0])), cy = middle(at.map((p) => p[1]));
    this.zoom = scale < 46 ? Math.max(0.12, scale / 74) : clamp(scale / 110, 0.62, 1);
    this.place = new Map(spots.map(({ id }, i) =>
      [id, [w / 2 + (at[i]![0] - cx) * scale, (h - under) / 2 + 6 + (at[i]![1] - cy) * scale]]));
  }

  /** upright returns the rotation with most horizontal and vertical links, and their share. */
  private upright(): { angle: number; share: number } {
    let x = 0, y = 0;
    for (const [i, j] of this.joined) {
      const a = 4 * Math.atan2(this.spots[j]!.y - this.spots[i]!.y, this.spots[j]!.x - this.spots[i]!.x);
      x += Math.cos(a);
      y += Math.sin(a);
    }
    return { angle: -Math.atan2(y, x) / 4, share: Math.hypot(x, y) / Math.max(1, this.joined.length) };
  }

  draw(): void {
    if (this.place.size === 0) return;
    if (!this.current && this.store.nodes.size) {
      this.current = `node:${[...this.store.nodes.keys()][0]}`;
    }
    this.element.classList.toggle("stressed", this.highlight !== null);
    this.lines = this.store.links.map((l) => l.ends.length === 2
      ? [[this.at(l.ends[0]!.node), this.at(l.ends[1]!.node)]]
      : l.ends.map((e): Line => [this.at(e.node), this.at(hub(l.id))]));
    const labels = this.labels();
    lay(this.edges, this.store.links.map((l) => this.link(l, labels.get(l.id) ?? [])));
    this.flow();
    lay(this.marks, (this.highlight?.hops ?? []).map((hop) => this.hop(hop)));
    lay(this.heads, [...this.store.nodes.values()].map((n) => this.node(n.name)));
  }

  private at(id: string): Point {
    return this.place.get(id) ?? [0, 0];
  }

  /** worst returns the flow of a link with the highest grade, and the grade. */
  private worst(l: LinkState): [Flow, number] {
    const grades = l.flows.map((f) => grade(this.store, f, this.mode));
    const top = Math.max(...grades);
    const most = l.flows.reduce((best, f, i) =>
      grades[i] === top && (best < 0 || f.bits > l.flows[best]!.bits) ? i : best, -1);
    return [l.flows[most]!, this.store.cut(l) || this.store.broken(l) ? 0 : grades[most]!];
  }

  private link(l: LinkState, label: Child[]): Child {
    const what = `link:${l.id}`;
    const cut = this.store.cut(l), broken = this.store.broken(l);
    const middle = this.middle(what);
    const [, g] = this.worst(l);
    const impaired = this.store.impaired(l);
    const lines: Child[] = [];
    const ends = l.ends.length === 2 ? [l.ends] : l.ends.map((e) => [e, null]);
    for (const [from, to] of ends) {
      const [x1, y1] = this.at(from!.node);
      const [x2, y2] = to ? this.at(to.node) : middle;
      const d = `M${fix(x1)} ${fix(y1)}L${fix(x2)} ${fix(y2)}`;
      lines.push(s("path", { class: "hit", d }), s("path", { class: "halo", d }),
        s("path", { class: "line", d }));
    }
    const stressed = this.highlight?.links.has(l.id);
    return s("g", {
      "data-key": what, "data-what": what, tabindex: this.current === what ? 0 : -1,
      role: "button", "aria-pressed": this.selected === what ? "true" : "false",
      "aria-label": this.describe(l),
      class: `edge g${g}${cut ? " cut" : ""}${broken ? " broken" : ""}` +
        `${impaired ? " impaired" : ""}${this.selected === what ? " selected" : ""}` +
        `${stressed ? " stress" : ""}`,
    },
    s("title", null, [this.store.linkName(l), ...l.ends.map((e) =>
      `${e.node} ${e.iface}: ${this.store.addresses(e).join(", ")}`)].join("\n")),
    lines,
    l.ends.length !== 2 && s("circle", { class: "hub", cx: fix(middle[0]), cy: fix(middle[1]), r: 6 }),
    cut && s("g", { class: "cross" }, s("path", {
      d: `M${fix(middle[0] - 7)} ${fix(middle[1] - 7)}l14 14m0-14l-14 14`,
    })),
    label);
  }

  /** flow shows the dots: a row for each direction with traffic, from node to node. */
  private flow(): void {
    const old = new Map([...this.dots.children].map((e) => [e.getAttribute("data-key"), e as HTMLElement]));
    const node = 26 * this.zoom;
    for (const l of this.store.links) {
      if (this.store.cut(l) || this.store.broken(l)) continue;
      for (const f of l.flows) {
        if (pace(f) === 0) continue;
        const ends: [Point, number][] = [[this.at(f.from.node), node], f.to ? [this.at(f.to.node), node] : [this.middle(`link:${l.id}`), 0]];
        const [[[x1, y1], before], [[x2, y2], after]] = (f.way === "in" ? ends.reverse() : ends) as [[Point, number], [Point, number]];
        const key = `${l.id} ${f.way} ${f.from.node}`;
        const row = old.get(key) ?? this.dots.appendChild(h("i", { "data-key": key }, h("b", null)));
        old.delete(key);
        row.className = `flow pace${pace(f)}`;
        // the server's policy forbids the attribute style
        row.style.width = `${fix(Math.max(0, Math.hypot(x2 - x1, y2 - y1) - before - after))}px`;
        row.style.transform = `translate(${fix(x1)}px, ${fix(y1)}px) rotate(${Math.atan2(y2 - y1, x2 - x1).toFixed(4)}rad) translate(${fix(before)}px, 2.5px)`;
      }
    }
    for (const row of old.values()) row.remove();
  }

  /** labels places the links' labels where there is room. */
  private labels(): Map<number, Child[]> {
    const groups = shared(this.store.links.flatMap((l) => this.store.subnets(l)));
    const words: { id: number; line: Line; texts: Text[]; first: number }[] = [];
    for (const [i, l] of this.store.links.entries()) {
      const [flow, g] = this.worst(l);
      const cut = this.store.cut(l), chosen = this.selected === `link:${l.id}`;
      const stressed = this.highlight?.links.has(l.id);
      const main = cut ? "cut" : this.store.broken(l) ? "" : this.figure(flow, g);
      const settings = this.store.settings(l), far = l.ends.length === 1 ? this.store.far(l) : "";
      const texts = ([["figure", this.highlight && !stressed && !cut ? "" : main],
        ...(cut ? [] : settings.length ? settings.flatMap(inLines) : [far]).map((x) => ["setting", x]),
        ...(this.highlight ? [] : this.store.subnets(l)).map((x) => ["prefix", x])] as Text[]).filter(([, x]) => x);
      if (texts.length) {
        words.push({
          id: l.id, line: this.lines[i]![0]!, texts,
          first: chosen ? 0 : cut ? 1 : stressed ? 2 : texts[0]![0] !== "prefix" ? 3 : 4,
        });
      }
    }
    words.sort((a, b) => a.first - b.first);
    const all = words.map(({ texts }) => versions(texts, groups));
    const size = (some: Text[]): Point => [Math.max(...some.map(([sort, x]) => x.length * half[sort]!)), some.length * 8];
    const wanted = words.map(({ line, first }, i): Wanted => ({
      line, must: first < 2, clear: first === 4 || (first === 3 && this.size[0] < 500), sizes: all[i]!.map(size),
    }));
    const faces = this.highlight ? [] : this.faces();
    const found = placeLabels([...wanted, ...faces.map((f) => f.wanted)], this.lines.flat(),
      [...this.store.nodes.values()].flatMap((n) => this.boxes(n)), [this.size[0], this.bottom()]);
    const made = new Map<number, Child[]>();
    words.forEach(({ id }, i) => {
      const b = found[i];
      const shown = b && all[i]!.find((some) => size(some).join() === [b.w, b.h].join());
      made.set(id, b && shown ? shown.map(([sort, x], k) => s("text", {
        class: sort, x: fix(b.x), y: fix(b.y - b.h + 16 * k + 12), "text-anchor": "middle",
      }, x)) : []);
    });
    faces.forEach(({ id, name }, i) => {
      const b = found[words.length + i];
      if (b) made.set(id, [...(made.get(id) ?? []), s("text", {
        class: "face", x: fix(b.x), y: fix(b.y + 4), "text-anchor": "middle",
      }, name)]);
    });
    return made;
  }

  /** faces returns the labels of interfaces, next to their nodes. */
  private faces(): { id: number; name: string; wanted: Wanted }[] {
    return this.store.links.flatMap((l, i) => l.ends.map((e, k) => {
      const own = this.lines[i]![l.ends.length === 2 ? 0 : k]!;
      const line: Line = l.ends.length === 2 && k === 1 ? [own[1], own[0]] : own;
      const long = Math.hypot(line[1][0] - line[0][0], line[1][1] - line[0][1]) || 1;
      const at = [10, 18, 28].map((px) => (34 * this.zoom + px) / long).filter((t) => t < 0.5);
      return { id: l.id, name: e.iface, wanted: {
        line, own, at, clear: true, sizes: [[e.iface.length * 3.3, 7]] as [number, number][],
      } };
    }));
  }

  /** boxes returns the rectangles that a node and its label cover. */
  private boxes(n: NodeState): Box[] {
    const [x, y] = this.at(n.name), z = this.zoom;
    const body = n.router ? [{ x, y, w: 28 * z, h: 14 * z }, { x, y, w: 20 * z, h: 28 * z }]
      : [{ x, y, w: 32 * z, h: 23 * z }];
    return beside(n) ? [...body, this.nameBox(n)] : body;
  }

  /** nameBox is the place of a node's label: below, or where no link crosses it. */
  private nameBox(n: NodeState): Box {
    const [x, y] = this.at(n.name), lines = beside(n);
    const h = 8 * lines, off = 30 * this.zoom + h + 1;
    const w = Math.max(n.name.length > longest ? short(n.name).length * 4.3 : 0, n.heard && !n.up ? 18 : 0);
    const inside = clamp(x, w + 3, this.size[0] - w - 3);
    const spots = [{ x: inside, y: y + off }, { x: inside, y: y - off },
      { x: x + 34 * this.zoom + w, y }, { x: x - 34 * this.zoom - w, y }].map((p): Box => ({ ...p, w, h }));
    const bad = spots.map((b) => this.lines.flat().filter((l) => crosses(l, b)).length +
      (b.x - w < 0 || b.x + w > this.size[0] || b.y - h < 0 || b.y + h > this.bottom() ? 9 : 0));
    return spots[bad.indexOf(Math.min(...bad))]!;
  }

  /** bottom is the legend's upper edge. */
  private bottom(): number {
    return this.size[1] - this.foot;
  }

  /** reserve keeps space for a legend of that height. */
  reserve(height: number): void {
    if (height === this.foot || height > this.size[1] / 2) return;
    this.foot = height;
    if (height > this.reserved) this.resize();
    else this.draw();
  }

  private figure(f: Flow, g: number): string {
    if (this.mode === "load") return g > 0 ? bitRate(f.bits) : "";
    if (this.mode === "queue") return f.waiting > 0 ? plural(f.waiting, "packet") : "";
    return f.lost > 0 ? `${percent(f.lost)} lost` : "";
  }

  /** describe is a link's description for screen readers. */
  private describe(l: LinkState): string {
    const name = `Link ${this.store.linkName(l)}`;
    if (this.store.cut(l)) return `${name}, cut`;
    if (this.store.broken(l)) return `${name}, a node is down`;
    const impaired = this.store.impaired(l);
    const busy = l.flows.filter((f) => f.bits >= quiet)
      .map((f) => `${bitRate(f.bits)} ${f.way === "in" ? "to" : "from"} ${f.from.node}`).join(", ");
    return [name, busy || "idle", impaired].filter(Boolean).join(", ");
  }

  private node(name: string): Child {
    const n = this.store.nodes.get(name)!;
    const what = `node:${name}`;
    const [x, y] = this.at(name);
    const faces = [...n.faces.values()];
    const dead = n.heard && !n.up;
    const dim = this.highlight && !this.highlight.nodes.has(name);
    const z = this.zoom, out = name.length > longest, box = this.nameBox(n);
    const line = (i: number): { x: string; y: string; "text-anchor": string } =>
      ({ x: fix(box.x - x), y: fix(box.y - y - box.h + 12 + 16 * i), "text-anchor": "middle" });
    const cost = this.highlight?.costs.get(name);
    return s("g", {
      "data-key": what, "data-what": what, tabindex: this.current === what ? 0 : -1,
      role: "button", "aria-pressed": this.selected === what ? "true" : "false",
      "aria-label": `${n.router ? "Router" : "Host"} ${name}, ` + (dead ? "down"
        : `${plural(faces.length, "interface")}, ${plural(n.routes.length, "route")}`),
      class: `node ${n.router ? "router" : "host"}${dead ? " dead" : ""}${dim ? " dim" : ""}` +
        `${this.selected === what ? " selected" : ""}` +
        `${this.highlight?.target === name ? " target" : ""}`,
      transform: `translate(${fix(x)} ${fix(y)})`,
    },
    s("title", null, [name, ...faces.map((f) =>
      `${f.info.name}: ${this.store.addresses({ node: name, iface: f.info.name, addr: "" }).join(", ")}`)].join("\n")),
    s("g", { transform: `scale(${z.toFixed(2)})` },
      n.router ? s("circle", { class: "ring", r: 33 })
        : s("rect", { class: "ring", x: -37, y: -28, width: 74, height: 56, rx: 13 }),
      n.router ? s("circle", { class: "body", r: 26 })
        : s("rect", { class: "body", x: -30, y: -21, width: 60, height: 42, rx: 8 }),
      !out && z > 0.5 && s("text", { class: `name size${name.length}`, y: name.length > 5 ? 4 : 6, "text-anchor": "middle" }, name)),
    out && z > 0.5 && s("text", { class: "name under", ...line(0) }, short(name)),
    dead && s("text", { class: "setting", ...line(Number(out)) }, "down"),
    cost !== undefined && z > 0.5 && s("g", { class: "badge", transform: `translate(${fix(20 * z + 4)} ${fix(-20 * z - 4)})` },
      s("circle", { class: "cost", r: 9 }),
      s("text", { class: "costText", y: 4, "text-anchor": "middle" }, cost)));
  }

  private hop(hop: { from: string; to: string }): Child {
    const [x1, y1] = this.at(hop.from), [x2, y2] = this.at(hop.to);
    const len = Math.hypot(x2 - x1, y2 - y1) || 1;
    const ux = (x2 - x1) / len, uy = (y2 - y1) / len;
    const r = 28 * this.zoom + 4;
    const d = `M${fix(x1 + ux * r)} ${fix(y1 + uy * r)}L${fix(x2 - ux * r)} ${fix(y2 - uy * r)}`;
    return s("g", { "data-key": `${hop.from}>${hop.to}`, class: "hop" },
      s("path", { class: "halo", d }), s("path", { class: "line", "marker-end": "url(#arrow)", d }));
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

  private middle(what: string): Point {
    if (what.startsWith("node:")) return this.at(what.slice(5));
    const l = this.store.link(what.slice(5))!;
    return l.ends.length === 2 ? mid(this.at(l.ends[0]!.node), this.at(l.ends[1]!.node))
      : this.at(hub(l.id));
  }

  /** nearest returns the nearest node or link in a direction. */
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

  /** grab starts dragging a node. */
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

/** inLines splits a long setting into lines. */
const inLines = (text: string): string[] => (text.length > 24 ? text.split(" · ") : [text]);
const mean = (list: number[]): number => list.reduce((a, b) => a + b, 0) / Math.max(1, list.length);
const span = (list: number[]): number => Math.max(...list) - Math.min(...list);
const fix = (n: number): string => n.toFixed(1);
const clamp = (n: number, low: number, high: number): number => Math.min(high, Math.max(low, n));
const mid = (a: Point, b: Point): Point => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
const middle = (list: number[]): number => (Math.max(...list) + Math.min(...list)) / 2;

/** turned rotates points around their mean, with the first at the upper left. */
function turned(spots: Spot[], a: number): Point[] {
  const mx = mean(spots.map((d) => d.x)), my = mean(spots.map((d) => d.y));
  const at = spots.map((d): Point => {
    const x = d.x - mx, y = d.y - my;
    return [x * Math.cos(a) - y * Math.sin(a), x * Math.sin(a) + y * Math.cos(a)];
  });
  const fx = at[0]![0] > 0.01 ? -1 : 1, fy = at[0]![1] > 0.01 ? -1 : 1;
  return at.map(([x, y]): Point => [x * fx, y * fy]);
}

/** inRows is 1 when the points' order runs down, −1 when it runs up. */
function inRows(at: Point[]): number {
  const half = (at.length - 1) / 2;
  let along = 0, x = 0, y = 0;
  at.forEach((p, i) => {
    along += (i - half) * p[1];
    x += (i - half) ** 2;
    y += p[1] ** 2;
  });
  return along / Math.sqrt(x * y || 1);
}
