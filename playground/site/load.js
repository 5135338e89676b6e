import { unpack } from "./unpack.js";

/** load compiles a program of this folder. */
export async function load(name) {
  const packed = await fetch(new URL(name, import.meta.url)).catch(() => {
    throw new Error(`Cannot load ${name}: the device is offline, or the page's server does not answer. Try again when it does.`);
  });
  if (!packed.ok) throw new Error(`${name}: ${packed.status} ${packed.statusText}`);
  const plain = packed.body.pipeThrough(new DecompressionStream("gzip")).pipeThrough(unpack());
  return WebAssembly.compileStreaming(new Response(plain, { headers: { "Content-Type": "application/wasm" } }));
}
