// The page's model of the network, built from the stream's events. Every list is bounded, so a page
// that stays open does not grow.

import type {
  Impairment, Interface, Look, NAT, Neighbor, RIPInfo, Route, Sample, Segment, Shape, Socket,
} from "./types";
import { host, inOrder as byNumber, length, linkLocal, network, port, single, within } from "./address";
import { plural } from "./format";
import { add, count, counter, lost, rate, type Counter, type Mark } from "./rate";
import { brief, read } from "./words";

/** Ring keeps the newest items. */
export class Ring<T> {
  items: T[] = [];
  constructor(readonly most: number) {}
  push(item: T, at = this.items.length): void {
    this.items.splice(at, 0, item);
    if (this.items.length > this.most * 1.25) this.items.splice(0, this.items.length - this.most);
  }
  get last(): T | undefined { return this.items[this.items.length - 1]; }
}

export interface Face {
  info: Interface;
  out: Impairment | undefined;
  in: Impairment | undefined;
}

export interface NodeState {
  name: string;
  router: boolean;
  heard: boolean; // the server has polled it at least once
  up: boolean;
  problem: string;
  faces: Map<string, Face>;
  sockets: Socket[];
  more: number; // sockets beyond those in the list
  routes: Route[];
  neighbors: Neighbor[];
  rip: RIPInfo | null;
  nats: NAT[];
}

export interface End { node: string; iface: string; addr: string }

/** Flow is one direction of a link. */
export interface Flow {
  from: End;
  to: End | null; // null: several ends, or not a node of this network
  way: "out" | "in"; // of from's interface; "in": the sender is not a node of this network
  bits: number; // bits per second
  packets: number;
  lost: number; // share of recent packets
  waiting: number; // packets in the queue
  history: Ring<[at: number, bits: number]>;
  counter: Counter;
  seen: Mark[]; // recent samples, for rates
}

export interface LinkState {
  id: number;
  subnet: string;
  ends: End[];
  flows: Flow[];
}

export interface Connection {
  id: string; // NODE/SID of a
  opened: boolean; // a is the initiator; false: the initiator is unknown or gone
  a: { node: string; socket: Socket };
  b: { node: string; socket: Socket } | null; // null: not a node of this network
  bits: number; // bits per second, in both directions
}

/** Seen is a segment that a node has seen; its time is in milliseconds since 1970. */
export type Seen = Segment & { time: number; node: string };

/** Followed is a connection whose samples and segments the page receives. */
export interface Followed {
  samples: Ring<Sample & { time: number }>;
  segments: Ring<Seen>;
  peer: Ring<Seen>; // as the other end saw them
  drops: Ring<Seen>; // dropped by nodes on the path
  over: string; // why the samples ended; empty: the connection is open
}

export interface Entry {
  at: number;
  text: string;
  sort: "good" | "bad" | "plain";
  n: number;
  told?: number; // when a node reported it
  cause?: boolean; // changes of routes and neighbors follow from it
  news?: { of: "routes" | "neighbor"; node: string }; // a change that follows from another event
}

const late = 1500; // milliseconds from an event to the next poll of the nodes

/** precedes reports whether an entry comes before another: an earlier one, or its cause. */
function precedes(e: Entry, other: Entry): boolean {
  const rank = (x: Entry): number => (x.cause ? 0 : x.news?.of === "neighbor" ? 1 : x.news ? 2 : 3);
  const follows = other.news && rank(e) < rank(other) && (other.sort === e.sort || other.sort === "plain");
  return other.at > e.at - (follows ? late : 0);
}

export type Service = "connecting" | "live" | "stale" | "away" | "refused" | "paused";

const historyLength = 120;

export class Store {
  shape: Shape | null = null;
  nodes = new Map<string, NodeState>();
  links: LinkState[] = [];
  connections = new Map<string, Connection>();
  log = new Ring<Entry>(200);
  followed = new Map<string, Followed>();
  service: Service = "connecting";
  tick = 0; // milliseconds since 1970, by the server's clock
  ticked = 0; // the same time, by the browser's clock
  stale = false; // after a reconnect the first tick comes before the first poll
  onChange: () => void = () => {};
  onShape: () => void = () => {};
  onSay: (text: string) => void = () => {};

