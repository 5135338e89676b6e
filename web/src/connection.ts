// The view of a connection: windows, rates, round-trip times, and what limits the sender.

import { Chart, type ChartOptions } from "./charts";
import { h, type Child } from "./dom";
import { bitRate, bytes, count, duration, plural } from "./format";
import { ladder } from "./ladder";
import { connectionTitle, ends, stateName } from "./overview";
import { short } from "./graph";
import type { Connection, LinkState, Seen, Store } from "./store";
import type { Info, Sample } from "./types";
import { empty, figure, heading, section, type Context } from "./view";

const reasons: Record<string, string> = {
  app: "the application sends no more data", cwnd: "the congestion window is full",
  rwnd: "the receiver's window is full", sndbuf: "the send buffer is full",
  pacing: "pacing delays segments", nagle: "Nagle's algorithm waits for a full segment",
  cork: "the socket is corked", persist: "the receiver's window is closed",
  recovery: "loss recovery is in progress", idle: "no data to send",
};

/** sender returns the end whose curves are shown: the one that has sent more. */
export function sender(store: Store, id: string): { id: string; peer: string } {
  const c = store.connection(id);
  if (!c) {
    const ids = [id, ...[...store.followed.keys()].filter((x) => x !== id)];
    const sent = (x: string | undefined): number => store.followed.get(x ?? "")?.samples.last?.sent ?? 0;
    return sent(ids[1]) > sent(id) ? { id: ids[1]!, peer: id } : { id, peer: ids[1] ?? "" };
  }
  const [a, b] = [c.a, c.b].map((e) => (e ? `${e.node}/${e.socket.sid}` : ""));
  const [x, y] = [c.a, c.b].map((e) => e?.socket.info?.bytes_sent ?? 0);
  return y! > x! ? { id: b!, peer: a! } : { id: a!, peer: b! };
}

const titles = new Map<string, [string, string]>(); // kept after a connection ends

export function remember(store: Store, c: Connection): void {
  if (titles.size > 100) titles.clear();
  titles.set(c.id, [connectionTitle(store, c), ends(c).join(" → ")]);
}

export function connectionView({ store }: Context, id: string): Child[] {
  const c = store.connection(id);
  const { id: from, peer } = sender(store, id);
  const f = store.followed.get(from);
  const end = [c?.a, c?.b].find((e) => e && `${e.node}/${e.socket.sid}` === from)?.socket;
  const sample = f?.samples.last ?? (end?.info && { state: end.state, info: end.info }); // an idle connection has no samples
  const [title, addresses] = titles.get(c?.id ?? id) ?? titles.get(id) ?? [id, ""];
  const over = f?.over || (!c && f ? "the connection is closed" : "");
  const node = from.split("/")[0]!, other = peer.split("/")[0] || "peer";
  return [
    heading("Connection", title, h("p", { class: "sub" }, addresses)),
    over && h("p", { class: "alert calm", role: "status" }, sample
      ? "This connection is closed. The charts show its last seconds."
      : "This connection closed before the page could sample it."),
    sample ? figures(sample.info, sample.state, node)
      : !over && empty(c || store.service !== "live" ? "Waiting for the first sample…"
        : "There is no such connection. It may have closed."),
    ...(sample ? kinds : []).map((k) => h("section", { class: "part", "data-key": k },
      h("h3", null, chartOptions[k]!.label),
      h("div", { class: "chart", "data-own": true, "data-chart": `${k}:${id}` }))),
    (over ? f?.segments.last : c || f) && section("ladder", "Segments", ladder(f, node, other)),
  ];
}

function figures(s: Info, state: string, node: string): Child {
  return h("dl", { class: "figures", "data-key": "figures" },
    figure("Delivery rate", bitRate(s.delivery_rate)),
    figure("Round trip", duration(s.rtt_ns), `minimum ${duration(s.min_rtt_ns)}`),
    figure("Acknowledged", bytes(s.bytes_acked)),
    figure("cwnd", bytes(s.cwnd), `${count(Math.floor(s.cwnd / Math.max(1, s.mss)))} segments`),
    figure("ssthresh", s.ssthresh ? bytes(s.ssthresh) : "not set"),
    figure("In flight", bytes(s.pipe)),
    figure("Sender", node, stateName(state)),
    figure("Algorithm", s.congestion, s.recovery === "open" ? "no loss recovery" : s.recovery),
    figure("Retransmitted", count(s.retransmits), plural(s.timeouts, "timeout")),
    h("div", { class: "figure wide", "data-key": "limited" }, h("dt", null, "Limited by"),
      h("dd", null, reasons[s.limited] ?? s.limited)));
}

const span = 30;
const kinds = ["throughput", "windows", "rtt", "sequence"];
const chartOptions: Record<string, ChartOptions> = {
  throughput: {
    label: "Throughput (1 s average)", format: bitRate, height: 120, span, least: 1e3,
    curves: [{ name: "acknowledged", color: "--acked", fill: true }],
  },
  windows: {
    label: "Congestion window and data in flight", format: bytes, height: 150, span, least: 1e3,
    curves: [{ name: "in flight", color: "--sent", fill: true },
      { name: "cwnd", color: "--cwnd" },
      { name: "ssthresh", color: "--level", dash: [7, 4] }],
  },
  rtt: {
    label: "Round-trip time", format: (ms) => duration(ms * 1e6), height: 110, span,
    curves: [{ name: "smoothed", color: "--rtt" },
      { name: "minimum", color: "--level", dash: [7, 4] }],
  },
  sequence: {
    label: "Sequence numbers of the last segments", format: bytes, least: 1e3, height: 200, span, last: "last",
    curves: [{ name: "sent", color: "--sent", drawn: true },
      { name: "retransmitted", color: "--again", drawn: true },
      { name: "acknowledged", color: "--acked", step: true }],
  },
  rates: {
    label: "Rate (1 s average)", format: bitRate, height: 110, span: 60, least: 1e3,
    curves: [{ name: "forward", color: "--g1", fill: true },
      { name: "reverse", color: "--g3", dash: [7, 4] }],
  },
};

