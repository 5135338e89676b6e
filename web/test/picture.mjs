// Pictures of networks of many shapes. The tests feed the page with a stream of their own and check
// positions.

import assert from "node:assert/strict";
import { eventually, feed, shot } from "./bed.mjs";

export const tests = [];
const test = (name, f) => tests.push([name, f]);

/** network is one of links between names, in which hosts begin with a lower-case letter. With a prefix it has IPv6, too. */
function network(name, pairs, ipv6) {
  const names = [...new Set(pairs.flat())];
  const faces = Object.fromEntries(names.map((n) => [n, 0]));
  return {
    name, nodes: names.map((n) => ({ name: n, router: n[0] < "a" })),
    links: pairs.map((ends, i) => ({
      subnet: `10.${i}.0.0/24`,
      ends: ends.map((node, k) => ({ node, iface: `if${faces[node]++}`, addr: `10.${i}.0.${k + 1}`,
        ...(ipv6 && { ipv6: [`${ipv6}:${i + 1}::${k + 1}/64`, `fe80::${k + 1}/64`] }) })),
    })),
  };
}

const grid = (n) => {
  const at = (y, x) => `R${y + 1}-${x + 1}`;
  const pairs = [["a", at(0, 0)], ["b", at(n - 1, n - 1)]];
  for (let y = 0; y < n; y++) for (let x = 0; x < n; x++) {
    if (x + 1 < n) pairs.push([at(y, x), at(y, x + 1)]);
    if (y + 1 < n) pairs.push([at(y, x), at(y + 1, x)]);
  }
  return network("grid", pairs);
};

const tree = network("tree", [["R1", "R2"], ["R1", "R3"], ["R2", "R4"], ["R2", "R5"], ["R3", "R6"], ["R3", "R7"],
  ["a", "R4"], ["b", "R4"], ["c", "R5"], ["d", "R5"], ["e", "R6"], ["f", "R6"], ["g", "R7"], ["h", "R7"]]);
const chance = network("chance", [["a", "R1"], ["b", "R7"], ["R1", "R2"], ["R1", "R4"], ["R1", "R5"], ["R1", "R6"],
  ["R2", "R3"], ["R2", "R6"], ["R2", "R8"], ["R2", "R9"], ["R3", "R7"], ["R3", "R12"], ["R4", "R9"],
  ["R6", "R10"], ["R6", "R11"], ["R7", "R9"], ["R7", "R12"], ["R9", "R10"], ["R9", "R12"], ["R10", "R11"]]);
const long = network("a-network-with-a-rather-long-name", [["headquarters-amsterdam", "Backbone-Router-Frankfurt"],
  ["Backbone-Router-Frankfurt", "warehouse-rotterdam"], ["Backbone-Router-Frankfurt", "Edge_7"], ["Edge_7", "x"]]);
const dual = network("dual", [["a", "R1"], ["b", "R2"], ["c", "R3"], ["d", "R4"], ["R1", "R2"], ["R2", "R3"],
  ["R3", "R4"], ["R4", "R1"], ["R1", "R3"], ["R2", "R4"]], "fd12:3456:789a");
const lan = network("lan", [["a", "b", "c", "R1"], ["R1", "d"]]);

/** tell has the page hear of a network: every link busy, some impaired, one node down. */
async function tell(page, shape, ticks = 4) {
  await page.waitForFunction(() => window.source);
  await page.evaluate(async ({ shape, ticks }) => {
    const s = window.source, dead = shape.nodes.at(-1).name;
    s.give("network", shape);
    for (let t = 0; t < ticks; t++) {
      for (const { name, router } of shape.nodes) {
        s.give("life", name === dead ? { node: name, up: false, problem: `${name}: the node does not answer` }
          : { node: name, up: true, router });
        if (name === dead) continue;
        const mine = shape.links.flatMap((l) => l.ends.filter((e) => e.node === name));
        const c = { packets: t * 1000, bytes: t * 1_234_567, errors: 0 };
        s.give("interfaces", { node: name, interfaces: mine.map((e, index) => ({
          index, name: e.iface, addr: `${e.addr}/24`, ipv6: e.ipv6, up: true, udp: "", mtu: 1400, in: c, out: c,
        })), impairments: mine.map((e, i) => ({
          iface: e.iface, way: "out", words: i === 0 ? "delay 20ms loss 1.5% rate 50mbit limit 500000b" : "nothing",
          seen: 0, passed: 0, lost: 0, queue_dropped: 0, overflowed: 0, corrupted: 0, inside: 0, waiting: 0, passed_bytes: t * 1_234_567,
        })) });
      }
      s.give("tick", { at: 1e12 + t * 500 });
    }
    await s.read();
  }, { shape, ticks });
}

