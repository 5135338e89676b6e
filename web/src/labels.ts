// Places labels next to links, clear of the nodes, of each other and, if possible, of other links.

import type { Point } from "./layout";

/** Box is a rectangle around its center. */
export interface Box { x: number; y: number; w: number; h: number } // half its width and height

export type Line = [from: Point, to: Point];

/** Wanted is a label to place next to a line. */
export interface Wanted {
  line: Line;
  sizes: [w: number, h: number][]; // half width and half height in pixels, then of shorter versions
  must?: boolean; // may overlap if no free place is left
  clear?: boolean; // must not cross a line
  at?: number[]; // candidate positions along the line, 0 to 1
  own?: Line; // the label's line among all lines
}

const apart = (a: Box, b: Box): boolean =>
  Math.abs(a.x - b.x) >= a.w + b.w || Math.abs(a.y - b.y) >= a.h + b.h;

/** crosses reports whether a line goes through a box. */
export function crosses([[x1, y1], [x2, y2]]: Line, b: Box): boolean {
  let from = 0, to = 1;
  for (const [at, by, middle, half] of [[x1, x2 - x1, b.x, b.w], [y1, y2 - y1, b.y, b.h]] as const) {
    if (Math.abs(by) < 1e-9) {
      if (Math.abs(at - middle) >= half) return false;
      continue;
    }
    const a = (middle - half - at) / by, c = (middle + half - at) / by;
    from = Math.max(from, Math.min(a, c));
    to = Math.min(to, Math.max(a, c));
  }
  return from < to;
}

/** spots returns the candidate places next to a line, the best first: away from the map's center. */
function spots([a, b]: Line, [w, h]: Point, [cx, cy]: Point, at = [0.5, 0.38, 0.62, 0.28, 0.72]): Box[] {
  const len = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
  let nx = -(b[1] - a[1]) / len, ny = (b[0] - a[0]) / len;
  const out = ((a[0] + b[0]) / 2 - cx) * nx + ((a[1] + b[1]) / 2 - cy) * ny;
  if (out < -4 || (out <= 4 && ny > 0)) [nx, ny] = [-nx, -ny];
  const off = 9 + w * Math.abs(nx) + h * Math.abs(ny);
  // also beyond the nodes
  return [off, off + 18].flatMap((far) => at.flatMap((t) => [far, -far].map((side) => ({
    x: a[0] + (b[0] - a[0]) * t + nx * side, y: a[1] + (b[1] - a[1]) * t + ny * side, w, h,
  }))));
}

/** placeLabels places each label in order; null: no free place. */
export function placeLabels(
  wanted: Wanted[], lines: Line[], taken: Box[], [width, height]: Point,
): (Box | null)[] {
  const full = [...taken];
  return wanted.map(({ line, sizes, must, clear, at, own = line }) => {
    let best: Box | null = null, least = Infinity;
    for (const size of sizes) {
      if (best) break;
      for (const [i, spot] of spots(line, size, [width / 2, height / 2], at).entries()) {
        const inside = spot.x >= spot.w + 3 && spot.x <= width - spot.w - 3 &&
          spot.y >= spot.h + 3 && spot.y <= height - spot.h - 3;
        const on = full.filter((b) => !apart(b, spot)).length;
        if (!(must && size === sizes.at(-1)) && (!inside || on > 0)) continue;
        const crossed = lines.filter((l) => l !== own && crosses(l, spot)).length;
        if (clear && (crossed > 0 || crosses(own, spot))) continue;
        const bad = i + 4 * crossed + 20 * on + (inside ? 0 : 40);
        if (bad < least) [best, least] = [spot, bad];
      }
    }
    if (best) full.push(best);
    return best;
  });
}
