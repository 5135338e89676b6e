// Prints the packets per second of CPU time of a perf test over a router, with and without a rate:
// node rate.mjs PROGRAM.BR [SECONDS]

import { read } from "./program.mjs";
import { World } from "../site/world.js";

const program = new WebAssembly.Module(await read(process.argv[2]));
const seconds = Number(process.argv[3] ?? 4);

for (const words of ["delay 10ms rate 100mbit", "delay 10ms"]) {
  const world = new World(program);
  world.open("n.net", `link A R ${words}\nlink R B delay 10ms\n`, 1);
  world.replay({ at: 1e8, node: "B", line: "perf -s" });
  world.replay({ at: 2e8, node: "A", line: "perf -c 10.1.0.2 -t 60" });
  world.advance(1e9 - world.now); // the program is compiled and the window open
  const before = world.state();
  let cpu = process.cpuUsage();
  world.advance(seconds * 1e9);
  cpu = process.cpuUsage(cpu);
  const after = world.state();
  const packets = after.packets - before.packets, took = (cpu.user + cpu.system) / 1e6;
  console.log(`${words}: ${packets} packets took ${took.toFixed(2)} s: `
    + `${Math.round(packets / took)} packets per second of CPU time, hash ${after.hash}`);
}
