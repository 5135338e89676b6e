// A command that never waits is canceled, and the rest stays: node stuck.mjs PROGRAM.BR

import assert from "node:assert/strict";
import { read } from "./program.mjs";
import { Session } from "../site/session.js";
import { Host, Stuck } from "../site/wasi.js";

Host.patience = 500;
const module = new WebAssembly.Module(await read(process.argv[2]));
const open = (inputs) => new Session(module, {}, { network: "link A R\nlink R B\n", inputs });
const endless = { node: "A", line: "perf -c 10.1.0.2 -t 5" };
const want = new RegExp(`^A: ${endless.line} was canceled: .* give the links a delay or a rate\\.$`);
const is = (e) => e instanceof Stuck && want.test(e.message);

const session = open();
session.do({ node: "A", line: "ping 10.1.0.2 -c 2" });
session.do({ node: "B", line: "perf -s" });
session.run(3e9);
const { hash } = session.world.state();
assert.throws(() => {
  session.do(endless);
  session.run(10e9);
}, is);
assert.deepEqual(session.log.map((i) => i.line), ["ping 10.1.0.2 -c 2", "perf -s"]);
session.seek(3e9);
assert.equal(session.world.state().hash, hash, "the rest is as it was");
session.do({ node: "A", line: "ping 10.1.0.2 -c 2" });
session.run(6e9);
assert.equal(session.world.state().packets, 16, "the network answers");

// The same for a command in a link.
const linked = open([...session.log, { ...endless, at: 7e9 }]);
assert.throws(() => linked.run(10e9), is);
linked.run(10e9);
assert.equal(linked.world.state().packets, 16);
