// The playground: a network that runs in the page itself.

import assert from "node:assert/strict";
import { join } from "node:path";
import { artefacts, eventually } from "./bed.mjs";
import { close, data, download, output, replay, same, session, type, upload, visit } from "./site.mjs";

let first; // the page of the first test
export const tests = [
  ["the playground moves a file through a lossy router", async (browser) => {
    const page = first = await visit(browser);
    await upload(page, "big", "tidepool".repeat(1 << 16));
    await type(page, "R", "capture all -w all.pcapng");
    await type(page, "B", "recvfile got 5000");
    await type(page, "A", "sendfile big 10.1.0.2 5000");
    await eventually("the file is there", async () => (await output(page, "A")).includes("equal at both ends"), 60);
    await page.waitForSelector("#marks button:has-text('first retransmission')");
    await page.click('role=tab[name="Files"]');
    await page.waitForSelector("tr:has(td:text-is('B')):has(td:text-is('got')):has(td:text-is('524,288'))");
    assert.equal((await download(page, "got", "B")).toString(), "tidepool".repeat(1 << 16));
    await type(page, "R", "capture stop");
    await eventually("the capture ends", async () => (await output(page, "R")).includes("capture stop"));
    await page.click('role=tab[name="Files"]');
    const capture = await download(page, "all.pcapng", "R");
    assert.equal(capture.readUInt32LE(0), 0x0a0d0d0a, "a pcapng file");
    assert.ok(capture.length > 2 * (512 << 10), "both interfaces' packets");
    await page.screenshot({ path: join(artefacts, "playground.png") });
  }],
  ["on a phone, the playground's prompt and slider are whole", async (browser) => {
    const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
    await page.goto(first.url());
    await page.waitForSelector("body[data-nodes]");
    const prompt = await page.locator("#line-A").boundingBox();
    assert.ok(prompt.y + prompt.height <= 844, `the prompt is below the window's end: ${JSON.stringify(prompt)}`);
    assert.equal(await page.$eval("#scrub", (s) => getComputedStyle(s).padding), "0px", "the thumb reaches the ends of the track");
    await page.close();
  }],
  ["the network's own page works in the playground, and cuts a link", async () => {
    const page = first;
    const frame = page.frameLocator("#page");
    await frame.locator('[data-service="live"] .node').first().waitFor();
    await frame.locator(".link").first().click();
    await frame.getByRole("button", { name: /^Cut/ }).click();
    await type(page, "A", "ping 10.1.0.2 -c 1 -W 1");
    await eventually("the ping fails", async () => /0 received|down|unreachable/i.test((await output(page, "A")).split("ping 10.1").at(-1)));
    await frame.getByRole("button", { name: /^Restore/ }).click();
    await type(page, "A", "ping 10.1.0.2 -c 1");
    await eventually("the ping works", async () => (await output(page, "A")).split("ping 10.1").at(-1).includes("1 received"));
    await page.screenshot({ path: join(artefacts, "playground-page.png") });
  }],
  ["the playground goes back to the first retransmission, and a link holds it", async (browser) => {
    const page = first;
    await page.click("#play");
    await eventually("it pauses", async () => (await page.textContent("#play")) === "Play");
    const before = await eventually("a state", () => data(page, "hash"));
    await page.click("#marks button");
    const took = Number(await eventually("a jump", () => data(page, "took")));
    const hash = await data(page, "hash");
    assert.notEqual(hash, before);
    assert.ok(!(await output(page, "A")).includes("Sent"), "the terminal went back too");
    assert.ok(took < 2000, `the jump took ${took} ms`); // an idle machine needs a tenth of that
    await page.click("#share");
    await page.waitForFunction(() => location.hash.length > 3);
    const other = await visit(await browser, await page.evaluate(() => location.hash));
    assert.equal(await data(other, "hash"), hash);
    assert.deepEqual(other.complaints, []);
    await other.close();
    // Forward again: the log has the later inputs.
    await page.focus("#scrub");
    await page.$eval("#scrub", (s) => { s.value = s.max; s.dispatchEvent(new Event("input")); });
    await eventually("the end", async () => (await output(page, "A")).includes("equal at both ends"));
    await page.click("#share"); // a link that is made later has the mark at the same time
    await page.waitForFunction((h) => location.hash !== h, new URL(other.url()).hash);
    const later = await visit(await browser, await page.evaluate(() => location.hash));
    assert.equal(await later.textContent("#marks"), await page.textContent("#marks"));
    await later.close();
    console.log(`      a jump back took ${took.toFixed(0)} ms`);
  }],
  ["a session of the playground has the same hash natively", async () => {
    const here = await first.evaluate(replay, session);
    assert.equal(here.back.hash, here.straight.hash);
    await same(here.straight);
  }],
  ["bad input in the playground has one clear line", async (browser) => {
    const page = await visit(browser, "#1.broken");
    await eventually("a line", async () => (await page.textContent("#message"))
      === "This link is broken: a part of it is missing or changed. The page starts with the first example.");
    await page.click('role=tab[name="Network"]');
    await page.fill("#network", "link A R dela 10ms\nlink R B\n");
    await page.waitForSelector(".errors li:has-text('did you mean delay')");
    const box = await page.locator(".errors li").first().boundingBox();
    assert.ok(box.y + 20 < page.viewportSize().height, `the error is below the window's end: ${JSON.stringify(box)}`);
    await page.screenshot({ path: join(artefacts, "playground-errors.png") });
    await page.fill("#network", "link A R dela 10ms\nlink R B loss 200%\nlnk B C\n");
    await page.waitForSelector(".errors li:has-text('line 3')");
    const [typed, list] = await Promise.all(["#network", ".errors"].map((s) => page.locator(s).first().boundingBox()));
    assert.ok(typed.y + typed.height <= list.y + 1, "the errors do not cover the text that the user types");
    await page.click("text=Run this network");
    await eventually("a message", async () => (await page.textContent("#message")).includes("has errors"));
    await page.click('role=tab[name="Files"]');
    await page.$eval("[type=file]", (field) => {
      const to = new DataTransfer();
      to.items.add(new File([new Uint8Array(100 << 20)], "huge"));
      field.files = to.files;
      field.dispatchEvent(new Event("change"));
    });
    await eventually("a refusal", async () => (await page.textContent("#message")).startsWith("huge has 104,857,600 bytes; the limit is"));
    await page.click("#dismiss");
    assert.ok(await page.textContent("#message") === "" && !await page.isVisible("#dismiss"));
    await page.close();
    assert.deepEqual(first.complaints, []);
    await close();
  }],
];
