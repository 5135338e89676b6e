// Sequence diagram of a connection's segments: time runs down, one row for each event.

import { h, s, type Child } from "./dom";
import type { Followed, Seen } from "./store";
import { short } from "./graph";
import { empty } from "./view";

/** Step is one transmission of a segment. */
interface Step {
  x: Seen;
  side: 0 | 1; // the sender: 0 left, 1 right
  arrives: number | null; // null: no arrival was seen
  lost: string; // the reason of its drop; empty: not dropped
  at: string; // the node that dropped the segment
}

const rows = 44;
const rowHeight = 17, top = 26;
const lines = [198, 296]; // x of the two lifelines
const across = 430;

const key = (x: Seen): string => `${x.seq} ${x.length} ${x.flags} ${x.ack} ${x.tsval ?? 0}`;

/** arrivals finds the arrival of a segment: each is used once, and none before the departure. */
function arrivals(seen: Seen[]): (x: Seen) => Seen | undefined {
  const by = new Map<string, Seen[]>();
  for (const x of seen) {
    const list = by.get(key(x));
    if (list) list.push(x);
    else by.set(key(x), [x]);
  }
  return (x) => {
    const list = by.get(key(x));
    const i = list?.findIndex((y) => y.time >= x.time - 0.05) ?? -1;
    return i < 0 ? undefined : list!.splice(i, 1)[0];
  };
}

/** steps combines what the two ends and the nodes between them have seen. */
export function steps(f: Followed, left: string, right: string): Step[] {
  const near = f.segments.items.slice(-120), far = f.peer.items;
  const drops = [...f.drops.items];
  const begin = near[0]?.time ?? 0, end = near.at(-1)?.time ?? 0;
  if (!far.length) {
    return near.map((x) => ({
      x, side: x.sent ? 0 : 1, arrives: x.drop ? null : x.time, lost: x.drop ?? "", at: left,
    }));
  }
  const list: Step[] = [];
  const go = (side: 0 | 1, from: string, to: string, leaving: Seen[], arriving: Seen[]): void => {
    const arrival = arrivals(arriving);
    const open = new Map<string, Step>();
    for (const x of leaving) {
      const before = x.drop && open.get(key(x));
      if (before) { // reported when it was sent, and again when the link lost it
        [before.lost, before.at] = [x.drop!, from];
        continue;
      }
      const a = x.drop ? undefined : arrival(x);
      const step: Step = { x, side, arrives: a?.time ?? null, lost: x.drop ?? "", at: from };
      if (a?.drop) [step.lost, step.at, step.arrives] = [a.drop, to, null];
      if (!a) open.set(key(x), step);
      list.push(step);
    }
    for (const step of list) {
      if (step.side !== side || step.arrives !== null || step.lost) continue;
      const d = drops.findIndex((y) => y.wire_seq === step.x.wire_seq && y.tsval === step.x.tsval &&
        y.length === step.x.length && y.time >= step.x.time - 0.05 && y.time < step.x.time + 5000);
      if (d < 0) continue; // in flight, or not seen
      [step.lost, step.at] = [drops[d]!.drop ?? "dropped", drops[d]!.node];
      drops.splice(d, 1);
    }
  };
  const sent = (x: Seen): boolean => x.sent, came = (x: Seen): boolean => !x.sent;
  go(0, left, right, near.filter(sent), far.filter(came));
  go(1, right, left, far.filter((x) => x.sent && x.time >= begin && x.time <= end), near.filter(came));
  return list;
}

/** Rows are the rows of a step's events; negative: above the visible part. */
interface Rows { out: number; in?: number }

interface Event { time: number; side: 0 | 1; step: Step; arrives: boolean }

