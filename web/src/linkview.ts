// The view of a link: its traffic, its impairments, and the button that cuts it.

import { h, type Child } from "./dom";
import { bitRate, percent } from "./format";
import { command } from "./server";
import type { Flow, LinkState, Store } from "./store";
import { heading, prose, section, type Context } from "./view";
import { read, turn } from "./words";

const scales = {
  loss: [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5],
  delay: [0, 1, 2, 5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000],
  rate: [64e3, 128e3, 256e3, 512e3, 1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6, 1e9,
    Infinity],
};
type Knob = keyof typeof scales;

const knobs: Record<Knob, { name: string; show: (v: number) => string }> = {
  loss: { name: "Loss", show: (v) => `${+(v * 100).toFixed(3)} %` },
  delay: { name: "Delay", show: (v) => (v === 0 ? "none" : `${+v.toFixed(2)} ms`) },
  rate: { name: "Rate", show: (v) => (v === Infinity ? "no limit" : bitRate(v)) },
};

/** chosen is the direction that the sliders set: a flow's index, or all. */
let chosen = "all";
let wanted = new Map<string, number>(); // slider values that the node has not confirmed yet
let failure = "";

export function forget(): void {
  chosen = "all";
  failure = "";
  wanted = new Map();
}

/** answers reports whether a node is up and the server is reachable. */
function answers(store: Store, node: string): boolean {
  const n = store.nodes.get(node);
  return Boolean(n && (n.up || !n.heard));
}

/** turned returns the flows that the sliders set, without nodes that are down. */
function turned(store: Store, l: LinkState): Flow[] {
  return chosen === "all" ? l.flows.filter((f) => answers(store, f.from.node))
    : l.flows.filter((_, i) => String(i) === chosen);
}

function valueOf(store: Store, l: LinkState, knob: Knob): number | null {
  const values = turned(store, l).map((f) => read(store.words(f))[knob]);
  return values.every((v) => v === values[0]) ? values[0] ?? null : null;
}

function place(knob: Knob, value: number): number {
  const scale = scales[knob];
  let best = 0;
  scale.forEach((v, i) => {
    if (v <= value * 1.0001) best = i;
  });
  return best;
}

function direction(store: Store, f: Flow, l: LinkState): string {
  if (l.ends.length === 1) {
    return f.way === "in" ? `${store.far(l)} → ${f.from.node}` : `${f.from.node} → ${store.far(l)}`;
  }
  return `${f.from.node} → ${f.to ? f.to.node : l.ends.filter((e) => e !== f.from)
    .map((e) => e.node).join(", ")}`;
}

export function linkView({ store }: Context, l: LinkState): Child[] {
  const cut = store.cut(l);
  const down = l.ends.map((e) => e.node).filter((name) => !answers(store, name));
  const alone = down.length === l.ends.length;
  return [
    heading("Link", store.linkName(l), h("p", { class: "sub" }, store.subnets(l).join(", "))),
    h("div", { class: "actions", "data-key": "actions" },
      h("button", {
        class: cut ? "primary" : "danger", "data-do": cut ? "restore" : "cut", "data-arg": l.id, disabled: alone,
      }, cut ? "Restore the link" : "Cut the link"),
      h("button", { "data-do": "clear", "data-arg": l.id, disabled: alone }, "Remove impairments")),
    section("now", "Traffic", h("div", { class: "scroll" }, h("table", null,
      h("caption", { class: "hidden" }, "Traffic by direction"),
      h("thead", null, h("tr", null, ["Direction", ">Rate", ">Queue", ">Loss"].map((c) =>
        h("th", { scope: "col", class: c[0] === ">" ? "num" : null }, c.replace(">", ""))))),
      h("tbody", null, l.flows.map((f) => h("tr", { "data-key": f.way + f.from.node },
        h("th", { scope: "row" }, direction(store, f, l)), h("td", { class: "num" }, bitRate(f.bits)),
        h("td", { class: "num" }, f.waiting), h("td", { class: "num" }, percent(f.lost)))))))),
    h("div", { class: "chart", "data-own": true, "data-key": "rates", "data-chart": `rates:${l.id}` }),
    section("settings", "Impairments",
      l.flows.length > 1 && h("fieldset", { class: "segments" },
        h("legend", { class: "hidden" }, "Direction to change"),
        ["all", ...l.flows.map((_, i) => String(i))].map((v) => h("label", { "data-key": v },
          h("input", {
            type: "radio", name: "way", value: v, "data-on": "way", checked: chosen === v,
          }), h("span", null, v === "all" ? (l.flows.length > 2 ? "All directions" : "Both directions") : direction(store, l.flows[Number(v)]!, l))))),
      down.length > 0 && h("p", { class: "hint" }, `${down.join(" and ")} ${down.length > 1 ? "do" : "does"} ` +
        `not answer: ${alone ? "no settings can be changed" : "changes apply to the other end only"}.`),
      (Object.keys(knobs) as Knob[]).map((k) => slider(store, l, k, cut || !turned(store, l).length)),
      failure && h("p", { class: "alert", role: "alert" }, prose(failure)),
      extra(store, l)),
    h("dl", { class: "figures", "data-key": "ends" }, l.ends.map((e) =>
      h("div", { class: "figure wide", "data-key": `${e.node} ${e.iface}` }, h("dt", null, `${e.node} ${e.iface}`),
        store.addresses(e).map((a) => h("dd", null, a))))),
  ];
}

