// Links: the network, seed, inputs and position in the fragment of the address, compressed.

const version = "1.";
const longest = 64 << 10; // characters: browsers and forums cut longer addresses
const largest = 16 << 20; // bytes after decompression

async function through(bytes, stream, most = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  for (let size = 0; ;) {
    const { value, done } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new Error("it is too large");
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** write returns the fragment of an experiment: {network, seed, inputs, at}. */
export async function write(experiment) {
  const text = new TextEncoder().encode(JSON.stringify(experiment));
  const packed = await through(text, new CompressionStream("deflate-raw"));
  let binary = "";
  for (const b of packed) binary += String.fromCharCode(b);
  const link = version + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  if (link.length > longest) {
    throw new Error(`The link would have ${link.length} characters; the limit is ${longest}. Upload smaller files.`);
  }
  return link;
}

/** read returns the experiment of a fragment. The error is one line that says what is wrong. */
export async function read(fragment) {
  const bad = (why) => new Error(`This link is broken: ${why}.`);
  if (!fragment.startsWith(version)) throw bad("it does not begin with #1");
  let experiment;
  try {
    const binary = atob(fragment.slice(version.length).replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(binary, (c) => c.charCodeAt(0));
    const text = await through(packed, new DecompressionStream("deflate-raw"), largest);
    experiment = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text));
  } catch (e) {
    throw bad(e.message === "it is too large" ? e.message : "a part of it is missing or changed");
  }
  const isTime = (t) => Number.isSafeInteger(t) && t >= 0;
  const { network, seed, inputs, at } = experiment ?? {};
  if (typeof network !== "string" || !isTime(seed) || !isTime(at) || !Array.isArray(inputs)
    || !inputs.every((i) => i && isTime(i.at))) throw bad("it contains no network");
  return { network, seed, inputs, at };
}
