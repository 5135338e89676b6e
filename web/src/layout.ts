// Where the nodes of the picture stand: as far from each other as they are in hops. That is stress
// majorization (Gansner, Koren and North, 2004), from several beginnings, of which the best stays.
// It draws rings as rings and lines as lines, and the same network always in the same way.

export type Point = [x: number, y: number];

/** distances are the hops between all points, by breadth-first search. */
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
    return d.map((x) => (x === Infinity ? far + 1 : x)); // of another part
  });
}

/** pulled is where a point fits better, by its distances to all others; a hop is that long. */
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

/** majorize moves points to where their distances fit better, and returns what does not fit. */
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
 * layBeside places the points that have no place (null) among those that have one, as far from them as
 * they are in hops and within a picture of that size, all in pixels. Whoever has a place keeps it.
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
  const at = places.map((p, i): Point => p ?? // not all on one line, on which they would stay
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

/** clear moves points off lines that are not theirs, and the lines off them. */
function clear(at: Point[], edges: [number, number][]): void {
  const near = 0.38; // hops
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

/** layOut places n points that edges connect, about a hop from each other. */
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
