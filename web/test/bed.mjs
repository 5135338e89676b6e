// What the browser tests stand on: a network of real nodes, its page, and a Chromium.

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, existsSync } from "node:fs";
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

export const folder = mkdtempSync(join(tmpdir(), "tp"));
const state = join(folder, "s");
export const program = join(folder, "node");

export async function build() {
  await run("go", ["build", "-o", program, "./cmd/node"], { cwd: root });
  mkdirSync(artefacts, { recursive: true });
}

/** net is `node net`, with a state folder of the tests' own. */
export const net = (...args) =>
  run(program, ["net", "--state", state, ...args], { cwd: root, timeout: 60_000 });

/** serve starts `node net serve`; url is what it printed. */
export function serve(...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, ["net", "--state", state, "serve", ...args], { cwd: root });
    let said = "";
    const timer = setTimeout(() => reject(new Error(`net serve said only: ${said}`)), 20_000);
    child.stderr.on("data", (text) => {
      said += text;
      const m = /page: (http:\S+)/.exec(said);
      if (m && said.includes("until Ctrl-C")) {
        clearTimeout(timer);
        resolve({
          url: m[1],
          stop: () => new Promise((done) => {
            child.once("exit", done);
            child.kill("SIGINT");
          }),
        });
      }
    });
    child.once("exit", (code) => reject(new Error(`net serve ended with ${code}: ${said}`)));
  });
}

export async function clean() {
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
