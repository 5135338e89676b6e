// Pings and transfers that the page starts.

import { bare, linkLocal, parse } from "./address";
import { h, type Child } from "./dom";
import { bitRate, bytes, count, duration, percent } from "./format";
import { isStop, lines, stop } from "./server";
import { inOrder, Ring, type Store } from "./store";
import type { PingResult, Progress, Reply, Transfer } from "./types";
import { empty, figure, heading, prose, section, type Context } from "./view";

interface Task {
  n: number;
  sort: "ping" | "transfer";
  from: string;
  to: string;
  bytes: number;
  state: "running" | "done" | "failed" | "stopped";
  text: string;
  replies: Ring<Reply>;
  result: PingResult | { sent: Transfer; received: Transfer; same: boolean } | null;
  sending: Progress | null;
  receiving: Progress | null;
  id: number; // id of the running command
  stop: AbortController;
}

const sizes = [100e3, 1e6, 10e6, 50e6, 100e6, 500e6];
const tasks: Task[] = [];
const mostTasks = 20;
let last = 0;
export const chosen = { from: "", to: "", target: "", size: 10e6, count: 5, family: 4 };

function defaults(store: Store): void {
  const names = [...store.nodes.keys()];
  const hosts = [...store.nodes.values()].filter((n) => !n.router).map((n) => n.name);
  const pick = hosts.length > 1 ? hosts : names;
  if (!names.includes(chosen.from)) chosen.from = pick[0] ?? "";
  if (!names.includes(chosen.to) || chosen.to === chosen.from) {
    chosen.to = pick.filter((n) => n !== chosen.from).at(-1) ?? names.find((n) => n !== chosen.from) ?? "";
  }
  chosen.target ||= chosen.to || strangers(store)[0] || "";
}

/** addressesOf returns a node's addresses that other links can reach, IPv4 first, in the order of the links. */
function addressesOf(store: Store, node: string): string[] {
  const faces = store.links.flatMap((l) => l.ends.filter((e) => e.node === node));
  return faces.flatMap((e) => store.addresses(e)).map((a) => a.split("/")[0]!).filter((a) => !linkLocal(a));
}

/** addressOf returns a node's address of the chosen family, or of the other one if it has none. */
function addressOf(store: Store, node: string): string | undefined {
  const all = addressesOf(store, node);
  return all.find((a) => parse(a)?.family === chosen.family) ?? all[0];
}

/** families reports whether the network has addresses of both families. */
const families = (store: Store): boolean =>
  new Set([...store.nodes.keys()].flatMap((n) => addressesOf(store, n)).map((a) => parse(a)?.family)).size > 1;

/** strangers returns the neighbors' addresses that belong to no node of this network. */
function strangers(store: Store): string[] {
  return [...store.nodes.values()].flatMap((n) => n.neighbors.filter((x) => !store.owner(x.addr, n.name, x.iface)))
    .map((x) => x.addr).sort(inOrder);
}

function choice(id: string, label: string, options: [string, string][], value: string): Child {
  return h("div", { class: "field", "data-key": id }, h("label", { for: id }, label),
    h("select", { id, "data-on": "task" }, options.map(([v, text]) =>
      h("option", { value: v, selected: v === value, "data-key": v }, text))));
}

/** target is the destination field of a ping: a node, or any address. */
function target(store: Store): Child {
  return h("div", { class: "field", "data-key": "target" }, h("label", { for: "task-target" }, "To"),
    h("input", {
      id: "task-target", list: "targets", "data-on": "task", value: chosen.target, autocomplete: "off",
      autocapitalize: "off", spellcheck: "false", placeholder: "a node, or an address", required: true,
    }),
    h("datalist", { id: "targets" }, [...store.nodes.keys(), ...strangers(store)].map((x) =>
      h("option", { value: x, "data-key": x }))));
}

