// Rates of counters, without a browser.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { transformWithEsbuild } from "vite";

const source = new URL("../src/rate.ts", import.meta.url);
const { code } = await transformWithEsbuild(readFileSync(source, "utf8"), "rate.ts");
const { add, rate, lost } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

export const tests = [];
const test = (name, f) => tests.push([name, f]);

/** after is what has been seen after looks of [milliseconds, bytes, packets, lost]. */
function after(...looks) {
  const seen = [];
  for (const [at, bytes, packets = 0, gone = 0] of looks) {
    add(seen, { at, bytes, packets, offered: packets, lost: gone });
  }
  return seen;
}

test("a rate is an average over a second, however close two looks are", () => {
  assert.equal(rate(after([0, 0])), null);
  assert.equal(rate(after([0, 0], [24, 93, 1])), null, "a packet in 24 ms is not 31 kbit/s");
  assert.equal(rate(after([0, 0], [24, 93, 1], [524, 93, 1])), null);
  assert.deepEqual(rate(after([0, 0], [24, 93, 1], [524, 93, 1], [1000, 93, 1])),
    { bits: 744, packets: 1 });
  assert.deepEqual(rate(after([0, 0], [500, 1000, 10], [999, 2000, 20], [1500, 3000, 30])),
    { bits: 16000, packets: 20 });
  assert.deepEqual(rate(after([0, 0], [500, 0], [1000, 0], [1500, 500, 5], [2000, 500, 5])),
    { bits: 4000, packets: 5 }, "what is older than a second does not count");
});

test("a counter that begins anew has no rate for a second", () => {
  assert.equal(rate(after([0, 5000], [1000, 6000], [1500, 10])), null);
  assert.equal(rate(after([0, 5000], [1000, 6000], [500, 6000])), null);
});

test("a share of lost packets is one of the last three seconds", () => {
  assert.equal(lost(after([0, 0])), 0);
  assert.equal(lost(after([0, 0, 0, 0], [1000, 0, 100, 2])), 0.02);
  const looks = Array.from({ length: 20 }, (_, i) => [i * 500, 0, 100 * i, i < 10 ? i * 50 : 500]);
  assert.equal(lost(after(...looks)), 0);
  assert.ok(after(...looks).length <= 8);
});
