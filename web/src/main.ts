// The page: the map, the panel next to it, and the events between them.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { host } from "./address";
import { arrows, prefixes, routesView } from "./routesview";
import { connectionView, plot, remember, sender } from "./connection";
import { h, lay, type Child } from "./dom";
import { Graph, legends, steps, type Mode } from "./graph";
import { chooseDirection, clearSettings, forget, linkView, setCut, turnKnob } from "./linkview";
import { connectionsView, logView, nodeView, overview } from "./overview";
import { begin, Problem, Stream } from "./server";
import { load, save } from "./storage";
import { Store } from "./store";
import { running, setTask, start, stopTask, tasksSection, taskView } from "./tasks";
import { empty, prose, type Context } from "./view";

const store = new Store();
const stream = new Stream(store);
const app = document.getElementById("app")!;

let selected = "";
let sheet: "peek" | "half" | "full" = innerHeight < 400 ? "peek" : "half"; // as in the playground on a phone
let theme = load("theme") ?? "auto";

const context: Context = { store, go };
const graph = new Graph(store, (what) => go(what));

const live = h("div", { class: "hidden", role: "status", "aria-live": "polite" });
const status = h("span", { class: "status" });
const title = h("h1", null, "tidepool");
const panel = h("div", { class: "content" });
const back = h("button", { class: "back", "data-do": "go", "data-arg": "", "aria-label": "All: back to the overview" }, "All");
const handle = h("button", { class: "handle", "data-do": "sheet", "aria-label": "Panel height" });
const veil = h("div", { class: "veil", role: "alert" });
const modes = h("fieldset", { class: "segments modes" });
const legend = h("ol", { class: "legend", "aria-label": "Legend of link colors and widths" });
const over = h("div", { class: "over" }, modes, legend);

app.append(
  h("a", { class: "skip", href: "#panel" }, "Skip the map"),
  h("header", { class: "top" },
    h("span", { class: "brand", "aria-hidden": "true" }), h("div", { class: "name" }, title, status),
    h("nav", { "aria-label": "Actions" },
      h("button", { "data-do": "go", "data-arg": "ping" }, "Ping"),
      h("button", { "data-do": "go", "data-arg": "transfer" }, "Transfer"),
      h("button", { "data-do": "go", "data-arg": "routes:" }, "Routes"),
      h("button", { class: "icon", "data-do": "theme" }))),
  h("main", { class: "stage" }, graph.element, graph.dots,
    h("p", { id: "graph-help", class: "hidden" },
      "Arrow keys move between nodes and links; Enter opens the focused one."),
    over, veil),
  h("aside", { class: "panel", id: "panel", "aria-label": "Details", tabindex: -1 }, handle, back, panel),
  live,
);

/** go selects something and adds it to the browser's history. */
function go(what: string): void {
  if (what === selected) {
    render();
    return;
  }
  history.pushState(null, "", what ? `#/${encodeURI(what)}` : location.pathname);
  choose(what, true);
}

function choose(what: string, moved: boolean): void {
  if (selected.startsWith("link:") || what.startsWith("link:")) forget();
  selected = what;
  if (moved && sheet === "peek") sheet = "half";
  follow();
  render();
  panel.scrollTop = 0;
  if (moved && what && !graph.element.contains(document.activeElement)) {
    panel.querySelector<HTMLElement>("h2")?.focus({ preventScroll: true });
  }
  if (moved) store.onSay(panel.querySelector("h2")?.textContent ?? "Overview");
}

addEventListener("popstate", () => {
  if (location.hash.startsWith("#token=")) admit();
  else choose(fromAddress(), false);
});

function fromAddress(): string {
  return location.hash.startsWith("#/") ? decodeURI(location.hash.slice(2)) : "";
}

function follow(): void {
  if (!selected.startsWith("connection:")) {
    stream.follow([], "");
    return;
  }
  const id = selected.slice("connection:".length);
  const c = store.connection(id);
  if (!c) return;
  remember(store, c);
  stream.follow([c.a, c.b].filter((e) => e !== null).map((e) => `${e.node}/${e.socket.sid}`),
    segmentsOf(store, id));
}

/** segmentsOf names the ends whose segments the stream should send. */
function segmentsOf(store: Store, id: string): string {
  const { id: from, peer } = sender(store, id);
  return peer ? `${from},${peer}` : from;
}