  private entries = 0;
  private index: { owners: Map<string, string>; subnets: Map<LinkState, string[]> } | null = null; // built when needed
  private down = new Set<string>(); // interfaces that their nodes reported down
  private speed = new Map<string, { at: number; bytes: number; bits: number }>();

  note(text: string, sort: Entry["sort"] = "plain", more: Pick<Partial<Entry>, "at" | "news" | "cause" | "told"> = {}, say = true): void {
    const e: Entry = { at: this.tick || Date.now(), text, sort, n: ++this.entries, ...more };
    const { items } = this.log;
    if (e.cause && this.known(e)) return;
    let i = items.length;
    while (i > 0 && precedes(e, items[i - 1]!)) i--;
    if (items[i]) e.at = Math.min(e.at, items[i]!.at);
    this.log.push(e, i);
    if (say) this.onSay(text);
  }

  /** known reports whether the log already has this cause, as the stream may repeat it. */
  private known(e: Entry): boolean {
    const subject = (text: string): string => text.slice(0, text.lastIndexOf(" "));
    const same = this.log.items.filter((x) => x.cause && subject(x.text) === subject(e.text));
    const last = same.at(-1);
    return (last?.text === e.text && Math.abs(last.at - e.at) < 2 * late) ||
      (e.told !== undefined && same.some((x) => x.text === e.text && x.told === e.told));
  }

  node(name: string): NodeState {
    let n = this.nodes.get(name);
    if (!n) {
      n = {
        name, router: false, heard: false, up: false, problem: "", faces: new Map(), sockets: [],
        more: 0, routes: [], neighbors: [], rip: null, nats: [],
      };
      this.nodes.set(name, n);
    }
    return n;
  }

  /** take applies one event of the stream. */
  take(event: string, data: any): void {
    switch (event) {
      case "network": this.takeShape(data); break;
      case "life": this.takeLife(data); break;
      case "interfaces": this.takeFaces(data); break;
      case "sockets": {
        const n = this.node(data.node);
        n.sockets = data.sockets ?? [];
        n.more = data.more ?? 0;
        break;
      }
      case "routes": this.takeRoutes(data); break;
      case "neighbors": this.node(data.node).neighbors = data.neighbors ?? []; break;
      case "rip": this.node(data.node).rip = data.rip.dialect ? data.rip : null; break;
      case "nats": this.node(data.node).nats = data.nats ?? []; break;
      case "told": this.takeTold(data); break;
      case "sample": this.takeLook(data); break;
      case "segments": this.takeSegments(data); break;
      case "tick": {
        const known = this.stale || data.at - this.tick < 250; // the nodes were not polled since
        this.stale = false;
        if (data.at < this.tick) this.rewind(data.at);
        this.tick = data.at;
        this.ticked = performance.now();
        if (!known) for (const l of this.links) for (const f of l.flows) this.measureFlow(f);
        this.measureConnections();
        this.onChange();
      }
    }
  }

  private takeShape(shape: Shape): void {
    if (JSON.stringify(shape) === JSON.stringify(this.shape)) return;
    const names = shape.nodes.map((n) => n.name).sort(inOrder);
    if (this.shape) {
      const gone = [...this.nodes.keys()].filter((name) => !names.includes(name));
      const come = names.filter((name) => !this.nodes.has(name));
      if (gone.length) this.note(`${some(gone)} left the network`, "bad");
      if (come.length) this.note(`${some(come)} joined the network`, "good");
    }
    this.shape = shape;
    this.index = null;
    this.nodes = new Map(names.map((name) => [name, this.node(name)]));
    for (const n of shape.nodes) this.node(n.name).router = n.router;
    const stay = new Map(this.links.map((l) => [linkKey(l), l]));
    const links = shape.links.filter((l) => (l.ends ?? []).length > 0);
    const taken = new Set(links.map((l) => stay.get(linkKey(l))?.id));
    let id = 0;
    this.links = links.map((l) => {
      const was = stay.get(linkKey(l));
      if (was) return was; // the connection keeps its number and history
      const ends = l.ends ?? [];
      while (taken.has(id)) id++;
      taken.add(id);
      return {
        id, subnet: l.subnet, ends,
        flows: (ends.length === 1 ? [ends[0]!, ends[0]!] : ends).map((from, i): Flow => ({
          from, to: ends.length === 2 ? ends[1 - i]! : null, way: ends.length === 1 && i === 1 ? "in" : "out", bits: 0, packets: 0, lost: 0,
          waiting: 0, history: new Ring<[number, number]>(historyLength), counter: counter(), seen: [],
        })),
      };
    }).sort((a, b) => inOrder(this.linkName(a), this.linkName(b)));
    this.onShape();
  }

