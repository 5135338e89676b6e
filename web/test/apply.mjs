// A network that changes while its page is open.

import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually, freePorts, net, open, shot, text } from "./bed.mjs";

export const tests = [];
const test = (name, f) => tests.push([name, f]);

const places = (page) => page.evaluate(() => Object.fromEntries(
  [...document.querySelectorAll(".graph .node")].map((n) =>
    [n.dataset.what, n.getAttribute("transform").replace(/ scale.*/, "")])));

test("a node that apply adds appears, one that it ends goes, and the others stay", async (
  browser, shared,
) => {
  const page = await open(browser, shared);
  await eventually("six nodes are up", async () => (await text(page, ".status")) === "6 nodes");
  const before = await places(page);
  const file = join(shared.ring, "A.lnx"), was = readFileSync(file, "utf8");
  const port = await freePorts(2);
  writeFileSync(file, was + `\ninterface if9 10.99.0.1/24 127.0.0.1:${port}\n` +
    `neighbor 10.99.0.2 at 127.0.0.1:${port + 1} via if9\n`);
  writeFileSync(join(shared.ring, "Z.lnx"), `interface if0 10.99.0.2/24 127.0.0.1:${port + 1}\n` +
    `neighbor 10.99.0.1 at 127.0.0.1:${port} via if0\n` +
    "routing static\nroute 0.0.0.0/0 via 10.99.0.1\n");
  await net("apply", shared.ring);
  await eventually("seven nodes are up", async () => (await text(page, ".status")) === "7 nodes");
  const { "node:Z": fresh, ...old } = await places(page);
  assert.ok(fresh, "Z is in the picture");
  assert.deepEqual(old, before, "the others are where they were");
  assert.ok(!Object.values(before).includes(fresh), "and Z beside them");
  await eventually("it is told", async () => (await text(page, "ol.log")).includes("Z joined the network"));
  await shot(page, "ring-applied");
  rmSync(join(shared.ring, "Z.lnx"));
  writeFileSync(file, was);
  await net("apply", shared.ring);
  await eventually("six nodes are up", async () => (await text(page, ".status")) === "6 nodes");
  assert.deepEqual(await places(page), before);
  await eventually("it is told", async () => (await text(page, "ol.log")).includes("Z left the network"));
  assert.deepEqual(shared.complaints, []);
});
