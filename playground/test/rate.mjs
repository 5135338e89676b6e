// Prints the packets per second of CPU time of a perf test over a router: node rate.mjs PROGRAM.BR [SECONDS]

import { read } from "./program.mjs";
import { World } from "../site/world.js";

const world = new World(new WebAssembly.Module(await read(process.argv[2])));
world.open("n.net", "link A R delay 10ms rate 100mbit\nlink R B delay 10ms\n", 1);
world.replay({ at: 1e8, node: "B", line: "perf -s" });
world.replay({ at: 2e8, node: "A", line: "perf -c 10.1.0.2 -t 60" });
world.advance(1e9 - world.now); // the program is compiled and the window open
const before = world.state();
let cpu = process.cpuUsage();
world.advance(Number(process.argv[3] ?? 4) * 1e9);
cpu = process.cpuUsage(cpu);
const after = world.state();
const packets = after.packets - before.packets, seconds = (cpu.user + cpu.system) / 1e6;
console.log(`${packets} packets took ${seconds.toFixed(2)} s: `
  + `${Math.round(packets / seconds)} packets per second of CPU time, hash ${after.hash}`);