  private takeLife(life: { node: string; up: boolean; problem?: string; router: boolean }): void {
    const n = this.node(life.node);
    const was = n.up, heard = n.heard;
    n.heard = true;
    n.up = life.up;
    n.problem = plain(life.problem ?? "");
    if (life.up) n.router = life.router;
    else {
      this.index = null;
      n.faces = new Map();
      n.sockets = [];
      n.routes = [];
      n.rip = null;
      n.nats = [];
      n.neighbors = [];
    }
    if (heard && was !== life.up) {
      this.note(life.up ? `${n.name} is up` : `${n.name} is down`, life.up ? "good" : "bad", { cause: true });
    }
  }

  private takeFaces(
    data: { node: string; interfaces: Interface[] | null; impairments: Impairment[] | null },
  ): void {
    const n = this.node(data.node);
    const old = n.faces;
    const cut = new Set(this.links.filter((l) => this.cut(l)));
    n.faces = new Map();
    this.index = null;
    for (const info of data.interfaces ?? []) {
      const ways = (data.impairments ?? []).filter((i) => i.iface === info.name);
      n.faces.set(info.name, {
        info, out: ways.find((w) => w.way === "out"), in: ways.find((w) => w.way === "in"),
      });
      const before = old.get(info.name);
      if (before && before.info.up !== info.up) this.noteSwitch(n.name, info, cut);
      for (const way of ["out", "in"] as const) {
        const words = n.faces.get(info.name)![way]?.words, was = before?.[way]?.words;
        if (words === undefined || was === undefined || was === words) continue;
        const peer = this.across(n.name, info.name) || info.name;
        this.note((way === "out" ? `${n.name} → ${peer}: ` : `${n.name} receives from ${peer}: `) +
          (words === "nothing" ? "no impairments" : words));
      }
    }
  }

  /** noteSwitch logs that an interface, or its whole link, went up or down. */
  private noteSwitch(node: string, info: Interface, cut: Set<LinkState>): void {
    const l = this.linkOf(node, info.name);
    if (!l) this.noteLink(`${node}'s ${info.name}`, info.up);
    else if (cut.has(l) !== this.cut(l)) this.noteLink(this.linkName(l), info.up);
  }

  private noteLink(name: string, up: boolean, told?: number, say = true): void {
    this.note(`${name} is ${up ? "restored" : "cut"}`, up ? "good" : "bad",
      { cause: true, ...(told !== undefined && { at: told, told }) }, say);
  }

  /** takeLink logs a node's report that an interface went up or down. */
  private takeLink(node: string, info: Interface, at: number, say: boolean): void {
    const l = this.linkOf(node, info.name), id = (e: { node: string; iface: string }): string => `${e.node} ${e.iface}`;
    const cut = (): boolean => l?.ends.some((e) => this.down.has(id(e))) ?? false;
    const was = cut();
    if (info.up) this.down.delete(id({ node, iface: info.name }));
    else this.down.add(id({ node, iface: info.name }));
    if (!l) this.noteLink(`${node}'s ${info.name}`, info.up, at, say);
    else if (was !== cut()) this.noteLink(this.linkName(l), info.up, at, say);
  }

  /** across names the nodes at the other end of an interface's link. */
  across(node: string, iface: string): string {
    const l = this.linkOf(node, iface);
    return l?.ends.filter((e) => e.node !== node).map((e) => e.node).join(", ") ?? "";
  }

