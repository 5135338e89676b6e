// Rates of counters that are looked at again and again.

/** Mark is what a link's counters were at a time. */
export interface Mark {
  at: number; // milliseconds since 1970
  bytes: number;
  packets: number;
  offered: number;
  lost: number;
}

/** Counter is a count that continues while its source changes: an interface, or the link it is impaired by. */
export interface Counter {
  source: string;
  from: [bytes: number, packets: number]; // what the source had counted
  bytes: number;
  packets: number;
}

export const counter = (): Counter => ({ source: "", from: [0, 0], bytes: 0, packets: 0 });

/** count adds the increase of a source since the last look. A source that restarts resets the count. */
export function count(c: Counter, source: string, bytes: number, packets: number): void {
  const [b, p] = source === c.source ? c.from : [bytes, packets];
  if (bytes < b || packets < p) Object.assign(c, { bytes: 0, packets: 0 });
  else [c.bytes, c.packets] = [c.bytes + bytes - b, c.packets + packets - p];
  c.source = source;
  c.from = [bytes, packets];
}

export interface Rate { bits: number; packets: number }

const shortest = 1000; // milliseconds that a rate is an average over, at least
const longest = 3000; // that a share of lost packets is one over

/** add notes a look, and forgets what no rate needs any more. */
export function add(seen: Mark[], mark: Mark): void {
  const last = seen[seen.length - 1];
  if (last && (mark.bytes < last.bytes || mark.offered < last.offered || mark.at < last.at)) {
    seen.length = 0; // it began anew
  }
  seen.push(mark);
  while (seen.length > 1 && mark.at - seen[1]!.at >= longest) seen.shift();
}

/**
 * rate is the average over the last second, or little more. There is none before the counters have
 * been looked at for so long: two looks that are close, as when the stream begins anew, would make
 * a flood of one packet.
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

/** lost is the share of what was offered lately. */
export function lost(seen: Mark[]): number {
  const mark = seen[seen.length - 1], from = seen[0];
  const sent = mark && from ? mark.offered - from.offered : 0;
  return sent > 0 ? Math.min(1, (mark!.lost - from!.lost) / sent) : 0;
}
