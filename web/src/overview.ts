// The overview, the event log, and the view of a node.

import { host, port } from "./address";
import { h, type Child } from "./dom";
import { bitRate, bytes, clockTime, count, duration, plural } from "./format";
import { quiet } from "./graph";
import { cost, dialects } from "./routesview";
import { some, type Connection, type Entry, type NodeState, type Store } from "./store";
import { addresses, cell, empty, figure, heading, item, num, prose, section, table, type Context } from "./view";
import type { NAT, Socket } from "./types";

/** ends returns the addresses of a connection, the initiator's first. */
export const ends = (c: Connection): [string, string] =>
  c.opened ? [c.a.socket.local, c.a.socket.remote] : [c.a.socket.remote, c.a.socket.local];

/** connectionTitle names the initiator, and the responder with its port. */
export function connectionTitle(store: Store, c: Connection): string {
  const [from, to] = ends(c).map((addr) => store.place(addr, c.a.node)) as [string, string];
  return `${host(from)} → ${to}`;
}

export const stateName = (state: string): string => state.toLowerCase().replaceAll("_", "-");

/** inTurn returns the connections, those that are closing last. */
function inTurn(store: Store): Connection[] {
  const ending = (c: Connection): number => Number(c.a.socket.state !== "ESTABLISHED");
  return [...store.connections.values()].sort((a, b) => ending(a) - ending(b));
}

/** connectionList lists connections; those with equal titles get the initiator's port. */
function connectionList(store: Store, list: Connection[]): Child {
  const titles = [...store.connections.values()].map((c) => connectionTitle(store, c));
  const twice = new Set(titles.filter((t, i) => titles.indexOf(t) < i));
  return h("ul", { class: "list" }, list.map((c) => connectionItem(store, c, twice)));
}

export function connectionsView({ store }: Context): Child[] {
  return [heading("All", "Connections"), connectionList(store, inTurn(store))];
}

function connectionItem(store: Store, c: Connection, twice: Set<string>): Child {
  const title = connectionTitle(store, c), [from] = ends(c);
  return item(`connection:${c.id}`, h("span", { class: "mark tcp", "aria-hidden": "true" }, "TCP"),
    [title, twice.has(title) && h("small", null, ` from ${port(from)}`)],
    c.bits > 0 ? bitRate(c.bits) : stateName(c.a.socket.state));
}

export function overview({ store }: Context): Child[] {
  const connections = inTurn(store);
  return [
    h("h2", { class: "hidden", tabindex: -1, "data-key": "title" }, "Overview"),
    section("connections", "Connections",
      connections.length ? connectionList(store, connections.slice(0, 8))
        : empty("No connections yet. Start a transfer to see one."),
      connections.length > 8 && h("button", { class: "text", "data-do": "go", "data-arg": "connections" },
        `All ${count(connections.length)} connections`)),
    section("log", "Events", log(grouped(store.log.items), 6), store.log.items.length > 6 &&
      h("button", { class: "text", "data-do": "go", "data-arg": "log" }, "All events")),
    section("nodes", "Nodes", h("ul", { class: "list tight" },
      [...store.nodes.values()].map((n) => item(`node:${n.name}`,
        h("span", { class: `mark ${n.router ? "router" : "host"}`, "aria-hidden": "true" }),
        n.name, n.heard && !n.up ? h("em", { class: "bad" }, "down")
          : n.router ? plural(n.routes.length, "route") : "host")))),
    section("links", "Links", h("ul", { class: "list tight" }, store.links.map((l) => {
      const bits = l.flows.reduce((sum, f) => sum + f.bits, 0);
      const note = store.cut(l) ? h("em", { class: "bad" }, "cut")
        : [store.impaired(l), bits >= quiet ? bitRate(bits) : ""].filter(Boolean).join(" · ") || store.subnets(l).join(", ");
      return item(`link:${l.id}`, h("span", { class: "mark link", "aria-hidden": "true" }),
        store.linkName(l), note);
    }))),
  ];
}

export function logView({ store }: Context): Child[] {
  return [heading("Since this page was opened", "Events"), log(store.log.items, 200)];
}

/** grouped merges the route changes that follow one event into one entry. */
function grouped(all: Entry[]): Entry[] {
  const made: Entry[] = [];
  let at = -1, nodes: string[] = [];
  for (const e of all) {
    if (e.news?.of !== "routes") {
      if (!e.news) at = -1;
      made.push(e);
    } else if (at < 0) {
      at = made.push(e) - 1;
      nodes = [e.news.node];
    } else {
      if (!nodes.includes(e.news.node)) nodes.push(e.news.node);
      const first = made[at]!;
      made[at] = { ...first, at: e.at, sort: "plain", text: `Routes changed at ${some(nodes)}` };
    }
  }
  return made;
}

/** about returns the entries that name a node. */
const about = (store: Store, name: string): Entry[] =>
  store.log.items.filter((e) => e.text.split(/[^\p{L}\p{N}_.-]+/u).includes(name));

function log(all: Entry[], most: number): Child {
  const entries = all.slice(-most).reverse();
  if (!entries.length) return empty("No events yet.");
  return h("ol", { class: "log", "data-key": "log" }, entries.map((e) => h("li", { "data-key": `${e.n}`, class: e.sort },
    h("time", null, clockTime(e.at)), h("span", null, prose(e.text)))));
}

