// The page for users who cannot see it, have no mouse, or see only some of its colors.

import assert from "node:assert/strict";
import { eventually, linkId, net, open, pick, status, text } from "./bed.mjs";

export const tests = [];
const test = (name, f) => tests.push([name, f]);

/** views are what the panel may show, by the address. */
async function views(page, shared) {
  return {
    overview: "", node: "node:R1", link: await linkId(page, "A – R1"), routes: "routes:",
    ping: "ping", transfer: "transfer", connection: await connection(page, shared),
  };
}

/** connection is that of a transfer, which is long and slow, and nobody's page's. */
async function connection(page, shared) {
  if (!shared.traffic) {
    await net("exec", "A", "impair", "if0", "out", "rate", "2mbit", "loss", "2%");
    const { origin, hash } = new URL(shared.served.url);
    shared.traffic = new AbortController();
    fetch(`${origin}/v1/transfers`, {
      method: "POST", signal: shared.traffic.signal,
      headers: { Authorization: `Bearer ${hash.slice(7)}`, "Content-Type": "application/json" },
      body: JSON.stringify({ from: "A", to: "B", bytes: 100e6 }),
    }).then((r) => r.text()).catch(() => {});
  }
  await go(page, "");
  return eventually("a connection", async () => {
    // the element moves
    const all = page.locator('.list [data-arg^="connection:"]', { hasText: "bit/s" });
    return (await all.count()) && all.first().getAttribute("data-arg");
  });
}

async function go(page, what) {
  await page.evaluate((what) => { location.hash = what ? `#/${what}` : "#/"; }, what);
  const shown = { node: "section.interfaces", link: "#knob-loss", routes: "section.learned",
    ping: "#task-count", transfer: "#task-size", connection: ".figures", "": "section.nodes" };
  await page.waitForSelector(shown[what.split(":")[0]]);
}

export const interactive = new Set(["button", "link", "slider", "combobox", "radio", "textbox", "checkbox"]);

/** tree is what Chromium tells a screen reader: role, name and properties of what is not ignored. */
export async function tree(page) {
  const cdp = await page.context().newCDPSession(page);
  const { nodes } = await cdp.send("Accessibility.getFullAXTree");
  await cdp.detach();
  return nodes.filter((n) => !n.ignored).map((n) => ({
    role: n.role?.value, name: n.name?.value ?? "", value: n.value?.value,
    ...Object.fromEntries((n.properties ?? []).map((p) => [p.name, p.value.value])),
  }));
}

test("every view has names and roles for who does not see it", async (browser, shared) => {
  const page = await open(browser, shared);
  for (const [view, what] of Object.entries(await views(page, shared))) {
    await go(page, what);
    const all = await tree(page);
    const nameless = all.filter((n) => !n.name.trim() &&
      (interactive.has(n.role) || ["image", "table", "progressbar", "heading"].includes(n.role)));
    assert.deepEqual(nameless, [], `${view}: without a name`);
    const odd = all.filter((n) => n.focusable && n.role === "generic");
    assert.deepEqual(odd, [], `${view}: has the focus, and no role`);
    for (const role of ["main", "banner", "navigation", "complementary"]) {
      assert.equal(all.filter((n) => n.role === role).length, 1, `${view}: ${role}`);
    }
    const levels = all.filter((n) => n.role === "heading").map((n) => n.level);
    assert.equal(levels.filter((l) => l === 1).length, 1, `${view}: ${levels}`);
    assert.ok(levels.every((l, i) => i === 0 || l <= levels[i - 1] + 1), `${view}: ${levels}`);
    const graph = all.filter((n) => n.role === "button" && /^(Router|Host|Link) /.test(n.name));
    assert.equal(graph.length, 12, `${view}: nodes and links`);
    const shown = await page.locator("button:visible, select:visible, input:visible").count();
    const told = all.filter((n) => interactive.has(n.role)).length - graph.length;
    assert.ok(told >= shown, `${view}: ${shown} controls are shown, ${told} told`);
  }
  await go(page, await linkId(page, "A – R1"));
  const sliders = (await tree(page)).filter((n) => n.role === "slider");
  assert.deepEqual(sliders.map((n) => n.name), ["Loss", "Delay", "Rate"]);
  assert.ok(sliders.every((n) => n.valuetext), "sliders say their value in words");
});

/** stops are where the Tab key leads, once around, and whether each shows the focus. */
async function stops(page) {
  await page.evaluate(() => {
    window.reached = new Set();
    getSelection()?.removeAllRanges();
  });
  await page.locator(".skip").focus();
  const list = [];
  for (let i = 0; i < 200; i++) {
    const stop = await page.evaluate(() => {
      const e = document.activeElement;
      if (!e || e === document.body) return null;
      const line = (x) => {
        const c = getComputedStyle(x);
        return c.outlineStyle !== "none" && parseFloat(c.outlineWidth) >= 2;
      };
      const ring = e.querySelector?.(".ring, .halo");
      const seen = Boolean(line(e) || (e.matches(".skip") && e.offsetTop >= 0) || (e.matches(".segments input") && line(e.nextElementSibling)) ||
        (ring && !/none|transparent|\(0, 0, 0, 0\)/.test(getComputedStyle(ring).stroke)));
      window.reached.add(e);
      return { what: `${e.localName} ${e.dataset.what ?? e.textContent.trim() ?? e.id}`, seen };
    });
    if (!stop) break;
    list.push(stop);
    if (i > 0 && stop.what.startsWith("a Skip")) break;
    await page.keyboard.press("Tab");
  }
  return list;
}