function slider(store: Store, l: LinkState, knob: Knob, cut: boolean): Child {
  const { name, show } = knobs[knob];
  const key = `${l.id} ${chosen} ${knob}`;
  const real = valueOf(store, l, knob);
  const want = wanted.get(key);
  const value = want ?? real;
  const text = value === null ? (turned(store, l).length ? "mixed" : "–") : show(value);
  const id = `knob-${knob}`;
  return h("div", { class: "knob", "data-key": key },
    h("label", { for: id }, name), h("output", { for: id, "aria-live": "off" }, text),
    h("input", {
      type: "range", id, min: 0, max: scales[knob].length - 1, step: 1, disabled: cut,
      value: place(knob, value ?? 0), "data-on": "knob", "data-knob": knob, "data-link": l.id,
      "aria-valuetext": text,
    }));
}

/** extra shows the complete impairment settings. */
function extra(store: Store, l: LinkState): Child {
  const flows = turned(store, l), sent = flows.map((f) => store.words(f));
  const lines = sent.every((w) => w === sent[0]) ? [["", sent[0] ?? "nothing"]]
    : flows.map((f, i) => [`${direction(store, f, l)}: `, sent[i]!]);
  lines.push(...flows.map((f) => [`When ${f.to?.node} receives: `, store.received(f)]));
  const set = lines.filter(([, words]) => words !== "nothing");
  if (set.length === 0) return null;
  return h("p", { class: "words", "data-key": "words" }, set.map(([label, words]) => h("span", null, label, h("code", null, words))));
}

let timer = 0;

/** turnKnob handles a moved slider. */
export function turnKnob(store: Store, input: HTMLInputElement): void {
  const knob = input.dataset["knob"] as Knob;
  const l = store.link(input.dataset["link"]);
  if (!l) return;
  const value = scales[knob][Number(input.value)]!;
  const key = `${l.id} ${chosen} ${knob}`;
  wanted.set(key, value);
  clearTimeout(timer);
  timer = window.setTimeout(() => void apply(store, l), 150);
  store.onChange();
}

/** apply sends the slider values that the nodes have not confirmed yet. */
async function apply(store: Store, l: LinkState): Promise<void> {
  failure = "";
  const moved = (Object.keys(knobs) as Knob[]).map((k) => [k, wanted.get(`${l.id} ${chosen} ${k}`)] as const)
    .filter(([, v]) => v !== undefined);
  const keys = moved.map(([k, v]) => [`${l.id} ${chosen} ${k}`, v] as const);
  try {
    await Promise.all(turned(store, l).map((f) => command(f.from.node, "impair", {
      iface: f.from.iface, way: f.way,
      words: moved.reduce((w, [k, v]) => turn(w, k, v!), store.words(f)),
    })));
  } catch (e) {
    failure = (e as Error).message;
  }
  setTimeout(() => {
    for (const [key, v] of keys) if (wanted.get(key) === v) wanted.delete(key);
    store.onChange();
  }, 1200);
}

export function chooseDirection(store: Store, value: string): void {
  chosen = value;
  store.onChange();
}

/** setCut takes the interfaces at both ends of a link down or up, as far as their nodes answer. */
export async function setCut(store: Store, l: LinkState, cut: boolean): Promise<void> {
  failure = "";
  const all = await Promise.allSettled(l.ends.filter((e) => answers(store, e.node)).map((e) =>
    command(e.node, "set-link", { iface: e.iface, up: !cut })));
  const bad = all.find((r) => r.status === "rejected");
  if (bad) failure = ((bad as PromiseRejectedResult).reason as Error).message;
  store.onChange();
}

export async function clearSettings(store: Store, l: LinkState): Promise<void> {
  failure = "";
  wanted = new Map();
  const all = await Promise.allSettled(l.flows.filter((f) => answers(store, f.from.node)).map((f) =>
    command(f.from.node, "impair", { iface: f.from.iface, way: "both", words: "off" })));
  const bad = all.find((r) => r.status === "rejected");
  if (bad) failure = ((bad as PromiseRejectedResult).reason as Error).message;
  store.onChange();
}
