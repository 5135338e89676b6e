// Keyframes: copies of a world at rest. The memory and the globals are the whole state of the
// program; the host adds the time, the random numbers and the files.
//
// A copy consists of chunks. Copies share the chunks that are the same.

import { Chunks, fill, size, zeros } from "./chunks.js";

const globals = (world) => Object.entries(world.exports)
  .filter(([name]) => name.startsWith("global")).map(([, g]) => g);

/** split returns the chunks of bytes. It reuses equal chunks of an earlier copy. */
function split(chunks, bytes, length, before) {
  const list = [];
  for (let at = 0; at < length; at += size) {
    let part = bytes.subarray(at, at + size);
    if (part.length < size) { // the end of a file
      part = new Uint8Array(size);
      part.set(bytes.subarray(at));
    }
    list.push(before ? chunks.make(part, before[list.length] ?? zeros) : chunks.plain(part));
  }
  return list;
}

/** join is the reverse of split. to has room for all chunks. */
function join(list, to) {
  list.forEach((c, n) => fill(c, to.subarray(n * size, (n + 1) * size)));
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

/** Copies makes copies of worlds, and counts their bytes. */
export class Copies {
  #chunks = new Chunks();
  #places = 0; // in the lists of chunks

  get bytes() { return this.#chunks.bytes + 8 * this.#places; }

  /** take copies a world. before is an earlier copy; undefined: none. */
  take(world, before) {
    const { host, exports } = world, chunks = this.#chunks;
    const memory = new Uint8Array(exports.memory.buffer);
    const data = new Map(); // chunks of the files, by inode
    const files = copyFiles(host, (node) => {
      data.set(node.ino, split(chunks, node.data, node.size, before && (before.data.get(node.ino) ?? [])));
      return data.get(node.ino);
    });
    const copy = {
      memory: split(chunks, memory, memory.length, before?.memory),
      globals: globals(world).map((g) => g.value),
      values: values.map((name) => host[name]),
      files, data,
    };
    for (const list of lists(copy)) {
      this.#places += list.length;
      for (const c of list) chunks.use(c);
    }
    return copy;
  }

  /** drop forgets a copy. */
  drop(copy) {
    for (const list of lists(copy)) {
      this.#places -= list.length;
      for (const c of list) this.#chunks.leave(c);
    }
  }
}

const lists = (copy) => [copy.memory, ...copy.data.values()];

/** restore gives a world the state of a copy. The world may be the copied one or another instance. */
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
