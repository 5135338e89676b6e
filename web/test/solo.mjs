// The page of one node, which `node run FILE --listen 0` serves.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually, folder, freePorts, linkId, pick, program, shot, text } from "./bed.mjs";

export const tests = [];
const test = (name, f) => tests.push([name, f]);

/** run starts a router with two neighbors that are not there. */
async function run() {
  const port = await freePorts(4), file = join(folder, "solo.lnx");
  const write = (net) => writeFileSync(file, `interface if0 10.0.0.2/24 127.0.0.1:${port}\n` +
    `neighbor 10.0.0.1 at 127.0.0.1:${port + 1} via if0\n` +
    `interface if1 10.${net}.0.1/24 127.0.0.1:${port + 2}\n` +
    `neighbor 10.${net}.0.2 at 127.0.0.1:${port + 3} via if1\nrouting rip\n`);
  write(1);
  const child = spawn(program, ["run", file, "--listen", "0"]);
  let said = "";
  for (const out of [child.stdout, child.stderr]) out.on("data", (x) => { said += x; });
  const url = await eventually("an address", () => /page: (http:\S+)/.exec(said)?.[1]);
  const reload = (net) => {
    write(net);
    child.stdin.write("reload\n");
  };
  return { url, reload, stop: () => new Promise((done) => {
    if (child.exitCode !== null) done();
    child.once("exit", done);
    child.stdin.end();
  }) };
}

test("one node has a page of its own, with its links and whom it pings", async (browser, shared) => {
  const solo = await run();
  try {
    await shared.context?.close();
    shared.context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const page = shared.page = await shared.context.newPage();
    await page.goto(solo.url);
    await page.waitForSelector('[data-service="live"] .node');
    await eventually("it is up", async () => (await text(page, ".status")) === "1 node");
    const link = await linkId(page, "solo – 10.0.0.1");
    await linkId(page, "solo – 10.1.0.2");
    await pick(page, link);
    assert.match(await text(page, ".part.now"), /solo → 10.0.0.1/);
    await page.click('.segments:has([name="way"]) label:nth-of-type(3)'); // incoming segments
    await eventually("the node's loss", async () => { // the other direction has separate sliders
      if (await page.inputValue("#knob-loss") === "0") await page.press("#knob-loss", "ArrowRight");
      return await page.locator(".words", { hasText: "loss 0.1%" }).count();
    });
    await page.click("button.danger");
    await eventually("it is cut", () => page.locator("button.primary", { hasText: "Restore" }).count());
    await page.click("button.primary");
    await eventually("it is whole", () => page.locator("button.danger").count());
    await shot(page, "solo-link");

    await page.click('nav [data-arg="ping"]');
    // The target is a neighbor: the first one, or the second one while the first's interface is
    // coming up.
    assert.match(await page.inputValue("#task-target"), /^10\.(0\.0\.1|1\.0\.2)$/);
    await page.selectOption("#task-count", "1");
    for (const [to, want] of [["nobody", /nobody: must be a node or an address such as 10\.0\.0\.2/],
      ["10.0.0.300", /10\.0\.0\.300: must be a node/], ["192.0.2.1", /192\.0\.2\.1.*no route/], ["solo", /1 of 1/],
      ["10.1.0.1", /1 of 1/], ["10.0.0.1", /0 of 1/]]) {
      await page.fill("#task-target", to);
      await page.keyboard.press("Enter");
      await eventually(`${to}: ${want}`, async () => want.test(await text(page, ".tasks .task:first-child")));
    }
    await shot(page, "solo-ping");
    await page.click('nav [data-arg="transfer"]');
    assert.match(await text(page, ".form .hint"), /needs two nodes/);
    assert.ok(await page.locator("form button[type=submit]").isDisabled());
    await page.click('nav [data-arg="routes:"]');
    await eventually("its routes", async () => /connected/.test(await text(page, ".learned")));

    solo.reload(2);
    await linkId(page, "solo – 10.2.0.2");
    await eventually("the file's other link is gone", async () =>
      await page.locator(".edge").count() === 2);
    assert.equal(await linkId(page, "solo – 10.0.0.1"), link, "and the one that stays is the same");
    await page.keyboard.press("Escape");
    await shot(page, "solo-reloaded");

    await page.goto(solo.url.replace(/token=.*/, "token=WRONG"));
    // the stored token is valid
    await eventually("a wrong token", async () => (await text(page, ".veil")) === "", 5);
    await page.evaluate(() => localStorage.clear());
    await page.goto("about:blank");
    await page.goto(solo.url.replace(/token=.*/, "token=WRONG"));
    await eventually("a wrong token", async () => (await text(page, ".veil")).includes("Access denied"));
    assert.match(await text(page, ".veil"), /node run/, "and who printed the right one");
  } finally {
    await solo.stop();
  }
});