function view(): Child[] {
  const [sort, rest] = [selected.split(":", 1)[0]!, selected.slice(selected.indexOf(":") + 1)];
  switch (sort) {
    case "node": {
      const n = store.nodes.get(rest);
      return n ? nodeView(context, n) : [empty(`There is no node ${rest} in this network.`)];
    }
    case "link": {
      const l = store.link(rest);
      return l ? linkView(context, l) : [empty("There is no such link.")];
    }
    case "connection": return connectionView(context, rest);
    case "routes": return routesView(context, rest);
    case "log": return logView(context);
    case "connections": return connectionsView(context);
    case "ping": return taskView(context, "ping");
    case "transfer": return taskView(context, "transfer");
    default: return [running() > 0 && tasksSection(store), ...overview(context)];
  }
}

function stress(): void {
  graph.highlight = null;
  if (selected.startsWith("routes:")) {
    const prefix = selected.slice(7) || prefixes(store)[0];
    if (prefix) graph.highlight = arrows(store, prefix);
  } else if (selected.startsWith("connection:")) {
    const c = store.connection(selected.slice(11));
    if (!c || !c.b) return;
    const from = sender(store, selected.slice(11)).id.startsWith(`${c.b.node}/`) ? c.b : c.a;
    const path = store.path(from.node, host(from.socket.remote));
    graph.highlight = {
      links: new Set(path.links), nodes: new Set(path.nodes), hops: [], costs: new Map(), target: path.nodes.at(-1) ?? "",
    };
  }
}

const veils: Partial<Record<Store["service"], [string, string]>> = {
  connecting: ["Connecting…", ""],
  away: ["The server does not answer", "The server has stopped, or the connection to it is down. If you restart `node net serve` or `node run --listen`, open the new address that it prints. "
    + "If the old server answers again, this page reconnects."],
  refused: ["Access denied: the token is missing or wrong", "Open the complete address that `node net serve` or `node run --listen` printed: it contains the token."],
  stale: ["No data from the server", "The connection to the server is open, but no data has arrived for 4 seconds. The page is waiting."],
  paused: ["Paused while the page was hidden", ""],
};

function render(): void {
  document.body.dataset["sheet"] = sheet;
  document.body.dataset["service"] = store.service;
  graph.selected = selected;
  if (selected.startsWith("connection:")) follow();
  stress();
  graph.draw();
  back.hidden = selected === "";
  const within = panel.contains(document.activeElement);
  lay(panel, view());
  if (within && !panel.contains(document.activeElement)) { // the focused element is gone
    (panel.querySelector<HTMLElement>("h2") ?? app.querySelector<HTMLElement>("#panel"))!
      .focus({ preventScroll: true });
  }
  plot(store, panel, themeNow());
  const name = store.shape?.name || "tidepool";
  title.textContent = name;
  document.title = `${name} · tidepool`;
  const all = [...store.nodes.values()];
  const down = all.length > 0 && all.every((n) => n.heard && !n.up);
  let words = veils[store.service];
  if (store.service === "live" && down) {
    words = ["The network is down", "No node answers. Start the network with `node net up`; this page then reconnects."];
  }
  status.textContent = store.service === "live" ? store.summary() : words?.[0] ?? "";
  status.className = `status ${store.service === "live" && all.every((n) => n.up || !n.heard) ? "good" : "bad"}`;
  lay(veil, words && (store.service !== "connecting" || all.length === 0)
    ? [h("div", null, h("strong", null, words[0]), words[1] && h("p", null, prose(words[1])))] : []);
  renderLegend();
  const nav = { ping: "ping", transfer: "transfer", "routes:": "routes" };
  for (const b of app.querySelectorAll<HTMLElement>("nav [data-arg]")) {
    const sort = nav[b.dataset["arg"] as keyof typeof nav];
    b.setAttribute("aria-pressed", String(selected.split(":")[0] === sort));
  }
}

