// Keyframes: copies of a world at rest. The memory and the globals are the whole state of the
// program; the host adds the time, the random numbers and the files.

const globals = (world) => Object.entries(world.exports)
  .filter(([name]) => name.startsWith("global")).map(([, g]) => g);

/** copyFiles copies the tree and the open files, which share nodes. */
function copyFiles({ root, fds }) {
  const copies = new Map();
  const copy = (node) => {
    if (!copies.has(node)) {
      const c = { ...node };
      copies.set(node, c);
      if (node.names) c.names = new Map([...node.names].map(([name, n]) => [name, copy(n)]));
      if (node.data) c.data = node.data.slice(0, node.size);
    }
    return copies.get(node);
  };
  return { root: copy(root), fds: fds.map((f) => f && { ...f, node: copy(f.node) }) };
}

const values = ["elapsed", "random", "word", "bytes", "said"];

/** take copies a world. */
export function take(world) {
  const { host, exports } = world;
  return {
    memory: new Uint8Array(exports.memory.buffer).slice(),
    globals: globals(world).map((g) => g.value),
    values: values.map((name) => host[name]),
    files: copyFiles(host),
    get size() { return this.memory.length + host.bytes; },
  };
}

/** restore makes a world what it was. It may be the copied one or another instance. */
export function restore(world, frame) {
  const { host, exports } = world;
  const missing = frame.memory.length - exports.memory.buffer.byteLength;
  if (missing > 0) exports.memory.grow(missing >> 16);
  const memory = new Uint8Array(exports.memory.buffer);
  memory.set(frame.memory);
  memory.fill(0, frame.memory.length); // the program may grow into it again
  globals(world).forEach((g, i) => { g.value = frame.globals[i]; });
  values.forEach((name, i) => { host[name] = frame.values[i]; });
  Object.assign(host, copyFiles(frame.files));
}
