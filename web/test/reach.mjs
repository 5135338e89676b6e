// The playground for users who see only some of its colors, have no mouse, or use a screen reader.

import assert from "node:assert/strict";
import { join } from "node:path";
import { faint, interactive, tree } from "./access.mjs";
import { artefacts, eventually } from "./bed.mjs";
import { close, output, type, visit } from "./site.mjs";

const tools = ["A", "Network", "Files", "Laboratory"];
const show = async (page, name) => {
  await page.click(`role=tab[name="${name}"]`);
  if (name === "Network") await page.waitForSelector(".errors li");
};

/** prepare gives every tool something to show. */
async function prepare(page) {
  await type(page, "A", "ping 10.1.0.2 -c 1");
  await type(page, "A", "nonsense");
  await type(page, "A", "help");
  await eventually("an error", async () => (await output(page, "A")).includes("nonsense"));
  await page.click("#lessons");
  await page.waitForSelector(".lesson .text");
  await page.click('role=tab[name="Network"]');
  await page.fill("#network", "link A R\nlink R B dela 10ms\n");
  await page.click("text=Run this network"); // the network has errors, so a message appears
  await page.waitForSelector("#message.bad");
}

/** walk presses Tab, once around, and returns the stops that do not show the focus and the controls that were not reached. */
async function walk(page) {
  await page.evaluate(() => {
    window.stops = new Set();
    getSelection()?.removeAllRanges();
    document.querySelector("#play").focus();
  });
  const unseen = new Set();
  for (let i = 0; i < 300; i++) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      const e = document.activeElement, again = window.stops.has(e) && e.localName !== "iframe";
      if (!e || e === document.body) return {};
      window.stops.add(e);
      const c = getComputedStyle(e);
      const seen = e.localName === "iframe" || (c.outlineStyle !== "none" && parseFloat(c.outlineWidth) >= 2);
      return { what: e.outerHTML.slice(0, 90), seen, again };
    });
    if (stop.again) break;
    if (stop.what && !stop.seen) unseen.add(stop.what);
  }
  const missed = await page.evaluate(() => [...document.querySelectorAll("button, select, input, textarea, a[href], [tabindex='0']")]
    .filter((e) => e.checkVisibility() && !e.disabled && e.tabIndex >= 0 && !window.stops.has(e)).map((e) => e.outerHTML.slice(0, 90)));
  return { unseen: [...unseen], missed };
}

let page;
export const tests = [
  ["text of the playground has a contrast of 4.5:1, light and dark, also on a phone", async (browser, shared) => {
    page = shared.page = await visit(browser);
    await prepare(page);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const size of [{ width: 1280, height: 800 }, { width: 390, height: 844 }]) {
        await page.setViewportSize(size);
        for (const name of tools) {
          await show(page, name);
          const { bad, texts } = await faint(page);
          assert.ok(texts > 15, `${texts} texts were looked at`);
          assert.deepEqual(bad, [], `${name}, ${colorScheme}, ${size.width} pixels`);
        }
      }
    }
    await page.setViewportSize({ width: 1280, height: 800 });
  }],
  ["Tab reaches every control of the playground, and the focus is seen", async () => {
    for (const name of tools) {
      await show(page, name);
      if (name === "Network") {
        await page.locator('.canvas [data-what="node R"]').focus();
        await page.keyboard.press("ArrowRight");
        await page.screenshot({ path: join(artefacts, "playground-focus.png") });
      }
      const { unseen, missed } = await walk(page);
      assert.deepEqual(missed, [], `${name}: not reached`);
      assert.deepEqual(unseen, [], `${name}: the focus is not seen`);
    }
  }],
  ["every control of the playground has a name", async () => {
    for (const name of tools) {
      await show(page, name);
      const nameless = (await tree(page)).filter((n) => !n.name.trim() && (interactive.has(n.role) || ["image", "table", "heading"].includes(n.role)));
      assert.deepEqual(nameless, [], name);
    }
  }],
  ["the playground works by keyboard, and a terminal does not hold the focus", async () => {
    const key = (k) => page.keyboard.press(k);
    const here = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
    await page.locator('role=tab[name="Laboratory"]').focus();
    await key("ArrowRight"); // from the last node to the first, A
    await key("Tab");
    await key("Tab");
    const at = await here();
    assert.equal(at, "line-A");
    await page.keyboard.type("ping 10.1.0.2 -c 2");
    await key("Enter");
    await page.keyboard.type("no-such-command-begins-so");
    await key("Tab");
    assert.equal(await here(), at, "Tab completes");
    await eventually("Tab leaves a line that it cannot complete", async () => {
      if (await here() === at) await key("Tab");
      return await here() === "Stop";
    });
    await key("Shift+Tab");
    assert.equal(await here(), at);
    await key("Shift+Tab");
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "log");
    assert.deepEqual(page.complaints, []);
    await close();
  }],
];
