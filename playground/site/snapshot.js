// Keyframes: copies of a world at rest. The memory and the globals are the whole state of the
// program; the host adds the time, the random numbers and the files. A keyframe shares all chunks
// that have not changed with the keyframe before it.

const chunk = 16 << 10; // in bytes
const zeros = new Uint8Array(chunk);

const globals = (world) => Object.entries(world.exports)
  .filter(([name]) => name.startsWith("global")).map(([, g]) => g);

function same(a, b) {
  if (a.length !== b?.length) return false;
  const words = a.length >> 2;
  const x = new Uint32Array(a.buffer, a.byteOffset, words), y = new Uint32Array(b.buffer, b.byteOffset, words);
  for (let i = 0; i < words; i++) if (x[i] !== y[i]) return false;
  for (let i = 4 * words; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** split copies bytes in chunks, or takes those of an earlier copy that are the same. */
function split(bytes, size, before = []) {
  const list = [];
  for (let at = 0; at < size; at += chunk) {
    const part = bytes.subarray(at, Math.min(at + chunk, size));
    const old = before[list.length] ?? zeros;
    list.push(same(part, old) ? old : part.slice());
  }
  return list;
}

function join(list, to) {
  let at = 0;
  for (const c of list) {
    to.set(c, at);
    at += c.length;
  }
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

/** take copies a world. before is an earlier copy; undefined: none. */
export function take(world, before) {
  const { host, exports } = world;
  const memory = new Uint8Array(exports.memory.buffer);
  const data = new Map(); // chunks of the files, by inode
  const files = copyFiles(host, (node) => {
    data.set(node.ino, split(node.data, node.size, before?.data.get(node.ino)));
    return data.get(node.ino);
  });
  return {
    memory: split(memory, memory.length, before?.memory), size: memory.length,
    globals: globals(world).map((g) => g.value),
    values: values.map((name) => host[name]),
    files, data,
  };
}

/** bytes returns how many bytes copies have together. */
export function bytes(copies) {
  const all = new Set();
  for (const c of copies) for (const list of [c.memory, ...c.data.values()]) for (const part of list) all.add(part);
  let size = 0;
  for (const part of all) size += part.length;
  return size;
}

/** restore makes a world what it was. It may be the copied one or another instance. */
export function restore(world, frame) {
  const { host, exports } = world;
  const missing = frame.size - exports.memory.buffer.byteLength;
  if (missing > 0) exports.memory.grow(missing >> 16);
  const memory = join(frame.memory, new Uint8Array(exports.memory.buffer));
  memory.fill(0, frame.size); // because the program may grow into this memory again
  globals(world).forEach((g, i) => { g.value = frame.globals[i]; });
  values.forEach((name, i) => { host[name] = frame.values[i]; });
  Object.assign(host, copyFiles(frame.files, (node) => join(node.data, new Uint8Array(node.size))));
}