export function ladder(f: Followed | undefined, left: string, right: string): Child {
  if (!f?.segments.items.length) return empty("No segments yet. They appear here as they are sent.");
  const all = steps(f, left, right);
  const events: Event[] = all.flatMap((step) => {
    const list: Event[] = [{ time: step.x.time, side: step.side, step, arrives: false }];
    if (step.arrives !== null && step.arrives > step.x.time) {
      list.push({ time: step.arrives, side: step.side ? 0 : 1, step, arrives: true });
    }
    return list;
  }).sort((a, b) => a.time - b.time);
  const shown = events.slice(-rows), before = events.length - shown.length;
  const row = new Map<Step, Rows>(); // rows of the visible steps
  events.forEach((e, i) => {
    const r = e.arrives ? row.get(e.step)! : { out: 0 };
    r[e.arrives ? "in" : "out"] = i - before;
    row.set(e.step, r);
  });
  for (const [step, r] of row) if ((r.in ?? r.out) < 0) row.delete(step);
  const first = shown[0]!.time;
  const high = top + shown.length * rowHeight + 6;
  const y = (i: number): number => top + (i + 0.5) * rowHeight;
  let told = "";
  return [
    h("p", { class: "hint" }, f.peer.items.length
      ? "Time runs down, in milliseconds, with a row for each event. ✕ marks a dropped segment, with the node that dropped it and why."
      : `These are the segments that ${left} sent and received. The other end is not a node of this network.`),
    s("svg", { class: "ladder", viewBox: `0 0 ${across} ${high}`, "aria-hidden": "true" },
      [left, right].map((name, i) => [
        s("text", { class: "end", x: lines[i]!, y: 14, "text-anchor": "middle" }, short(name, 14)),
        s("path", { class: "life", d: `M${lines[i]} ${top - 4}V${high}` })]),
      [...row].map(([step, r]) => arrow(step, r, y, high)),
      shown.map((e, i) => {
        const ms = (e.time - first).toFixed(1);
        const why = e.step.lost && e.step.side; // the reason of the loss is drawn there
        const time = ms !== told && !why && s("text", { class: "ms", x: 34, y: y(i) + 4, "text-anchor": "end" }, ms);
        told = ms;
        return [time, !e.arrives && label(e.step, y(i) + 4)];
      })),
    h("div", { class: "hidden" }, h("table", null,
      h("caption", null, `Segments between ${left} and ${right}, oldest first`),
      h("thead", null, h("tr", null, ["Time (ms)", "From", "Segment", "Arrived after"].map((t) =>
        h("th", { scope: "col" }, t)))),
      h("tbody", null, [...row.keys()].sort((a, b) => a.x.time - b.x.time).map((step) => h("tr", null,
        h("td", null, (step.x.time - first).toFixed(1)), h("td", null, step.side ? right : left),
        h("td", null, words(step.x)), h("td", null, step.lost ? `dropped: ${step.lost} ${step.at}`
          : step.arrives === null ? "" : `${(step.arrives - step.x.time).toFixed(1)} ms`)))))),
  ];
}

const again = (x: Seen): boolean => (x.marks ?? []).includes("retransmission");

function arrow(step: Step, r: Rows, y: (i: number) => number, high: number): Child {
  const from = lines[step.side]!, to = lines[1 - step.side]!;
  const y1 = y(r.out), edge = top - 4;
  const straight = step.arrives !== null && step.arrives <= step.x.time;
  let x2 = to, y2 = straight ? y1 : r.in === undefined ? Math.min(y1 + rowHeight, high) : y(r.in);
  const ends = straight || r.in !== undefined;
  if (!ends) x2 = (from + to) / 2;
  const a = Math.atan2(y2 - y1, x2 - from);
  const point = (turn: number): string =>
    `${(x2 - 8 * Math.cos(a + turn)).toFixed(1)} ${(y2 - 8 * Math.sin(a + turn)).toFixed(1)}`;
  const x1 = y1 < edge ? from + ((x2 - from) * (edge - y1)) / (y2 - y1) : from;
  const kind = step.lost ? "lost" : again(step.x) ? "again" : step.x.length ? "data" : "ack";
  return s("g", { class: `step ${kind}` },
    s("path", { class: "shaft", d: `M${x1.toFixed(1)} ${Math.max(y1, edge)}L${x2} ${y2.toFixed(1)}` }),
    ends && s("path", { class: "tip", d: `M${x2} ${y2.toFixed(1)}L${point(0.4)}L${point(-0.4)}z` }),
    step.lost && s("path", { class: "cross", d: `M${x2 - 5} ${(y2 - 5).toFixed(1)}l10 10m0-10l-10 10` }),
    step.lost && s("text", { // the free side of this row
      class: "why", x: lines[1 - step.side]! + (step.side ? -8 : 8), y: y1 + 4,
      "text-anchor": step.side ? "end" : "start",
    }, [short(step.at, 10), step.lost].filter(Boolean).join(": ")));
}

function label(step: Step, y: number): Child {
  const x = step.x;
  return s("text", {
    class: `what${step.lost ? " bad" : again(x) ? " repeat" : x.marks?.length ? " odd" : ""}`,
    x: step.side ? lines[1]! + 8 : lines[0]! - 8, y, "text-anchor": step.side ? "start" : "end",
  }, again(x) ? `retransmitted ${x.seq}` : words(x));
}

function words(x: Seen): string {
  const names = { S: "SYN", F: "FIN", R: "RST" };
  const flags = [...x.flags].map((c) => names[c as "S"] ?? "").filter(Boolean).join(" ");
  const marks = x.marks ?? [];
  const mark = again(x) ? "retransmitted" : marks.includes("dup ack") ? "dup" : marks.includes("zero window") ? "win 0" : "";
  const text = x.length ? `${x.seq}+${x.length}` : flags ? "" : `ack ${x.ack}`;
  return [flags, mark, text].filter(Boolean).join(" ");
}
