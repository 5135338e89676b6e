// The host of the WebAssembly program. It implements the part of WASI preview 1 that Go uses. Time
// is virtual: it stands still while the program computes, and jumps to the next timer when the
// program waits. Random numbers come from a fixed seed, and files are in memory. So two runs with
// the same inputs are the same in every byte.

const ok = 0, BADF = 8, EXIST = 20, INVAL = 28, ISDIR = 31, NOENT = 44, NOSPC = 51, NOSYS = 52,
  NOTDIR = 54, NOTEMPTY = 55, LOOP = 32;
const DIR = 3, FILE = 4, CHAR = 2; // filetype
const O_CREAT = 1, O_DIRECTORY = 2, O_EXCL = 4, O_TRUNC = 8; // oflags
const APPEND = 1; // fdflags
const epoch = 946684800_000000000n; // 2000-01-01, where testing/synctest also begins

// Package reflect stores code addresses where the garbage collector expects pointers
// (golang.org/issue/80472 is one such place). In a WebAssembly program, code addresses are numbers
// from 2^28 on. With more than 268 MB of memory, they look like bad pointers, and the collector
// ends the program unless invalidptr is 0. Memory that has grown stays large, so a soft limit makes
// the collector work more above it.
const environ = ["GODEBUG=invalidptr=0\0", "GOMEMLIMIT=224MiB\0"];

/** maxBytes limits the files of a world together. */
export const maxBytes = 512 << 20;

let inode = 1n;
const folder = () => ({ type: DIR, ino: inode++, names: new Map(), time: epoch });
const emptyFile = () => ({ type: FILE, ino: inode++, data: new Uint8Array(0), size: 0, time: epoch });

/** Exit is thrown when the program ends. */
export class Exit extends Error {
  constructor(code, text) { super(text.trim() || `the program ended with status ${code}`); this.code = code; }
}

/** Stuck is thrown when the program computes for long and time does not pass. */
export class Stuck extends Error {}

/** Host implements the imports of one instance. */
export class Host {
  static patience = 10_000; // milliseconds of computing at one instant

  constructor() {
    this.begin();
    this.calls = 0; // calls that ask for the time
    this.elapsed = 0n; // virtual nanoseconds
    this.root = folder();
    this.bytes = 0;
    this.said = ""; // written to standard output and error
    this.random = 0x9e3779b97f4a7c15n;
    this.fds = [CHAR, CHAR, CHAR].map((type) => ({ node: { type, ino: 0n, time: epoch } }));
    this.fds.push({ node: this.root, preopen: "/" });
    this.decoder = new TextDecoder();
  }

  /** imports are the functions of the import module wasi_snapshot_preview1. */
  get imports() {
    const names = Object.getOwnPropertyNames(Host.prototype).filter((n) => n.includes("_"));
    return Object.fromEntries(names.map((n) => [n, this[n].bind(this)]));
  }

  attach(memory) { this.memory = memory; }

  // The view must be created again after the memory has grown.
  get view() {
    if (this.cached?.buffer !== this.memory.buffer) this.cached = new DataView(this.memory.buffer);
    return this.cached;
  }

  slice(at, size) { return new Uint8Array(this.memory.buffer, at >>> 0, size >>> 0); }
  text(at, size) { return this.decoder.decode(this.slice(at, size)); }

  // Arguments, clocks, random numbers.

  args_sizes_get(count, size) {
    this.view.setUint32(count, 1, true);
    this.view.setUint32(size, 5, true);
    return ok;
  }

  args_get(list, at) {
    this.view.setUint32(list, at, true);
    this.slice(at, 5).set(new TextEncoder().encode("node\0"));
    return ok;
  }

  environ_sizes_get(count, size) {
    this.view.setUint32(count, environ.length, true);
    this.view.setUint32(size, environ.join("").length, true);
    return ok;
  }

  environ_get(list, at) {
    environ.forEach((variable, i) => {
      this.view.setUint32(list + 4 * i, at, true);
      this.slice(at, variable.length).set(new TextEncoder().encode(variable));
      at += variable.length;
    });
    return ok;
  }

  /** begin is called before the program runs. */
  begin() { this.asked = this.since = 0; }

