// What a person does with the page, and the expected results.

import assert from "node:assert/strict";
import {
  copy, eventually, linkId, net, open, pick, serve, shot, status, text,
} from "./bed.mjs";

export const tests = [];
const test = (name, f) => tests.push([name, f]);

test("a network comes up, and its page shows it", async (browser, shared) => {
  shared.ring = await copy("ring");
  await net("up", shared.ring);
  shared.served = await serve();
  const page = await open(browser, shared);
  assert.equal(await page.locator(".node").count(), 6);
  assert.equal(await page.locator(".edge").count(), 6);
  assert.equal(await text(page, "h1"), "ring");
  await eventually("six nodes are up", async () => (await text(page, ".status")) === "6 nodes");
  await shot(page, "ring-idle-light");
});

test("the idle picture names interfaces and prefixes", async (_, { page }) => {
  const words = async (sort) => (await page.locator(`.edge .${sort}`).allTextContents()).sort();
  await eventually("six prefixes", async () => (await words("prefix")).length === 6);
  assert.deepEqual(await words("prefix"), [0, 1, 2, 3, 4, 5].map((i) => `10.${i}.0.0/24`));
  assert.equal((await words("face")).length, 12);
  assert.deepEqual([...new Set(await words("face"))], ["if0", "if1", "if2"]);
});

test("the token leaves the address bar, and a reload needs none", async (_, { page, context }) => {
  assert.ok(!page.url().includes("token"), page.url());
  assert.deepEqual(await context.cookies(), [], "browsers send cookies to every port of a host");
  await page.reload();
  await page.waitForSelector('[data-service="live"] .node');
  const second = await context.newPage();
  await second.goto(new URL(page.url()).origin);
  await second.waitForSelector('[data-service="live"] .node');
  await second.close();
});

test("a click on a node shows its interfaces, routes and sockets", async (_, { page }) => {
  await page.click('.graph [data-what="node:R1"] .body');
  assert.equal(await text(page, "h2"), "R1");
  await eventually("six routes", async () =>
    (await page.locator("section.routes tbody tr").count()) === 6);
  assert.equal(await page.locator("section.interfaces tbody tr").count(), 3);
  await net("exec", "R1", "accept", "7000");
  await eventually("a listener, which queues connections and not bytes", async () =>
    /listen.*:7000.*\b0 of [1-9]/s.test(await text(page, "section.sockets")));
  await shot(page, "ring-node-light");
  await page.keyboard.press("Escape");
  await page.waitForSelector("section.connections");
});

test("a router shows the sessions of its NAT", async (_, { page }) => {
  for (const face of ["if1", "if2"]) await net("exec", "R1", "nat", "on", face);
  await net("exec", "A", "ping", "-c", "1", "10.5.0.2");
  await page.click('.graph [data-what="node:R1"] .body');
  await eventually("the session of a ping", async () =>
    /icmp\s+10\.0\.0\.1:\d+\s+10\.[0-9.]+:\d+\s+10\.5\.0\.2\s+open/.test(
      (await page.locator('section[class*=" nat-"] tbody').allInnerTexts()).join("\n")));
  await shot(page, "ring-nat-light");
  for (const face of ["if1", "if2"]) await net("exec", "R1", "nat", "off", face);
  await eventually("no NAT", async () => (await page.locator('section[class*=" nat-"]').count()) === 0);
  await page.keyboard.press("Escape");
  await page.waitForSelector("section.connections");
});

test("who opened a connection comes first, whoever closes it", async (_, { page }) => {
  const listens = JSON.parse(await status("B", "accept", "7000"));
  const opened = JSON.parse(await status("A", "connect", "10.5.0.2", "7000"));
  const title = () => page.locator("section.connections .title").allInnerTexts();
  await eventually("it is listed", async () => (await title()).includes("A → B:7000"));
  const sockets = JSON.parse(await status("B", "sockets"));
  const at = sockets.find((k) => k.state === "ESTABLISHED").sid;
  await net("exec", "B", "close", String(at));
  await net("exec", "A", "close", String(opened.sid));
  await eventually("only B is left, and waits", async () =>
    /time-wait/.test(await text(page, "section.connections")));
  assert.deepEqual(await title(), ["A → B:7000"]);
  await page.click("section.connections .title");
  await eventually("it is over", async () => /closed before the page could sample it/.test(
    await text(page, ".alert.calm")));
  assert.equal(await page.locator("section.ladder").count(), 0, "and nothing is still to come");
  await page.keyboard.press("Escape");
  await net("exec", "B", "close", String(listens.sid));
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
  await eventually("which direction is which", async () => /from R1.*from R2/s.test(await text(page, ".chart")));
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

test("a link is cut without scrolling, and a chart begins with its first sample", async (browser, shared) => {
  for (const size of [{ width: 1280, height: 720 }, { width: 390, height: 844 }]) {
    const page = await open(browser, shared, { viewport: size });
    await pick(page, await linkId(page, "R1 – R2"));
    const button = await page.locator("button.danger", { hasText: "Cut the link" }).boundingBox();
    assert.ok(button.y + button.height <= size.height, `${size.width} pixels: it ends at ${button.y + button.height}`);
    const back = page.locator(".back"), label = (await back.innerText()).trim();
    assert.ok((await back.getAttribute("aria-label")).includes(label), label);
    // The curve starts at the left edge of the plot, although only some seconds of the minute have
    // passed.
    await eventually("a curve from edge to edge", () => page.evaluate(() => {
      const over = document.querySelector(".chart .u-over")?.getBoundingClientRect();
      const c = document.querySelector(".chart canvas");
      if (!over || !c) return false;
      const box = c.getBoundingClientRect(), unit = c.width / box.width;
      const { data, width } = c.getContext("2d").getImageData((over.left - box.left) * unit, (over.top - box.top) * unit,
        over.width * unit, over.height * unit);
      const columns = new Set();
      // a strong color is the curve, not the grid or the axis
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] > 150 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60) {
          columns.add((i / 4) % width);
        }
      }
      return columns.size > 0 && Math.min(...columns) < 0.05 * width && Math.max(...columns) > 0.9 * width;
    }));
  }
});

