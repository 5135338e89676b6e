// The lessons of docs/learn as tours in the playground.

import assert from "node:assert/strict";
import { join } from "node:path";
import { command, matches, tour } from "../../playground/site/lessons.js";
import { blocks, render } from "../../playground/site/markdown.js";
import { artefacts, eventually } from "./bed.mjs";
import { close, data, visit } from "./site.mjs";

const checks = (page) => page.locator(".check").allTextContents();

export const tests = [
  ["a tour compares a resource with a pattern", () => {
    const routes = [{ prefix: "10.0.0.0/24", cost: 1 }, { prefix: "10.1.0.0/24", cost: 2, via: null }];
    assert.ok(matches(routes, { prefix: "10.1.0.0/24", cost: ">=2" }));
    assert.ok(!matches(routes, { prefix: "10.0.0.0/24", cost: ">=2" }), "of one part");
    assert.ok(!matches(routes, { via: { x: 1 } }));
    assert.ok(!matches(null, { x: ">=1" }));
    assert.ok(!matches([{}], { x: ">=0" }));
    assert.ok(matches([{ table: "a b" }], { table: "~b" }) && !matches([{ table: "a b" }], { table: "~c" }) && !matches([{}], { table: "~c" }));
    assert.deepEqual(tour(" tour check A is up: A interfaces {\"up\": true} "),
      { check: "A is up", node: "A", resource: "interfaces", pattern: { up: true } });
    assert.deepEqual(tour(" tour ask What = x = y? = 1|2 "), { ask: "What = x = y?", answer: "1|2" });
    assert.deepEqual(tour(" another comment "), {});
    assert.deepEqual(tour(" tour skip "), { skip: true });
    assert.deepEqual(command("bin/node ctl C recv 1 5 y | wc -c"), { node: "C", line: "recv 1 5 y" });
    assert.equal(command("bin/node lab run x.yaml"), undefined);
    const html = blocks("# A `b`\n\n- x\n  y\n- z <i>\n<!-- c -->\n```\n$ d\n```\n").map((b) => (b[0] === "list" || b[0] === "heading" ? render(b, () => "") : b));
    assert.deepEqual(html, ["<h2>A <code>b</code></h2>", "<ul><li>x\n  y</li><li>z &lt;i&gt;</li></ul>", ["comment", " c "], ["code", "$ d"]]);
  }],
  ...["1-router", "2-rip", "3-handshake", "5-windows"].map((lesson) => [`the tour of lesson ${lesson} checks the network`, async (browser, shared) => {
    const page = shared.page = await visit(browser, `#lesson=${lesson}`);
    await page.waitForSelector(".lesson:not([hidden])");
    await page.selectOption("#speed", "10");
    const buttons = page.locator(".lesson .code button");
    assert.match(await buttons.first().textContent(), /^Start/);
    await buttons.first().click();
    await eventually("the network", async () => Number(await data(page, "at")) > 1e9 && await page.textContent("#message") === "");
    assert.ok((await checks(page)).at(-1).startsWith("○"), `the last is not done yet: ${await checks(page)}`);
    for (let i = 1; i < await buttons.count(); i++) {
      const from = Number(await data(page, "at"));
      await buttons.nth(i).click();
      await eventually("time passes", async () => Number(await data(page, "at")) > from + 6e9);
      await page.waitForTimeout(600); // the tour checks twice a second
    }
    await eventually("all is done", async () => (await checks(page)).every((c) => c.startsWith("✓")));
    assert.deepEqual(page.complaints, []);
    if (lesson !== "1-router") return page.close();
    await page.fill(".ask input", "10.0.0.2");
    await page.press(".ask input", "Enter");
    assert.match(await page.textContent(".ask output"), /^No/);
    await page.fill(".ask input", " 10.1.0.1");
    await page.press(".ask input", "Enter");
    assert.equal(await page.textContent(".ask output"), "Right.");
    assert.equal(await page.textContent(".lesson output"), "3 of 3 done");
    await page.screenshot({ path: join(artefacts, "playground-lesson.png") });
    await page.click(".lesson >> text=All lessons");
    await page.waitForSelector(".lesson >> text=Bufferbloat and CoDel");
    assert.doesNotMatch(await page.textContent(".lesson .text"), /go build/, "the page is the program");
    await page.click(".lesson >> text=Bufferbloat and CoDel");
    await page.waitForSelector(".lesson h2:has-text('7. Bufferbloat')");
    await page.close();
  }]),
  ["an unknown lesson has one clear line", async (browser) => {
    const page = await visit(browser, "#lesson=nothing");
    await eventually("a line", async () => (await page.textContent("#message")) === "There is no lesson nothing.");
    await close();
  }],
];
