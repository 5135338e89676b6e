// A joined session: the page is one node of a network of processes. A bridge (`node net serve
// --bridge`) passes packets through a WebSocket. The session runs in real time, so it cannot pause
// or go back.

import { World } from "./world.js";

const most = 1 << 20; // bytes that wait for the network: the length of a link's queue
const back = () => { throw new Error("This page is a node of another network: it runs in real time and cannot go back."); };

export class Joined {
  real = true;
  log = []; // a joined session does not repeat its commands
  errors = [];
  reads = new Map(); // requests that only read, by number
  lost = 0; // packets for which the queue had no room

  /** open joins the network of an address, HOST:PORT/NODE/TOKEN. gone gets the reason when it ends. */
  static open(module, hear, address, gone) {
    const [, place, token] = /^([^/]+\/[^/]+)\/([A-Za-z0-9]+)$/.exec(address) ?? [];
    if (!token) throw new Error("This address is incomplete: copy everything that `node net serve --bridge` printed after #join=.");
    return new Promise((done, failed) => {
      const socket = new WebSocket(`ws://${place}`, ["tidepool", token]);
      socket.binaryType = "arraybuffer";
      let session;
      socket.onmessage = ({ data }) => {
        try {
          if (session) session.receive(new Uint8Array(data));
          else done(session = new Joined(module, hear, socket, JSON.parse(data)));
        } catch (e) {
          socket.close();
          (session ? gone : failed)(e);
        }
      };
      socket.onclose = ({ code, reason }) => {
        if (session) gone(new Error(`The bridge has closed the connection${reason && `: ${reason}`}. Press Restart to join again.`));
        else failed(new Error(code === 1006
          ? `No bridge answers at ws://${place}, or it refuses pages of this site: see the terminal of \`node net serve\`.`
          : `The bridge refuses this page: ${reason}.`));
        session?.close();
      };
    });
  }

  constructor(module, hear, socket, { node, network }) {
    this.socket = socket;
    this.world = new World(module, { ...hear, packet: (iface, bytes) => this.send(iface, bytes) });
    const seed = crypto.getRandomValues(new Uint32Array(1))[0];
    this.nodes = this.world.join(node, network, seed);
    this.config = { name: node, network, seed };
    this.began = performance.now();
  }

  get now() { return this.world.now; }
  get end() { return this.now; }

  /** run moves to the present. */
  run() {
    const late = (performance.now() - this.began) * 1e6 - this.now;
    if (late > 0) this.world.advance(late);
    return true;
  }

  receive(message) {
    this.run();
    this.world.receive(message[0], message.subarray(1));
  }

  send(iface, bytes) {
    if (this.socket.bufferedAmount > most) {
      this.lost++;
      return;
    }
    const message = new Uint8Array(1 + bytes.length);
    message[0] = iface;
    message.set(bytes, 1);
    this.socket.send(message);
  }

  do(input) {
    this.run();
    return this.world.do(input);
  }

  get(request) {
    this.reads.set(request.number, request);
    this.world.get(request);
  }

  leave(number) {
    if (this.reads.delete(number)) this.world.leave(number);
  }

  seek() { back(); }
  close() { this.socket.close(); }
}
