// Programs are compressed with brotli, which not every browser decodes. The decoder in brotli/ is
// that of the npm package brotli-dec-wasm 2.3.2, unchanged.

import { BrotliStreamResultCode, DecompressStream } from "./brotli/brotli_dec_wasm.js";

const most = 1 << 20; // bytes that are decoded at a time

/** unpack is a stream from a compressed program to the program. The decoder must be initialized. */
export function unpack() {
  const decoder = new DecompressStream();
  let code;
  return new TransformStream({
    transform(bytes, to) {
      do {
        const { buf, code: now, input_offset: read } = decoder.decompress(bytes, most);
        if (buf.length > 0) to.enqueue(buf);
        bytes = bytes.subarray(read);
        code = now;
      } while (code === BrotliStreamResultCode.NeedsMoreOutput);
    },
    flush() {
      if (code !== BrotliStreamResultCode.ResultSuccess) throw new Error("The program is incomplete. Reload the page.");
    },
  });
}
