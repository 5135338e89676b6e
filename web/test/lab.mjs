// The laboratory of the playground: it has the same results as the native program, and shows errors
// under the line.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { artefacts, eventually, folder, program, root } from "./bed.mjs";
import { close, visit } from "./site.mjs";

const run = promisify(execFile);

/** finish waits for the end of an experiment and returns how it ended. */
const finish = (page) => eventually("the experiment ends", async () => {
  const text = await page.textContent(".lab output");
  return /Done|failed|Stopped/.test(text) && text;
}, 300);

/** native runs an experiment with the native program and returns what it printed and the hash. */
const native = async (name, experiment) => {
  const there = join(folder, name);
  const { stdout } = await run(program, ["lab", "run", experiment, "-o", there], { cwd: root });
  return { stdout, hash: JSON.parse(readFileSync(join(there, "run.json"), "utf8")).hash };
};

let page;
export const tests = [
  ["the laboratory has the results of the native program, with figures", async (browser, shared) => {
    page = shared.page = await visit(browser, "#lesson=4-loss");
    await page.click("text=Run loss");
    assert.equal(await finish(page), "Done.");
    await eventually("the tour knows it", async () => (await page.textContent(".check")) === "✓ The experiment has run");
    const { stdout, hash } = await native("loss", "docs/learn/loss.yaml");
    const table = await page.textContent(".lab .table");
    assert.ok(stdout.includes(table.trim()), `${table}\nnatively ${stdout}`);
    assert.equal(await page.getAttribute("div:has(> .lab)", "data-hash"), hash);
    const report = page.frameLocator(".lab iframe");
    const figure = report.locator("figure").first();
    await figure.waitFor();
    await page.locator(".lab iframe").scrollIntoViewIfNeeded();
    await page.screenshot({ path: join(artefacts, "playground-lab.png") });
  }],
  ["an experiment may take more memory than the addresses of the program's code", async () => {
    await page.selectOption(".lab select", { label: "tahoe-low" });
    await page.focus(".lab .run"); // the report may still move the buttons
    await page.keyboard.press("Enter");
    await eventually("it runs", async () => (await page.textContent(".lab output")) !== "Done.");
    assert.equal(await finish(page), "Done.");
    const { hash } = await native("tahoe", "tahoe-low");
    assert.equal(await page.getAttribute("div:has(> .lab)", "data-hash"), hash);
  }],
  ["the laboratory shows errors of both files under the line, and stops", async () => {
    await page.click(".lesson .close");
    await page.selectOption(".lab select", { label: "The script and Reno" });
    const bad = async (script, text) => {
      await page.fill("#script", script);
      await page.click(".lab .run");
      assert.equal(await finish(page), "The experiment failed.");
      assert.equal(await page.textContent(".lab .errors"), text);
    };
    const loss = "\ndef on_loss(state, loss):\n    state.cwnd *= 0.75\n";
    await bad(`def on_ack(state, ack:\n    pass\n${loss}`, `def on_ack(state, ack:\n${" ".repeat(22)}^gentle.star line 1: got ':', want ')', where flows.0.cc is gentle.star`);
    await bad(`def on_ack(state, ack):\n    state.cwnd += 1 / (ack.mss - ack.mss)\n${loss}`,
      `    state.cwnd += 1 / (ack.mss - ack.mss)\n${" ".repeat(20)}^gentle.star line 2: floating-point division by zero, in flow gentle.star, at 0.083 s`);
    await page.fill("#script", loss); // which the errors are not about
    assert.equal(await page.textContent(".lab .errors") + await page.textContent(".lab output"), "");
    await page.fill("#experiment", "name: x\npath: {down: {delay: 1ms}}\nflows:\n  - {cc: reno, sise: 3}\n");
    await page.click(".lab .run");
    assert.equal(await finish(page), "The experiment failed.");
    assert.match(await page.textContent(".lab .errors"), /experiment\.yaml line 4: .*sise/);
    await page.fill("#experiment", "name: long\nduration: 10000s\nflows:\n  - {cc: reno}\npath: {down: {rate: 1Gbit/s, delay: 20ms}}\n");
    await page.click(".lab .run");
    await eventually("it runs", async () => (await page.textContent(".lab output")) === "0 of 1 runs");
    await page.click(".lab .stop");
    assert.equal(await finish(page), "Stopped.");
  }],
  ["a node of the running network uses the script", async () => {
    const [node] = (await page.getAttribute("body", "data-nodes")).split(" ");
    await page.selectOption(".lab .nodes", node);
    await page.fill("#script", "def on_ack(state, ack):\n    state.cwnd = 3 * ack.mss\n");
    await page.click(".lab .use");
    await eventually("it reports the error", async () => /no function on_loss/.test(await page.textContent(".lab .errors")));
    await page.fill("#script", `${await page.inputValue("#script")}\ndef on_loss(state, loss):\n    pass\n`);
    await page.click(".lab .use");
    await eventually("the node uses it", async () => /tcp\.congestion = gentle\.star/.test(await page.textContent(`[aria-label="Output of ${node}"]`)));
    assert.equal(await page.textContent(".lab .errors"), "");
    assert.deepEqual(page.complaints, []);
    await close();
  }],
];
