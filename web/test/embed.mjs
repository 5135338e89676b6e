// The playground within another page, and networks of .lnx files.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { artefacts, eventually, root } from "./bed.mjs";
import { close, data, output, type, visit } from "./site.mjs";

let page;
export const tests = [
  ["a network of .lnx files is dropped into the editor and runs", async (browser, shared) => {
    page = shared.page = await visit(browser);
    await page.click('role=tab[name="Network"]');
    const folder = join(root, "nets", "nat-home");
    const files = readdirSync(folder).filter((n) => n.endsWith(".lnx")).map((n) => [n, readFileSync(join(folder, n), "utf8")]);
    const drop = (list, on = page.locator(".editor").first()) => on.evaluate((to, list) => {
      const dataTransfer = new DataTransfer();
      for (const [name, text] of list) dataTransfer.items.add(new File([text], name));
      const taken = ["dragover", "drop"].map((type) => !to.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true })));
      return taken.every(Boolean);
    }, list);
    const mine = "link A B # mine\n";
    await page.fill("#network", mine);
    for (const wrong of [[["a.net", "link A B\n"], ["b.net", "link A B\n"]], [files[0], ["a.net", "link A B\n"]]]) {
      const refusal = `Choose one .net file, or only the .lnx files of a network, not ${wrong.map(([n]) => n).join(", ")}. The text is unchanged.`;
      await eventually("a refusal", async () => await drop(wrong) && (await page.textContent(".errors")) === refusal);
    }
    // The browser must not leave the page for a file that is dropped anywhere.
    for (const to of [page.locator("header"), page.frameLocator("#page").locator("body")]) {
      await page.click('role=tab[name="B"]');
      assert.ok(await drop([["notes.txt", "x"]], to));
      await eventually("B has it", async () => (await page.textContent("#message")) === "notes.txt is now on B.");
    }
    await drop([["x.net", "link C D\n"]], page.locator("footer"));
    await page.waitForSelector('.canvas [data-what="node D"]');
    await page.click("text=Undo");
    assert.equal(await page.inputValue("#network"), mine);
    await page.selectOption("text=Example", "Empty");
    await page.locator("#network").pressSequentially("l");
    await page.click("text=Undo");
    assert.equal(await page.inputValue("#network"), mine);
    await drop(files.filter(([n]) => n !== "S.lnx"));
    await page.waitForSelector(".errors li:has-text(\"the link of X's if2 has 1 ends\")");
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.click("text=Open files")]);
    await chooser.setFiles({ name: "x.net", mimeType: "", buffer: Buffer.from("link C D\n") });
    await page.waitForSelector('.canvas [data-what="node D"]');
    await drop(files);
    await eventually("no error", async () => (await page.inputValue("#network")).includes("-- S.lnx --")
      && await page.locator(".errors li").count() === 0);
    await page.click("text=Run this network");
    await page.waitForSelector('body[data-nodes="A B R1 R2 S X"]');
    await type(page, "A", "ping -c 1 10.3.0.2");
    await eventually("an answer through the NAT", async () => (await output(page, "A")).includes("1 received"));
    await page.screenshot({ path: join(artefacts, "playground-lnx.png") });
  }],
  ["an embed shows the network and the terminals in another page", async (browser) => {
    await page.evaluate(() => { navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }; });
    await page.click("#play");
    await page.click("#embed");
    await eventually("a copy", async () => (await page.textContent("#message")) === "Copied the HTML to the clipboard.");
    const [html, hash] = [await page.evaluate(() => window.copied), await data(page, "hash")];
    const blog = await page.context().newPage();
    await blog.addInitScript(() => { // as on another site, in a browser that blocks storage there
      Object.defineProperty(window, "localStorage", { get() { throw new DOMException("blocked", "SecurityError"); } });
    });
    // from the same server, so that the browser shows the frame
    await blog.goto(page.url().split("#")[0]);
    await blog.setContent(`<h1>A blog</h1><input autofocus>${html}`);
    const frame = blog.frameLocator("iframe[title='A network of tidepool']");
    await frame.locator("body[data-nodes]").waitFor({ timeout: 60_000 });
    assert.equal(await frame.locator("body").getAttribute("data-hash"), hash);
    assert.deepEqual(await frame.locator("[role=tab]").allTextContents(), ["A", "B", "R1", "R2", "S", "X"]);
    assert.ok(await frame.locator("#play").isVisible());
    await frame.frameLocator("#page").locator('[data-service="live"] .node').first().waitFor();
    for (const hidden of ["#share", "#lessons", "footer", "#step"]) assert.ok(!await frame.locator(hidden).isVisible(), hidden);
    await blog.screenshot({ path: join(artefacts, "playground-embed.png") });
    const [whole] = await Promise.all([blog.waitForEvent("popup"), frame.locator("#whole").click()]);
    await whole.waitForSelector("body[data-nodes]", { timeout: 60_000 });
    assert.equal(await data(whole, "hash"), hash);
    assert.ok(await whole.isVisible("#share"));
    assert.deepEqual(page.complaints, []);
    await close();
  }],
];
