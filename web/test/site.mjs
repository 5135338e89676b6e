// What the tests of the playground stand on: its files at a local server, and what a user does with it.

import { execFile } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { downloads, eventually, folder, root } from "./bed.mjs";

const run = promisify(execFile);
const site = join(folder, "playground");
const types = { ".js": "text/javascript", ".html": "text/html", ".css": "text/css", ".svg": "image/svg+xml" };
let server, at, context;

/** serve builds the playground, once, and serves it. */
async function serve() {
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

/** native replays a session with the native program and returns its state. */
export async function native(session) {
  const file = join(folder, "session.json");
  writeFileSync(file, JSON.stringify(session));
  const { stdout } = await run("go", ["test", "./playground", "-run", "^TestSession$", "-v", "-count=1",
    "-args", `-session=${file}`], { cwd: root });
  return JSON.parse(/state: (.*)/.exec(stdout)[1]);
}
