// Rates of counters, and the arguments of impairments, without a browser.

import assert from "node:assert/strict";
import { source } from "./source.mjs";

const { add, rate, lost } = await source("rate.ts");
const { read, turn } = await source("words.ts");

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

test("a queue's limit is packets, however it is said", () => {
  const limit = (words) => read(words).limit;
  assert.equal(limit("nothing"), 1000);
  assert.equal(limit("rate 10mbit limit 100"), 100);
  assert.equal(limit("delay 5ms rate 20mbit limit 500000b"), 358, "full packets of 1400 bytes");
  assert.equal(limit("rate 64kbit limit 32kb"), 24);
  assert.equal(limit("rate 11.2mbit limit 100ms"), 100);
  assert.equal(limit("rate 10mbit limit 100,14kb"), 11, "the least of several");
});

test("a slider turns its own words alone", () => {
  assert.equal(turn("delay 20ms 5ms distribution normal loss 1%", "loss", 0.02),
    "delay 20ms 5ms distribution normal loss 2%");
  assert.equal(turn("delay 20ms 5ms loss 1%", "delay", 0), "loss 1%");
  assert.equal(turn("nothing", "rate", 1e6), "rate 1000000bit");
  assert.equal(turn("delay 5ms rate 20mbit limit 500000b", "rate", 1e6), "delay 5ms rate 1000000bit",
    "20 Mbit/s' own limit would be 4 s of 1 Mbit/s");
  assert.equal(turn("rate 64kbit limit 32kb", "rate", 20e6), "rate 20000000bit");
  assert.equal(turn("rate 20mbit limit 100", "rate", 1e6), "rate 1000000bit limit 100", "somebody wanted that");
  assert.equal(turn("rate 1mbit limit 10 codel loss 1%", "rate", Infinity), "loss 1%");
  assert.equal(turn("loss 1%", "loss", 0), "off");
  assert.equal(turn("loss 1% trace ./lte.up once limit 60000b", "rate", 1e6), "loss 1% limit 60000b rate 1000000bit");
});