  /** watch throws Stuck. */
  watch() {
    const now = performance.now();
    if (!this.since || this.seen !== this.elapsed) {
      this.seen = this.elapsed;
      this.since = now;
    } else if (now - this.since > Host.patience) {
      throw new Stuck("time stands still");
    }
  }

  clock_time_get(id, _, to) {
    this.calls++;
    if (++this.asked % 1000 === 0) this.watch();
    this.view.setBigUint64(to, id === 0 ? epoch + this.elapsed : this.elapsed + 1n, true);
    return ok;
  }

  random_get(at, size) { // splitmix64
    const mask = 0xffffffffffffffffn, out = this.slice(at, size);
    for (let i = 0; i < size; i++) {
      if (i % 8 === 0) {
        this.random = (this.random + 0x9e3779b97f4a7c15n) & mask;
        let z = this.random;
        z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
        z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
        this.word = z ^ (z >> 31n);
      }
      out[i] = Number((this.word >> BigInt(8 * (i % 8))) & 0xffn);
    }
    return ok;
  }

  /** poll_oneoff is where the program waits: time jumps to its first timer. */
  poll_oneoff(subscriptions, events, count, done) {
    const view = this.view;
    let first = null;
    for (let i = 0; i < count; i++) {
      const at = subscriptions + 48 * i;
      if (view.getUint8(at + 8) !== 0) continue; // a file descriptor, which never becomes ready
      const absolute = view.getUint16(at + 40, true) & 1;
      let due = view.getBigUint64(at + 24, true);
      if (absolute) due -= view.getUint32(at + 16, true) === 0 ? epoch + this.elapsed : this.elapsed + 1n;
      if (!first || due < first.due) first = { due, user: view.getBigUint64(at, true) };
    }
    if (!first) throw new Exit(2, "the program waits for something that never happens");
    if (first.due > 0n) this.elapsed += first.due;
    view.setBigUint64(events, first.user, true);
    view.setUint16(events + 8, 0, true);
    view.setUint8(events + 10, 0);
    view.setUint32(done, 1, true);
    return ok;
  }

  sched_yield() { return ok; }
  proc_exit(code) { throw new Exit(code, this.said); }

  // Files.

  /** find follows a path from a directory: the parent, the last name and its node, or an error. */
  find(fd, at, size) {
    const base = this.fds[fd]?.node;
    if (!base) return { error: BADF };
    if (base.type !== DIR) return { error: NOTDIR };
    const trail = [base];
    let name = "";
    const parts = this.text(at, size).split("/").filter((p) => p !== "" && p !== ".");
    for (let i = 0; i < parts.length; i++) {
      const here = trail.at(-1);
      if (here === undefined) return { error: NOENT };
      if (here.type !== DIR) return { error: NOTDIR };
      if (parts[i] === "..") {
        if (trail.length > 1) trail.pop();
        name = "";
        continue;
      }
      name = parts[i];
      if (trail.length > 64) return { error: LOOP };
      trail.push(here.names.get(name));
    }
    if (trail.slice(0, -1).includes(undefined)) return { error: NOENT };
    return { parent: trail.at(-2) ?? base, name, node: trail.at(-1) };
  }

  path_open(fd, _, at, size, oflags, rights, inheriting, fdflags, to) {
    const f = this.find(fd, at, size);
    if (f.error) return f.error;
    let node = f.node;
    if (node && oflags & O_CREAT && oflags & O_EXCL) return EXIST;
    if (!node && !(oflags & O_CREAT)) return NOENT;
    if (!node) {
      node = emptyFile();
      f.parent.names.set(f.name, node);
    }
    if (oflags & O_DIRECTORY && node.type !== DIR) return NOTDIR;
    if (oflags & O_TRUNC && node.type === FILE) this.resize(node, 0);
    let number = this.fds.indexOf(null);
    if (number < 0) number = this.fds.length;
    this.fds[number] = { node, at: 0, append: (fdflags & APPEND) !== 0 };
    this.view.setUint32(to, number, true);
    return ok;
  }

  fd_close(fd) {
    if (!this.fds[fd]) return BADF;
    this.fds[fd] = null;
    return ok;
  }

