import decoder from "./brotli/brotli_dec_wasm.js";
import { unpack } from "./unpack.js";

/** load compiles a program of this folder. */
export async function load(name) {
  const [packed] = await Promise.all([fetch(new URL(name, import.meta.url)), decoder()]).catch(() => {
    throw new Error(`Cannot load ${name}: the device is offline, or the page's server does not answer. Try again when it does.`);
  });
  if (!packed.ok) throw new Error(`${name}: ${packed.status} ${packed.statusText}`);
  // some servers say so because of the file's name, and the browser decodes it
  const plain = packed.headers.get("Content-Encoding") === "br" ? packed.body : packed.body.pipeThrough(unpack());
  return WebAssembly.compileStreaming(new Response(plain, { headers: { "Content-Type": "application/wasm" } }));
}
