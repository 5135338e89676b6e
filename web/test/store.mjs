// The store and the colors, without a browser.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { source } from "./source.mjs";

const { Store } = await source("store.ts");

export const tests = [];
const test = (name, f) => tests.push([name, f]);

/** pair is a store that knows of two routers and the link between them. */
function pair() {
  const store = new Store();
  const end = (node, i) => ({ node, iface: "if0", addr: `10.0.0.${i}` });
  store.take("network", { name: "pair", nodes: [{ name: "R1", router: true }, { name: "R2", router: true }],
    links: [{ subnet: "10.0.0.0/24", ends: [end("R1", 1), end("R2", 2)] }] });
  for (const node of ["R1", "R2"]) store.take("life", { node, up: true, router: true });
  return store;
}

const texts = (store) => store.log.items.map((e) => e.text);

function look(store, at, { words = "nothing", received = "nothing", put = 0, passed = 0, up = true } = {}) {
  const none = { lost: 0, queue_dropped: 0, overflowed: 0, waiting: 0 };
  for (const node of ["R1", "R2"]) {
    const out = { packets: put, bytes: put * 1000, errors: 0 };
    store.take("interfaces", { node,
      interfaces: [{ name: "if0", addr: "10.0.0.1/24", up: up || node === "R2", mtu: 1400, in: out, out }],
      impairments: [{ iface: "if0", way: "out", words: node === "R1" ? words : "nothing", seen: put, passed, passed_bytes: passed * 1000,
        ...none, waiting: put - passed },
      { iface: "if0", way: "in", words: node === "R1" ? received : "nothing", seen: put, passed: put, passed_bytes: put * 1000, ...none }] });
  }
  store.take("tick", { at });
}

test("a link is never painted above its rate", () => {
  const store = pair(), [flow] = store.links[0].flows;
  const words = "rate 256kbit limit 32kb";
  const shown = [];
  // Packets enter the queue in a burst of 54, and 32 leave in each second.
  for (let t = 0; t <= 20; t++) {
    look(store, 1e12 + t * 500, { words, put: t < 4 ? 0 : 54 + 16 * (t - 4), passed: t < 4 ? 0 : 16 * (t - 3) });
    shown.push(flow.bits);
  }
  assert.ok(Math.max(...shown) <= 256e3, `${Math.max(...shown)} bit/s`);
  assert.equal(flow.bits, 256e3, "16 packets of 1000 bytes in half a second");
  // A counter that jumps, as with a full token bucket, does not exceed the rate either.
  look(store, 1e12 + 10_500, { words, put: 900, passed: 900 });
  assert.equal(flow.bits, 256e3);
  assert.ok(flow.history.items.every(([, bits]) => bits <= 256e3));
});

test("a rate does not stay when time goes back", () => {
  const store = pair(), [flow] = store.links[0].flows;
  for (let t = 0; t < 8; t++) look(store, 1e12 + t * 500, { put: 100 * t });
  assert.equal(flow.bits, 1.6e6);
  store.take("tick", { at: 1e12 + 1000 }); // the server's clock of a network that stands still
  assert.deepEqual([flow.bits, flow.packets, flow.history.items.length], [0, 0, 0]);
  for (let t = 2; t < 6; t++) look(store, 1e12 + t * 500, { put: 100 * t });
  assert.equal(flow.bits, 1.6e6, "measured again");
});

test("a rate continues while its link is impaired, and while that ends", () => {
  const store = pair(), [flow] = store.links[0].flows;
  for (let t = 0; t < 4; t++) look(store, 1e12 + t * 500, { put: 100 * t });
  assert.equal(flow.bits, 1.6e6);
  look(store, 1e12 + 2000, { words: "delay 1ms", put: 400, passed: 0 });
  assert.equal(flow.bits, 800e3, "what passed in the second half of the second is not known");
  for (let t = 5; t < 9; t++) look(store, 1e12 + t * 500, { words: "delay 1ms", put: 100 * t, passed: 100 * (t - 4) });
  assert.equal(flow.bits, 1.6e6);
  look(store, 1e12 + 4500, { put: 900, passed: 400 });
  assert.ok(flow.bits <= 1.6e6, `${flow.bits}`);
});

test("the settings of a link name rate and queue, and the direction if they differ", () => {
  const store = pair(), [l] = store.links;
  look(store, 1e12, { words: "delay 20ms loss 2% rate 256kbit limit 32kb" });
  assert.deepEqual(store.settings(l), ["from R1: 256 kbit/s · queue 32 KiB", "20 ms · 2 % loss"]);
  look(store, 1e12, { words: "rate 10mbit limit 100 reorder 5%" });
  assert.deepEqual(store.settings(l), ["from R1: 10.0 Mbit/s · queue 100 packets", "reorder"]);
  look(store, 1e12);
  assert.deepEqual(store.settings(l), []);
});

test("the settings of a link include what its receivers add, as `impair IF` sets it", () => {
  const store = pair(), [l] = store.links;
  look(store, 1e12);
  look(store, 1e12, { words: "delay 10ms", received: "delay 10ms" });
  assert.deepEqual(store.settings(l), ["10 ms"], "in both directions");
  assert.deepEqual(texts(store).slice(-2), ["R1 → R2: delay 10ms", "R1 receives from R2: delay 10ms"]);
  look(store, 1e12, { received: "rate 1mbit limit 100" });
  assert.deepEqual(store.settings(l), ["at R1: 1.00 Mbit/s · queue 100 packets"]);
});

