// The playground as a node of a network of processes: `node net serve --bridge`.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { artefacts, copy, eventually, folder, net, serve, status } from "./bed.mjs";
import { close, data, download, output, type, upload, visit } from "./site.mjs";

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");
const message = (page, text) => eventually(`the message ${text}`, async () => {
  const now = await page.textContent("#message");
  return now.includes(text) || Promise.reject(new Error(now));
});

let served, page, address;
const files = join(folder, "join-files");
export const tests = [
  ["a page of the playground joins a network of processes, and files pass both ways", async (browser, shared) => {
    await net("down", "a-b-c").catch(() => {}); // left over from the browser before
    for (const old of [join(folder, "a-b-c"), files]) rmSync(old, { recursive: true, force: true });
    const network = await copy("a-b-c"), c = join(folder, "C.lnx");
    renameSync(join(network, "C.lnx"), c); // the page takes the place of C
    mkdirSync(files);
    await net("up", network, "--files", files);
    served = await serve("a-b-c", "--bridge", c);
    address = await eventually("an address", () => /#join=\S+/.exec(served.said())?.[0]);
    page = shared.page = await visit(browser, address);
    assert.equal(await data(page, "nodes"), "C");
    await page.frameLocator("#page").locator('[data-service="live"] .node').waitFor();
    await type(page, "C", "ping 10.0.0.1 -c 3");
    await eventually("answers", async () => (await output(page, "C")).includes("3 received"));

    const text = randomBytes(1 << 20);
    await upload(page, "up", text);
    const receiving = net("exec", "a-b-c/A", "recvfile", join(files, "got"), "5000");
    receiving.catch(() => {}); // a failure is reported below
    await eventually("A listens", async () => (await status("a-b-c/A", "sockets")).includes("5000"));
    await type(page, "C", "sendfile up 10.0.0.1 5000");
    await receiving;
    assert.equal(hash(readFileSync(join(files, "got"))), hash(text), "from the page to a process");

    await type(page, "C", "recvfile back 5001");
    await net("exec", "a-b-c/A", "sendfile", join(files, "got"), "10.1.0.2", "5001");
    await eventually("the file is there", async () => (await output(page, "C")).split("recvfile back").at(-1).includes("equal at both ends"));
    await page.click('role=tab[name="Files"]');
    await page.waitForSelector("td:text-is('back')");
    assert.equal(hash(await download(page, "back", "C")), hash(text), "from a process to the page");
    await page.screenshot({ path: join(artefacts, "playground-join.png") });
  }],
  ["a joined page says that it cannot stop or go back, and one page is one node", async () => {
    for (const id of ["play", "step", "speed", "scrub", "share"]) assert.ok(await page.isDisabled(`#${id}`), id);
    assert.match(await page.textContent("#reach"), /It runs in real time: it cannot pause or go back/);
    const second = await visit(undefined, address);
    await message(second, "The bridge refuses this page: another page already runs node C. The page starts with the first example.");
    await second.close();
    const wrong = await visit(undefined, address.slice(0, -4) + "AAAA");
    await message(wrong, "The bridge refuses this page: the token is wrong");
    await wrong.close();
    const half = await visit(undefined, "#join=127.0.0.1:1");
    await message(half, "This address is incomplete");
    await half.close();
    const none = await visit(undefined, "#join=127.0.0.1:1/C/TOKEN");
    await message(none, "No bridge answers at ws://127.0.0.1:1/C");
    await none.close();
  }],
  ["a joined page that is closed can join again, and notices when the bridge ends", async () => {
    await page.close();
    await eventually("the bridge notices", () => served.said().includes("C has left"));
    page = await visit(undefined, address);
    await type(page, "C", "ping 10.0.0.1 -c 1");
    await eventually("an answer", async () => (await output(page, "C")).includes("1 received"));
    await served.stop();
    await message(page, "The bridge has closed the connection: `node net serve` has ended. Press Restart to join again.");
    assert.deepEqual(page.complaints, []);
    await net("down", "a-b-c");
    await close();
  }],
];
