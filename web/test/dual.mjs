// The page of a network with both families.

import assert from "node:assert/strict";
import { copy, eventually, net, open, serve, shot, text } from "./bed.mjs";

export const tests = [];
const test = (name, f) => tests.push([name, f]);

test("a page shows both families, and its forms take both", async (browser, shared) => {
  await net("up", await copy("dual-stack"));
  const served = await serve("dual-stack");
  try {
    const page = await open(browser, { ...shared, served });
    await eventually("four nodes are up", async () => (await text(page, ".status")) === "4 nodes");
    const words = async (sort) => (await page.locator(`.edge .${sort}`).allTextContents()).sort();
    await eventually("six prefixes", async () => (await words("prefix")).length === 6);
    assert.deepEqual(await words("prefix"), ["10.0.0.0/24", "10.1.0.0/24", "10.2.0.0/24", "2001:db8:1::/64", "2001:db8:2::/64", "2001:db8::/64"]);

    await page.click('.graph [data-what="node:R1"] .body');
    await eventually("RIPng's route by the next hop's name", async () =>
      /2001:db8:2::\/64\s+via R2\s+2\s+RIPng/.test(await text(page, "section.routes")), 60);
    assert.match(await text(page, "section.interfaces"), /10\.1\.0\.1\/24\n2001:db8:1::1\/64\nfe80::1\/64/);
    assert.match(await text(page, "section.ripng"), /Period\s+30 s/);
    await shot(page, "dual-node");
    await page.click('[data-arg="routes:2001:db8:2::/64"]');
    assert.equal(await page.inputValue("#prefix"), "2001:db8:2::/64");
    const row = (node) => page.locator(`.learned tr[data-key=${node}]`).innerText();
    assert.match(await row("R1"), /2\s+R2\s+\S+ \S+ ago\s+in \S+ \S+/, "with the ages of RIPng's route");
    assert.match(await row("A"), /via R1 \(static\)/);
    await page.click('.table [data-arg="routes:10.0.0.0/24"]');
    await eventually("the list follows", async () => (await page.inputValue("#prefix")) === "10.0.0.0/24");
    await shot(page, "dual-routes");

    await page.click('nav [data-arg="ping"]');
    await page.selectOption("#task-count", "1");
    const answer = (want) => eventually(String(want), async () => want.test(await text(page, ".tasks .task:first-child")));
    for (const [to, want] of [["B", /from 10\.2\.0\.2/], ["[2001:DB8:2::2]", /from 2001:db8:2::2/], ["fe80::2%if0", /from fe80::2%if0/],
      ["[fe80::2%if0]", /from fe80::2%if0/], ["2001:db8::zz", /2001:db8::zz: must be a node/], ["[2001:db8::1", /\[2001:db8::1: must be a node/]]) {
      await page.fill("#task-target", to);
      await page.keyboard.press("Enter");
      await answer(want);
    }
    await page.selectOption("#task-family", "6");
    await page.fill("#task-target", "B");
    await page.keyboard.press("Enter");
    await answer(/A → B[^]*from 2001:db8:2::2/);
    await page.click('nav [data-arg="transfer"]');
    await page.selectOption("#task-size", String(1e6));
    await page.click("form button[type=submit]");
    await answer(/equal/);
    await page.keyboard.press("Escape");
    await eventually("its connection, over IPv6", () => page.locator("section.connections .title", { hasText: "A → B:50" }).count());
    await page.locator("section.connections .title", { hasText: "A → B:50" }).first().click();
    assert.match(await text(page, ".sub"), /^\[2001:db8::1\]:\d+ → \[2001:db8:2::2\]:50\d\d$/);
    await shot(page, "dual-connection");
  } finally {
    await served.stop();
    await net("down", "dual-stack");
    await shared.context?.close();
    delete shared.context;
  }
});