  /** link finds a link by its number. */
  link(id: string | undefined): LinkState | undefined {
    return this.links.find((l) => l.id === Number(id));
  }

  linkOf(node: string, iface: string): LinkState | undefined {
    return this.links.find((l) => l.ends.some((e) => e.node === node && e.iface === iface));
  }

  /** addresses returns an interface's addresses with their prefix lengths, IPv4 first. */
  addresses(e: End): string[] {
    const info = this.nodes.get(e.node)?.faces.get(e.iface)?.info;
    return info ? [info.addr, ...(info.ipv6 ?? [])].filter(Boolean) : [e.addr];
  }

  /** places returns the nodes by address, and the links' networks. Link-local addresses have their link's number as zone. */
  private places(): { owners: Map<string, string>; subnets: Map<LinkState, string[]> } {
    if (this.index) return this.index;
    const owners = new Map<string, string>(), subnets = new Map<LinkState, string[]>();
    for (const l of this.links) {
      const all = new Set(l.subnet ? [l.subnet] : []);
      for (const e of l.ends) {
        for (const a of this.addresses(e)) {
          const [addr, bits] = a.split("/") as [string, string?];
          const key = linkLocal(addr) ? `${addr}%${l.id}` : addr;
          if (!owners.has(key)) owners.set(key, e.node);
          if (bits && !linkLocal(addr) && !single(a)) all.add(network(a));
        }
      }
      subnets.set(l, [...all].sort(byNumber));
    }
    return this.index = { owners, subnets };
  }

  /** subnets returns a link's networks, IPv4 first, without the link-local one. */
  subnets = (l: LinkState): string[] => this.places().subnets.get(l) ?? [l.subnet];

  /**
   * owner returns the node with an address; empty: none. A link-local address belongs to the link
   * of an interface: its zone, or the given one, of the node that uses the address.
   */
  owner(addr: string, node = "", iface = ""): string {
    const [plain, zone = iface] = addr.split("%") as [string, string?];
    return this.places().owners.get(linkLocal(plain) ? `${plain}%${this.linkOf(node, zone)?.id}` : plain) ?? "";
  }

  private takeRoutes(data: { node: string; routes: Route[] | null }): void {
    const n = this.node(data.node);
    const old = n.routes;
    n.routes = data.routes ?? [];
    if (old.length === 0) return;
    const before = new Map(old.map((r) => [r.prefix, r]));
    const changes = new Map<string, string[]>(); // prefixes by kind of change; "*" stands for them
    const change = (what: string, prefix: string): void => {
      changes.set(what, [...(changes.get(what) ?? []), prefix]);
    };
    for (const r of n.routes) {
      const b = before.get(r.prefix);
      before.delete(r.prefix);
      if (!b) change(`learned a route to * ${this.via(n, r)}`, r.prefix);
      else if (b.next_hop !== r.next_hop || b.iface !== r.iface) {
        change(`now reaches * ${this.via(n, r)}, previously ${this.via(n, b)}`, r.prefix);
      }
    }
    for (const gone of before.values()) change("lost its route to *", gone.prefix);
    for (const [what, list] of changes) {
      const networks = list.length > 2 ? `${list.length} networks` : list.join(" and ");
      this.note(`${n.name} ${what.replace("*", networks)}`,
        what.startsWith("now") ? "plain" : what.startsWith("lost") ? "bad" : "good",
        { news: { of: "routes", node: n.name } });
    }
  }

  /** next names the node to which a route leads; empty: it is none of this network. */
  next(n: NodeState, r: { next_hop: string; iface: string }): string {
    return r.next_hop ? this.owner(r.next_hop, n.name, r.iface) : "";
  }

  via(n: NodeState, r: { next_hop: string; iface: string }): string {
    return r.next_hop ? `via ${this.next(n, r) || r.next_hop}` : `on ${r.iface}`;
  }

