// The fixture of the playground's tests: its files at a local server, and the actions of a user.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { downloads, eventually, folder, root } from "./bed.mjs";

const run = promisify(execFile);
const site = join(folder, "playground");
const types = { ".js": "text/javascript", ".html": "text/html", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm" };
let server, at, context;

/** serve builds the playground, once, serves it until close, and returns its address. */
export async function serve() {
  if (!existsSync(site)) await run("go", ["run", "./playground/build", "-o", site], { cwd: root, timeout: 300_000 });
  server = createServer((q, r) => {
    const path = new URL(q.url, "http://x").pathname.replace(/\/$/, "/index.html");
    try {
      const text = readFileSync(join(site, path));
      r.writeHead(200, { "Content-Type": types[extname(path)] ?? "application/octet-stream" }).end(text);
    } catch {
      r.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  at = `http://127.0.0.1:${server.address().port}`;
  return at;
}

/** visit opens the playground and waits for its network. The first options count until close. */
export async function visit(browser, fragment = "", options = {}) {
  if (!server) await serve();
  context ??= await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.complaints = [];
  page.on("pageerror", (e) => page.complaints.push(e.message));
  page.on("console", (m) => m.type() === "error" && page.complaints.push(m.text()));
  await page.goto(`${at}/${fragment}`);
  await page.waitForSelector("body[data-nodes]", { timeout: 60_000 });
  return page;
}

/** unplug stops the server. */
export async function unplug() {
  const stopped = new Promise((done) => server.close(done));
  server.closeAllConnections();
  await stopped;
}

/** close ends what visit began. */
export async function close() {
  await context?.close();
  server?.close();
  context = server = undefined;
}

export const data = (page, name) => page.evaluate((n) => document.body.dataset[n], name);
export const output = (page, node) =>
  page.$eval(`#line-${node}`, (i) => i.closest(".terminal").querySelector("pre").textContent);

export async function type(page, node, line) {
  await page.click(`role=tab[name="${node}"]`);
  await page.fill(`#line-${node}`, line);
  await page.press(`#line-${node}`, "Enter");
}

/** upload gives a file to the node that the Files panel has chosen. */
export async function upload(page, name, text) {
  await page.click('role=tab[name="Files"]');
  await page.setInputFiles("[type=file]", { name, mimeType: "", buffer: Buffer.from(text) });
  await page.waitForSelector(`td:text-is('${name}')`);
}

export async function download(page, name, node) {
  const button = `[aria-label="Download ${name} of ${node}"]`;
  if (page.context().browser().browserType().name() === "firefox") {
    const file = join(downloads["browser.download.dir"], name);
    rmSync(file, { force: true });
    await page.click(button);
    return eventually(`the download of ${name}`, () => !existsSync(`${file}.part`) && statSync(file).size > 0 && readFileSync(file));
  }
  const [load] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
  return readFileSync(await load.path());
}

/** session is a transfer over a link that loses packets. */
export const session = {
  network: "link A R delay 10ms\nlink R B delay 10ms loss 2%\n",
  inputs: [
    { at: 1e8, node: "A", file: "big", data: Buffer.from("tidepool".repeat(1 << 15)).toString("base64") },
    { at: 2e8, node: "B", line: "recvfile got 5000" },
    { at: 3e8, node: "A", line: "sendfile big 10.1.0.2 5000" },
  ],
};

/** replay runs in the page: it replays a session, also after jumps, and returns the states. */
export async function replay({ network, inputs }) {
  const worker = new Worker("./worker.js", { type: "module" });
  let state;
  const ask = (message) => new Promise((done, failed) => {
    worker.onmessage = ({ data }) => {
      if (data.state) state = data.state;
      if (data.crashed || data.error) failed(new Error(data.crashed ?? data.error));
      if (data.id) done({ ...state });
    };
    worker.postMessage({ ...message, id: 1 });
  });
  const straight = await ask({ open: { config: { network, inputs }, at: 20e9 } });
  for (const seek of [5e8, 7e8, 6e8, 15e9, 3.5e8 + 0.3]) await ask({ seek });
  const back = await ask({ seek: 20e9 });
  worker.terminate();
  return { straight, back };
}

/** same checks that the native program has the same state after the session. */
export async function same({ at, packets, bytes, hash, retransmits, timeouts, first_retransmit }) {
  assert.deepEqual({ at, packets, bytes, hash, retransmits, timeouts, first_retransmit },
    await native({ name: "network", seed: 1, until: 20e9, ...session }));
}

/** native replays a session with the native program and returns its state. */
async function native(session) {
  const file = join(folder, "session.json");
  writeFileSync(file, JSON.stringify(session));
  const { stdout } = await run("go", ["test", "./playground", "-run", "^TestSession$", "-v", "-count=1",
    "-args", `-session=${file}`], { cwd: root });
  return JSON.parse(/state: (.*)/.exec(stdout)[1]);
}
