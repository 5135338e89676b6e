// The sliders of a link, without a browser: the value that a position sends to the nodes, and the
// position that their answer results in.

import assert from "node:assert/strict";
import { source } from "./source.mjs";

const { Store } = await source("store.ts");
const { turn } = await source("words.ts");
const { chooseDirection, forget, linkView, turnKnob } = await source("linkview.ts");

export const tests = [];
const test = (name, f) => tests.push([name, f]);

test("a slider at its end removes only its own arguments", async () => {
  assert.equal(turn("delay 5ms drop 3", "delay", 0), "drop 3");
  assert.equal(turn("loss 2% drop 3,7-9 rate 1mbit", "loss", 0), "drop 3,7-9 rate 1mbit");
});

class Element {
  attributes = {};
  children = [];
  constructor(tag) { this.tag = tag; }
  setAttribute(name, value) { this.attributes[name] = value; }
  append(...children) { this.children.push(...children); }
}

/** stand gives a test what the page has of a browser, and takes it away again. Timers fire at once. */
function stand(name, check) {
  test(name, async () => {
    const sent = [], store = new Store();
    const own = {
      Node: Element, document: { createElement: (tag) => new Element(tag) }, localStorage: { getItem: () => "" },
      window: { setTimeout: (f) => void f() }, setTimeout: (f) => void f(),
      fetch: async (path, how) => {
        sent.push([path.split("/")[3], JSON.parse(how.body).words]);
        return new Response(null, { status: 204 });
      },
    };
    const was = Object.keys(own).map((k) => [k, Object.getOwnPropertyDescriptor(globalThis, k)]);
    for (const [k, value] of Object.entries(own)) {
      Object.defineProperty(globalThis, k, { value, configurable: true, writable: true });
    }
    try {
      const end = (node, i) => ({ node, iface: "if0", addr: `10.0.0.${i}` });
      store.take("network", { name: "pair", nodes: [{ name: "R1", router: true }, { name: "R2", router: true }],
        links: [{ subnet: "10.0.0.0/24", ends: [end("R1", 1), end("R2", 2)] }] });
      report(store, "nothing", "nothing");
      await check(store, sent);
    } finally {
      forget();
      for (const [k, d] of was) d ? Object.defineProperty(globalThis, k, d) : delete globalThis[k];
    }
  });
}

/** report takes what R1 and R2 say that their halves of the link do. */
function report(store, ...words) {
  const c = { packets: 0, bytes: 0, errors: 0 };
  for (const [i, node] of ["R1", "R2"].entries()) {
    store.take("life", { node, up: true, router: true });
    store.take("interfaces", { node, interfaces: [{ name: "if0", addr: `10.0.0.${i + 1}/24`, up: true, mtu: 1400, in: c, out: c }],
      impairments: [{ iface: "if0", way: "out", words: words[i], seen: 0, passed: 0, passed_bytes: 0, lost: 0,
        queue_dropped: 0, overflowed: 0, waiting: 0 }] });
  }
}

/** slider is what the page shows of one: its last position, the current one, and the text. */
function slider(store, knob) {
  const find = (e) => Array.isArray(e) ? e.map(find).find(Boolean)
    : e?.attributes?.["data-knob"] === knob ? e : find(e?.children ?? []) ;
  const a = find(linkView({ store }, store.links[0])).attributes;
  return { last: Number(a.max), at: Number(a.value), text: a["aria-valuetext"] };
}

async function move(store, knob, position) {
  turnKnob(store, { value: String(position), dataset: { knob, link: String(store.links[0].id) } });
  for (let i = 0; i < 20; i++) await null; // the answers of the nodes
}

const percents = [0, 0.1, 0.2, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50];
const delays = [0, 1, 2, 5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000];
const rates = ["64.0 kbit/s", "128 kbit/s", "256 kbit/s", "512 kbit/s", "1.00 Mbit/s", "2.00 Mbit/s", "5.00 Mbit/s", "10.0 Mbit/s",
  "20.0 Mbit/s", "50.0 Mbit/s", "100 Mbit/s", "200 Mbit/s", "500 Mbit/s", "1.00 Gbit/s", "no limit"];
const bits = [64e3, 128e3, 256e3, 512e3, 1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6, 1e9];

for (const [knob, steps] of [
  ["loss", percents.map((p) => [`${p} %`, p ? `loss ${p}%` : "off"])],
  ["delay", delays.map((d) => [d ? `${d} ms` : "none", d ? `delay ${d}ms` : "off"])],
  ["rate", rates.map((text, i) => [text, bits[i] ? `rate ${bits[i]}bit` : "off"])],
]) {
  stand(`each position of the ${knob} slider sends what it shows`, async (store, sent) => {
    assert.equal(slider(store, knob).last, steps.length - 1);
    for (const [i, [text, words]] of steps.entries()) {
      sent.length = 0;
      await move(store, knob, i);
      assert.deepEqual(sent, [["R1", words], ["R2", words]], `position ${i}`);
      const now = words === "off" ? "nothing" : words;
      report(store, now, now);
      assert.deepEqual(slider(store, knob), { last: steps.length - 1, at: i, text }, `after ${words}`);
    }
  });
}

stand("a value between two steps stands at the lower one and is named exactly", async (store) => {
  const words = "delay 22.5ms loss 1.5% rate 3mbit limit 100";
  report(store, words, words);
  assert.deepEqual([slider(store, "loss"), slider(store, "delay"), slider(store, "rate")].map(({ at, text }) => [at, text]),
    [[4, "1.5 %"], [6, "22.5 ms"], [5, "3.00 Mbit/s"]]);
  report(store, "loss 90% delay 5s rate 1kbit", "loss 90% delay 5s rate 1kbit");
  assert.deepEqual([slider(store, "loss").at, slider(store, "delay").at, slider(store, "rate").at], [14, 15, 0], "beyond the ends");
});

stand("a slider turns one direction, or both and keeps what else is set", async (store, sent) => {
  report(store, "delay 20ms loss 1%", "loss 2% seed 7");
  assert.equal(slider(store, "loss").text, "mixed");
  await move(store, "loss", 9);
  assert.deepEqual(sent.splice(0), [["R1", "delay 20ms loss 10%"], ["R2", "loss 10% seed 7"]]);
  chooseDirection(store, "1");
  assert.equal(slider(store, "loss").text, "2 %");
  await move(store, "delay", 1);
  assert.deepEqual(sent, [["R2", "loss 2% seed 7 delay 1ms"]]);
});

stand("the complete settings name the direction if the directions differ", async (store) => {
  const shown = () => {
    const find = (e) => Array.isArray(e) ? e.map(find).find(Boolean) : e?.attributes?.class === "words" ? e : find(e?.children ?? []);
    const text = (e) => typeof e === "string" ? e : [e.children].flat(9).map(text).join("");
    return find(linkView({ store }, store.links[0]))?.children.flat(9).map(text);
  };
  assert.equal(shown(), undefined);
  report(store, "loss 1%", "loss 1%");
  assert.deepEqual(shown(), ["loss 1%"]);
  report(store, "loss 2% corrupt 1%", "nothing");
  store.nodes.get("R2").faces.get("if0").in = { words: "loss 5%" };
  assert.deepEqual(shown(), ["R1 → R2: loss 2% corrupt 1%", "When R2 receives: loss 5%"]);
  chooseDirection(store, "1");
  assert.equal(shown(), undefined, "R2 → R1 has none");
});
