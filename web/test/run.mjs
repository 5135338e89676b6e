// The tests of the page, most of them in a real Chromium: `make web-test`. Those of the playground run
// again in Firefox, and one in WebKit. The last line counts them.

import { chromium, firefox } from "playwright-core";
import { artefacts, browserPath, build, clean, downloads, firefoxPath } from "./bed.mjs";
import { close } from "./site.mjs";

const only = new RegExp(process.argv.slice(2).join(" "));
const load = async (...files) => {
  const tests = [];
  for (const file of files) tests.push(...(await import(`./${file}.mjs`)).tests);
  return tests;
};
let passed = 0, failed = 0, skipped = 0, browser;
const shared = {};
async function run(tests, where = "") {
  for (const [title, test] of tests) {
    const name = where + title;
    // the other tests need one
    if (!only.test(name) && !name.startsWith("a network comes up")) continue;
    const begun = Date.now();
    try {
      await test(browser, shared);
      passed++;
      console.log(`ok    ${name} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
    } catch (e) {
      failed++;
      console.log(`FAIL  ${name}\n${e.stack}`);
      await shared.page?.screenshot({ path: `${artefacts}/failed-${failed}.png` }).catch(() => {});
    }
  }
}

await run(await load("rate", "slider", "layout", "address", "store", "plan")); // need no browser
const at = browserPath();
if (!at) {
  await clean();
  console.log(`skip: needs chromium\nweb: ${passed} passed, ${failed} failed, 1 skipped`);
  process.exit(failed > 0 ? 1 : 0);
}
const tests = await load("page", "picture", "access", "dead", "solo", "apply", "dual", "night", "playground", "robust", "draw", "lessons", "lab", "embed", "join", "reach");
if (process.argv[2] === "measure") tests.push(...await load("smooth")); // no part of `make web-test`
await build();
browser = await chromium.launch({
  executablePath: at, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
// In any case, no node may remain that holds the ports of the next run.
const end = (status) => void clean().then(() => process.exit(status));
process.on("SIGINT", () => end(130));
process.on("SIGTERM", () => end(143));
process.on("SIGHUP", () => end(129));
process.stdout.on("error", () => end(141));
try {
  await run(tests);
  if (firefoxPath()) {
    const inFirefox = await load("playground", "join", "robust", "draw");
    await close(); // Chromium's part of the playground
    await browser.close();
    browser = await firefox.launch({
      executablePath: firefoxPath(), channel: "moz-firefox", firefoxUserPrefs: downloads,
    });
    await run(inFirefox.filter(([, , needs]) => !needs), "in Firefox: ");
  } else {
    skipped++;
    console.log("skip: needs firefox");
  }
  const webkit = await import("./webkit.mjs");
  if (!webkit.missing) {
    await run(webkit.tests);
  } else {
    skipped++;
    console.log(`skip: needs ${webkit.missing}`);
  }
} finally {
  await browser.close().catch(() => {});
  await shared.served?.stop().catch(() => {});
  await clean();
}
console.log(`screenshots: ${artefacts}`);
console.log(`web: ${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed > 0 ? 1 : 0);
