// Node positions on the map: distances are proportional to hops, by stress majorization (Gansner,
// Koren and North, 2004). It tries several starting positions and keeps the best result. The same
// network always gets the same layout. Lines, rings and grids are recognized and drawn exactly.

export type Point = [x: number, y: number];

/** distances returns the hops between all points, by breadth-first search. */
function distances(n: number, edges: [number, number][]): number[][] {
  const beside: number[][] = Array.from({ length: n }, () => []);
  for (const [a, b] of edges) {
    beside[a]!.push(b);
    beside[b]!.push(a);
  }
  return beside.map((_, from) => {
    const d: number[] = new Array(n).fill(Infinity);
    d[from] = 0;
    const queue = [from];
    for (let i = 0; i < queue.length; i++) {
      for (const next of beside[queue[i]!]!) {
        if (d[next] === Infinity) {
          d[next] = d[queue[i]!]! + 1;
          queue.push(next);
        }
      }
    }
    const far = Math.max(...d.filter((x) => x < Infinity)) + 1;
    return d.map((x) => (x === Infinity ? far + 1 : x)); // in another component
  });
}

/** pulled returns a better position for a point, by its distances to all others. */
function pulled(at: Point[], d: number[][], i: number, hop: number): Point {
  let sx = 0, sy = 0, sum = 0;
  for (let j = 0; j < at.length; j++) {
    if (i === j) continue;
    const want = d[i]![j]! * hop, w = 1 / (want * want);
    const dx = at[i]![0] - at[j]![0], dy = at[i]![1] - at[j]![1];
    const is = Math.hypot(dx, dy) || 1e-6;
    sx += w * (at[j]![0] + (want * dx) / is);
    sy += w * (at[j]![1] + (want * dy) / is);
    sum += w;
  }
  return [sx / sum, sy / sum];
}

/** majorize moves points to reduce the stress, and returns the stress. */
function majorize(at: Point[], d: number[][], rounds: number): number {
  const n = at.length;
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < n; i++) at[i] = pulled(at, d, i, 1);
  }
  let stress = 0;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < i; j++) {
      const want = d[i]![j]!;
      const is = Math.hypot(at[i]![0] - at[j]![0], at[i]![1] - at[j]![1]);
      stress += ((is - want) / want) ** 2;
    }
  }
  return stress;
}

/**
 * layBeside places new points (null) among those that already have a position, by their distances in
 * hops and within a map of that size, in pixels. Existing positions stay.
 */
export function layBeside(
  places: (Point | null)[], edges: [number, number][], [width, height]: [number, number],
): Point[] {
  const d = distances(places.length, edges);
  const lengths = edges.flatMap(([a, b]) => {
    const p = places[a], q = places[b];
    return p && q ? [Math.hypot(p[0] - q[0], p[1] - q[1])] : [];
  });
  const hop = lengths.length > 0 ? lengths.reduce((a, b) => a + b) / lengths.length : 150;
  const edge = 60;
  // off the common line, because points on one line would remain on it
  const at = places.map((p, i): Point => p ??
    [width / 2 + hop * Math.cos(i), height / 2 + hop * Math.sin(i)]);
  for (let round = 0; round < 300; round++) {
    for (let i = 0; i < at.length; i++) {
      if (places[i]) continue;
      const [x, y] = pulled(at, d, i, hop);
      at[i] = [Math.min(width - edge, Math.max(edge, x)), Math.min(height - 2 * edge, Math.max(edge, y))];
    }
  }
  return at;
}