export function taskView({ store }: Context, sort: "ping" | "transfer"): Child[] {
  defaults(store);
  const names = [...store.nodes.values()].map((n): [string, string] =>
    [n.name, n.name + (n.heard && !n.up ? " (down)" : "")]);
  const mine = tasks.filter((t) => t.sort === sort).reverse();
  return [
    heading(sort === "ping" ? "Ping" : "Transfer", sort === "ping" ? "Reachability and round-trip time"
      : "Send a file over the network"),
    h("form", { class: "form", "data-key": `form-${sort}`, "data-form": sort },
      h("div", { class: "pair" },
        choice("task-from", "From", names, chosen.from),
        sort === "transfer" ? choice("task-to", "To", names, chosen.to) : target(store)),
      sort === "transfer" && names.length < 2 && h("p", { class: "hint" },
        prose("A transfer needs two nodes, but this page shows only one. To send a file to another node, use `sendfile` in this node's shell.")),
      sort === "transfer"
        ? choice("task-size", "Size", sizes.map((n) => [String(n), bytes(n)]), String(chosen.size))
        : choice("task-count", "Requests", [1, 5, 20, 100].map((n) => [String(n), String(n)]),
          String(chosen.count)),
      families(store) && choice("task-family", sort === "ping" ? "Address family (if To is a node)" : "Address family",
        [["4", "IPv4"], ["6", "IPv6"]], String(chosen.family)),
      h("button", { class: "primary", type: "submit", disabled: sort === "transfer" && (!chosen.to || chosen.from === chosen.to) },
        sort === "ping" ? "Ping" : "Start the transfer")),
    mine.length ? h("div", { class: "tasks", "data-key": "tasks" }, mine.map((t) => one(store, t)))
      : empty(sort === "ping" ? "No pings yet. The replies appear here."
        : "A transfer sends a file of random bytes over TCP and compares the SHA-256 at both ends."),
  ];
}

function one(store: Store, t: Task): Child {
  return h("section", { class: `task ${t.state}`, "data-key": `${t.n}` },
    h("div", { class: "taskhead" }, h("h3", null, `${t.from} → ${t.to}`,
      h("small", null, t.sort === "transfer" ? ` ${bytes(t.bytes)}` : "")),
    t.state === "running" && h("button", { "data-do": "stop", "data-arg": t.n }, "Stop")),
    t.sort === "transfer" ? transferred(store, t) : pinged(t),
    t.text && h("p", { class: t.state === "failed" ? "alert" : "hint" }, prose(t.text)));
}

function transferred(store: Store, t: Task): Child {
  const p = t.receiving ?? t.sending;
  const done = p?.bytes ?? 0;
  const rate = p && p.elapsed_ns > 0 ? (p.bytes * 8e9) / p.elapsed_ns : 0;
  const r = t.result as { sent: Transfer; received: Transfer; same: boolean } | null;
  const link = connectionOf(store, t);
  return [
    h("progress", {
      max: t.bytes, value: r ? t.bytes : done, "aria-label": `Transfer from ${t.from} to ${t.to}`,
    }),
    h("dl", { class: "figures" },
      figure("Received", r ? bytes(r.received.bytes) : bytes(done),
        ` ${percent(r ? 1 : done / t.bytes)}`),
      figure("Rate", bitRate(r ? r.received.mb_per_s * 8e6 : rate)),
      figure(r ? "Duration" : "Time left", r ? duration(r.received.seconds * 1e9)
        : t.state === "running" && rate > 0 ? duration(((t.bytes - done) * 8e9) / rate) : "–"),
      r && figure("Retransmitted", count(r.sent.retransmits)),
      r && h("div", { class: "figure wide", "data-key": "sha" },
        h("dt", null, "SHA-256 at both ends"),
        h("dd", null, r.same ? "equal " : "different ", h("code", null, r.received.sha256.slice(0, 16) + "…")))),
    t.state === "running" && !p && h("p", { class: "hint" }, "Creating the file…"),
    link && t.state === "running" && h("button", {
      class: "text", "data-do": "go", "data-arg": `connection:${link}`,
    }, "Show the connection"),
  ];
}

/** connectionOf is the connection of a transfer: the newest between its nodes. */
function connectionOf(store: Store, t: Task): string {
  return [...store.connections.values()].filter((c) => c.a.node === t.from && c.b?.node === t.to &&
    /:50\d\d$/.test(c.a.socket.remote)).at(-1)?.id ?? "";
}

