// Positions of nodes, without a browser.

import assert from "node:assert/strict";
import { source } from "./source.mjs";

const { regular } = await source("layout.ts");

export const tests = [];
const test = (name, f) => tests.push([name, f]);

const near = (a, b) => Math.abs(a - b) < 1e-6;
const lengths = (at, edges) => edges.map(([a, b]) => Math.hypot(at[a][0] - at[b][0], at[a][1] - at[b][1]));

/** grid is one of routers, with a host at each of two opposite corners. */
function grid(rows, columns) {
  const edges = [];
  for (let y = 0; y < rows; y++) for (let x = 0; x < columns; x++) {
    const i = y * columns + x;
    if (x + 1 < columns) edges.push([i, i + 1]);
    if (y + 1 < rows) edges.push([i, i + columns]);
  }
  const n = rows * columns;
  return [n + 2, [...edges, [n, 0], [n + 1, n - 1]]];
}

test("a line, a ring and a grid are laid out straight", () => {
  const line = regular(5, [[3, 1], [1, 0], [0, 4], [4, 2]]);
  assert.ok(line.every(([, y]) => y === 0), `${line}`);
  assert.deepEqual(new Set(line.map(([x]) => x)).size, 5);

  const six = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [6, 0], [7, 3]];
  const ring = regular(8, six);
  assert.ok(lengths(ring, six).every((l) => near(l, 1)), "every link is a hop long");
  assert.ok([6, 0, 3, 7].every((i) => near(ring[i][1], 0)), `hosts and their routers are on one line: ${ring}`);

  for (const [rows, columns] of [[4, 4], [2, 2], [2, 5], [5, 3]]) {
    const [n, edges] = grid(rows, columns);
    const at = regular(n, edges);
    assert.ok(at, `${rows} by ${columns}`);
    for (const [a, b] of edges) {
      assert.ok(near(at[a][0], at[b][0]) || near(at[a][1], at[b][1]), `${rows} by ${columns}: ${a} – ${b} is askew`);
    }
    assert.ok(lengths(at, edges).every((l) => near(l, 1)));
    assert.equal(new Set(at.map(([x, y]) => `${x.toFixed(3)} ${y.toFixed(3)}`)).size, n, "none is on another");
  }
});

test("other shapes are left to the general layout", () => {
  assert.equal(regular(4, [[0, 1], [0, 2], [0, 3]]), null, "a star");
  assert.equal(regular(4, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]), null, "a mesh");
  assert.equal(regular(4, [[0, 1], [2, 3]]), null, "two parts");
  assert.equal(regular(3, [[0, 1], [0, 1], [1, 2]]), null, "two links between the same nodes");
  assert.equal(regular(1, []), null);
});
