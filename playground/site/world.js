// A world: one instance of the WebAssembly program, which runs one network. See ../wasm/main.go.

import { Exit, Host, maxBytes, Stuck } from "./wasi.js";

const RESULT = 0, ERROR = 1, OUTPUT = 2, HEAD = 3, BODY = 4, END = 5, PACKET = 6;
const encoder = new TextEncoder(), decoder = new TextDecoder();

export const maxFile = 64 << 20; // bytes; the same as playground.MaxFile

/** bytesOf decodes base64. For invalid base64 it returns nothing, and the program reports the error. */
function bytesOf(text) {
  try {
    const decoded = atob(text), bytes = new Uint8Array(decoded.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = decoded.charCodeAt(i);
    return bytes;
  } catch {
    return undefined;
  }
}

/** WorldError has the errors of a network file with their lines and columns; line 0: no place. */
export class WorldError extends Error {
  constructor(errors) {
    super(errors.map((e) => e.text).join("\n"));
    this.errors = errors;
  }
}

/** World is an instance of the program, at first without a network. */
export class World {
  /** hear gets the program's messages: output(node, text), head(number, {status, headers}), body(number, bytes), end(number). */
  constructor(module, hear = {}) {
    this.hear = hear;
    this.host = new Host();
    this.instance = new WebAssembly.Instance(module, {
      wasi_snapshot_preview1: this.host.imports,
      tidepool: { tell: (kind, number, at, size) => this.told(kind, number, this.host.slice(at, size)) },
    });
    this.exports = this.instance.exports;
    this.host.attach(this.exports.memory);
    this.exports._initialize();
  }

  told(kind, number, bytes) {
    switch (kind) {
      case RESULT: this.answer = decoder.decode(bytes); break;
      case ERROR: this.failure = decoder.decode(bytes); break;
      case OUTPUT: this.hear.output?.(JSON.parse(decoder.decode(bytes))); break;
      case HEAD: this.hear.head?.(number, JSON.parse(decoder.decode(bytes))); break;
      case BODY: (this.hear.body ?? this.keep).call(this, number, bytes.slice()); break;
      case END: this.hear.end?.(number); break;
      case PACKET: this.hear.packet?.(number, bytes); break;
    }
  }

  keep(_, bytes) { this.kept = bytes; }

  /** call calls an export with a value, and returns its answer. */
  call(name, value) {
    this.answer = this.failure = undefined;
    this.host.begin();
    try {
      if (value !== undefined) {
        const text = encoder.encode(JSON.stringify(value));
        const at = this.exports.buffer(text.length);
        this.host.slice(at, text.length).set(text);
      }
      this.exports[name]();
    } catch (e) {
      if (e instanceof Exit || e instanceof Stuck) throw e;
      throw new Exit(2, `${this.host.said}\n${e.message}`); // a WebAssembly trap
    }
    if (this.failure !== undefined) throw new WorldError(JSON.parse(this.failure).errors);
    return this.answer === undefined ? undefined : JSON.parse(this.answer);
  }

  /** check returns the errors of a network file, or of a script if its name ends with .star. */
  check(name, network) {
    try {
      this.call("check", { name, network });
      return [];
    } catch (e) {
      if (e instanceof WorldError) return e.errors;
      throw e;
    }
  }

  /** open starts a network and returns the names of its nodes. */
  open(name, network, seed) { return this.call("open", { name, network, seed }).nodes; }

  /** join starts a node of another network, like open. */
  join(name, network, seed) { return this.call("open", { name, network, seed, joined: true }).nodes; }

  /** receive passes a packet from that network to an interface. */
  receive(iface, packet) {
    this.host.begin();
    const at = this.exports.buffer(packet.length);
    this.host.slice(at, packet.length).set(packet);
    this.exports.receive(iface);
  }

  /** advance runs the network for so many nanoseconds. */
  advance(ns) {
    this.host.begin();
    this.exports.advance(BigInt(Math.round(ns)));
  }

  /** now returns the virtual time in nanoseconds. */
  get now() { return Number(this.host.elapsed); }

  state() { return this.call("state"); }

  /** do carries out an input, and sets its time. */
  do(input) {
    input.at = this.give("do", input);
    return input;
  }

  replay(input) { this.give("replay", input); }

  /** give calls an export with an input. The program makes an uploaded file empty, and give then writes the data into it:
   * passing the data as JSON would take most of the time of an upload. */
  give(name, input) {
    const plain = input.file && !input.file.includes("/"), bytes = plain && bytesOf(input.data);
    if (!bytes || bytes.length > maxFile || this.host.bytes + bytes.length > maxBytes) return this.call(name, input);
    const answer = this.call(name, { ...input, data: "" });
    const file = this.host.root.names.get(input.node).names.get(input.file);
    this.host.resize(file, bytes.length);
    file.data.set(bytes);
    return answer;
  }

  get(request) { this.call("get", request); }
  leave(number) { this.exports.leave(number); }
  complete(node, line) { return this.call("complete", { node, line }); }
  list() { return this.call("list"); }

  /** file returns the bytes of a node's file. */
  file(node, name) {
    const was = this.hear;
    this.hear = { ...was, body: (_, bytes) => { this.kept = bytes; } };
    try {
      this.call("file", { node, file: name });
      return this.kept;
    } finally {
      this.hear = was;
    }
  }
}
