// Rates of counters that are sampled repeatedly.

/** Mark is a sample of a link's counters. */
export interface Mark {
  at: number; // in milliseconds since 1970
  bytes: number;
  packets: number;
  offered: number;
  lost: number;
}

/** Counter continues when its source changes between an interface and its impaired link. */
export interface Counter {
  source: string;
  from: [bytes: number, packets: number]; // the source's last values
  bytes: number;
  packets: number;
}

export const counter = (): Counter => ({ source: "", from: [0, 0], bytes: 0, packets: 0 });

/** count adds the increase since the last sample. A source that restarts resets the count. */
export function count(c: Counter, source: string, bytes: number, packets: number): void {
  const [b, p] = source === c.source ? c.from : [bytes, packets];
  if (bytes < b || packets < p) Object.assign(c, { bytes: 0, packets: 0 });
  else [c.bytes, c.packets] = [c.bytes + bytes - b, c.packets + packets - p];
  c.source = source;
  c.from = [bytes, packets];
}

export interface Rate { bits: number; packets: number }

const shortest = 1000; // milliseconds: minimum averaging time of a rate
const longest = 3000; // milliseconds: averaging time of the loss

/** add appends a sample and drops samples that no rate needs any more. */
export function add(seen: Mark[], mark: Mark): void {
  const last = seen[seen.length - 1];
  if (last && (mark.bytes < last.bytes || mark.offered < last.offered || mark.at < last.at)) {
    seen.length = 0; // the counter restarted
  }
  seen.push(mark);
  while (seen.length > 1 && mark.at - seen[1]!.at >= longest) seen.shift();
}

/**
 * rate is the average over the last second, or slightly more; 0 before a second has passed. Two samples
 * that are close, as after a reconnect, would show a single packet as a high rate.
 */
export function rate(seen: Mark[]): Rate | null {
  const mark = seen[seen.length - 1];
  for (let i = seen.length - 2; mark && i >= 0; i--) {
    const from = seen[i]!, time = mark.at - from.at;
    if (time < shortest) continue;
    const a = 1000 / time;
    return { bits: (mark.bytes - from.bytes) * 8 * a, packets: (mark.packets - from.packets) * a };
  }
  return null;
}

/** lost is the share of recent packets that were lost. */
export function lost(seen: Mark[]): number {
  const mark = seen[seen.length - 1], from = seen[0];
  const sent = mark && from ? mark.offered - from.offered : 0;
  return sent > 0 ? Math.min(1, (mark!.lost - from!.lost) / sent) : 0;
}