/** clear separates points from lines that do not end at them. */
function clear(at: Point[], edges: [number, number][]): void {
  const near = 0.38; // in hops
  for (let round = 0; round < 60; round++) {
    let moved = false;
    for (const [a, b] of edges) {
      for (let i = 0; i < at.length; i++) {
        if (i === a || i === b) continue;
        const [ax, ay] = at[a]!, [bx, by] = at[b]!, [x, y] = at[i]!;
        const dx = bx - ax, dy = by - ay, long = dx * dx + dy * dy || 1e-6;
        const t = ((x - ax) * dx + (y - ay) * dy) / long;
        if (t <= 0 || t >= 1) continue;
        const side = ((x - ax) * dy - (y - ay) * dx) / Math.sqrt(long);
        const lack = near - Math.abs(side);
        if (lack <= 1e-3) continue;
        const step = (lack / 3) * (side < 0 ? -1 : 1) / Math.sqrt(long);
        at[i] = [x + 2 * step * dy, y - 2 * step * dx];
        at[a] = [ax - step * dy, ay + step * dx];
        at[b] = [bx - step * dy, by + step * dx];
        moved = true;
      }
    }
    if (!moved) return;
  }
}

/** layOut places n connected points; neighbors are about one hop length apart. */
export function layOut(n: number, edges: [number, number][]): Point[] {
  if (n < 2) return [[0, 0]];
  const d = distances(n, edges);
  let seed = 1;
  const chance = (): number => {
    seed = (seed * 48271) % 2147483647;
    return seed / 2147483647;
  };
  let best: Point[] = [], least = Infinity;
  for (let attempt = 0; attempt < 12; attempt++) {
    const at = Array.from({ length: n }, (_, i): Point => {
      const a = (i / n) * 2 * Math.PI, r = Math.sqrt(n) / 2;
      return attempt === 0 ? [r * Math.cos(a), r * Math.sin(a)]
        : [r * (chance() - 0.5) * 2, r * (chance() - 0.5) * 2];
    });
    const stress = majorize(at, d, 120);
    if (stress < least * 0.999) [best, least] = [at, stress];
  }
  majorize(best, d, 600);
  clear(best, edges);
  return best;
}

/** regular places the nodes of a line, a ring or a grid on straight lines; null for other shapes. */
export function regular(n: number, edges: [number, number][]): Point[] | null {
  const beside: number[][] = Array.from({ length: n }, () => []);
  for (const [a, b] of edges) {
    beside[a]!.push(b);
    beside[b]!.push(a);
  }
  const d = distances(n, edges);
  if (n < 2 || edges.length < n - 1 || beside.some((list) => new Set(list).size < list.length)) return null;
  const core = coreOf(beside);
  if (core.length === 0) return alongLine(beside, d);
  const members = new Set(core);
  const degree = (v: number): number => beside[v]!.filter((w) => members.has(w)).length;
  const at = new Map<number, Point>();
  const grid = placeGrid(core, edges, d, degree, at); // a ring of four is also a grid
  if (!grid) {
    if (!core.every((v) => degree(v) === 2)) return null;
    placeRing(core, beside, at);
  }
  return attachChains(n, beside, at, grid ? rowsFirst : outward);
}

/** coreOf returns the points that remain after repeatedly removing those with one neighbor. */
function coreOf(beside: number[][]): number[] {
  const degree = beside.map((list) => list.length);
  const queue = degree.flatMap((k, v) => (k <= 1 ? [v] : []));
  const removed = new Set<number>();
  for (const v of queue) {
    if (removed.has(v)) continue;
    removed.add(v);
    for (const w of beside[v]!) if (!removed.has(w) && --degree[w]! === 1) queue.push(w);
  }
  return degree.flatMap((_, v) => (removed.has(v) ? [] : [v]));
}

function alongLine(beside: number[][], d: number[][]): Point[] | null {
  if (beside.some((list) => list.length > 2)) return null;
  const first = beside.findIndex((list) => list.length === 1);
  return d[first]!.map((x): Point => [x, 0]);
}

