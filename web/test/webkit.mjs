// The playground in WebKitGTK, by WebKitGTK's WebDriver, because the bundled driver only supports
// its own WebKit.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { eventually } from "./bed.mjs";
import { close, replay, same, serve, session } from "./site.mjs";

const driver = "/usr/bin/WebKitWebDriver", display = "/usr/bin/Xvfb";
const browser = ["x86_64", "aarch64"].map((cpu) => `/usr/lib/${cpu}-linux-gnu/webkit2gtk-4.1/MiniBrowser`).find((p) => existsSync(p));

/** missing is what this machine lacks; empty: nothing. */
export const missing = [browser && driver, display].some((p) => !p || !existsSync(p)) ? "webkit2gtk-driver and xvfb" : "";

const freePort = () => new Promise((done) => {
  const s = createServer().listen(0, "127.0.0.1", () => {
    const { port } = s.address();
    s.close(() => done(port));
  });
});

/** start runs a program until stop. */
function start(program, args, env = {}) {
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "ignore", "pipe"], env: { ...process.env, ...env } });
  const ended = new Promise((done) => { child.once("exit", done); });
  return { child, stop: () => (child.kill(), ended) };
}

/** screen starts an X server without a screen and returns its name. */
async function screen() {
  const x = start(display, ["-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp"]);
  const number = await new Promise((done) => { x.child.stdio[3].once("data", (text) => done(String(text).trim())); });
  return { name: `:${number}`, stop: x.stop };
}

export const tests = [
  ["in WebKit: a session of the playground has the same hash natively", async () => {
    const port = await freePort(), x = await screen();
    const d = start(driver, [`--port=${port}`], { DISPLAY: x.name, WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1" });
    const call = async (method, path, body) => {
      const r = await fetch(`http://127.0.0.1:${port}/session${path}`, { method, body: body && JSON.stringify(body) });
      const { value } = await r.json();
      if (value?.error) throw new Error(`${value.error}: ${value.message}`);
      return value;
    };
    let at;
    try {
      const options = { binary: browser, args: ["--automation"] };
      const { sessionId } = await eventually("a browser", () => call("POST", "", { capabilities: { alwaysMatch: { "webkitgtk:browserOptions": options } } }));
      at = `/${sessionId}`;
      await call("POST", `${at}/timeouts`, { script: 120_000 });
      await call("POST", `${at}/url`, { url: await serve() });
      const look = () => call("POST", `${at}/execute/sync`, { script: "return document.body.dataset.nodes", args: [] });
      assert.equal(await eventually("a network", look, 60), "A R B");
      const script = `const [session, done] = arguments; (${replay})(session).then(done, (e) => done({ error: String(e) }));`;
      const here = await call("POST", `${at}/execute/async`, { script, args: [session] });
      assert.equal(here.error, undefined);
      assert.equal(here.back.hash, here.straight.hash);
      await same(here.straight);
    } finally {
      if (at) await call("DELETE", at).catch(() => {});
      await d.stop();
      await x.stop();
      await close();
    }
  }],
];
