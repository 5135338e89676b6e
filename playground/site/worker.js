// The worker runs the session in real time and answers the page. A message to the worker has one
// key, and an id if the sender expects an answer.

import { Joined } from "./join.js";
import { load } from "./load.js";
import { Session } from "./session.js";
import { World, WorldError } from "./world.js";
import { Exit, Stuck } from "./wasi.js";

const batch = 30, period = 16, report = 100, tick = 1000; // in milliseconds
let module, session, speed = 0, last = 0, reported = 0, ticked = 0, slow = 1;
let opens = 0;
let checker; // an instance that only checks network files and scripts
let state = {};
let heard = 0; // the page has all output up to this time

const hear = {
  output({ node, text }) {
    const at = session?.now ?? 0;
    if (!session || at > heard) postMessage({ output: { node, text, at } });
  },
  head: (number, head) => postMessage({ head: { number, ...head } }),
  body: (number, bytes) => postMessage({ body: { number, bytes } }, [bytes.buffer]),
  end: (number) => {
    session?.reads.delete(number);
    postMessage({ end: number });
  },
};

function tell(full) {
  const now = session.world.state();
  const at = now.first_retransmit;
  if (at > 0 && state.first_retransmit !== at && !session.real) {
    postMessage({ mark: { at, text: "first retransmission" } });
  }
  state = now;
  postMessage({ state: { ...now, at: session.now, end: session.end, speed, slow, ...full } });
}

/** ticks keep the page of the network alive while time stands still. */
function ticks() {
  const text = `event: tick\ndata: {"at":${946684800000 + Math.floor(session.now / 1e6)}}\n\n`;
  for (const [number, request] of session.reads) {
    if (request.path.startsWith("/v1/stream")) hear.body(number, new TextEncoder().encode(text));
  }
}

function loop() {
  const began = performance.now();
  turn();
  setTimeout(loop, Math.max(0, period - (performance.now() - began)));
}

function turn() {
  if (!session) return;
  const now = performance.now();
  const dt = Math.min(now - last, 100); // after a sleep, a tab continues where it was
  last = now;
  try {
    if (speed > 0) {
      const to = session.now + dt * 1e6 * speed;
      slow = session.run(to, batch) ? 1 : Math.max(0.01, slow * 0.9);
    }
    if (now - reported > report && speed > 0) {
      reported = now;
      tell();
    }
    if (now - ticked > tick) {
      ticked = now;
      ticks();
    }
  } catch (e) {
    if (e instanceof Stuck) removed(e);
    else crashed(e);
  }
}

/** removed reports that the session has dropped an input. */
function removed(e) {
  postMessage({ changed: session.now });
  postMessage({ problem: e.message });
  tell();
}

function crashed(e) {
  session = null;
  postMessage({ crashed: e instanceof Exit ? e.message.split("\n")[0] : String(e) });
}

/** begin replaces the session. */
function begin(opened) {
  if (opens++ > 0) postMessage({ opened: true });
  session?.close?.();
  session = opened;
  heard = 0;
  state = {};
  speed = 0;
}

const answers = {
  open({ config, at = 0 }) {
    const opened = new Session(module, hear, config); // if this fails, the session before remains
    begin(opened);
    try {
      session.run(at);
    } catch (e) {
      if (!(e instanceof Stuck)) throw e;
      session.errors.push(e.message);
    }
    tell();
    return { nodes: session.nodes, errors: session.errors };
  },
  async join({ address }) {
    const joined = await Joined.open(module, hear, address, (e) => {
      if (joined === session) postMessage({ problem: e.message });
    });
    begin(joined);
    tell();
    return { nodes: session.nodes, errors: [], network: session.config.network };
  },
  check: ({ name = "network", network, script }) => (checker ??= new World(module)).check(name, network ?? script),
  speed(x) {
    speed = session?.real ? 1 : x;
    last = performance.now();
    if (session) tell();
  },
  step(ns) {
    session.run(session.now + ns);
    tell();
  },
  seek(to) {
    const began = performance.now();
    state = {};
    heard = Math.max(heard, session.end);
    session.seek(to);
    tell({ took: performance.now() - began });
    ticks();
    return { took: performance.now() - began };
  },
  input(input) {
    heard = session.now;
    postMessage({ changed: heard });
    const done = session.do(input);
    if (speed === 0) tell();
    return done;
  },
  get: (request) => session?.get(request),
  leave: (number) => session?.leave(number),
  complete: ({ node, line }) => session.world.complete(node, line),
  list: () => session.world.list(),
  file: ({ node, name }) => session.world.file(node, name),
  log() {
    if (session.real) throw new Error("A link cannot hold a network of other processes.");
    return { ...session.config, inputs: session.log, at: session.now };
  },
};

onmessage = async ({ data }) => {
  const { id, ...rest } = data;
  const [name, value] = Object.entries(rest)[0];
  try {
    await ready;
    const answer = await answers[name](value);
    if (id) postMessage({ id, answer });
  } catch (e) {
    if (id) postMessage({ id, error: e.message, errors: e.errors });
    if (e instanceof Exit) crashed(e);
    else if (e instanceof Stuck) removed(e);
    else if (!id && !(e instanceof WorldError)) postMessage({ crashed: String(e) });
  }
};

const ready = load("tidepool.wasm.br").then((m) => { module = m; });
ready.then(() => postMessage({ ready: true }), (e) => postMessage({ crashed: `The program did not load: ${e.message}` }));
loop();