/** placeRing makes a regular polygon with sides of one hop, with an attached node at the left. */
function placeRing(core: number[], beside: number[][], at: Map<number, Point>): void {
  const members = new Set(core), order = [core.find((v) => beside[v]!.length > 2) ?? core[0]!];
  while (order.length < core.length) {
    const next = beside[order.at(-1)!]!.find((w) => members.has(w) && !order.includes(w));
    if (next === undefined) break;
    order.push(next);
  }
  const attached = core.some((v) => beside[v]!.length > 2);
  const radius = 0.5 / Math.sin(Math.PI / order.length);
  // without attached hosts, one side is at the left
  const turn = attached ? 0 : Math.PI / order.length;
  order.forEach((v, i) => {
    const a = Math.PI + turn + (2 * Math.PI * i) / order.length;
    at.set(v, [radius * Math.cos(a), radius * Math.sin(a)]);
  });
}

/** placeGrid finds rows and columns by the distances from two corners of one side. */
function placeGrid(core: number[], edges: [number, number][], d: number[][], degree: (v: number) => number,
  at: Map<number, Point>): boolean {
  const corners = core.filter((v) => degree(v) === 2);
  const a = corners[0];
  if (corners.length !== 4 || a === undefined) return false;
  const inner = edges.filter(([v, w]) => core.includes(v) && core.includes(w));
  // Tries the end of the longer side first: rows are longer than columns.
  for (const b of corners.slice(1).sort((v, w) => d[a]![w]! - d[a]![v]!)) {
    const wide = d[a]![b]!;
    const place = (v: number): Point => [(d[a]![v]! - d[b]![v]! + wide) / 2, (d[a]![v]! + d[b]![v]! - wide) / 2];
    const places = core.map(place);
    const high = Math.max(...places.map((p) => p[1]));
    const fits = new Set(places.map(String)).size === core.length && (wide + 1) * (high + 1) === core.length &&
      places.every(([x, y]) => Number.isInteger(x) && Number.isInteger(y) && x >= 0 && x <= wide && y >= 0) &&
      inner.length === wide * (high + 1) + high * (wide + 1) &&
      inner.every(([v, w]) => Math.hypot(place(v)[0] - place(w)[0], place(v)[1] - place(w)[1]) === 1);
    if (!fits) continue;
    core.forEach((v, i) => at.set(v, [places[i]![0] - wide / 2, places[i]![1] - high / 2]));
    return true;
  }
  return false;
}

/** attachChains adds the chains attached to a ring or grid, pointing away from its center. */
function attachChains(n: number, beside: number[][], at: Map<number, Point>,
  rays: (from: Point) => Point[]): Point[] | null {
  for (const [v, from] of [...at]) {
    const heads = beside[v]!.filter((w) => !at.has(w));
    const free = rays(from).filter(([x, y]) => // directions that no link of v uses
      !beside[v]!.some((w) => {
        const p = at.get(w);
        return p && Math.hypot(p[0] - from[0] - x, p[1] - from[1] - y) < 0.8;
      }));
    if (heads.length > free.length) return null;
    for (const [i, head] of heads.entries()) {
      const [x, y] = free[i]!;
      let here = head, last = v;
      for (let hop = 1; ; hop++) {
        if (beside[here]!.length > 2) return null;
        at.set(here, [from[0] + hop * x, from[1] + hop * y]);
        const next = beside[here]!.find((w) => w !== last);
        if (next === undefined) break;
        [last, here] = [here, next];
      }
    }
  }
  return at.size === n ? Array.from({ length: n }, (_, v) => at.get(v)!) : null;
}

/** outward returns the directions to attach a chain to a ring, the best first. */
function outward([x, y]: Point): Point[] {
  const out = Math.atan2(y, x);
  return [0, 0.6, -0.6].map((a): Point => [Math.cos(out + a), Math.sin(out + a)]);
}

/** rowsFirst returns the directions for a grid: a chain continues a row, or else a column. */
function rowsFirst([x, y]: Point): Point[] {
  return [[Math.sign(x) || 1, 0], [0, Math.sign(y) || 1], ...outward([x, y]).slice(0, 1)];
}