test("legends are whole at every width", async (browser, shared) => {
  const what = await linkId(shared.page, "A – R1");
  await net("exec", "A", "impair", "if0", "out", "rate", "20mbit");
  const page = await open(browser, shared);
  for (const width of [360, 390, 700, 830, 960, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    await pick(page, what);
    await page.waitForTimeout(100); // until the picture is laid out
    const bad = await page.evaluate(() => {
      const stage = document.querySelector(".stage").getBoundingClientRect();
      const panel = document.querySelector(".panel").getBoundingClientRect();
      const content = document.querySelector(".content");
      const below = panel.left > 0 ? stage.bottom : panel.top;
      const list = [...document.querySelectorAll(".legend li")].filter((e) => {
        const b = e.getBoundingClientRect();
        return b.left < stage.left || b.right > stage.right || b.bottom > below;
      }).map((e) => `"${e.textContent}" is clipped`);
      if (content.scrollWidth > content.clientWidth) list.push("the panel is too wide");
      const top = document.querySelector(".over").getBoundingClientRect().top;
      for (const n of document.querySelectorAll(".node .body")) {
        if (n.getBoundingClientRect().bottom > top) list.push("a node is on the legend");
      }
      return list;
    });
    assert.deepEqual(bad, [], `${width} pixels`);
  }
  await net("exec", "A", "impair", "if0", "out", "off");
  await open(browser, shared);
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
  await eventually("a ladder of segments", () => page.locator(".ladder .data .tip").count());
  await eventually("and acknowledgments", () => page.locator(".ladder .ack .tip").count());
  await eventually("arrows slant: both ends are seen", () => page.evaluate(() =>
    [...document.querySelectorAll(".ladder .data .shaft")].some((e) => {
      const [, y1, y2] = /M\S+ (\S+)L\S+ (\S+)/.exec(e.getAttribute("d"));
      return Number(y2) > Number(y1);
    })));
  await eventually("a loss, and who dropped it", async () =>
    (await page.locator(".ladder .lost .why").allTextContents()).some((t) => /lost by the link/.test(t)), 60);
  await eventually("a retransmission, by that name", async () =>
    (await page.locator(".ladder .again + text, .ladder .repeat").allTextContents()).some((t) => /^retransmitted \d+$/.test(t)), 30);
  await page.waitForTimeout(1500);
  await shot(page, "ring-connection-light");
  await page.locator("section.ladder").scrollIntoViewIfNeeded();
  await shot(page, "ring-ladder-light");
  assert.match(await text(page, ".figures"), /Retransmitted/);
  assert.ok(await page.locator(".edge.stress").count() >= 3, "the way is stressed");
  await page.click('nav [data-arg="transfer"]');
  await eventually("the same bytes", async () =>
    (await text(page, ".task")).includes("equal "), 60);
  await shot(page, "ring-transfer-light");
});

test("a transfer that is stopped is said to be, and nothing of its file, which is gone", async (_, { page }) => {
  await page.click('nav [data-arg="transfer"]');
  await page.selectOption("#task-size", "10000000");
  await page.click("form button[type=submit]");
  await eventually("a connection", () => page.locator(".task:first-child button.text").count());
  await page.locator(".task:first-child button", { hasText: "Stop" }).click();
  await page.waitForSelector(".task:first-child.stopped");
  assert.match(await text(page, ".task:first-child"), /Stopped\./);
  await page.keyboard.press("Escape");
  await page.evaluate(() => { location.hash = "#/log"; });
  await eventually("it is said", async () =>
    /Transfer from A to B stopped$/m.test(await text(page, "ol.log")));
  const said = (await text(page, "ol.log")).split("started")[0]; // since: the newest is first
  assert.doesNotMatch(said, /tidepool-transfer|resume|transfer failed|B failed/i);
  await page.keyboard.press("Escape");
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
    (await page.locator("[aria-live=polite]").textContent()).length > 0);
  const other = before === "R2" ? "R4" : "R2";
  await page.click('nav [data-arg="routes:"]');
  await page.selectOption("#prefix", "10.5.0.0/24");
  await eventually("the route is another", async () =>
    (await text(page, 'section.learned tr[data-key="R1"]')).includes(other), 40);
  await shot(page, "ring-cut-light");
  await page.keyboard.press("Escape");
  const log = await text(page, "section.log");
  assert.match(log, new RegExp(`(R1 – ${before}|${before} – R1) is cut`), "what was done is not drowned");
  assert.match(log, /Routes changed at/);
  assert.match(await text(page, ".legend"), /cut/);
  await shot(page, "ring-happened-light");
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
  await net("up", shared.ring);
  await eventually("it is back", async () => (await text(page, ".veil")) === "" &&
    (await text(page, ".status")) === "6 nodes", 40);
});
