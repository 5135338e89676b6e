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

/** majorize moves points to where their distances fit better, and returns what does not fit. */
function majorize(at: Point[], d: number[][], rounds: number): number {
  const n = at.length;
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < n; i++) {
      let sx = 0, sy = 0, sum = 0;
      for (let j = 0; j < n; j++) {
        if (i === j) continue;
        const want = d[i]![j]!, w = 1 / (want * want);
        const dx = at[i]![0] - at[j]![0], dy = at[i]![1] - at[j]![1];
        const is = Math.hypot(dx, dy) || 1e-6;
        sx += w * (at[j]![0] + (want * dx) / is);
        sy += w * (at[j]![1] + (want * dy) / is);
        sum += w;
      }
      at[i] = [sx / sum, sy / sum];
    }
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
  return best;
}
