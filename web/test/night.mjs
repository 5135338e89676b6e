// A page is left alone for a night, hidden, while its server stops and starts.

import assert from "node:assert/strict";
import { eventually, feed, open, serve, text } from "./bed.mjs";

export const tests = [];
const test = (name, f) => tests.push([name, f]);

test("a page left open overnight is as small in the morning", async (browser, shared) => {
  await shared.context?.close();
  shared.context = await browser.newContext();
  const page = await shared.context.newPage();
  // Ten hours of the stream as fast as possible: 72,000 ticks, each with changes.
  await feed(page);
  await page.goto(shared.served.url);
  await page.waitForFunction(() => window.source);
  const night = (from, ticks) => page.evaluate(async ({ from, ticks }) => {
    const s = window.source;
    s.give("network", { name: "night",
      nodes: [{ name: "A", router: false }, { name: "B", router: false }],
      links: [{ subnet: "10.0.0.0/24", ends: [{ node: "A", iface: "if0", addr: "10.0.0.1" },
        { node: "B", iface: "if0", addr: "10.0.0.2" }] }] });
    for (let i = from; i < from + ticks; i++) {
      const c = { packets: i, bytes: i * 1000, errors: 0 };
      for (const node of ["A", "B"]) {
        s.give("life", { node, up: true, router: false });
        s.give("interfaces", { node, interfaces: [{ index: 0, name: "if0", addr: "10.0.0.1/24",
          up: i % 100 > 1, udp: "", mtu: 1400, in: c, out: c }], impairments: [] });
      }
      s.give("sockets", { node: "A", sockets: [{ sid: i, local: `10.0.0.1:${i % 60000}`,
        remote: "10.0.0.2:80", state: "ESTABLISHED", recv_q: 0, send_q: 0,
        info: { bytes_acked: i } }] });
      s.give("told", { node: "A", at: i, event: "message", data: { text: `message ${i}` } });
      s.give("sample", { node: "A", sid: 1, sample: { at: new Date(i * 500).toISOString(), info: {} } });
      s.give("tick", { at: i * 500 });
    }
    await s.read();
  }, { from, ticks });
  const size = async () => {
    const cdp = await shared.context.newCDPSession(page);
    await cdp.send("HeapProfiler.collectGarbage");
    const { usedSize } = await cdp.send("Runtime.getHeapUsage");
    const { nodes } = await cdp.send("Memory.getDOMCounters");
    await cdp.detach();
    return { usedSize, nodes };
  };
  await night(1, 6000);
  await page.waitForTimeout(300);
  const evening = await size();
  for (let hour = 0; hour < 10; hour++) await night(6001 + hour * 6600, 6600);
  await page.waitForTimeout(300);
  const morning = await size();
  console.log(`      heap ${evening.usedSize >> 10} → ${morning.usedSize >> 10} KiB, ` +
    `DOM ${evening.nodes} → ${morning.nodes} nodes`);
  assert.ok(morning.usedSize < evening.usedSize * 1.2 + 500_000, "the heap grew");
  assert.ok(morning.nodes < evening.nodes * 1.2 + 200, "the document grew");
});

/** hide has the page believe that nobody sees it, or that somebody does again. */
const hide = (page, hidden) => page.evaluate((hidden) => {
  Object.defineProperty(document, "visibilityState",
    { configurable: true, get: () => (hidden ? "hidden" : "visible") });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

test("a hidden page rests after a minute, and comes back", async (browser, shared) => {
  const page = await open(browser, shared, {}, (page) => page.clock.install());
  await hide(page, true);
  await page.clock.fastForward(58_000);
  assert.notEqual(await page.locator("body").getAttribute("data-service"), "paused", "not yet");
  await hide(page, false);
  await page.clock.fastForward(58_000);
  assert.notEqual(await page.locator("body").getAttribute("data-service"), "paused", "it was seen");
  await hide(page, true);
  await page.clock.fastForward(61_000);
  await eventually("it rests", async () => (await text(page, ".veil")).includes("Paused"));
  const asked = shared.asked.length;
  await page.clock.fastForward(3_600_000);
  assert.equal(shared.asked.length, asked, "who rests asks nothing");
  await hide(page, false);
  await eventually("it is back", async () => {
    await page.clock.runFor(100); // time for some frames
    return (await text(page, ".veil")) === "" && (await text(page, ".status")) === "6 nodes";
  });
  assert.deepEqual(shared.complaints, []);
});

test("a server that ends and begins anew is waited for, and its token asked for", async (browser, shared) => {
  const page = await open(browser, shared);
  const at = new URL(shared.served.url).host;
  await shared.served.stop();
  await eventually("one line says so", async () =>
    (await text(page, ".veil strong")) === "The server does not answer");
  assert.match(await text(page, ".veil"), /open the new address that it prints/);
  assert.doesNotMatch(await text(page, "body"), /`/);
  const entries = await page.locator(".log li").allInnerTexts();
  assert.equal(entries.filter((t) => t.includes("does not answer")).length, 1, entries.join("\n"));
  shared.served = await serve("--listen", at);
  await eventually("the old token is no good", async () =>
    (await text(page, ".veil strong")) .startsWith("Access denied"));
  // in the same browser, because both pages share the stored token
  const other = await shared.context.newPage();
  await other.goto(shared.served.url);
  await other.waitForSelector('[data-service="live"] .node');
  await eventually("it goes on by itself", async () => (await text(page, ".veil")) === "" &&
    (await text(page, ".status")) === "6 nodes");
  await other.close();
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  await eventually("a reload without a token", async () =>
    (await text(page, ".veil")).includes("Access denied"));
  await page.goto(shared.served.url); // this changes only the fragment, so nothing is loaded
  await eventually("the address in the same tab", async () => (await text(page, ".veil")) === "");
  assert.ok(!page.url().includes("token"), page.url());
});

test("a page without the token says what to do", async (browser, shared) => {
  await shared.context?.close();
  shared.context = await browser.newContext();
  const page = await shared.context.newPage();
  await page.goto(new URL(shared.served.url).origin);
  await eventually("it says so", async () => (await text(page, ".veil")).includes("Access denied"));
});
