import { readFileSync } from "node:fs";
import { unpack } from "../site/unpack.js";

/** read restores a packed program, which arrives in pieces of this size. */
export async function read(name, piece = 1 << 16) {
  const packed = new Blob([readFileSync(name)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const cut = new TransformStream({
    transform(bytes, to) {
      for (let at = 0; at < bytes.length; at += piece) to.enqueue(bytes.subarray(at, at + piece));
    },
  });
  return new Uint8Array(await new Response(packed.pipeThrough(cut).pipeThrough(unpack())).arrayBuffer());
}
