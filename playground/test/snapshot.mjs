// Copies of a world that changes at random restore it, whichever of them are dropped: node snapshot.mjs

import assert from "node:assert/strict";
import { Copies, restore } from "../site/snapshot.js";
import { Host } from "../site/wasi.js";

let seed = 1;
const random = (n) => {
  seed = (seed * 48271) % 0x7fffffff;
  return seed % n;
};
const world = () => ({ host: new Host(), exports: { memory: new WebAssembly.Memory({ initial: 4 }), global0: new WebAssembly.Global({ value: "i32", mutable: true }, 0) } });
const w = world(), { host, exports } = w;
host.attach(exports.memory);
const node = { type: 4, ino: 9n, data: new Uint8Array(0), size: 0, time: 0n };
host.root.names.set("f", node);

/** change changes some bytes, or fills a part, or makes more memory; and the file. */
function change(round) {
  if (round === 20) exports.memory.grow(2);
  const memory = new Uint8Array(exports.memory.buffer);
  for (let i = 0; i < 40; i++) memory[random(memory.length)] = random(256);
  const at = random(memory.length);
  memory.fill(round, at, at + random(30_000));
  const from = random(memory.length);
  memory.copyWithin(random(memory.length), from, from + random(60_000));
  host.resize(node, random(50_000));
  if (node.size) node.data[random(node.size)] = round;
  exports.global0.value = round;
}

const copies = new Copies();
let kept = [];
for (let round = 1; round <= 60; round++) {
  change(round);
  kept.push({ round, memory: new Uint8Array(exports.memory.buffer).slice(), file: node.data.slice(0, node.size), copy: copies.take(w, kept.at(-1)?.copy) });
  if (round % 3 === 0) copies.drop(kept.splice(random(kept.length - 1), 1)[0].copy);
}
const whole = kept.reduce((n, k) => n + k.memory.length + k.file.length, 0);
assert.ok(copies.bytes < whole / 3, `${copies.bytes} bytes of ${whole}`);
const other = world();
for (const k of [...kept, ...kept.reverse()]) {
  restore(other, k.copy);
  const memory = new Uint8Array(other.exports.memory.buffer);
  assert.equal(Buffer.compare(memory.subarray(0, k.memory.length), k.memory), 0, `memory of round ${k.round}`);
  assert.ok(memory.subarray(k.memory.length).every((b) => b === 0));
  const file = other.host.root.names.get("f");
  assert.deepEqual(file.data.slice(0, file.size), k.file, `file of round ${k.round}`);
  assert.ok(file.data.subarray(file.size).every((b) => b === 0), "zeros, if the file grows");
  assert.equal(other.exports.global0.value, k.round);
}

// A copy stores data once, also where it has moved, with other data between.
for (const k of kept.splice(0)) copies.drop(k.copy);
assert.equal(copies.bytes, 0);
host.resize(node, 1 << 18);
const before = copies.take(w);
for (let at = 0; at < node.size; at++) node.data[at] = random(256);
new Uint8Array(exports.memory.buffer).fill(0);
const first = copies.take(w, before), once = copies.bytes;
const memory = new Uint8Array(exports.memory.buffer);
for (let at = 0, to = 3; at < node.size; at += 1000, to += 1041) memory.set(node.data.subarray(at, Math.min(at + 1000, node.size)), to);
const second = copies.take(w, first);
assert.ok(copies.bytes - once < node.size / 5, `${copies.bytes - once} bytes for ${node.size} that were there`);
restore(other, second);
assert.equal(Buffer.compare(new Uint8Array(other.exports.memory.buffer), memory), 0);
for (const copy of [before, first, second]) copies.drop(copy);
assert.equal(copies.bytes, 0);
