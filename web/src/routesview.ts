// How each node reaches a network: the table, and the arrows on the map.

import { h, type Child } from "./dom";
import { duration } from "./format";
import type { Highlight } from "./graph";
import { inOrder } from "./address";
import { longest, type NodeState, type Store } from "./store";
import { cell, empty, heading, num, section, table, type Context } from "./view";
import type { RIPInfo, RIPRoute, Route } from "./types";

export function prefixes(store: Store): string[] {
  const all = new Set<string>();
  for (const n of store.nodes.values()) {
    for (const r of n.routes) if (!r.prefix.endsWith("/0")) all.add(r.prefix);
    for (const d of dialects(n)) for (const r of d.routes ?? []) all.add(r.prefix);
  }
  return [...all].sort(inOrder);
}

/** dialects returns what a node's RIP and RIPng report, as far as it speaks them. */
export const dialects = (n: NodeState): RIPInfo[] => [n.rip, n.rip?.ripng].filter((d) => d != null);

/** best returns a node's route for a network: the exact prefix, or else the longest that contains it. */
const best = (n: NodeState, prefix: string): Route | undefined =>
  n.routes.find((r) => r.prefix === prefix) ?? longest(n.routes, prefix.split("/")[0]!);

/** cost is the RIP metric: 0 for a connected network; a static route has no metric. */
export const cost = (r: Route): number | string => (r.origin === "R" ? r.cost : r.origin === "L" ? 0 : "–");

const told = (n: NodeState, prefix: string): RIPRoute | undefined =>
  dialects(n).flatMap((d) => d.routes ?? []).find((r) => r.prefix === prefix);

export function arrows(store: Store, prefix: string): Highlight {
  const found: Highlight = { links: new Set(), nodes: new Set(), hops: [], costs: new Map(), target: "" };
  for (const l of store.links) {
    if (store.subnets(l).includes(prefix)) {
      found.links.add(l.id);
      for (const e of l.ends) found.nodes.add(e.node);
    }
  }
  for (const n of store.nodes.values()) {
    const r = best(n, prefix);
    if (!r) continue;
    found.nodes.add(n.name);
    const to = store.next(n, r);
    if (to) found.hops.push({ from: n.name, to });
    if (r.origin === "R") found.costs.set(n.name, r.cost);
  }
  return found;
}

/** story is the chain of routers through which a node learned a route, the network's first. */
function story(store: Store, n: NodeState, prefix: string): string {
  const chain = [n.name];
  let at: NodeState | undefined = n;
  for (let i = 0; at && i < 17; i++) {
    const r: Route | undefined = best(at, prefix);
    const next: string = r ? store.next(at, r) : "";
    if (!next || chain.includes(next)) break;
    chain.push(next);
    at = store.nodes.get(next);
  }
  return chain.length > 1 ? chain.reverse().join(" → ") : "";
}

export function routesView({ store }: Context, prefix: string): Child[] {
  const all = prefixes(store);
  const chosen = prefix || all[0] || "";
  const speaks = [...store.nodes.values()].some((n) => n.rip);
  return [
    heading("Routes", "How each node reaches a network"),
    h("div", { class: "knob choose", "data-key": "choose" },
      h("label", { for: "prefix" }, "Destination network"),
      h("select", { id: "prefix", "data-on": "prefix" }, all.map((p) =>
        h("option", { value: p, selected: p === chosen, "data-key": p },
          `${p}  ${ends(store, p)}`)))),
    chosen ? section("learned", "Routes by node", table(`Routes to ${chosen}`,
      ["Node", ">Cost", "Learned from", ">Updated", ">Expires"],
      [...store.nodes.values()].map((n) => row(store, n, chosen)))) : empty("No routes yet."),
    chosen ? h("p", { class: "hint", "data-key": "hint" },
      "Arrows point to the next hop; the number is the RIP cost. A router adds one to the cost " +
      "that its neighbor advertises, and uses the neighbor with the lowest sum.") : null,
    speaks && chosen && section("chains", "How the route spread", h("ul", { class: "plainlist" },
      [...store.nodes.values()].filter((n) => n.rip).map((n) => story(store, n, chosen))
        .filter((t) => t.includes(" → ")).map((t) => h("li", { "data-key": t }, t)))),
    section("table", "All RIP routes", matrix(store, all, chosen)),
  ];
}

function ends(store: Store, prefix: string): string {
  const l = store.links.find((x) => store.subnets(x).includes(prefix));
  return l ? `(${store.linkName(l)})` : "";
}

function row(store: Store, n: NodeState, prefix: string): Child {
  const r = best(n, prefix), rip = told(n, prefix);
  const name = h("th", { scope: "row" }, h("button", {
    class: "text", "data-do": "go", "data-arg": `node:${n.name}`,
  }, n.name));
  if (!r) {
    const dying = rip && rip.cost >= 16;
    return h("tr", { "data-key": n.name }, name, num(dying ? "16" : "–"),
      cell(h("em", { class: "bad" }, n.heard && !n.up ? "down" : dying ? "unreachable" : "no route")),
      num(""), num(dying ? duration(rip.left_ns) : ""));
  }
  const how = r.origin === "L" ? "connected"
    : r.origin === "S" ? `${store.via(n, r)} (static)` : store.via(n, r).replace("via ", "");
  return h("tr", { "data-key": n.name }, name, num(cost(r)),
    cell(how), num(rip && r.origin === "R" ? `${duration(rip.age_ns)} ago` : ""),
    num(rip && r.origin === "R" && rip.left_ns >= 0 ? `in ${duration(rip.left_ns)}` : ""));
}

function matrix(store: Store, all: string[], chosen: string): Child {
  const routers = [...store.nodes.values()].filter((n) => n.rip);
  if (!routers.length) return empty("No node runs RIP.");
  return table("Cost and next hop of every router to every network",
    ["Network", ...routers.map((n) => `>${n.name}`)],
    all.map((p) => h("tr", { "data-key": p, class: p === chosen ? "chosen" : null },
      h("th", { scope: "row" }, h("button", {
        class: "text", "data-do": "go", "data-arg": `routes:${p}`,
      }, p)),
      routers.map((n) => {
        const r = n.routes.find((x) => x.prefix === p), rip = told(n, p);
        const via = r ? store.next(n, r) : "";
        return num(r ? `${cost(r)}${via ? ` ${via}` : ""}` : rip && rip.cost >= 16 ? "16" : "–");
      }))));
}
