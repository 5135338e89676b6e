// The fixture of the browser tests: a network of real nodes, its page, and a Chromium.

import { execFile, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import {
  existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
export const artefacts = process.env.CI_ARTEFACTS
  ? join(process.env.CI_ARTEFACTS, "web") : join(root, "web", "artefacts");

/** browserPath is where a Chromium is; empty: nowhere. */
export function browserPath() {
  const places = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome", "/usr/bin/google-chrome-stable", "/snap/bin/chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium"];
  return places.find((p) => p && existsSync(p)) ?? "";
}

/** firefoxPath is where a Firefox is; empty: nowhere. */
export function firefoxPath() {
  const places = [process.env.FIREFOX, "/usr/bin/firefox-esr", "/usr/bin/firefox",
    "/Applications/Firefox.app/Contents/MacOS/firefox"];
  return places.find((p) => p && existsSync(p)) ?? "";
}

export const folder = mkdtempSync(join(tmpdir(), "tp"));
const state = join(folder, "s");
/** downloads make Firefox write files to a folder: its driver does not tell of them. */
export const downloads = {
  "browser.download.folderList": 2, "browser.download.dir": join(folder, "downloads"),
  "browser.download.useDownloadDir": true, "browser.download.always_ask_before_handling_new_types": false,
};
export const program = join(folder, "node");

export async function build() {
  await run("go", ["build", "-o", program, "./cmd/node"], { cwd: root });
  mkdirSync(artefacts, { recursive: true });
}

/** copy copies a network of nets/ to free ports, so that it can run next to the original. */
export async function copy(network) {
  const from = join(root, "nets", network), to = join(folder, network);
  const files = readdirSync(from).filter((n) => n.endsWith(".lnx"));
  const texts = files.map((name) => readFileSync(join(from, name), "utf8"));
  const at = /127\.0\.0\.1:(\d+)/g;
  const ports = [...new Set(texts.flatMap((t) => [...t.matchAll(at)].map((m) => m[1])))].sort();
  const base = await freePorts(ports.length);
  mkdirSync(to);
  files.forEach((name, i) => writeFileSync(join(to, name),
    texts[i].replace(at, (_, port) => `127.0.0.1:${base + ports.indexOf(port)}`)));
  return to;
}

/** freePorts is the first of so many UDP ports that nobody has. */
export async function freePorts(count) {
  const free = (port) => new Promise((tell) => {
    const s = createSocket("udp4");
    s.once("error", () => tell(false));
    s.bind(port, "127.0.0.1", () => s.close(() => tell(true)));
  });
  for (let tries = 0; tries < 100; tries++) {
    const base = 20000 + 100 * Math.floor(Math.random() * 100);
    const all = [];
    for (let i = 0; i < count; i++) all.push(await free(base + i));
    if (all.every(Boolean)) return base;
  }
  throw new Error("no free UDP ports");
}

/** net is `node net`, with a state folder of the tests' own. */
export const net = (...args) =>
  run(program, ["net", "--state", state, ...args], { cwd: root, timeout: 60_000 });

const servers = new Set(); // servers that are running

/** serve starts `node net serve`; url is what it printed. */
export function serve(...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, ["net", "--state", state, "serve", ...args], { cwd: root });
    servers.add(child);
    child.once("exit", () => servers.delete(child));
    let said = "";
    const timer = setTimeout(() => reject(new Error(`net serve said only: ${said}`)), 20_000);
    const hear = (text) => {
      said += text;
      const m = /page: (http:\S+)\n/.exec(said);
      if (m && said.includes("until Ctrl-C")) {
        clearTimeout(timer);
        resolve({
          url: m[1],
          said: () => said,
          stop: () => new Promise((done) => {
            child.once("exit", done);
            child.kill("SIGINT");
          }),
        });
      }
    };
    for (const out of [child.stdout, child.stderr]) out.on("data", hear);
    child.once("exit", (code) => reject(new Error(`net serve ended with ${code}: ${said}`)));
  });
}

export async function clean() {
  for (const s of servers) s.kill("SIGINT"); // of tests that failed
  await net("down", "--all").catch(() => {});
  rmSync(folder, { recursive: true, force: true });
}

/** eventually waits until a condition holds, and says what was seen last if it does not. */
export async function eventually(what, check, seconds = 20) {
  const end = Date.now() + seconds * 1000;
  let last;
  for (;;) {
    try {
      last = await check();
      if (last) return last;
    } catch (e) {
      last = e.message;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s; last: ${last}`);
    await new Promise((go) => setTimeout(go, 100));
  }
}

/** open shows the page, and notes what it asks for and complains of. */
export async function open(browser, shared, options = {}, prepare = () => {}) {
  await shared.context?.close();
  shared.context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await shared.context.newPage();
  shared.page = page;
  shared.asked = [];
  shared.complaints = [];
  page.on("request", (r) => shared.asked.push(r.url()));
  page.on("pageerror", (e) => shared.complaints.push(e.message));
  page.on("console", (m) => {
    if (m.type() === "error" || m.type() === "warning") shared.complaints.push(m.text());
  });
  await prepare(page);
  await page.goto(shared.served.url);
  await page.waitForSelector('[data-service="live"] .node');
  return page;
}

/** feed replaces the stream by one that a test writes: source.give adds an event, source.read waits for the page. */
export const feed = (page) => page.addInitScript(() => {
  const real = window.fetch, encoder = new TextEncoder();
  window.fetch = (path, how) => !String(path).startsWith("/v1/stream") ? real(path, how)
    : Promise.resolve(new Response(new ReadableStream({ start(to) {
      window.source = {
        give: (name, data) => to.enqueue(encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)),
        read: async () => {
          do await new Promise((done) => setTimeout(done)); while (to.desiredSize < 1);
        },
      };
    } })));
});

export const shot = (page, name) => page.screenshot({ path: `${artefacts}/${name}.png` });
export const text = (page, selector) => page.locator(selector).innerText();

/** pick presses Enter on a part of the picture. */
export async function pick(page, what) {
  await page.locator(`.graph [data-what="${what}"]`).focus();
  await page.keyboard.press("Enter");
}

export async function linkId(page, name) {
  const label = await eventually(`a link ${name}`, () => page.evaluate((name) =>
    [...document.querySelectorAll(".edge")]
      .find((e) => e.getAttribute("aria-label").startsWith(`Link ${name}`))
      ?.getAttribute("data-what"), name));
  return label;
}

/** status is what a command at a node answers, in JSON. */
export async function status(node, ...words) {
  const { stdout } = await run(program, ["ctl", "--state", state, node, ...words, "--json"],
    { timeout: 60_000 });
  return stdout;
}