  private takeTold(told: { node: string; at: number; event: string; data: any }): void {
    const say = Date.now() - told.at < 10_000;
    const d = told.data;
    let text = "";
    let sort: Entry["sort"] = "plain";
    switch (told.event) {
      case "link": this.takeLink(told.node, d.interface, told.at, say); return;
      case "accepted":
        text = `${told.node} accepted a connection from ${this.place(d.socket.remote, told.node)}`;
        break;
      case "closed":
        if (!d.problem) return;
        text = `${told.node}: connection to ${this.place(d.socket.remote, told.node)} failed: ${d.problem}`;
        sort = "bad";
        break;
      case "neighbor": {
        const nb = d.neighbor;
        text = `${told.node}: neighbor ${this.owner(nb.addr, told.node, nb.iface) || nb.addr} is ${nb.state}`;
        sort = nb.state === "up" ? "good" : "bad";
        if (d.first) return;
        break;
      }
      case "transfer":
        if (!d.problem || d.transfer.once) return; // the view of the transfer shows the problem
        text = `${told.node}: transfer failed: ${d.problem}`;
        sort = "bad";
        break;
      case "message": text = `${told.node}: ${d.text}`; break;
      case "test": text = `${told.node} received a test packet from ${d.src}`; break;
      case "undelivered": text = `${told.node}: ${d.to}: ${d.problem}`; sort = "bad"; break;
      default: return;
    }
    const again = this.log.items.some((e) => e.at === told.at && e.text === text); // a new stream repeats events
    if (again) return;
    this.note(text, sort, { at: told.at, ...(told.event === "neighbor" && { news: { of: told.event, node: told.node } }) }, say);
  }

  /** place is an address and port as a node sees it, with a node's name for its address. */
  place(addrPort: string, node: string): string {
    const owner = this.owner(host(addrPort), node);
    return owner ? `${owner}:${port(addrPort)}` : addrPort;
  }

  /** global is an address and port with the number of the link for a zone: zones are names of one node. */
  private global(addrPort: string, node: string): string {
    const [addr, zone] = host(addrPort).split("%") as [string, string?];
    return zone ? `${addr}%${this.linkOf(node, zone)?.id ?? `${node} ${zone}`}:${port(addrPort)}` : addrPort;
  }

  private follow(id: string): Followed {
    let f = this.followed.get(id);
    if (!f) {
      f = { samples: new Ring(1500), segments: new Ring(400), peer: new Ring(1500), drops: new Ring(100), over: "" };
      this.followed.set(id, f);
    }
    return f;
  }

  private takeLook(look: Look): void {
    const f = this.follow(`${look.node}/${look.sid}`);
    if (look.over) f.over = look.over;
    if (!look.sample) return;
    const time = Date.parse(look.sample.at);
    const last = f.samples.last;
    if (last && time <= last.time) return; // repeated after a reconnect
    f.samples.push({ ...look.sample, time });
  }

  private takeSegments(
    batch: { of: string; node: string; sid: number; segments: Segment[] },
  ): void {
    const f = this.follow(batch.of);
    const into = `${batch.node}/${batch.sid}` === batch.of ? f.segments
      : batch.sid < 0 ? f.drops : f.peer;
    for (const x of batch.segments) {
      const time = instant(x.at), last = into.last;
      if (last?.node === batch.node && time < last.time) continue; // repeated after a reconnect
      into.push({ ...x, time, node: batch.node });
    }
  }

  /** measureFlow updates a flow's rates from its counters. */
  private measureFlow(f: Flow): void {
    const face = this.nodes.get(f.from.node)?.faces.get(f.from.iface);
    if (!face) {
      f.seen = []; // the node is down or was not polled
      f.counter = counter();
      f.bits = f.packets = f.lost = f.waiting = 0;
      return;
    }
    const other = f.to && this.nodes.get(f.to.node)?.faces.get(f.to.iface);
    const ways = f.way === "in" ? [face.in] : [face.out, other?.in];
    const through = face.info[f.way];
    let offered = 0, gone = 0;
    f.waiting = 0;
    for (const w of ways) {
      if (!w) continue;
      offered = Math.max(offered, w.seen);
      gone += w.lost + w.queue_dropped + w.overflowed;
      f.waiting += w.waiting;
    }
    // An interface counts packets that enter its queue; the impaired link counts those that leave it.
    const own = ways[0]?.words !== "nothing" ? ways[0] : undefined;
    count(f.counter, own ? "link" : "interface", own ? own.passed_bytes : through.bytes, own ? own.passed : through.packets);
    add(f.seen, { at: this.tick, bytes: f.counter.bytes, packets: f.counter.packets, offered, lost: gone });
    f.lost = lost(f.seen);
    const now = rate(f.seen);
    // A second that begins with a full bucket, or before the limit was lowered, may exceed it.
    f.bits = Math.min(now?.bits ?? 0, this.capacity(f));
    f.packets = now?.packets ?? 0;
    if (now) f.history.push([this.tick, f.bits]);
  }