const charts = new Map<string, { element: Element; chart: Chart }>();

function chartOf(key: string, into: HTMLElement, kind: string): Chart {
  const known = charts.get(key);
  if (known && known.element === into) return known.chart;
  known?.chart.destroy();
  const chart = new Chart(into, chartOptions[kind]!);
  charts.set(key, { element: into, chart });
  return chart;
}

/** plot draws every chart of the panel. */
export function plot(store: Store, panel: Element, theme: string): void {
  const seen = new Set<string>();
  for (const into of panel.querySelectorAll<HTMLElement>("[data-chart]")) {
    const key = into.dataset["chart"]!;
    seen.add(key);
    const kind = key.slice(0, key.indexOf(":")), id = key.slice(key.indexOf(":") + 1);
    const chart = chartOf(key, into, kind);
    if (kind === "rates") {
      const l = store.link(id);
      if (!l) continue;
      chart.set(histories(l), store.tick / 1000, theme,
        l.flows.length > 2 ? ["all", ""] : l.flows.map((f) => `${f.way === "in" ? "to" : "from"} ${short(f.from.node, 16)}`));
      continue;
    }
    const f = store.followed.get(sender(store, id).id);
    if (kind === "sequence") {
      timeSequence(chart, f?.segments.items ?? [], theme);
      continue;
    }
    const all = f?.samples.items ?? [];
    const last = all.at(-1)?.time ?? store.tick;
    const end = (f?.over ? last : Math.max(last, store.tick)) / 1000;
    chart.set(columns(kind, all.filter((s) => s.time / 1000 > end - span - 1)), end, theme);
  }
  for (const [key, c] of charts) {
    if (!seen.has(key) || !c.element.isConnected) {
      c.chart.destroy();
      charts.delete(key);
    }
  }
}

/** histories returns a link's rates: a column for each direction, or their sum if more than two nodes share it. */
function histories(l: LinkState): (number | null)[][] {
  const at = new Map<number, (number | null)[]>();
  for (const [i, f] of l.flows.entries()) {
    for (const [time, bits] of f.history.items) {
      const row = at.get(time) ?? [null, null];
      const column = l.flows.length > 2 ? 0 : i;
      row[column] = column === i ? bits : (row[column] ?? 0) + bits;
      at.set(time, row);
    }
  }
  const times = [...at.keys()].sort((a, b) => a - b);
  return [times.map((x) => x / 1000), times.map((x) => at.get(x)![0]!), times.map((x) => at.get(x)![1]!)];
}

type Timed = Sample & { time: number };

function columns(kind: string, list: Timed[]): (number | null)[][] {
  const at = list.map((s) => s.time / 1000);
  switch (kind) {
    case "throughput": {
      let back = 0; // the sample one second earlier
      return [at, list.map((s) => {
        while (list[back + 1] && list[back + 1]!.time <= s.time - 1000) back++;
        const b = list[back]!;
        const dt = s.time - b.time;
        return dt < 100 ? null : ((s.acked - b.acked) * 8e3) / dt;
      })];
    }
    case "windows":
      return [at, list.map((s) => s.info.pipe), list.map((s) => s.info.cwnd), list.map((s) => s.info.ssthresh || null)];
    case "rtt":
      return [at, list.map((s) => s.info.rtt_ns / 1e6), list.map((s) => s.info.min_rtt_ns / 1e6)];
    default: throw new Error(`no chart ${kind}`);
  }
}

/** timeSequence shows each segment as a bar from its first byte to its last, and the acknowledgments. */
function timeSequence(chart: Chart, all: Seen[], theme: string): void {
  let from = all.length - 1; // the first segment after the last pause
  while (from > 0 && all[from]!.time - all[from - 1]!.time < 800) from--;
  const list = all.slice(Math.max(0, from));
  const end = list.at(-1)?.time ?? 0;
  const data = list.filter((x) => x.sent && x.length), acks = list.filter((x) => !x.sent);
  const base = Math.min(...data.map((x) => x.seq), ...acks.map((x) => x.ack));
  const seconds = Math.max(0.02, (end - (list[0]?.time ?? 0)) / 1000);
  chart.bars = data.map((x) => {
    const again = Boolean(x.marks?.includes("retransmission"));
    return {
      at: x.time / 1000, low: x.seq - base, high: x.seq - base + x.length, lost: Boolean(x.drop),
      color: again ? "--again" : "--sent", marked: again,
    };
  });
  chart.set([list.map((x) => x.time / 1000),
    list.map((x) => (x.sent && x.length ? x.seq - base + x.length : null)),
    list.map((x) => (x.sent && x.length && x.marks?.includes("retransmission") ? x.seq - base : null)),
    list.map((x) => (x.sent ? null : x.ack - base))], end / 1000, theme, [], seconds);
}
