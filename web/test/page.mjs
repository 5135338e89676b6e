// What a person does with the page, and what has to come of it.

import assert from "node:assert/strict";
import { artefacts, eventually, net, serve } from "./bed.mjs";

export const tests = [];
const test = (name, f) => tests.push([name, f]);

/** open shows the page, and notes what it asks for and complains of. */
async function open(browser, shared, options = {}) {
  await shared.context?.close();
  shared.context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await shared.context.newPage();
  shared.page = page;
  shared.asked = [];
  shared.complaints = [];
  page.on("request", (r) => shared.asked.push(r.url()));
  page.on("pageerror", (e) => shared.complaints.push(e.message));
  page.on("console", (m) => {
    if (m.type() === "error" || m.type() === "warning") shared.complaints.push(m.text());
  });
  await page.goto(shared.served.url);
  await page.waitForSelector('[data-service="live"] .node');
  return page;
}

const shot = (page, name) => page.screenshot({ path: `${artefacts}/${name}.png` });
const text = (page, selector) => page.locator(selector).innerText();

/** pick presses Enter on a part of the picture. */
async function pick(page, what) {
  await page.locator(`.graph [data-what="${what}"]`).focus();
  await page.keyboard.press("Enter");
}

async function linkId(page, name) {
  const label = await eventually(`a link ${name}`, () => page.evaluate((name) =>
    [...document.querySelectorAll(".edge")]
      .find((e) => e.getAttribute("aria-label").startsWith(`Link ${name}`))
      ?.getAttribute("data-what"), name));
  return label;
}

async function status(node, what) {
  const { stdout } = await net("exec", node, what, "--json");
  return stdout;
}

test("a network comes up, and its page shows it", async (browser, shared) => {
  await net("up", "nets/ring");
  shared.served = await serve();
  const page = await open(browser, shared);
  assert.equal(await page.locator(".node").count(), 6);
  assert.equal(await page.locator(".edge").count(), 6);
  assert.equal(await text(page, "h1"), "ring");
  await eventually("six nodes are up", async () => (await text(page, ".status")) === "6 nodes");
  await shot(page, "ring-idle-light");
});

test("the token leaves the address bar, and a reload needs none", async (_, { page, context }) => {
  assert.ok(!page.url().includes("token"), page.url());
  const [cookie] = await context.cookies();
  assert.ok(cookie.httpOnly);
  assert.equal(cookie.sameSite, "Strict");
  await page.reload();
  await page.waitForSelector('[data-service="live"] .node');
});

test("a click on a node shows its interfaces, routes and sockets", async (_, { page }) => {
  await page.click('.graph [data-what="node:R1"] .body');
  assert.equal(await text(page, "h2"), "R1");
  await eventually("six routes", async () =>
    (await page.locator("section.routes tbody tr").count()) === 6);
  assert.equal(await page.locator("section.interfaces tbody tr").count(), 3);
  await page.waitForSelector("section.sockets");
  await shot(page, "ring-node-light");
  await page.keyboard.press("Escape");
  await page.waitForSelector("section.connections");
});

test("a ping starts from the page", async (_, { page }) => {
  await page.click('nav [data-arg="ping"]');
  await page.selectOption("#task-count", "1");
  await page.click("form button[type=submit]");
  await eventually("an answer", async () => (await text(page, ".task")).includes("1 of 1"));
});

test("a chart has room for all of its words", async (_, { page }) => {
  await pick(page, await linkId(page, "R1 – R2"));
  await page.waitForSelector(".chart canvas");
  const ink = await eventually("something is drawn", () => page.evaluate(() => {
    const c = document.querySelector(".chart canvas"), edge = 5 * devicePixelRatio;
    const copy = Object.assign(document.createElement("canvas"), { width: c.width, height: c.height });
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(c, 0, 0);
    const inked = (x, w) => pen.getImageData(x, 0, w, c.height).data.some((v) => v);
    return inked(0, c.width) && [inked(c.width - edge, edge), inked(0, edge)];
  }));
  assert.deepEqual(ink, [false, false], "at the right, at the left");
  await page.keyboard.press("Escape");
});

test("the slider sets loss", async (_, { page }) => {
  const what = await linkId(page, "A – R1");
  await pick(page, what);
  const slider = page.locator("#knob-loss");
  await slider.focus();
  for (let i = 0; i < 5; i++) await page.keyboard.press("ArrowRight");
  await eventually("the slider says 2 %", async () =>
    (await slider.getAttribute("aria-valuetext")) === "2 %");
  await eventually("the node says so", async () =>
    (await status("A", "impair")).includes("loss 2%"));
  await page.locator("#knob-rate").focus();
  await page.keyboard.press("End");
  for (let i = 0; i < 6; i++) await page.keyboard.press("ArrowLeft");
  await eventually("a rate, beside the loss", async () =>
    /loss 2% rate 20mbit/i.test(await status("A", "impair")));
  await page.locator("#knob-delay").focus();
  for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowRight");
  await eventually("a delay, too", async () =>
    /delay 10ms/.test(await status("R1", "impair")));
  await shot(page, "ring-link-light");
});