async function show(browser, shared, options, shape) {
  await shared.context?.close();
  shared.context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
  const page = shared.page = await shared.context.newPage();
  await feed(page);
  await page.goto(shared.served.url);
  await tell(page, shape);
  await eventually("all nodes are drawn", async () =>
    (await page.locator(".graph .node").count()) === shape.nodes.length);
  return page;
}

/** collisions are what stands on something else in the picture, or outside of it. */
const collisions = (page) => page.evaluate(() => {
  const stage = document.querySelector(".graph").getBoundingClientRect();
  const legend = document.querySelector(".over").getBoundingClientRect();
  const box = (e) => {
    const b = e.getBoundingClientRect();
    return { l: b.left + 1, r: b.right - 1, t: b.top + 2, b: b.bottom - 3 };
  };
  const meet = (a, b) => a.l < b.r && b.l < a.r && a.t < b.b && b.t < a.b;
  const bodies = [...document.querySelectorAll(".node")].map((e) =>
    ({ what: e.dataset.what, on: e, round: e.querySelector("circle.body"), ...box(e.querySelector(".body")) }));
  const touch = (a, b) => { // b may be a circle
    if (!b.round) return meet(a, b);
    const x = (b.l + b.r) / 2, y = (b.t + b.b) / 2;
    const far = Math.hypot(x - Math.min(a.r, Math.max(a.l, x)), y - Math.min(a.b, Math.max(a.t, y)));
    return far < (b.r - b.l) / 2;
  };
  const texts = [...document.querySelectorAll(".graph text")].filter((e) => !e.matches(".costText")).map((e) =>
    ({ what: `"${e.textContent}"`, on: e.closest(".node"), group: e.parentElement, ...box(e) }));
  const bad = [];
  for (const [i, a] of texts.entries()) {
    if (a.l < stage.left || a.r > stage.right || a.t < stage.top) bad.push(`${a.what} is cut off`);
    if (meet(a, { l: legend.left, r: legend.right, t: legend.top + 4, b: legend.bottom })) bad.push(`${a.what} is on the legend`);
    for (const b of texts.slice(i + 1)) if (a.group !== b.group && meet(a, b)) bad.push(`${a.what} is on ${b.what}`);
    for (const b of bodies) if (a.on !== b.on && touch(a, b)) bad.push(`${a.what} is on ${b.what}`);
  }
  for (const [i, a] of bodies.entries()) {
    for (const b of bodies.slice(i + 1)) if (meet(a, b)) bad.push(`${a.what} is on ${b.what}`);
  }
  // A line that crosses a node at which it does not end.
  const near = stage.width < 500 ? 8 : 20;
  for (const e of document.querySelectorAll(".edge")) {
    for (const line of e.querySelectorAll(".line")) {
      const [x1, y1, x2, y2] = line.getAttribute("d").match(/[\d.-]+/g).map(Number);
      const long = Math.hypot(x2 - x1, y2 - y1);
      for (const n of document.querySelectorAll(".node")) {
        const [x, y] = n.getAttribute("transform").match(/[\d.-]+/g).map(Number);
        const along = ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / long;
        const aside = Math.abs((x - x1) * (y2 - y1) - (y - y1) * (x2 - x1)) / long;
        if (along > 2 && along < long - 2 && aside < near) {
          bad.push(`${e.getAttribute("aria-label").split(",")[0]} runs through ${n.dataset.what}`);
        }
      }
    }
  }
  return { bad, figures: document.querySelectorAll(".edge .figure").length };
});

