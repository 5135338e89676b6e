// Measures the playground's start on a slow device, its frames while 16 nodes move data, and its jumps
// in a session of an hour:
// node web/test/run.mjs measure

import assert from "node:assert/strict";
import { join } from "node:path";
import { artefacts, eventually } from "./bed.mjs";
import { close, data, output, serve, type, visit } from "./site.mjs";

const routers = 8;
const ring = Array.from({ length: routers }, (_, i) => `link R${i + 1} R${(i + 1) % routers + 1} delay 5ms rate 10mbit\nlink R${i + 1} H${i + 1} delay 1ms\n`).join("");

/** frames runs in the page: it returns the sorted milliseconds between frames. */
const frames = (seconds) => new Promise((done) => {
  const times = [], began = performance.now();
  let last = began;
  requestAnimationFrame(function next(now) {
    times.push(now - last);
    last = now;
    if (now - began < seconds * 1000) requestAnimationFrame(next);
    else done(times.slice(1).sort((a, b) => a - b));
  });
});
const quantile = (list, q) => list[Math.floor(q * (list.length - 1))];

/** spent returns the CPU milliseconds of the page's main thread so far. It has no part of the worker's. */
async function spent(page) {
  page.driver ??= await page.context().newCDPSession(page);
  await page.driver.send("Performance.enable", { timeDomain: "threadTicks" });
  const { metrics } = await page.driver.send("Performance.getMetrics");
  const ms = (name) => metrics.find((m) => m.name === name).value * 1000;
  return { all: ms("TaskDuration"), script: ms("ScriptDuration"), style: ms("RecalcStyleDuration") + ms("LayoutDuration") };
}

/** watch measures the frames of so many seconds, and the main thread's CPU time in each. */
async function watch(page, seconds) {
  const before = await spent(page);
  const times = await page.evaluate(frames, seconds);
  const after = await spent(page);
  const each = (name) => `${((after[name] - before[name]) / times.length).toFixed(1)} ms`;
  return { times, text: `${times.length} frames, median ${quantile(times, 0.5).toFixed(1)} ms, 95 % within ${quantile(times, 0.95).toFixed(1)} ms, `
    + `all within ${times.at(-1).toFixed(0)} ms; main thread's CPU time per frame ${each("all")}, of which scripts ${each("script")}, style and layout ${each("style")}` };
}

/** hour runs in the page: it replays an hour with a transfer, jumps, and returns the milliseconds that jumps took. */
async function hour({ network, inputs }) {
  const worker = new Worker("./worker.js", { type: "module" });
  const ask = (message) => new Promise((done, failed) => {
    worker.onmessage = ({ data }) => {
      if (data.crashed || data.error) failed(new Error(data.crashed ?? data.error));
      if (data.id) done(data.answer);
    };
    worker.postMessage({ ...message, id: 1 });
  });
  const end = 3600e9, took = [], began = performance.now();
  await ask({ open: { config: { network, inputs }, at: end } });
  const ran = performance.now() - began;
  for (let i = 1; i <= 10; i++) took.push((await ask({ seek: (i * 0.618034 % 1) * end })).took);
  worker.terminate();
  return { ran, took };
}

export const tests = [
  ["measure the first answer of a shell with a CPU that is 4 times slower", async (browser) => {
    const at = await serve(), runs = [], took = [];
    for (let i = 0; i < 3; i++) {
      const context = await browser.newContext(), page = await context.newPage(); // nothing is cached
      await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: 4 });
      const began = Date.now();
      await page.goto(at);
      await page.waitForSelector("body[data-nodes]", { timeout: 60_000 });
      runs.push(Date.now() - began);
      await type(page, "A", "interfaces");
      await eventually("an answer", async () => /10\.0\.0\.1/.test(await output(page, "A")));
      took.push(Date.now() - began);
      await context.close();
    }
    await close();
    console.log(`      until the network runs: ${runs.join(" ")} ms, until the answer: ${took.join(" ")} ms`);
    assert.ok(Math.min(...took) < 10_000, `${took} ms; the goal on an idle machine is 3000`);
  }],
  ["measure the frames of the playground while 16 nodes move data", async (browser) => {
    const page = await visit(browser);
    const idle = await watch(page, 2);
    await page.click('role=tab[name="Network"]');
    await page.fill("#network", ring);
    await page.click("text=Run this network");
    await page.waitForSelector("body[data-nodes~='H8']");
    const to = /10\.\d+\.\d+\.\d+/.exec(await eventually("an address", async () => {
      await type(page, "H5", "interfaces");
      const text = await output(page, "H5");
      return /10\.\d+\.\d+\.\d+/.test(text) && text;
    }))[0];
    await type(page, "H5", "perf -s");
    await new Promise((done) => setTimeout(done, 12_000)); // RIP finds the routes
    await type(page, "H1", `perf -c ${to} -t 60`);
    await eventually("data", async () => /Mbits/.test(await output(page, "H1")));
    const busy = await watch(page, 10);
    console.log(`      idle: ${idle.text}\n      busy: ${busy.text}\n      ${await page.textContent("#figures")}`);
    await page.screenshot({ path: join(artefacts, "playground-busy.png") });
    assert.ok(quantile(busy.times, 0.5) < 100, busy.text);
    await close();
  }],
  ["measure jumps of the playground in a session of an hour", async (browser) => {
    const page = await visit(browser);
    const { ran, took } = await page.evaluate(hour, { network: "link A R delay 10ms rate 300kbit\nlink R B delay 10ms loss 1%\n", inputs: [
      { at: 1e9, node: "B", line: "perf -s" }, { at: 40e9, node: "A", line: "perf -c 10.1.0.2 -t 3500 -i 60" }] });
    took.sort((x, y) => x - y);
    console.log(`      the hour took ${(ran / 1000).toFixed(1)} s, jumps ${took.map((t) => t.toFixed(0)).join(" ")} ms`);
    assert.ok(took[5] < 2000, `jumps ${took}`);
    await close();
  }],
];