  resize(node, size) {
    if (this.bytes + size - node.size > maxBytes) this.count(); // some files may have been removed
    if (this.bytes + size - node.size > maxBytes) return NOSPC;
    this.bytes += size - node.size;
    if (size > node.data.length) {
      const data = new Uint8Array(Math.max(size, 2 * node.data.length));
      data.set(node.data.subarray(0, node.size));
      node.data = data;
    } else if (size < node.size) {
      node.data.fill(0, size, node.size);
    }
    node.size = size;
    node.time = epoch + this.elapsed;
    return ok;
  }

  /** count sets bytes to the size of the files that have a name or are open. */
  count() {
    const seen = new Set();
    const visit = (node) => {
      if (!node || seen.has(node)) return;
      seen.add(node);
      for (const n of node.names?.values() ?? []) visit(n);
    };
    visit(this.root);
    for (const f of this.fds) visit(f?.node);
    this.bytes = 0;
    for (const node of seen) this.bytes += node.size ?? 0;
  }

  /** pieces are the buffers of an iovec list. */
  pieces(iovs, count) {
    const list = [];
    for (let i = 0; i < count; i++) {
      list.push(this.slice(this.view.getUint32(iovs + 8 * i, true), this.view.getUint32(iovs + 8 * i + 4, true)));
    }
    return list;
  }

  transfer(fd, iovs, count, at, done, write) {
    const f = this.fds[fd];
    if (!f) return BADF;
    if (f.node.type === CHAR) {
      let total = 0;
      for (const p of this.pieces(iovs, count)) {
        total += p.length;
        if (write) this.said = (this.said + this.decoder.decode(p)).slice(-20_000);
      }
      this.view.setUint32(done, write ? total : 0, true);
      return ok;
    }
    if (f.node.type !== FILE) return ISDIR;
    const start = at;
    for (const p of this.pieces(iovs, count)) {
      if (write) {
        if (at + p.length > f.node.size) {
          const error = this.resize(f.node, at + p.length);
          if (error) return error;
        }
        f.node.data.set(p, at);
        at += p.length;
      } else {
        const part = f.node.data.subarray(at, Math.min(f.node.size, at + p.length));
        p.set(part);
        at += part.length;
      }
    }
    this.view.setUint32(done, at - start, true);
    return ok;
  }

  fd_read(fd, iovs, count, done) { return this.move(fd, iovs, count, done, false); }
  fd_write(fd, iovs, count, done) { return this.move(fd, iovs, count, done, true); }

  move(fd, iovs, count, done, write) {
    const f = this.fds[fd];
    if (!f) return BADF;
    const error = this.transfer(fd, iovs, count, write && f.append ? f.node.size : f.at, done, write);
    if (!error) f.at = (write && f.append ? f.node.size : f.at + this.view.getUint32(done, true));
    return error;
  }

  fd_pread(fd, iovs, count, at, done) { return this.transfer(fd, iovs, count, Number(at), done, false); }
  fd_pwrite(fd, iovs, count, at, done) { return this.transfer(fd, iovs, count, Number(at), done, true); }

  fd_seek(fd, offset, whence, to) {
    const f = this.fds[fd];
    if (!f) return BADF;
    const at = Number(offset) + [0, f.at, f.node.size ?? 0][whence];
    if (!(at >= 0)) return INVAL;
    f.at = at;
    this.view.setBigUint64(to, BigInt(at), true);
    return ok;
  }

  fd_sync(fd) { return this.fds[fd] ? ok : BADF; }
  fd_fdstat_set_flags(fd, flags) {
    if (!this.fds[fd]) return BADF;
    this.fds[fd].append = (flags & APPEND) !== 0;
    return ok;
  }

  fd_fdstat_get(fd, to) {
    const f = this.fds[fd];
    if (!f) return BADF;
    this.view.setUint8(to, f.node.type);
    this.view.setUint16(to + 2, f.append ? APPEND : 0, true);
    this.view.setBigUint64(to + 8, 0xffffffffffffffffn, true); // all rights
    this.view.setBigUint64(to + 16, 0xffffffffffffffffn, true);
    return ok;
  }

  fd_prestat_get(fd, to) {
    const f = this.fds[fd];
    if (f?.preopen === undefined) return BADF;
    this.view.setUint8(to, 0);
    this.view.setUint32(to + 4, f.preopen.length, true);
    return ok;
  }

