// The playground's diagram: the tests build a network with the mouse, and another with the
// keyboard.

import assert from "node:assert/strict";
import { join } from "node:path";
import { artefacts, eventually } from "./bed.mjs";
import { close, data, output, type, upload, visit } from "./site.mjs";

/** middle returns the center of an element, in the page. */
async function middle(page, selector) {
  const box = await page.locator(selector).first().boundingBox();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

async function drag(page, from, to) {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move((from[0] + to[0]) / 2, (from[1] + to[1]) / 2, { steps: 3 });
  await page.mouse.move(...to, { steps: 3 });
  await page.mouse.up();
}

const text = (page) => page.inputValue("#network");
const node = (name) => `.canvas [data-what="node ${name}"]`;

let page;
export const tests = [
  ["a network is built by mouse, and moves a file", async (browser, shared) => {
    page = shared.page = await visit(browser);
    await page.click('role=tab[name="Network"]');
    await page.selectOption("text=Example", "Empty");
    const box = await page.locator(".canvas").boundingBox();
    const at = (x, y) => [box.x + x * box.width, box.y + y * box.height];
    await drag(page, await middle(page, "[data-role=host]"), at(0.15, 0.5));
    await drag(page, await middle(page, "[data-role=router]"), at(0.5, 0.3));
    await drag(page, await middle(page, "[data-role=host]"), at(0.85, 0.5));
    assert.equal(await text(page), "host A B\nrouter R1\n");
    await page.waitForSelector(".errors li:has-text('line 1: A has no link')");
    await drag(page, await middle(page, node("A")), await middle(page, node("R1")));
    await page.waitForSelector(".errors li:has-text('line 1: B has no link')");
    await drag(page, await middle(page, node("R1")), await middle(page, node("B")));
    await page.fill("[name=delay]", "10"); // the new link is selected
    await page.fill("[name=loss]", "2");
    await page.press("[name=loss]", "Enter");
    await drag(page, await middle(page, node("R1")), at(0.5, 0.5));
    await page.mouse.click(...at(0.3, 0.5)); // a click on the link of A
    await page.fill("[name=delay]", "10ms");
    await page.press("[name=delay]", "Enter");
    assert.equal(await text(page), "host A B\nrouter R1\nlink A R1 delay 10ms\nlink R1 B delay 10ms loss 2%\n");
    await eventually("no error", async () => await page.locator(".errors li").count() === 0);
    await page.screenshot({ path: join(artefacts, "playground-diagram.png") });
    await page.click("text=Run this network");
    await page.waitForSelector('body[data-nodes="A B R1"]');
    await upload(page, "big", "tidepool".repeat(1 << 15));
    await type(page, "B", "recvfile got 5000");
    await type(page, "A", "sendfile big 10.1.0.2 5000");
    await eventually("the file is there", async () => (await output(page, "A")).includes("equal at both ends"), 60);
  }],
  ["a link holds the first retransmission of the built network", async (browser) => {
    await page.click("#marks button:has-text('first retransmission')");
    await eventually("a jump", () => data(page, "took"));
    await page.click("#share");
    await page.waitForFunction(() => location.hash.length > 3);
    const [hash, at] = [await data(page, "hash"), await data(page, "at")];
    const other = await visit(browser, await page.evaluate(() => location.hash));
    assert.deepEqual([await data(other, "hash"), await data(other, "at")], [hash, at]);
    assert.match(await other.textContent("#figures"), /· [1-9]\d* retransmitted/);
    await other.close();
  }],
  ["nodes that are typed get a place inside the diagram", async (browser) => {
    const own = await visit(browser);
    await own.click('role=tab[name="Network"]');
    await own.fill("#network", "link A R\nlink R B\nlink B C loss 1%\nlink R D\nlink B E\n");
    await own.locator(node("E")).waitFor();
    const box = await own.locator(".canvas").boundingBox();
    const boxes = await Promise.all([..."ABCDER"].map((n) => own.locator(`${node(n)} :is(rect, circle)`).boundingBox()));
    for (const [i, b] of boxes.entries()) {
      assert.ok(b.x >= box.x && b.y >= box.y && b.x + b.width <= box.x + box.width && b.y + b.height <= box.y + box.height, `node ${i}: ${JSON.stringify(b)}`);
      for (const o of boxes.slice(0, i)) assert.ok(Math.hypot(o.x - b.x, o.y - b.y) > 1.8 * b.width, `node ${i} is near another`);
    }
    await own.close();
  }],
  ["the diagram works by keyboard, keeps comments and undoes", async () => {
    await page.click('role=tab[name="Network"]');
    const was = "# mine\nlink A R # first\nlink R B loss 1%\n";
    await page.fill("#network", was);
    await page.locator(node("R")).waitFor();
    await page.focus(node("A"));
    await page.keyboard.press("Enter");
    await page.selectOption("[name=to]", "B");
    await page.focus("[name=link]");
    await page.keyboard.press("Enter");
    assert.equal(await text(page), `${was}link A B\n`);
    await page.fill("[name=rate]", "fast");
    await page.press("[name=rate]", "Tab");
    await page.waitForSelector(".errors li:has-text('line 4')");
    await page.screenshot({ path: join(artefacts, "playground-diagram-error.png") });
    await page.focus(node("A"));
    await page.keyboard.press("Delete");
    assert.equal(await text(page), "# mine\n# first\nlink R B loss 1%\n");
    for (let i = 0; i < 3; i++) await page.click("text=Undo");
    assert.equal(await text(page), was);
    await page.click("text=Redo");
    assert.equal(await text(page), `${was}link A B\n`);
    for (let i = 0; i < 2; i++) await page.click("text=Undo");
    assert.match(await text(page), /^host A B/, "the text before the typing");
    assert.deepEqual(page.complaints, []);
    await close();
  }],
];
