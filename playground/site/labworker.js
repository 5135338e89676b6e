// The laboratory's worker. It runs one experiment at a time, each in a separate instance.

import { load } from "./load.js";
import { Host } from "./wasi.js";
import { World } from "./world.js";

Host.patience = Infinity; // an experiment never waits; Stop ends it
let module;

onmessage = async ({ data }) => {
  try {
    module ??= await load("lab.wasm.br");
    const lab = new World(module, { output: (progress) => postMessage({ progress }) });
    const answer = lab.call("run", data);
    postMessage({ done: { ...answer, report: new TextDecoder().decode(lab.kept) } });
  } catch (e) {
    postMessage({ failed: e.errors ?? [{ line: 0, text: e.message }] });
  }
};
