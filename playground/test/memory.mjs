// Runs an hour of virtual time with a transfer and a capture every minute, and jumps: node memory.mjs PROGRAM.BR
// It checks that the memory is bounded and that the jumps change nothing.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { read } from "./program.mjs";
import { Session } from "../site/session.js";
import { Host } from "../site/wasi.js";

// Removed files do not count.
const disk = new Host();
disk.attach({ buffer: new ArrayBuffer(1 << 10) });
disk.view.setUint8(0, "f".charCodeAt());
for (let i = 0; i < 2; i++) {
  assert.equal(disk.path_open(3, 0, 0, 1, 1 /* create */, 0, 0, 0, 16), 0);
  assert.equal(disk.fd_filestat_set_size(disk.view.getUint32(16, true), 300n << 20n), 0, `file ${i}`);
  disk.fd_close(disk.view.getUint32(16, true));
  disk.path_unlink_file(3, 0, 1);
}

const module = new WebAssembly.Module(await read(process.argv[2]));
const network = "link A R delay 10ms\nlink R B delay 10ms loss 2%\n";

// An uploaded file does not pass through the program's memory.
{
  const { world } = new Session(module, {}, { network }), was = world.exports.memory.buffer.byteLength;
  const data = randomBytes(16 << 20);
  world.do({ node: "A", file: "big", data: data.toString("base64") });
  const more = world.exports.memory.buffer.byteLength - was;
  assert.ok(more < 4 << 20, `the program has ${more} bytes more`);
  assert.equal(Buffer.compare(world.file("A", "big"), data), 0);
  assert.throws(() => world.do({ node: "A", file: "../B/x", data: "" }), /must be relative/);
  assert.throws(() => world.do({ node: "A", file: "x", data: "?" }), /base64/);
}

const session = new Session(module, {}, { network });
const { host } = session.world;
// The number of calls that ask for the time stands for the time of computing, so that a busy machine
// has the same keyframes as an idle one.
Session.clock = () => host.calls / callsPerMillisecond;
const callsPerMillisecond = 60;
session.frames[0].calls = 0;
const keep = session.keep.bind(session);
session.keep = () => {
  keep();
  session.nearest(session.now).calls = host.calls;
};
const type = (node, line) => session.do({ node, line });
const began = performance.now();
let before, most = 0;
for (let minute = 0; minute < 60; minute++) {
  session.do({ node: "A", file: "big", data: randomBytes(1 << 20).toString("base64") });
  type("R", `capture all -w ${minute % 3}.pcapng --force`);
  type("B", `recvfile --force got ${5000 + minute}`);
  type("A", `sendfile big 10.1.0.2 ${5000 + minute}`);
  session.run(session.now + 59e9);
  assert.equal(session.world.file("B", "got").length, 1 << 20);
  type("R", "capture stop");
  session.run(session.now + 1e9);
  most = Math.max(most, session.copies.bytes);
  if (minute === 9) before = session.world.exports.memory.buffer.byteLength;
}
const took = performance.now() - began;
const memory = session.world.exports.memory.buffer.byteLength;
host.count();
assert.ok(most <= 256 << 20, `the keyframes have ${most} bytes`);
const apart = Math.max(...session.frames.slice(1).map((f, i) => f.calls - session.frames[i].calls)) / callsPerMillisecond;
assert.ok(apart < 130, `a jump may compute ${apart} ms`);
assert.ok(memory < 64 << 20 && memory < 2 * before, `the program has ${memory} bytes, and had ${before}`);
assert.ok(host.bytes < 16 << 20, `the files have ${host.bytes} bytes`);
const { hash, packets } = session.world.state();
const end = session.now, jumps = [], keyframes = session.frames.length;
for (let i = 0; i < 10; i++) {
  const at = performance.now();
  session.seek(end * ((7 * i) % 10) / 10 + 1e9);
  jumps.push(performance.now() - at);
}
for (const f of session.frames.slice(-40)) session.seek(f.at - 1e4); // computes almost until the next keyframe
session.seek(end);
assert.equal(session.world.state().hash, hash);
assert.ok(session.frames.length <= keyframes + 5, `${session.frames.length - keyframes} jumps waited for a keyframe`);
const mib = (n) => `${(n / (1 << 20)).toFixed(0)} MiB`;
console.log(`an hour with ${packets} packets took ${(took / 1000).toFixed(1)} s: program ${mib(memory)}, `
  + `${session.frames.length} keyframes ${mib(most)} that are at most ${apart.toFixed(0)} ms of computing apart, `
  + `a jump ${Math.max(...jumps).toFixed(0)} ms at most`);