  /** rewind forgets all rates and what is later than now: time has gone back, as it can in the playground. */
  private rewind(now: number): void {
    for (const f of this.links.flatMap((l) => l.flows)) {
      Object.assign(f, { seen: [], counter: counter(), history: new Ring<[number, number]>(historyLength) });
      f.bits = f.packets = f.lost = f.waiting = 0;
    }
    this.speed.clear();
    for (const f of this.followed.values()) {
      f.over = "";
      for (const ring of [f.samples, f.segments, f.peer, f.drops] as Ring<{ time: number }>[]) {
        ring.items = ring.items.filter((x) => x.time <= now);
      }
    }
    this.log.items = this.log.items.filter((e) => e.at <= now);
  }

  private measureConnections(): void {
    const found = new Map<string, Connection>();
    const ends = new Map<string, { node: string; socket: Socket }>();
    for (const n of this.nodes.values()) {
      for (const socket of n.sockets) {
        if (socket.remote.endsWith(":0") || socket.state === "LISTEN" || socket.state === "UDP") {
          continue;
        }
        const [local, remote] = [socket.local, socket.remote].map((x) => this.global(x, n.name));
        ends.set(`${local} ${remote}`, { node: n.name, socket });
      }
    }
    for (const [key, a] of ends) {
      const [local, remote] = key.split(" ") as [string, string];
      const b = ends.get(`${remote} ${local}`) ?? null;
      const opened = port(local) > port(remote) || (port(local) === port(remote) && local > remote);
      if (b && !opened) continue; // the other end is the initiator
      const id = `${a.node}/${a.socket.sid}`;
      const moved = [a, b].reduce((sum, e) => sum + (e?.socket.info?.bytes_acked ?? 0), 0);
      const was = this.speed.get(id);
      const dt = was ? (this.tick - was.at) / 1000 : 0;
      const fresh = was && dt > 0.1 ? ((moved - was.bytes) * 8) / dt : 0;
      const bits = was ? Math.max(0, (was.bits + fresh) / 2) : 0;
      this.speed.set(id, { at: this.tick, bytes: moved, bits });
      found.set(id, { id, opened, a, b, bits: bits < 1 ? 0 : bits });
    }
    for (const id of this.speed.keys()) if (!found.has(id)) this.speed.delete(id);
    this.connections = found;
  }

  /** connection finds a connection by either end, NODE/SID. */
  connection(id: string): Connection | undefined {
    const c = this.connections.get(id);
    if (c) return c;
    for (const other of this.connections.values()) {
      if (other.b && `${other.b.node}/${other.b.socket.sid}` === id) return other;
    }
    return undefined;
  }

  cut(l: LinkState): boolean {
    return l.ends.some((e) => this.nodes.get(e.node)?.faces.get(e.iface)?.info.up === false);
  }

  /** broken reports whether the node at one end does not answer. */
  broken(l: LinkState): boolean {
    return l.ends.some((e) => {
      const n = this.nodes.get(e.node);
      return n !== undefined && n.heard && !n.up;
    });
  }

  linkName(l: LinkState): string {
    return l.ends.length === 1 ? `${l.ends[0]!.node} – ${this.far(l)}` : l.ends.map((e) => e.node).join(" – ");
  }