test("nothing stands on anything else, in networks of every shape", async (browser, shared) => {
  const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
  for (const shape of [grid(4), tree, chance, long, lan, dual]) {
    for (const [size, options] of [["desk", {}], ["phone", phone]]) {
      const page = await show(browser, shared, options, shape);
      await eventually("figures", () => page.locator(".edge .figure").count());
      await shot(page, `shape-${shape.name.slice(0, 10)}-${size}`);
      const { bad, figures } = await collisions(page);
      assert.deepEqual(bad, [], `${shape.name}, ${size}`);
      assert.ok(figures >= Math.min(3, shape.links.length / 2), `${shape.name}, ${size}: ${figures} figures`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${shape.name}, ${size}: ${wide} pixels too wide`);
    }
  }
});

test("prefixes of both families are drawn where there is room, and all addresses appear on hover", async (
  browser, shared,
) => {
  const seen = {};
  for (const [size, viewport] of [["desk", { width: 1280, height: 800 }], ["phone", { width: 390, height: 844 }]]) {
    const page = await show(browser, shared, { viewport }, dual);
    // without traffic and impairments, so that prefixes have room
    await page.evaluate(async (shape) => {
      for (const l of shape.links) for (const { node, iface, addr, ipv6 } of l.ends) {
        const c = { packets: 0, bytes: 0, errors: 0 };
        window.source.give("life", { node, up: true, router: node[0] < "a" });
        window.source.give("interfaces", { node, impairments: [], interfaces: shape.links.flatMap((x) => x.ends)
          .filter((e) => e.node === node).map((e, index) => ({ index, name: e.iface, addr: `${e.addr}/24`, ipv6: e.ipv6, up: true, udp: "", mtu: 1400, in: c, out: c })) });
      }
      for (let t = 0; t < 5; t++) window.source.give("tick", { at: 2e12 + 500 * t });
      await window.source.read();
    }, dual);
    seen[size] = await eventually("prefixes", async () => {
      const all = await page.locator(".edge .prefix").allTextContents();
      return all.some((x) => x.includes("::")) && all;
    });
    assert.deepEqual((await collisions(page)).bad, [], size);
    const hover = await page.locator(".edge title").allTextContents();
    assert.ok(hover.some((x) => x.includes("a if0: 10.0.0.1/24, fd12:3456:789a:1::1/64, fe80::1/64")), hover[0]);
    await shot(page, `dual-prefixes-${size}`);
  }
  assert.ok(seen.desk.includes("fd12:3456:789a:1::/64"), seen.desk.join(" "));
  assert.ok(seen.phone.some((x) => /^…:\w+::\/64$/.test(x)), seen.phone.join(" "));
});

test("a grid stands upright, and its rows are rows", async (browser, shared) => {
  const page = await show(browser, shared, {}, grid(4));
  const at = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".node")].map((n) =>
    [n.dataset.what.slice(5), n.getAttribute("transform").match(/[\d.-]+/g).map(Number)])));
  for (let y = 1; y <= 4; y++) {
    const [left, right] = [at[`R${y}-1`], at[`R${y}-4`]];
    assert.ok(right[0] - left[0] > 5 * Math.abs(right[1] - left[1]), `row ${y}: ${left} to ${right}`);
  }
  assert.ok(at["R4-1"][1] > at["R1-1"][1], "from above to below");
});

test("a hundred nodes find room on a phone, though not their names", async (browser, shared) => {
  const page = await show(browser, shared, { viewport: { width: 390, height: 844 } }, grid(10));
  const { bad } = await collisions(page);
  assert.deepEqual(bad.filter((b) => /^node:.*on node:/.test(b)), []);
  assert.equal(await page.locator(".graph .name").count(), 0);
  assert.equal(await page.locator('.graph [aria-label^="Router R7-7"]').count(), 1, "who does not see it hears them");
  await shot(page, "shape-hundred-phone");
});

test("a link is picked by the words beside it", async (browser, shared) => {
  const page = await show(browser, shared, {}, tree);
  const edge = page.locator(".edge", { has: page.locator(".figure") }).first();
  const name = (await edge.getAttribute("aria-label")).split(",")[0];
  await edge.locator(".figure").click();
  assert.equal(`Link ${await page.locator("h2").innerText()}`, name);
});

test("an arrow of the ladder leaves when its segment does, though that be above", async (browser, shared) => {
  const page = await show(browser, shared, {}, lan);
  const listen = async (what) => {
    await page.evaluate((what) => {
      window.source = null; // the followed connection changes, so the page opens another stream
      location.hash = what;
    }, what);
    await page.waitForFunction(() => window.source);
  };
  const socket = (sid, local, remote, sent) => ({ sid, local, remote, state: "ESTABLISHED", recv_q: 0, send_q: 0,
    info: { recovery: "open", congestion: "cubic", rtt_ns: 1, min_rtt_ns: 1, mss: 1000, cwnd: 1, ssthresh: 0, pipe: 0,
      delivery_rate: 0, retransmits: 0, timeouts: 0, limited: "app", bytes_acked: 0, bytes_sent: sent } });
  await page.evaluate(([a, b]) => {
    window.source.give("sockets", { node: "a", sockets: [a] });
    window.source.give("sockets", { node: "b", sockets: [b] });
    window.source.give("tick", { at: 2e12 });
    return window.source.read();
  }, [socket(1, "10.0.0.1:20000", "10.0.0.2:80", 9000), socket(2, "10.0.0.2:80", "10.0.0.1:20000", 0)]);
  await listen("#/connection:a/1");
  // Sixty segments, one per millisecond, each 30 ms in transit: at the edge of the picture are
  // thirty.
  await page.evaluate(() => {
    const seen = (sent, late) => Array.from({ length: 60 }, (_, i) => ({
      at: new Date(1e12 + i + late).toISOString(), sent, flags: "A", seq: 1000 * i, ack: 1, length: 1000, window: 1, wire_seq: i,
    }));
    window.source.give("segments", { of: "a/1", node: "a", sid: 1, segments: seen(true, 0) });
    window.source.give("segments", { of: "a/1", node: "b", sid: 2, segments: seen(false, 30) });
    window.source.give("tick", { at: 2e12 + 500 });
    return window.source.read();
  });
  const { from, times } = await eventually("a ladder", () => page.evaluate(() => {
    const shafts = [...document.querySelectorAll(".ladder .shaft")].map((e) => e.getAttribute("d"));
    return shafts.length > 20 && {
      from: shafts.map((d) => /M(\S+) (\S+)L(\S+) (\S+)/.exec(d).slice(1).map(Number)),
      times: [...document.querySelectorAll(".ladder + .hidden tbody tr td:first-child")].map((e) => Number(e.textContent)),
    };
  }));
  await page.locator("section.ladder").scrollIntoViewIfNeeded();
  await shot(page, "ladder-above");
  const edge = Math.min(...from.map(([, y]) => y)), above = from.filter(([, y]) => y === edge);
  assert.ok(above.length > 10, `${above.length} have left before`);
  assert.equal(new Set(above.map(([x]) => x)).size, above.length, "each goes over the edge somewhere else");
  assert.ok(above.every(([x, , to]) => x > 198 && x < to), above.join(" | "));
  assert.deepEqual(times, [...times].sort((a, b) => a - b), "the newest is last");
  assert.ok(times[0] < 0 && times.length === from.length, times.join(" "));
});

test("names stand in the order of their numbers", async (browser, shared) => {
  const page = await show(browser, shared, {}, chance);
  const names = await page.locator(".nodes .title").allInnerTexts();
  assert.deepEqual(names, ["a", "b", ...Array.from({ length: 12 }, (_, i) => `R${i + 1}`)]);
});

test("of many connections the first are listed, and all by their ports", async (browser, shared) => {
  const page = await show(browser, shared, {}, chance);
  await page.evaluate(() => {
    const socket = (i) => ({ sid: i, local: `10.0.0.1:${20000 + i}`, remote: "10.1.0.2:80", state: i ? "ESTABLISHED" : "TIME_WAIT",
      recv_q: 0, send_q: 0, info: { bytes_acked: i, bytes_sent: i } });
    window.source.give("sockets", { node: "a", sockets: Array.from({ length: 60 }, (_, i) => socket(i)) });
    window.source.give("tick", { at: 2e12 });
    return window.source.read();
  });
  await eventually("a list", async () => (await page.locator(".connections .item").count()) === 8);
  await page.click("text=All 60 connections");
  assert.equal(await page.locator("h2").innerText(), "Connections");
  const titles = await page.locator(".list .title").allInnerTexts();
  assert.equal(new Set(titles).size, 60);
  assert.match(titles[0], /^a → R7:80 from 20001$/);
  assert.match(titles.at(-1), /from 20000$/, "who ends is last");
});