test("Tab reaches every control, and the focus is seen", async (browser, shared) => {
  const page = await open(browser, shared);
  for (const [view, what] of Object.entries(await views(page, shared))) {
    await go(page, what);
    const unseen = (await stops(page)).filter((s) => !s.seen);
    assert.deepEqual(unseen, [], view);
    const missed = await page.evaluate(() => [...document.querySelectorAll(
      "button, select, input:not([type=radio]), input:checked, .graph [tabindex='0']")]
      .filter((e) => e.checkVisibility() && !e.disabled && !window.reached.has(e))
      .map((e) => e.outerHTML.slice(0, 90)));
    assert.ok(missed.length === 0, `${view}: not reached: ${missed.join("\n")}`);
  }
});

test("the keyboard alone does everything", async (browser, shared) => {
  const page = await open(browser, shared);
  await connection(page, shared);
  const key = (k) => page.keyboard.press(k);
  const here = () => page.evaluate(() => document.activeElement.textContent.trim());
  const tabTo = async (selector) => {
    for (let i = 0; i < 80; i++) {
      if (await page.evaluate((s) => document.activeElement?.matches(s), selector)) return;
      await key("Tab");
    }
    assert.fail(`Tab does not lead to ${selector}`);
  };
  await tabTo("nav [data-arg=ping]");
  await key("Enter");
  assert.equal(await here(), "Reachability and round-trip time", "the view's title has the focus");
  await tabTo("#task-count");
  await key("Home");
  await tabTo("form button[type=submit]");
  await key("Enter");
  await eventually("an answer", async () => /\d of 1\b/.test(await text(page, ".task")));
  await key("Escape");
  await page.locator(".skip").focus();
  await tabTo(".graph [data-what]");
  await key("Home");
  await key("ArrowRight");
  await key("Enter");
  assert.match(await text(page, "h2"), /A – R1|R1/);
  if ((await text(page, "h2")) === "R1") {
    await key("ArrowLeft");
    await key("Enter");
  }
  assert.equal(await text(page, "h2"), "A – R1");
  await tabTo("#knob-loss");
  await key("Home");
  await key("ArrowRight");
  await eventually("the node's loss", async () =>
    (await status("A", "impair")).includes("loss 0.1%"));
  await tabTo("button.danger");
  await key("Enter");
  await eventually("it is cut", () => page.locator("button.primary", { hasText: "Restore" }).count());
  assert.match(await here(), /Restore/, "the focus stays");
  await key("Enter");
  await eventually("it is whole", () => page.locator("button.danger").count());
  await key("Escape");
  assert.match(await page.evaluate(() => document.activeElement.dataset.what), /^link:/,
    "Escape leads back to where it was opened");
  await tabTo('[data-arg^="connection:"]');
  await key("Enter");
  assert.match(await here(), /A → B/);
});