  /** far names the end of a link that is not a node of this network: one address for each UDP address. */
  far(l: LinkState): string {
    const e = l.ends[0]!;
    const all = this.nodes.get(e.node)?.neighbors.filter((n) => n.iface === e.iface) ?? [];
    return all.filter((n, i) => all.findIndex((o) => o.udp === n.udp) === i).map((n) => n.addr).join(", ") || e.iface;
  }

  /** words returns the impairments of a flow, as `impair` takes them. */
  words(f: Flow): string {
    return this.nodes.get(f.from.node)?.faces.get(f.from.iface)?.[f.way]?.words ?? "nothing";
  }

  /** received returns the impairments that the receiver of a flow adds. */
  received(f: Flow): string {
    return (f.to && this.nodes.get(f.to.node)?.faces.get(f.to.iface)?.in?.words) ?? "nothing";
  }

  /** settings returns a link's impairments in lines: once if equal in all directions, or for each direction. */
  settings(l: LinkState): string[] {
    const all = l.flows.map((f) => [brief(this.words(f)), brief(this.received(f))]);
    if (all.every((lines) => lines.flat().join() === all[0]!.flat().join())) return all[0]?.flat() ?? [];
    const label = (text: string, lines: string[]): string[] => lines.map((line, k) => (k > 0 ? line : `${text}: ${line}`));
    return l.flows.flatMap((f, i) => [...label(`${f.way === "in" ? "to" : "from"} ${f.from.node}`, all[i]![0]!),
      ...label(`at ${f.to?.node}`, all[i]![1]!)]);
  }

  impaired(l: LinkState): string {
    return this.settings(l).join(" · ");
  }

  /** capacity is the lower of the rates that the two ends set for a flow. */
  capacity(f: Flow): number {
    return Math.min(read(this.words(f)).rate, read(this.received(f)).rate);
  }

  summary(): string {
    const up = [...this.nodes.values()].filter((n) => n.up).length;
    return up === this.nodes.size ? plural(up, "node") : `${up} of ${plural(this.nodes.size, "node")}`;
  }

  /** path follows the nodes' routes from a node to an address, as far as they lead. */
  path(from: string, addr: string): { links: number[]; nodes: string[]; arrives: boolean } {
    const links: number[] = [], nodes = [from], target = this.owner(addr, from);
    let at = from;
    for (let hops = 0; hops < 32; hops++) {
      const n = this.nodes.get(at);
      if (!n) break;
      if (target === at) return { links, nodes, arrives: true };
      const zone = addr.split("%")[1];
      const r = zone ? { next_hop: "", iface: zone } : longest(n.routes, addr);
      const l = r && this.linkOf(at, r.iface);
      if (!r || !l) break;
      links.push(l.id);
      const next = this.owner(r.next_hop || addr, at, r.iface);
      if (!next || nodes.includes(next)) break;
      nodes.push(next);
      at = next;
    }
    return { links, nodes, arrives: false };
  }
}

/** linkKey identifies a link. */
function linkKey(l: { subnet: string; ends: End[] | null }): string {
  return JSON.stringify([l.subnet, (l.ends ?? []).map((e) => [e.node, e.iface, e.addr])]);
}

/** inOrder sorts names by their numbers: R2 before R10. */
export const inOrder = new Intl.Collator("en", { numeric: true }).compare;

/** some lists the first names and counts the rest. */
export const some = (names: string[]): string =>
  names.length < 5 ? names.join(", ") : `${names.slice(0, 3).join(", ")} and ${names.length - 3} more`;

/** plain removes the socket's path from a problem. */
export const plain = (problem: string): string => problem.replace(/(the node does not answer): .*/, "$1");

/** instant is a time in milliseconds since 1970, with its fraction. */
function instant(at: string): number {
  const rest = /\.\d{3}(\d+)/.exec(at);
  return Date.parse(at) + (rest ? Number(`0.${rest[1]}`) : 0);
}

/** longest returns the route with the longest prefix that contains an address. */
export function longest(routes: Route[], addr: string): Route | undefined {
  let best: Route | undefined;
  for (const r of routes) {
    if (within(addr, r.prefix) &&
        (!best || length(r.prefix) > length(best.prefix))) best = r;
  }
  return best;
}