test("the log has the cause before its effects, whichever is heard first", () => {
  const neighbor = (node, at, addr, state) => ["told", { node, at, event: "neighbor", data: { neighbor: { addr, state } } }];
  const link = (node, at, up) => ["told", { node, at, event: "link", data: { interface: { name: "if0", up } } }];
  const route = (prefix) => ({ origin: "R", prefix, next_hop: "", iface: "if0", cost: 1 });
  const store = pair();
  look(store, 1e12);
  store.take("routes", { node: "R2", routes: [route("10.0.0.0/24"), route("10.9.0.0/24")] });
  // First the page gets the routes and R2's neighbor, then R1's interface, which a poll
  // also shows.
  store.take("routes", { node: "R2", routes: [route("10.0.0.0/24")] });
  store.take(...neighbor("R2", 1e12 + 300, "10.0.0.1", "down"));
  store.take(...link("R1", 1e12 + 310, false));
  look(store, 1e12 + 500, { up: false });
  assert.deepEqual(texts(store), ["R1 – R2 is cut", "R2: neighbor R1 is down", "R2 lost its route to 10.9.0.0/24"]);
  const times = store.log.items.map((e) => e.at);
  assert.deepEqual(times, [...times].sort((a, b) => a - b), "times do not run backwards");
  // The link is restored a second later. The effects of the cut do not belong to this event.
  store.take(...link("R1", 1e12 + 1300, true));
  look(store, 1e12 + 1500);
  assert.equal(texts(store).at(-1), "R1 – R2 is restored");
  assert.equal(texts(store).length, 4);
  // After the stream is opened again, all events are repeated.
  store.take(...link("R1", 1e12 + 310, false));
  store.take(...link("R1", 1e12 + 1300, true));
  assert.equal(texts(store).length, 4);
  store.take(...link("R1", 1e12 + 2000, false));
  assert.equal(texts(store).at(-1), "R1 – R2 is cut", "again, soon after");
});

test("a color has one meaning", () => {
  const css = readFileSync(new URL("../src/style.css", import.meta.url), "utf8");
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const lab = (hex) => { // in OKLab, 0.02 is a barely visible difference
    const [r, g, b] = [1, 3, 5].map((i) => linear(parseInt(hex.slice(i, i + 2), 16) / 255));
    const [l, m, s] = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005]].map(([x, y, z]) => Math.cbrt(x * r + y * g + z * b));
    return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
      0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
  };
  for (const theme of [/:root \{([^}]*)\}/, /:root\[data-theme="dark"\] \{([^}]*)\}/]) {
    const found = Object.fromEntries([...theme.exec(css)[1].matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map((m) => [m[1], lab(m[2])]));
    const names = ["g0", "g1", "g2", "g3", "g4", "bad", "good", "stress", "again", "sent", "acked", "rtt", "router-line", "host-line"];
    for (const [i, a] of names.entries()) for (const b of names.slice(i + 1)) {
      const far = Math.hypot(...found[a].map((v, k) => v - found[b][k]));
      assert.ok(far > 0.06, `--${a} and --${b}: ${far.toFixed(3)} apart`);
    }
  }
});

test("a stream that is opened again makes no spike and no dip", () => {
  const store = pair(), [flow] = store.links[0].flows;
  for (let t = 0; t < 6; t++) look(store, 1e12 + t * 500, { put: 100 * t });
  store.stale = true; // the first tick comes before the counters are read again
  look(store, 1e12 + 2800, { put: 500 });
  look(store, 1e12 + 2800, { put: 500 });
  look(store, 1e12 + 3300, { put: 660 });
  assert.ok(flow.history.items.every(([, bits]) => bits > 1.5e6 && bits < 1.7e6), `${flow.history.items}`);
  assert.equal(new Set(flow.history.items.map(([at]) => at)).size, flow.history.items.length);
});

test("a jump back in time forgets what comes later", () => {
  const store = pair();
  const at = (ms) => new Date(ms).toISOString();
  for (const ms of [1000, 2000, 3000]) {
    store.take("sample", { node: "R1", sid: 1, sample: { at: at(ms), info: {} } });
    store.take("segments", { of: "R1/1", node: "R1", sid: 1, segments: [{ at: at(ms) }] });
    store.take("told", { node: "R1", at: ms, event: "message", data: { text: `message ${ms}` } });
  }
  store.take("sample", { node: "R1", sid: 1, over: "closed" });
  look(store, 4000);
  const f = store.followed.get("R1/1");
  assert.equal(f.over, "closed");
  look(store, 2500);
  assert.equal(f.over, "", "the connection is open again");
  assert.deepEqual([f.samples.items.length, f.segments.items.length], [2, 2]);
  assert.ok(!texts(store).some((t) => t.includes("3000")), texts(store).join());
  assert.ok(texts(store).some((t) => t.includes("2000")), texts(store).join());
});

test("the impairments of a link say at which end they are", () => {
  const store = pair(), [link] = store.links;
  look(store, 1000, { words: "delay 10ms", received: "loss 5% rate 1mbit" });
  assert.deepEqual(store.settings(link), ["from R1: 10 ms", "at R1: 1.00 Mbit/s", "5 % loss"]);
});
