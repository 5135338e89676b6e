// Keyframes: copies of a world at rest. The memory and the globals are the whole state of the
// program; the host adds the time, the random numbers and the files.
//
// A copy consists of chunks. A chunk has all its bytes, or only the lines that differ from another
// chunk, which has all. Copies share the chunks that are the same.

const size = 16 << 10, line = 64; // bytes of a chunk and of a line
const most = size / 4; // bytes of the lines that differ; a chunk with more of them has all bytes
const overhead = 600; // bytes that a chunk needs besides, about
const words = line / 4;
const zeros = { bytes: new Uint8Array(size), uses: 1 };
const places = new Uint16Array(size / line), lines = new Uint32Array(size / 4);

const globals = (world) => Object.entries(world.exports)
  .filter(([name]) => name.startsWith("global")).map(([, g]) => g);
const wordsOf = (bytes) => new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);

function same(a, b) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** chunkOf returns a chunk with these bytes. It is the one before, if that has the same. */
function chunkOf(bytes, before) {
  const whole = before.of ?? before;
  const x = wordsOf(bytes), y = wordsOf(whole.bytes);
  let count = 0;
  for (let i = 0; i < x.length; i++) {
    if (x[i] === y[i]) continue;
    i -= i % words;
    places[count] = i;
    for (let k = 0; k < words; k++) lines[count * words + k] = x[i + k];
    count++;
    i += words - 1;
  }
  if (count === 0) return whole;
  if (count * line > most) return { bytes: bytes.slice(), uses: 0 };
  const at = places.subarray(0, count), differs = lines.subarray(0, count * words);
  if (before.of && same(at, before.at) && same(differs, before.lines)) return before;
  return { of: whole, at: at.slice(), lines: differs.slice(), uses: 0 };
}

/** split returns the chunks of bytes. Those of an earlier copy are used again. */
function split(bytes, length, before = []) {
  const list = [];
  for (let at = 0; at < length; at += size) {
    let part = bytes.subarray(at, at + size);
    if (part.length < size) { // the end of a file
      part = new Uint8Array(size);
      part.set(bytes.subarray(at));
    }
    list.push(chunkOf(part, before[list.length] ?? zeros));
  }
  return list;
}

/** join is the reverse of split. to has room for all chunks. */
function join(list, to) {
  const x = wordsOf(to);
  list.forEach((c, n) => {
    to.set((c.of ?? c).bytes, n * size);
    c.at?.forEach((at, i) => x.set(c.lines.subarray(i * words, (i + 1) * words), n * size / 4 + at));
  });
  return to;
}

/** copyFiles copies the tree and the open files, which share nodes. contents copies a file's data. */
function copyFiles({ root, fds }, contents) {
  const copies = new Map();
  const copy = (node) => {
    if (!copies.has(node)) {
      const c = { ...node };
      copies.set(node, c);
      if (node.names) c.names = new Map([...node.names].map(([name, n]) => [name, copy(n)]));
      if (node.data) c.data = contents(node);
    }
    return copies.get(node);
  };
  return { root: copy(root), fds: fds.map((f) => f && { ...f, node: copy(f.node) }) };
}

const values = ["elapsed", "random", "word", "bytes", "said"];

/** Copies makes copies of worlds, and knows how many bytes they have together. */
export class Copies {
  bytes = 0;

  /** take copies a world. before is an earlier copy; undefined: none. */
  take(world, before) {
    const { host, exports } = world;
    const memory = new Uint8Array(exports.memory.buffer);
    const data = new Map(); // chunks of the files, by inode
    const files = copyFiles(host, (node) => {
      data.set(node.ino, split(node.data, node.size, before?.data.get(node.ino)));
      return data.get(node.ino);
    });
    const copy = {
      memory: split(memory, memory.length, before?.memory),
      globals: globals(world).map((g) => g.value),
      values: values.map((name) => host[name]),
      files, data,
    };
    for (const list of lists(copy)) {
      this.bytes += 8 * list.length;
      for (const c of list) this.#use(c);
    }
    return copy;
  }

  /** drop forgets a copy. */
  drop(copy) {
    for (const list of lists(copy)) {
      this.bytes -= 8 * list.length;
      for (const c of list) this.#leave(c);
    }
  }

  #use(c) {
    if (c.uses++ > 0) return;
    this.bytes += bytesOf(c);
    if (c.of) this.#use(c.of);
  }

  #leave(c) {
    if (--c.uses > 0) return;
    this.bytes -= bytesOf(c);
    if (c.of) this.#leave(c.of);
  }
}

const lists = (copy) => [copy.memory, ...copy.data.values()];
const bytesOf = (c) => overhead + (c.bytes ?? c.lines).byteLength + (c.at?.byteLength ?? 0);

/** restore makes a world what it was. It may be the copied one or another instance. */
export function restore(world, copy) {
  const { host, exports } = world;
  const length = copy.memory.length * size;
  const missing = length - exports.memory.buffer.byteLength;
  if (missing > 0) exports.memory.grow(missing >> 16);
  const memory = join(copy.memory, new Uint8Array(exports.memory.buffer));
  memory.fill(0, length); // because the program may grow into this memory again
  globals(world).forEach((g, i) => { g.value = copy.globals[i]; });
  values.forEach((name, i) => { host[name] = copy.values[i]; });
  Object.assign(host, copyFiles(copy.files, (node) => join(node.data, new Uint8Array(node.data.length * size))));
}