function renderLegend(): void {
  lay(modes, [h("legend", { class: "hidden" }, "Color of links"),
    ...(["load", "queue", "loss"] as Mode[]).map((m) => h("label", { "data-key": m },
      h("input", { type: "radio", name: "mode", value: m, "data-on": "mode", checked: graph.mode === m }),
      h("span", null, legends[m].title)))]);
  const step = (sort: string, text: string): Child => h("li", { "data-key": sort },
    h("span", { class: `swatch ${sort}`, "aria-hidden": "true" }), text);
  lay(legend, [steps(store, graph.mode).map((t, i) => t && step(`g${i}`, t)),
    store.links.some((l) => store.impaired(l)) && step("dashed", "impaired"),
    store.links.some((l) => store.cut(l)) && step("cut", "cut")]);
  graph.reserve(graph.element.clientHeight - over.offsetTop + 4);
}

function themeNow(): string {
  return theme !== "auto" ? theme
    : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function applyTheme(): void {
  document.documentElement.dataset["theme"] = themeNow();
  const b = app.querySelector<HTMLElement>("[data-do=theme]")!;
  b.textContent = { auto: "◐", light: "○", dark: "●" }[theme] ?? "◐";
  b.setAttribute("aria-label", `Colors: ${theme}`);
  b.title = `Colors: ${theme}`;
}

app.addEventListener("click", (e) => {
  const b = (e.target as Element).closest<HTMLElement>("[data-do]");
  if (!b) return;
  const arg = b.dataset["arg"] ?? "";
  switch (b.dataset["do"]) {
    case "go": go(arg); break;
    case "cut": case "restore": {
      const l = store.link(arg);
      if (l) void setCut(store, l, b.dataset["do"] === "cut");
      break;
    }
    case "clear": {
      const l = store.link(arg);
      if (l) void clearSettings(store, l);
      break;
    }
    case "stop": stopTask(Number(arg)); break;
    case "sheet": {
      sheet = sheet === "half" ? "full" : sheet === "full" ? "peek" : "half";
      render();
      break;
    }
    case "theme":
      theme = { auto: "light", light: "dark", dark: "auto" }[theme] ?? "auto";
      save("theme", theme);
      applyTheme();
      render();
  }
});

app.addEventListener("input", (e) => {
  const i = e.target as HTMLInputElement;
  if (i.dataset["on"] === "knob") turnKnob(store, i);
});

app.addEventListener("change", (e) => {
  const i = e.target as HTMLInputElement;
  switch (i.dataset["on"]) {
    case "mode": graph.mode = i.value as Mode; render(); break;
    case "way": chooseDirection(store, i.value); break;
    case "prefix": go(`routes:${i.value}`); break;
    case "task": setTask(store, i.id, i.value);
  }
});

app.addEventListener("submit", (e) => {
  e.preventDefault();
  const sort = (e.target as HTMLElement).dataset["form"];
  if (sort === "ping" || sort === "transfer") void start(store, sort);
});

addEventListener("keydown", (e) => {
  if (e.key === "Escape" && selected && !(e.target instanceof HTMLSelectElement)) { // Escape closes its list
    const was = selected;
    go("");
    if (was.startsWith("node:") || was.startsWith("link:")) graph.focus(was);
  }
});

// Announcements to screen readers are batched and rate-limited: a cut link changes many routes at once.
const bundle = 700, quiet = 4000; // milliseconds
let said: string[] = [];
let unsaid = 0; // announcements beyond the batch's limit
let spoken = -quiet;
let saying = 0;
store.onSay = (text) => {
  if (said.length < 4) said.push(text);
  else unsaid++;
  saying ||= window.setTimeout(() => {
    live.textContent = said.join(". ").replaceAll("`", "") + (unsaid > 0 ? `. And ${unsaid} more.` : ".");
    said = [];
    unsaid = saying = 0;
    spoken = performance.now();
  }, Math.max(bundle, spoken + quiet - performance.now()));
};

/** admit stores the token of the address bar, if any, and opens the stream. */
function admit(): void {
  begin().catch((e: Error) => {
    store.service = e instanceof Problem ? "refused" : "away";
  }).finally(() => {
    stream.open(); // it retries until the server answers
    render();
  });
}

const least = 100; // milliseconds between two renders for the stream
let due = 0, rendered = 0;
store.onChange = () => {
  due ||= window.setTimeout(() => requestAnimationFrame(() => {
    due = 0;
    rendered = performance.now();
    render();
  }), Math.max(0, rendered + least - performance.now()));
};
store.onShape = () => graph.shape();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  applyTheme();
  render();
});
addEventListener("resize", () => render());

applyTheme();
selected = fromAddress();
admit();
