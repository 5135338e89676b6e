// The arguments of `impair` that the sliders change. Other arguments stay as they are.

import { bitRate, bytes, plural } from "./format";

export interface Settings {
  loss: number | null; // a share; null: a loss model with several parameters
  delay: number; // milliseconds
  rate: number; // bits per second; Infinity: no limit
  limit: number; // packets in the queue
}

const clauses = new Set(["delay", "loss", "drop", "duplicate", "reorder", "corrupt", "truncate", "police",
  "policer", "rate", "limit", "slot", "slots", "trace", "codel", "fq_codel", "red", "pie", "seed",
  "overtake", "bits", "where", "pfifo", "bfifo", "dropfront", "drophead", "burst", "ecn"]);

function split(words: string): string[][] {
  const list: string[][] = [];
  if (words === "nothing" || words === "off") return list;
  for (const w of words.split(/\s+/).filter(Boolean)) {
    if (clauses.has(w) || list.length === 0) list.push([w]);
    else list[list.length - 1]!.push(w);
  }
  return list;
}

export function milliseconds(text: string): number {
  let total = 0;
  for (const m of text.matchAll(/([\d.]+)(h|ms|m|us|µs|ns|s)/g)) {
    const unit = { h: 3.6e6, m: 6e4, s: 1e3, ms: 1, us: 1e-3, "µs": 1e-3, ns: 1e-6 }[m[2]!] ?? 0;
    total += Number(m[1]) * unit;
  }
  return total;
}

export function bitsPerSecond(text: string): number {
  const m = /^([\d.]+)([a-z]*)$/i.exec(text);
  if (!m) return Infinity;
  const unit: Record<string, number> = { "": 1, bit: 1, bps: 8, kbit: 1e3, mbit: 1e6, gbit: 1e9,
    tbit: 1e12, kbps: 8e3, mbps: 8e6, gbps: 8e9 };
  return Number(m[1]) * (unit[m[2]!.toLowerCase()] ?? NaN) || Infinity;
}

/** packets converts a queue limit (packets, bytes, a time, or several) to full packets. */
function packets(limit: string, rate: number): number {
  const full = 1400; // bytes
  return Math.max(1, Math.min(...limit.split(",").map((part) => {
    const m = /^([\d.]+)(k|m)?b$/i.exec(part);
    if (m) return Math.ceil((Number(m[1]) * (m[2] ? { k: 1024, m: 1048576 }[m[2].toLowerCase()]! : 1)) / full);
    return Number(part) || Math.ceil((milliseconds(part) * rate) / 8000 / full);
  })));
}

export function read(words: string): Settings {
  let limit = "";
  const found: Settings = { loss: 0, delay: 0, rate: Infinity, limit: 1000 };
  for (const [name, value] of split(words)) {
    if (value === undefined) continue;
    if (name === "loss") found.loss = /^[\d.]+%$/.test(value) ? parseFloat(value) / 100 : null;
    else if (name === "delay") found.delay = milliseconds(value);
    else if (name === "rate") found.rate = bitsPerSecond(value);
    else if (name === "limit") limit = value;
  }
  if (limit) found.limit = packets(limit, found.rate) || found.limit;
  return found;
}

/** usual reports whether a limit is the node's default for a rate: 200 ms at that rate, at least 32 KiB. */
function usual(limit: string, rate: number): boolean {
  const m = /^(\d+)(k?)b$/.exec(limit);
  return m !== null && Number(m[1]) * (m[2] ? 1024 : 1) === Math.max(32768, Math.floor(rate / 40));
}

/** turn returns the arguments with one of them changed. */
export function turn(words: string, what: "loss" | "delay" | "rate", value: number): string {
  let list = split(words);
  // Removes a default limit together with its rate, so that the node chooses a limit for the new
  // rate.
  if (what === "rate") list = list.filter((c) => c[0] !== "limit" || !usual(c[1] ?? "", read(words).rate));
  // A rate replaces a trace, and the slots of a radio link.
  if (what === "rate") list = list.filter((c) => c[0] !== "trace" && c[0] !== "slot");
  const at = list.findIndex((c) => c[0] === what);
  const off = what === "rate" ? value === Infinity : value === 0;
  const text = what === "loss" ? `${+(value * 100).toFixed(4)}%`
    : what === "delay" ? `${+value.toFixed(3)}ms` : `${Math.round(value)}bit`;
  if (off) {
    const lost = what === "rate"
      ? ["rate", "limit", "codel", "fq_codel", "red", "pie", "ecn", "burst"] : [what];
    list = list.filter((c) => !lost.includes(c[0]!));
  } else if (at < 0) {
    list.push([what, text]);
  } else if (what === "loss") {
    list[at] = [what, text];
  } else {
    list[at]![1] = text;
  }
  return list.flat().join(" ") || "off";
}

/** size formats a queue's limit: packets, bytes, or a time at the link's rate. */
function size(limit: string): string {
  return limit.split(",").map((part) => {
    const m = /^([\d.]+)(k|m)?b$/i.exec(part);
    if (m) {
      const n = Number(m[1]);
      return m[2] ? `${n} ${{ k: "KiB", m: "MiB" }[m[2].toLowerCase()]}` : bytes(n);
    }
    return Number(part) ? plural(Number(part), "packet") : part;
  }).join(", ");
}

const shown = new Set(["delay", "loss", "rate", "limit", "seed", "burst", "ecn", "overtake", "bits", "where"]);

/** brief is a link's impairments for its label: rate and queue, then the others. */
export function brief(words: string): string[] {
  const w = read(words), clauses = split(words);
  const first: string[] = [], second: string[] = [];
  if (w.rate < Infinity) first.push(bitRate(w.rate));
  const limit = clauses.find((c) => c[0] === "limit")?.[1];
  if (limit) first.push(`queue ${size(limit)}`);
  if (w.delay > 0) second.push(`${+w.delay.toFixed(1)} ms`);
  if (w.loss === null) second.push("loss");
  else if (w.loss > 0) second.push(`${+(w.loss * 100).toFixed(2)} % loss`);
  for (const [name] of clauses) if (!shown.has(name!)) second.push(name!);
  return [first, second].filter((l) => l.length).map((l) => l.join(" · "));
}
