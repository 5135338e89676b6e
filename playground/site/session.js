// A session: a world, the log of its inputs, and keyframes. It can move to any instant.

import { Host, Stuck } from "./wasi.js";
import { World } from "./world.js";
import { Copies, restore } from "./snapshot.js";

// milliseconds of computing between keyframes; a jump repeats at most this much
const frameWork = 100;
const firstStep = 1e6; // nanoseconds of the first step after an input
const longStep = 10; // milliseconds; the system interrupted a step that took more
const frameBytes = 256 << 20; // bytes of all keyframes

const stuck = ({ node, line, file, request }, at) => new Stuck(
  `${node ? `${node}: ` : ""}${line ?? file ?? request?.path} was canceled: after ${Host.patience / 1000} s of computing, the network's time was `
  + `still ${(at / 1e9).toFixed(3)} s. Time advances only while packets wait: give the links a delay or a rate.`);

export class Session {
  /** clock returns the milliseconds of computing so far. A test replaces it. */
  static clock = () => performance.now();

  /** hear gets the world's messages. */
  constructor(module, hear, { name = "network", network, seed = 1, inputs = [] }) {
    this.hear = hear;
    this.world = new World(module, hear);
    this.nodes = this.world.open(name, network, seed);
    this.config = { name, network, seed };
    this.log = inputs.map((i) => ({ ...i })).sort((a, b) => a.at - b.at);
    this.done = 0; // number of inputs in the log that the world has received
    this.end = this.log.at(-1)?.at ?? 0; // the latest instant so far
    this.work = this.kept = 0; // milliseconds of computing until now, and until the last keyframe
    this.reads = new Map(); // requests that only read, by number
    this.step = firstStep;
    this.frames = [];
    this.copies = new Copies();
    this.errors = [];
    this.keep();
  }

  get now() { return this.world.now; }

  /** keep takes a keyframe. After a jump back, the later ones stay until an input changes the future. */
  keep() {
    const copy = this.copies.take(this.world, this.nearest(this.now)?.copy);
    this.frames.push({ at: this.now, done: this.done, work: this.work, reads: [...this.reads.keys()], copy });
    this.frames.sort((a, b) => a.at - b.at);
    this.kept = this.work;
    while (this.frames.length > 3 && this.copies.bytes > frameBytes) this.thin();
  }

  /** keepIfDue takes a keyframe if enough was computed since the last one. Before later keyframes, it waits twice as long. */
  keepIfDue() {
    const due = this.frames.at(-1)?.at > this.now ? 2 * frameWork : frameWork;
    if (this.work - this.kept > due && !this.frames.some((f) => f.at === this.now)) this.keep();
  }

  /** since drops the keyframes from an instant on. */
  since(at) {
    for (const f of this.frames) if (f.at >= at) this.copies.drop(f.copy);
    this.frames = this.frames.filter((f) => f.at < at);
  }

  /** thin drops the keyframe that saves the least computing. */
  thin() {
    const saves = (i) => this.frames[i + 1].work - this.frames[i - 1].work;
    let least = 1;
    for (let i = 2; i < this.frames.length - 1; i++) if (saves(i) < saves(least)) least = i;
    this.copies.drop(this.frames.splice(least, 1)[0].copy);
  }

  /** run moves to an instant, or computes for so many milliseconds. It returns whether it has reached the instant.
   * If time stands still, run drops the last input, goes back to the instant before it, and throws Stuck. */
  run(to, milliseconds = Infinity) {
    try {
      return this.compute(to, milliseconds);
    } catch (e) {
      if (!(e instanceof Stuck) || this.done === 0) throw e;
      const input = this.log[this.done - 1], at = this.now;
      this.log.splice(this.done - 1, 1);
      this.since(input.at);
      this.back(input.at - 1);
      throw stuck(input, at);
    }
  }

  compute(to, milliseconds = Infinity) {
    const began = Session.clock();
    to = Math.round(to); // round, because an instant between two nanoseconds never comes
    let step = this.step;
    while (this.now < to) {
      const next = this.log[this.done], at = Session.clock();
      if (next && next.at <= to && next.at <= this.now + step) {
        this.done++;
        try {
          this.world.replay(next);
        } catch (e) {
          if (!e.errors) throw e;
          this.errors.push(e.message);
        }
        this.work += Session.clock() - at;
        step = firstStep;
      } else {
        this.world.advance(Math.min(step, to - this.now));
        const took = Session.clock() - at;
        step = Math.min(Math.max(took > 4 ? step / 2 : took < 1 ? step * 2 : step, 1e4), 1e9);
        this.work += Math.min(took, longStep);
      }
      this.keepIfDue();
      if (Session.clock() - began > milliseconds) break;
    }
    this.step = step;
    this.end = Math.max(this.end, this.now);
    return this.now >= to;
  }

  /** nearest returns the last keyframe that is not after an instant. */
  nearest(to) { return this.frames.findLast((f) => f.at <= to) ?? this.frames[0]; }

  /** seek moves to any instant. */
  seek(to) {
    const frame = this.nearest(to);
    if (to >= this.now && frame.at <= this.now) {
      this.run(to);
      return;
    }
    this.back(to);
  }

  /** back restores the last keyframe before an instant and computes the rest. */
  back(to) {
    const frame = this.nearest(to);
    restore(this.world, frame.copy);
    this.done = frame.done;
    this.work = this.kept = frame.work;
    this.step = firstStep;
    for (const number of frame.reads) this.world.leave(number);
    this.run(to);
    for (const request of this.reads.values()) this.world.get(request);
  }

  /** do carries out a new input, and drops later inputs from the log. */
  do(input) {
    const at = this.now, began = Session.clock();
    let done;
    try {
      done = this.world.do(input);
    } catch (e) {
      if (!(e instanceof Stuck)) throw e;
      this.back(at);
      throw stuck(input, at);
    }
    this.log.splice(this.done, Infinity, done);
    this.done++;
    this.end = this.now;
    this.since(done.at);
    this.work += Session.clock() - began;
    this.step = firstStep;
    this.keepIfDue();
    return done;
  }

  get(request) {
    this.reads.set(request.number, request);
    this.world.get(request);
  }

  leave(number) {
    if (this.reads.delete(number)) this.world.leave(number);
  }

  check(network) { return this.world.check(this.config.name, network); }
}