export function nodeView({ store }: Context, n: NodeState): Child[] {
  const head = heading(n.router ? "Router" : "Host", n.name);
  if (n.heard && !n.up) {
    return [head, h("p", { class: "alert", role: "status" }, prose(n.problem),
      h("small", null, prose("`node net status` shows the end of its log; `node net up` starts it again."))),
    section("log", "Events", log(about(store, n.name), 12))];
  }
  const faces = [...n.faces.values()];
  const drops = faces.flatMap((f) => [...(f.info.in.drops ?? []), ...(f.info.out.drops ?? [])]);
  return [
    head,
    section("interfaces", "Interfaces", table(`Interfaces of ${n.name}`,
      ["Name", "Address", "Peer", ">Out", ">In"],
      faces.map((f) => {
        const l = store.linkOf(n.name, f.info.name);
        const out = l?.flows.find((x) => x.from.node === n.name && x.from.iface === f.info.name);
        const back = l?.flows.find((x) => x !== out);
        return h("tr", { "data-key": f.info.name },
          cell(l ? h("button", { class: "text", "data-do": "go", "data-arg": `link:${l.id}` },
            f.info.name) : f.info.name, !f.info.up && h("em", { class: "bad" }, " down")),
          addresses(store.addresses({ node: n.name, iface: f.info.name, addr: "" })), cell((l && store.across(n.name, f.info.name)) || f.info.udp),
          num(bitRate(out?.bits ?? 0)), num(bitRate(back?.bits ?? 0)));
      }))),
    drops.length > 0 && section("drops", "Dropped packets", h("dl", { class: "figures" },
      sums(drops).map(([reason, packets]) => figure(reason, count(packets), " packets")))),
    section("routes", "Routes", n.routes.length ? table(`Routes of ${n.name}`,
      ["Network", "Next hop", ">Cost", "Source"],
      n.routes.map((r) => h("tr", { "data-key": `${r.prefix} ${r.next_hop}` },
        cell(h("button", { class: "text", "data-do": "go", "data-arg": `routes:${r.prefix}` }, r.prefix)),
        cell(r.kind ?? store.via(n, r)), num(cost(r)),
        cell({ L: "connected", R: r.prefix.includes(":") ? "RIPng" : "RIP", S: "static" }[r.origin] ?? r.origin)))) : empty("No routes.")),
    n.nats.map(natSection),
    section("sockets", "Sockets", n.sockets.length ? table(`Sockets of ${n.name}`,
      ["State", "Local", "Remote", ">Queued"],
      n.sockets.map((k) => socketRow(store, n, k))) : empty("No open sockets."),
      n.more > 0 && empty(`and ${count(n.more)} more`)),
    dialects(n).map((d) => section(d.dialect, d.dialect === "ripng" ? "RIPng" : "RIP", h("dl", { class: "figures" },
      figure("Dialect", d.dialect), figure("Next update", duration(d.next_update_ns)),
      figure("Period", duration(d.timers.periodic_ns)),
      figure("Timeout", duration(d.timers.timeout_ns))))),
    section("log", "Events", log(about(store, n.name), 4)),
  ];
}

function natSection(n: NAT): Child {
  const sessions = n.sessions ?? [], forwards = n.forwards ?? [];
  return section(`nat-${n.iface}`, `NAT at ${n.iface}`,
    h("dl", { class: "figures" },
      figure("Outside", n.outside), figure("Mapping", n.mapping), figure("Filtering", n.filtering),
      figure("Sessions", count(n.total), `of ${count(n.max_sessions)}`),
      figure("Filtered", count(n.filtered), " packets"), figure("Refused", count(n.refused), " packets")),
    forwards.length > 0 && h("ul", { class: "list tight" },
      forwards.map((f) => h("li", { "data-key": f }, `Port forward: ${f}`))),
    sessions.length ? table(`NAT sessions of ${n.iface}`,
      ["Protocol", "Inside", "Outside", "Remote", "State", ">Expires in"],
      sessions.map((s) => h("tr", { "data-key": `${s.protocol} ${s.inside} ${s.remote}` },
        cell(s.protocol), cell(s.inside), cell(s.outside), cell(s.remote), cell(s.state),
        num(duration(s.left * 1e9))))) : empty("No sessions."),
    n.total > sessions.length && empty(`and ${count(n.total - sessions.length)} more`));
}

function socketRow(store: Store, n: NodeState, k: Socket): Child {
  const connected = !k.remote.endsWith(":0") && k.state !== "UDP" && k.state !== "LISTEN";
  const state = stateName(k.state);
  return h("tr", { "data-key": `${k.sid}` },
    cell(connected ? h("button", {
      class: "text", "data-do": "go", "data-arg": `connection:${n.name}/${k.sid}`,
    }, state) : state),
    addresses([k.local]), addresses([connected ? store.place(k.remote, n.name) : "–"]),
    // A listener's queues are its pending connections and its backlog, as in ss.
    num(k.state === "LISTEN" ? `${count(k.recv_q)} of ${count(k.send_q)}` : bytes(k.send_q + k.recv_q)));
}

function sums(drops: { reason: string; packets: number }[]): [string, number][] {
  const by = new Map<string, number>();
  for (const d of drops) by.set(d.reason, (by.get(d.reason) ?? 0) + d.packets);
  return [...by].sort((a, b) => b[1] - a[1]).slice(0, 8);
}