test("what is live speaks seldom, and the focus stays where it is", async (browser, shared) => {
  const page = await open(browser, shared);
  await go(page, await connection(page, shared));
  await page.locator(".back").focus();
  await page.evaluate(() => {
    window.spoken = [];
    const live = "[aria-live=polite], [aria-live=assertive], [role=status], [role=alert], output:not([aria-live])";
    new MutationObserver((list) => {
      for (const m of list) {
        const e = (m.target.nodeType === 1 ? m.target : m.target.parentElement)?.closest(live);
        if (e?.textContent) window.spoken.push(e.textContent);
      }
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  const ticks = await page.evaluate(() => document.querySelector(".figures").textContent);
  await eventually("its figures move", () =>
    page.evaluate((was) => document.querySelector(".figures").textContent !== was, ticks));
  // Many events at once: a link goes down and up again, and routes change with it.
  for (const way of ["down", "up", "down", "up"]) await net("exec", "R4", way, "if0");
  await page.waitForTimeout(5000);
  const spoken = await page.evaluate(() => window.spoken);
  assert.ok(spoken.length <= 3, `${spoken.length} times: ${spoken.join(" | ")}`);
  assert.ok(await page.evaluate(() => document.activeElement.matches(".back")), "the focus stays");
});

test("nothing moves for who asks for less motion", async (browser, shared) => {
  const moving = (page) => page.evaluate(() =>
    document.getAnimations().filter((a) => a.playState === "running").length);
  let page = await open(browser, shared);
  await connection(page, shared);
  await eventually("dots run as packets do", () => moving(page));
  page = await open(browser, shared, { reducedMotion: "reduce" });
  await eventually("packets pass", () => page.locator(".flow").count());
  assert.equal(await moving(page), 0);
});

/** faint is what has too little contrast with what is behind it (WCAG 2.2, 1.4.3 and 1.4.11). */
export const faint = (page) => page.evaluate(() => {
  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  const rgba = (text) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = "#0000";
    pen.fillStyle = text;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const behind = (e) => {
    const layers = [];
    const body = e.closest?.(".badge")?.querySelector(".cost") ??
      e.closest?.(".node")?.querySelector(".body");
    if (body && e.localName === "text" && !e.matches(".setting, .under")) {
      return rgba(getComputedStyle(body).fill);
    }
    for (let at = e; at; at = at.parentElement) {
      const c = rgba(getComputedStyle(at).backgroundColor);
      layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const opacity = (e) => {
    let all = 1;
    for (let at = e; at; at = at.parentElement) all *= Number(getComputedStyle(at).opacity);
    return all;
  };
  const bad = [];
  const look = (what, color, under, e, want) => {
    const top = rgba(color);
    top[3] *= opacity(e);
    if (top[3] === 0) return;
    const ratio = contrast(over(top, under), under);
    if (ratio < want) bad.push(`${what}: ${ratio.toFixed(2)} of ${want}`);
  };
  let texts = 0, marks = 0;
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility() || e.closest(".hidden, .skip, :disabled, option")) continue;
    const c = getComputedStyle(e);
    const big = parseFloat(c.fontSize) >= 24 || (parseFloat(c.fontSize) >= 18.66 && c.fontWeight >= 700);
    texts++;
    look(`"${e.textContent.trim().slice(0, 30)}" in ${e.className.baseVal ?? e.className}`,
      e instanceof SVGElement ? c.fill : c.color, behind(e), e, big ? 3 : 4.5);
  }
  const graphics = (selector, property) => {
    for (const e of document.querySelectorAll(selector)) {
      if (!e.checkVisibility()) continue;
      marks++;
      look(`${selector} ${e.className.baseVal ?? e.className}`, getComputedStyle(e)[property],
        behind(e.parentElement), e, 3);
    }
  };
  graphics(".edge .line", "stroke");
  graphics(".edge .cross path", "stroke");
  graphics(".node .body", "stroke");
  graphics(".hop .line", "stroke");
  graphics(".swatch:not(.dashed)", "backgroundColor");
  graphics(".mark.host, .mark.router, .mark.link, select", "borderTopColor");
  graphics(".handle, .status", "color");
  const root = getComputedStyle(document.documentElement);
  for (const name of ["g0", "g1", "g2", "g3", "g4", "stress", "accent", "bad"]) {
    look(`--${name} in the picture`, root.getPropertyValue(`--${name}`),
      rgba(root.getPropertyValue("--stage")), document.body, 3);
    marks++;
  }
  for (const name of ["sent", "acked", "again", "cwnd", "level", "rtt", "g1", "g3", "accent", "good", "bad"]) {
    look(`--${name} in the panel`, root.getPropertyValue(`--${name}`),
      rgba(root.getPropertyValue("--surface")), document.body, 3);
    marks++;
  }
  return { bad, texts, marks };
});

test("text has a contrast of 4.5:1, and marks of 3:1, light and dark", async (browser, shared) => {
  for (const colorScheme of ["light", "dark"]) {
    for (const size of [{ width: 1280, height: 800 }, { width: 390, height: 844 }]) {
      const page = await open(browser, shared, { colorScheme, viewport: size, reducedMotion: "reduce" });
      for (const [view, what] of Object.entries(await views(page, shared))) {
        await go(page, what);
        const { bad, texts, marks } = await faint(page);
        assert.ok(texts > 10 && marks > 20, `${texts} texts and ${marks} marks were looked at`);
        assert.deepEqual(bad, [], `${view}, ${colorScheme}, ${size.width} pixels`);
      }
      const [wide, high] = await page.evaluate(() =>
        [document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight]);
      assert.ok(wide <= 0 && high <= 0, `the page is ${wide} pixels too wide, ${high} too high`);
    }
  }
});

test("load, queue and loss are shown by more than color", async (browser, shared) => {
  const page = await open(browser, shared);
  const heights = await page.evaluate(() =>
    [...document.querySelectorAll(".legend .swatch:not(.dashed)")].map((e) => e.offsetHeight));
  assert.ok(heights.length >= 4);
  for (let i = 1; i < heights.length; i++) assert.ok(heights[i] > heights[i - 1], `${heights}`);
  const widths = await page.evaluate(() => {
    const e = document.querySelector(".edge");
    const was = e.getAttribute("class");
    const line = e.querySelector(".line");
    line.style.transition = "none";
    const list = [0, 1, 2, 3, 4].map((g) => {
      e.setAttribute("class", `edge g${g}`);
      return parseFloat(getComputedStyle(line).strokeWidth);
    });
    e.setAttribute("class", was);
    return list;
  });
  for (let i = 1; i < 5; i++) assert.ok(widths[i] >= widths[i - 1] + 1.5, `${widths}`);
  shared.traffic?.abort();
  await net("exec", "A", "impair", "if0", "out", "off");
});
