// A node dies while its page is open, and the page sends it requests after that.

import assert from "node:assert/strict";
import { eventually, linkId, net, open, pick, shot, status, text } from "./bed.mjs";

export const tests = [];
const test = (name, f) => tests.push([name, f]);

const entries = (page) => page.locator(".log li span").allInnerTexts();

test("a node that is killed is said to be down, and what it cannot do any more", async (browser, shared) => {
  const page = await open(browser, shared);
  await eventually("six nodes are up", async () => (await text(page, ".status")) === "6 nodes");
  const { stdout } = await net("status", "ring", "--json");
  process.kill(JSON.parse(stdout).flatMap((n) => n.nodes).find((n) => n.name === "R3").pid, "SIGKILL");
  await eventually("the page says so", async () => (await text(page, ".status")) === "5 of 6 nodes");
  await page.evaluate(() => { location.hash = "#/log"; });
  await eventually("and when it happened", async () => (await entries(page)).includes("R3 is down"));
  await page.click('.graph [data-what="node:R3"] .body');
  assert.match(await text(page, ".alert"), /^R3: the node does not answer/);
  const alert = await text(page, ".alert");
  assert.match(alert, /node net up starts it again/, "without the backticks");
  assert.doesNotMatch(alert, /dial|sock/, `what no user asked for: ${alert}`);
  assert.ok((await entries(page)).includes("R3 is down"));
  await shot(page, "ring-dead");
  for (const sort of ["ping", "transfer"]) {
    await page.click(`nav [data-arg="${sort}"]`);
    await page.selectOption("#task-from", "R3");
    if (sort === "ping") await page.fill("#task-target", "B");
    else await page.selectOption("#task-to", "B");
    assert.match(await page.locator("#task-from option:checked").innerText(), /R3 \(down\)/);
    await page.click("form button[type=submit]");
    await page.waitForSelector(".task .alert");
    assert.equal(await text(page, ".task .alert"), "R3: the node does not answer");
  }
});

test("a link to a dead node is set and cut at the end that lives", async (_, { page }) => {
  await pick(page, await linkId(page, "R2 – R3"));
  assert.match(await text(page, ".settings .hint"), /R3 does not answer/);
  await page.locator("#knob-loss").focus();
  await page.keyboard.press("ArrowRight");
  await eventually("R2's loss", async () => (await status("R2", "impair")).includes("loss 0.1%"));
  await eventually("the slider stays there", async () => (await text(page, '[data-key$="loss"] output')) === "0.1 %");
  assert.equal(await page.locator(".content .alert").count(), 0);
  await page.click("button.danger");
  await eventually("it is cut", () => page.locator("button.primary", { hasText: "Restore" }).count());
  await page.click("button.primary");
  await eventually("it is whole", () => page.locator("button.danger").count());
  await net("exec", "R2", "impair", "off");
});

test("it comes back by itself", async (_, shared) => {
  await net("up", shared.ring);
  await eventually("six nodes are up", async () => (await text(shared.page, ".status")) === "6 nodes", 40);
});

test("a connection, a node and a link that are not there are said not to be", async (_, { page }) => {
  for (const [what, words] of [["connection:A/999999", /no such connection/], ["connection:Q/1", /no such connection/],
    ["node:Q", /no node Q/], ["link:99", /no such link/], ["link:x", /no such link/]]) {
    await page.evaluate((what) => { location.hash = `#/${what}`; }, what);
    await eventually(what, async () => words.test(await text(page, ".content")), 5);
  }
  await page.evaluate(() => { location.hash = "#/%3Cb%3E"; });
  await page.waitForSelector("section.nodes");
});
