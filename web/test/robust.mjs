// The playground without a network, with bad input, in a tab that sleeps, and on a phone.

import assert from "node:assert/strict";
import { join } from "node:path";
import { artefacts, eventually } from "./bed.mjs";
import { close, data, output, type, unplug, visit } from "./site.mjs";

const message = (page, text) => eventually(`the message ${text}`, async () => (await page.textContent("#message")).includes(text));

let page;
export const tests = [
  ["a file of 100 MB, a broken link and a network with errors change nothing in the playground", async (browser) => {
    page = await visit(browser);
    await type(page, "A", "ping 10.1.0.2 -c 2");
    await eventually("the answers", async () => (await output(page, "A")).includes("2 received"));
    await page.click('role=tab[name="Files"]');
    await page.$eval("[type=file]", (field) => {
      const to = new DataTransfer();
      to.items.add(new File([new Uint8Array(100 << 20)], "huge"));
      field.files = to.files;
      field.dispatchEvent(new Event("change"));
    });
    await message(page, "huge has 104,857,600 bytes; the limit is 67,108,864.");
    await page.evaluate(() => { location.hash = "#1.broken"; });
    await message(page, "This link is broken: a part of it is missing or changed. The running network is unchanged.");
    await page.click('role=tab[name="Network"]');
    await page.fill("#network", "link A R dela 10ms\n");
    await page.click("text=Run this network");
    await message(page, "The network file has errors.");
    assert.ok((await output(page, "A")).includes("2 received"), "the terminal has its text");
    await type(page, "A", "ping 10.1.0.2 -c 3");
    await eventually("the network answers", async () => (await output(page, "A")).includes("3 received"));
    assert.deepEqual(page.complaints, []);
  }],
  ["the playground removes a command that never waits", async () => {
    await page.click('role=tab[name="Network"]');
    await page.fill("#network", "link A B\n");
    await page.click("text=Run this network");
    await page.waitForSelector("body[data-nodes='A B']");
    await type(page, "B", "perf -s");
    await type(page, "A", "perf -c 10.0.0.2 -t 5");
    await message(page, "A: perf -c 10.0.0.2 -t 5 was canceled: after 10 s of computing");
    await type(page, "A", "ping 10.0.0.2 -c 1");
    await eventually("the network answers", async () => (await output(page, "A")).includes("1 received"));
  }],
  ["the playground continues where it was when its tab wakes", async (browser) => {
    const cdp = await browser.newBrowserCDPSession();
    const { processInfo } = await cdp.send("SystemInfo.getProcessInfo");
    const renderers = processInfo.filter((p) => p.type === "renderer").map((p) => p.id);
    const signal = (name) => renderers.forEach((pid) => process.kill(pid, name));
    const before = Number(await data(page, "at"));
    signal("SIGSTOP");
    await new Promise((done) => setTimeout(done, 5000));
    signal("SIGCONT");
    await eventually("time passes", async () => Number(await data(page, "at")) > before + 2e8);
    const after = Number(await data(page, "at"));
    console.log(`      it slept 5 s, and ${((after - before) / 1e9).toFixed(2)} s passed in the network`);
    assert.ok(after - before < 3e9, `${before} to ${after}`);
  }, "needs Chromium's driver"],
  ["the playground has names, roles and room on a phone, light and dark, with less motion", async (browser) => {
    const named = new Set(["button", "link", "slider", "combobox", "textbox", "spinbutton", "tab", "tabpanel", "Iframe", "log", "heading"]);
    for (const colorScheme of ["light", "dark"]) {
      const small = await visit(browser);
      await small.setViewportSize({ width: 390, height: 844 });
      await small.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const cdp = await small.context().newCDPSession(small);
      for (const tab of ["A", "Network", "Files"]) {
        await small.click(`role=tab[name="${tab}"]`);
        const { nodes } = await cdp.send("Accessibility.getFullAXTree");
        const nameless = nodes.filter((n) => !n.ignored && named.has(n.role?.value) && !n.name?.value?.trim());
        assert.deepEqual(nameless.map((n) => n.role.value), [], `${tab}: without a name`);
        assert.ok(nodes.filter((n) => n.role?.value === "tab").length >= 4);
        const wide = await small.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${tab}: ${wide} pixels too wide`);
        const moving = await small.evaluate(() => document.getAnimations().filter((a) => a.playState === "running").length);
        assert.equal(moving, 0, `${tab}: moves`);
      }
      await small.click('role=tab[name="A"]');
      await small.screenshot({ path: join(artefacts, `playground-phone-${colorScheme}.png`) });
      await small.close();
    }
  }, "needs Chromium's driver"],
  ["the playground works without its server", async (browser) => {
    await page.waitForSelector("body[data-offline=yes]", { timeout: 60_000 });
    await unplug();
    await page.reload();
    await page.waitForSelector("body[data-nodes]", { timeout: 60_000 });
    await page.frameLocator("#page").locator('[data-service="live"] .node').first().waitFor();
    await type(page, "A", "ping 10.1.0.2 -c 4");
    await eventually("the answers", async () => (await output(page, "A")).includes("4 received"));
    const manifest = await page.evaluate(async () => {
      const at = document.querySelector("link[rel=manifest]").href;
      const m = await (await fetch(at)).json();
      const found = await Promise.all([m.start_url, ...m.icons.map((i) => i.src)].map(async (u) => (await fetch(new URL(u, at))).status));
      return { display: m.display, found };
    });
    assert.deepEqual(manifest, { display: "standalone", found: [200, 200] });
    assert.deepEqual(page.complaints, []);
    await close();
  }],
];
