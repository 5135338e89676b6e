import { readFileSync } from "node:fs";
import { initSync } from "../site/brotli/brotli_dec_wasm.js";
import { unpack } from "../site/unpack.js";

initSync({ module: readFileSync(new URL("../site/brotli/brotli_dec_wasm_bg.wasm", import.meta.url)) });

/** read restores a compressed program, which arrives in pieces of this size. */
export async function read(name, piece = 1 << 16) {
  const packed = readFileSync(name);
  const pieces = new ReadableStream({
    start(to) {
      for (let at = 0; at < packed.length; at += piece) to.enqueue(new Uint8Array(packed.subarray(at, at + piece)));
      to.close();
    },
  });
  return new Uint8Array(await new Response(pieces.pipeThrough(unpack())).arrayBuffer());
}