function pinged(t: Task): Child {
  const r = t.result as PingResult | null;
  return [
    r && h("dl", { class: "figures" },
      figure("Replies", `${r.received} of ${r.sent}`),
      r.received > 0 && [figure("Minimum", duration(r.min_ns)), figure("Mean", duration(r.avg_ns)),
        figure("Maximum", duration(r.max_ns))]),
    t.state === "running" && !t.replies.items.length && h("p", { class: "hint" }, "No reply yet."),
    h("ol", { class: "replies" }, t.replies.items.slice(-8).map((x) =>
      h("li", { "data-key": `${x.seq}`, class: x.problem ? "bad" : null },
        h("span", null, `${x.seq}`), x.problem ? [x.from, x.problem].filter(Boolean).join(": ") : `from ${x.from}`,
        h("span", { class: "num" }, x.problem ? "" : duration(x.rtt_ns))))),
  ];
}

export function setTask(store: Store, id: string, value: string): void {
  if (id === "task-from") chosen.from = value;
  else if (id === "task-to") chosen.to = value;
  else if (id === "task-target") chosen.target = bare(value.trim());
  else if (id === "task-family") chosen.family = Number(value);
  else if (id === "task-size") chosen.size = Number(value);
  else chosen.count = Number(value);
  if (id === "task-from" && chosen.from === chosen.to) chosen.to = "";
  store.onChange();
}

export function stopTask(n: number): void {
  const t = tasks.find((x) => x.n === n);
  if (!t) return;
  if (t.id) void stop(t.from, t.id);
  else t.stop.abort();
}

export async function start(store: Store, sort: "ping" | "transfer"): Promise<void> {
  const t: Task = {
    n: ++last, sort, from: chosen.from, to: sort === "ping" ? chosen.target : chosen.to, bytes: chosen.size, state: "running",
    text: "", replies: new Ring<Reply>(100), result: null, sending: null, receiving: null, id: 0,
    stop: new AbortController(),
  };
  tasks.push(t);
  while (tasks.length > mostTasks) {
    const old = tasks.findIndex((x) => x.state !== "running");
    tasks.splice(Math.max(0, old), 1);
  }
  const tell = (event: string, data: any): void => {
    if (event === "running") t.id = data.id;
    else if (event === "sending") t.sending = data;
    else if (event === "receiving") t.receiving = data;
    else if (event === "each") t.replies.push(data);
    store.onChange();
  };
  store.note(`${sort === "ping" ? "Ping" : "Transfer"} from ${t.from} to ${t.to} started`);
  store.onChange();
  try {
    t.result = sort === "transfer"
      ? await lines("/v1/transfers", { from: t.from, to: t.to, bytes: t.bytes, addr: addressOf(store, t.to) }, tell, t.stop.signal)
      : await lines(`/v1/nodes/${encodeURIComponent(t.from)}/commands/ping`,
        { addr: address(store, t.to), count: chosen.count }, tell, t.stop.signal);
    t.state = "done";
    finished(store, t);
  } catch (e) {
    const what = `${sort === "ping" ? "Ping" : "Transfer"} from ${t.from} to ${t.to}`;
    if (isStop(e)) {
      t.state = "stopped";
      t.text = "Stopped.";
      store.note(`${what} stopped`);
    } else {
      t.state = "failed";
      t.text = (e as Error).message;
      store.note(`${what} failed: ${t.text}`, "bad");
    }
  }
  store.onChange();
}

function address(store: Store, to: string): string {
  const found = addressOf(store, to) ?? (parse(to) ? to : undefined);
  if (found) return found;
  throw new Error(`${to}: must be a node or an address such as ${store.links[0]?.ends[0]?.addr ?? "10.0.0.1"}`);
}

function finished(store: Store, t: Task): void {
  if (t.sort === "ping") {
    const r = t.result as PingResult;
    store.note(`${t.to} answered ${r.received} of ${r.sent} pings from ${t.from}` +
      (r.received ? `, mean round trip ${duration(r.avg_ns)}` : ""), r.received ? "good" : "bad");
    return;
  }
  const r = t.result as { received: Transfer; same: boolean };
  store.note(`Sent ${bytes(r.received.bytes)} from ${t.from} to ${t.to} in ` +
    `${duration(r.received.seconds * 1e9)}, ${bitRate(r.received.mb_per_s * 8e6)}` +
    (r.same ? "" : "; the received file differs"), r.same ? "good" : "bad");
}

export const running = (): number => tasks.filter((t) => t.state === "running").length;
export const tasksSection = (store: Store): Child => section("tasks", "Running",
  tasks.filter((t) => t.state === "running").map((t) => one(store, t)));