test("a file moves, and its connection shows what it does", async (_, { page }) => {
  await page.click('nav [data-arg="transfer"]');
  await page.selectOption("#task-size", "10000000");
  await page.click("form button[type=submit]");
  await eventually("a connection", () => page.locator(".task button.text").count());
  await page.click(".task button.text");
  await eventually("its figures", async () => (await text(page, ".figures")).includes("cubic"));
  await eventually("drawn curves", async () =>
    (await page.locator('[data-chart^="windows"]').getAttribute("aria-label")).includes("cwnd"));
  await eventually("a ladder of segments", () => page.locator(".ladder .rung.right").count());
  await eventually("and acknowledgments", () => page.locator(".ladder .rung.left").count());
  await page.waitForTimeout(1500);
  await shot(page, "ring-connection-light");
  await page.locator("table.ladder").scrollIntoViewIfNeeded();
  await shot(page, "ring-ladder-light");
  assert.ok(await page.locator(".edge.stress").count() >= 3, "the way is stressed");
  await page.click('nav [data-arg="transfer"]');
  await eventually("the same bytes", async () =>
    (await text(page, ".task")).includes("the same"), 60);
  await shot(page, "ring-transfer-light");
});

test("a cut link changes a route", async (_, { page }) => {
  await page.click('nav [data-arg="routes:"]');
  await page.selectOption("#prefix", "10.5.0.0/24");
  await eventually("R1's next hop", async () =>
    /R[24]/.test(await text(page, 'section.learned tr[data-key="R1"]')));
  const before = /\b(R2|R4)\b/.exec((await text(page, 'section.learned tr[data-key="R1"]')).slice(2))[1];
  await shot(page, "ring-routes-light");
  const what = await linkId(page, `R1 – ${before}`);
  await pick(page, what);
  await page.click("button.danger");
  await eventually("it is cut", async () => (await text(page, ".actions")).includes("Restore"));
  await eventually("it is said", async () =>
    (await page.locator("[aria-live]").textContent()).length > 0);
  const other = before === "R2" ? "R4" : "R2";
  await page.click('nav [data-arg="routes:"]');
  await page.selectOption("#prefix", "10.5.0.0/24");
  await eventually("the route is another", async () =>
    (await text(page, 'section.learned tr[data-key="R1"]')).includes(other), 40);
  await shot(page, "ring-cut-light");
  await pick(page, what);
  await page.click("button.primary");
  await eventually("it is whole", async () => (await text(page, ".actions")).includes("Cut"));
});

test("keys lead to every part of the picture", async (_, { page }) => {
  await page.keyboard.press("Escape");
  const reached = new Set();
  await page.locator('.graph [tabindex="0"]').focus();
  const here = () => page.evaluate(() => document.activeElement?.getAttribute("data-what"));
  const todo = [await here()];
  while (todo.length) {
    const from = todo.pop();
    if (reached.has(from)) continue;
    reached.add(from);
    for (const key of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]) {
      await page.locator(`.graph [data-what="${from}"]`).focus();
      await page.keyboard.press(key);
      todo.push(await here());
    }
  }
  assert.equal(reached.size, 12, [...reached].join(" "));
});

test("everything came from the one origin, and nothing was complained of", async (_, shared) => {
  const origin = new URL(shared.served.url).origin;
  const elsewhere = shared.asked.filter((u) => !u.startsWith(origin) && !u.startsWith("data:"));
  assert.deepEqual(elsewhere, []);
  assert.deepEqual(shared.complaints, []);
});

test("dark, and on a phone", async (browser, shared) => {
  for (const [name, options] of [
    ["ring-dark", { colorScheme: "dark" }],
    ["ring-phone-light", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
    ["ring-phone-dark", {
      viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme: "dark",
    }],
  ]) {
    const page = await open(browser, shared, options);
    await page.waitForTimeout(700);
    await shot(page, name);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${name}: ${wide} pixels too wide`);
    await pick(page, await linkId(page, "R1 – R2"));
    await shot(page, `${name}-link`);
  }
});

test("a network that goes down is said to be, and comes back", async (browser, shared) => {
  const page = await open(browser, shared);
  await net("down", "ring");
  await eventually("it says so", async () => (await text(page, ".veil")).includes("down"));
  await shot(page, "ring-down-light");
  await net("up", "nets/ring");
  await eventually("it is back", async () => (await text(page, ".veil")) === "" &&
    (await text(page, ".status")) === "6 nodes", 40);
});

test("a page left open overnight is as small in the morning", async (browser, shared) => {
  await shared.context.close();
  shared.context = await browser.newContext();
  const page = await shared.context.newPage();
  // Ten hours of the stream, in as much time as it takes: 72,000 ticks, each with news.
  await page.addInitScript(() => {
    window.EventSource = class extends EventTarget {
      constructor() {
        super();
        window.source = this;
      }
      close() {}
      give(name, data) { this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) })); }
    };
  });
  await page.goto(shared.served.url);
  await page.waitForFunction(() => window.source);
  const night = (from, ticks) => page.evaluate(({ from, ticks }) => {
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
      s.give("sample", { node: "A", sid: 1, sample: { at: new Date(i * 500).toISOString() } });
      s.give("tick", { at: i * 500 });
    }
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

test("a page without the token says what to do", async (browser, shared) => {
  await shared.context.close();
  shared.context = await browser.newContext();
  const page = await shared.context.newPage();
  await page.goto(new URL(shared.served.url).origin);
  await eventually("it says so", async () => (await text(page, ".veil")).includes("not admitted"));
});