  fd_prestat_dir_name(fd, at, size) {
    const f = this.fds[fd];
    if (f?.preopen === undefined) return BADF;
    this.slice(at, size).set(new TextEncoder().encode(f.preopen).subarray(0, size));
    return ok;
  }

  stat(node, to) {
    const view = this.view;
    view.setBigUint64(to, 1n, true);
    view.setBigUint64(to + 8, node.ino, true);
    view.setUint8(to + 16, node.type);
    view.setBigUint64(to + 24, 1n, true);
    view.setBigUint64(to + 32, BigInt(node.size ?? 0), true);
    for (const k of [40, 48, 56]) view.setBigUint64(to + k, node.time, true);
    return ok;
  }

  fd_filestat_get(fd, to) { return this.fds[fd] ? this.stat(this.fds[fd].node, to) : BADF; }
  path_filestat_get(fd, _, at, size, to) {
    const f = this.find(fd, at, size);
    return f.error || (f.node ? this.stat(f.node, to) : NOENT);
  }

  fd_filestat_set_size(fd, size) {
    const f = this.fds[fd];
    return !f ? BADF : f.node.type !== FILE ? INVAL : this.resize(f.node, Number(size));
  }

  fd_filestat_set_times() { return ok; }
  path_filestat_set_times() { return ok; }

  fd_readdir(fd, at, size, cookie, done) {
    const f = this.fds[fd];
    if (!f) return BADF;
    if (f.node.type !== DIR) return NOTDIR;
    const out = this.slice(at, size), encoder = new TextEncoder();
    let used = 0, next = 0n;
    for (const [name, node] of f.node.names) {
      if (next++ < cookie) continue;
      const text = encoder.encode(name), entry = new Uint8Array(24 + text.length);
      const view = new DataView(entry.buffer);
      view.setBigUint64(0, next, true);
      view.setBigUint64(8, node.ino, true);
      view.setUint32(16, text.length, true);
      view.setUint8(20, node.type);
      entry.set(text, 24);
      const part = entry.subarray(0, size - used);
      out.set(part, used);
      used += part.length;
      if (used === size) break;
    }
    this.view.setUint32(done, used, true);
    return ok;
  }

  path_create_directory(fd, at, size) {
    const f = this.find(fd, at, size);
    if (f.error) return f.error;
    if (f.node) return EXIST;
    f.parent.names.set(f.name, folder());
    return ok;
  }

  path_link(fd, _, at, size, toFD, toAt, toSize) {
    const from = this.find(fd, at, size), to = this.find(toFD, toAt, toSize);
    if (from.error || to.error) return from.error || to.error;
    if (!from.node) return NOENT;
    if (to.node) return EXIST;
    to.parent.names.set(to.name, from.node);
    return ok;
  }

  path_rename(fd, at, size, toFD, toAt, toSize) {
    const from = this.find(fd, at, size), to = this.find(toFD, toAt, toSize);
    if (from.error || to.error) return from.error || to.error;
    if (!from.node) return NOENT;
    if (to.node?.type === DIR && to.node.names.size > 0) return NOTEMPTY;
    if (from.node !== to.node) {
      from.parent.names.delete(from.name);
      to.parent.names.set(to.name, from.node);
    }
    return ok;
  }

  path_unlink_file(fd, at, size) { return this.remove(fd, at, size, FILE, ISDIR); }
  path_remove_directory(fd, at, size) { return this.remove(fd, at, size, DIR, NOTDIR); }

  remove(fd, at, size, type, wrong) {
    const f = this.find(fd, at, size);
    if (f.error) return f.error;
    if (!f.node) return NOENT;
    if (f.node.type !== type) return wrong;
    if (type === DIR && f.node.names.size > 0) return NOTEMPTY;
    f.parent.names.delete(f.name);
    return ok;
  }

  path_readlink(fd, at, size) {
    const f = this.find(fd, at, size);
    return f.error || (f.node ? INVAL : NOENT); // there are no symbolic links
  }

  path_symlink() { return NOSYS; }
  sock_accept() { return NOSYS; }
  sock_shutdown() { return NOSYS; }
}
