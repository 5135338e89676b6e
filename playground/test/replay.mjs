// Replays inputs until 20 s and prints the state: node replay.mjs PROGRAM.BR < {"config", "inputs"}

import { readFileSync } from "node:fs";
import { read } from "./program.mjs";
import { World } from "../site/world.js";

const { config, inputs } = JSON.parse(readFileSync(0, "utf8"));
const world = new World(new WebAssembly.Module(await read(process.argv[2])));
world.open(config.name, config.network, config.seed);
for (const i of inputs) world.replay(i);
world.advance(20e9 - world.now);
console.log(JSON.stringify(world.state()));
