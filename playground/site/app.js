// The playground's page: the clock, the terminals, the editor and the files. The worker runs the
// network. The network's own page, in the frame, sends it requests through playground.fetch.

import { element } from "./dom.js";
import { Editor } from "./editor.js";
import { examples } from "./examples.js";
import { Lab } from "./lab.js";
import { Lessons } from "./lessons.js";
import { read, write } from "./link.js";
import { keep } from "./offline.js";
import { worker } from "./start.js";
import { Terminal } from "./terminal.js";

const $ = (id) => document.getElementById(id);
const waiting = new Map(); // requests to the worker, by id
let ids = 0, numbers = 0;

/** ask sends the worker one message and returns its answer. */
function ask(name, value, transfer = []) {
  return new Promise((resolve, reject) => {
    waiting.set(++ids, { resolve, reject });
    worker.postMessage({ [name]: value, id: ids }, transfer);
  });
}

const readable = 10_000; // milliseconds for which a message is shown
let fading;
/** say shows a message. An error stays until the next message, or until the user dismisses it. */
const say = (text, bad = false, stay = bad) => {
  clearTimeout(fading);
  $("message").textContent = text;
  $("message").className = bad ? "bad" : "";
  if (text && !stay) fading = setTimeout(() => say(""), readable);
};
$("dismiss").addEventListener("click", () => say(""));
const complain = (e) => say(e.message, true);

// Requests from the network's page.

const responses = new Map(); // by number
const reads = (how) => ["GET", "HEAD"].includes((how?.method ?? "GET").toUpperCase());

window.playground = {
  fetch(path, how = {}) {
    const headers = new Headers(how.headers);
    const request = { number: ++numbers, method: how.method ?? "GET", path, accept: headers.get("Accept") ?? "", body: how.body ?? "" };
    return new Promise((resolve, reject) => {
      const r = { resolve, reject };
      r.body = new ReadableStream({ start(to) { r.to = to; }, cancel() { leave(request, how); } });
      responses.set(request.number, r);
      how.signal?.addEventListener("abort", () => {
        if (!responses.delete(request.number)) return;
        leave(request, how);
        const gone = new DOMException("The request was aborted", "AbortError");
        reject(gone);
        r.to.error(gone);
      });
      if (reads(how)) worker.postMessage({ get: request });
      else ask("input", { request }).catch((e) => { complain(e); reject(new TypeError(e.message)); });
    });
  },
};

function leave(request, how) {
  responses.delete(request.number);
  if (reads(how)) worker.postMessage({ leave: request.number });
  else ask("input", { abort: request.number }).catch(complain);
}

const told = {
  ready: () => document.body.classList.add("ready"),
  head({ number, status, headers }) {
    const r = responses.get(number);
    if (!r || r.begun) return; // after a jump, the worker sends the request again
    r.begun = true;
    r.resolve(new Response([204, 304].includes(status) ? null : r.body, { status, headers }));
  },
  body: ({ number, bytes }) => responses.get(number)?.to.enqueue(bytes),
  end(number) {
    const r = responses.get(number);
    responses.delete(number);
    try { r?.to.close(); } catch { /* the page has left */ }
  },
  output: ({ node, text, at }) => addTerminal(node).print(at, text),
  opened() {
    for (const r of responses.values()) r.reject(new TypeError("another network was started"));
    responses.clear();
    terminals.clear();
    marks = [];
    $("marks").replaceChildren();
  },
  changed(at) { // drops output that comes after this time
    for (const t of terminals.values()) t.forget(at);
    for (const m of marks) if (m.at > at) m.button.remove();
    marks = marks.filter((m) => m.at <= at);
  },
  mark({ at, text }) {
    if (marks.some((m) => m.text === text)) return;
    const b = Object.assign(document.createElement("button"), { textContent: `${text}, ${seconds(at)}` });
    b.addEventListener("click", () => seek(at));
    marks.push({ at, text, button: b });
    $("marks").append(b);
  },
  state: show,
  problem: (text) => say(text, true),
  crashed(text) {
    say(`The network has stopped: ${text}. Press Restart to run it again.`, true);
    setSpeed(0);
  },
};

worker.onmessage = ({ data }) => {
  if (data.id) {
    const w = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error !== undefined) w.reject(Object.assign(new Error(data.error), { errors: data.errors }));
    else w.resolve(data.answer);
    return;
  }
  const [name, value] = Object.entries(data)[0];
  told[name](value);
};
worker.onerror = (e) => say(`The worker failed: ${e.message}`, true);

// Time.

let state = { at: 0, end: 0 }, speed = 0, marks = [], dragging = false;
const seconds = (ns) => `${(ns / 1e9).toFixed(3)} s`;

function show(now) {
  state = now;
  for (const t of terminals.values()) t.move(now.at);
  document.body.dataset.hash = now.hash;
  document.body.dataset.at = now.at;
  $("now").textContent = seconds(now.at);
  $("scrub").max = Math.max(1, Math.ceil(now.end / 1e6));
  if (!dragging) $("scrub").value = Math.round(now.at / 1e6);
  $("scrub").setAttribute("aria-valuetext", seconds(now.at));
  const behind = now.speed > 0 && now.slow < 0.7 ? " · slower than the chosen speed: this computer cannot keep up" : "";
  $("figures").textContent = `${now.packets.toLocaleString("en")} packets · ${now.retransmits} retransmitted · hash ${now.hash}${behind}`;
}

function setSpeed(x) {
  speed = x;
  $("play").textContent = x > 0 ? "Pause" : "Play";
  $("play").setAttribute("aria-pressed", String(x > 0));
}

function play(on) {
  setSpeed(on ? Number($("speed").value) : 0);
  return ask("speed", speed).catch(complain);
}

let seeking = Promise.resolve(), wanted = null;
/** seek moves in time. While the slider is dragged, only the last position counts. */
function seek(at) {
  wanted = at;
  seeking = seeking.then(async () => {
    if (wanted !== at) return;
    await play(false);
    const { took } = await ask("seek", at);
    document.body.dataset.took = took;
    void listFiles();
  }).catch(complain);
  return seeking;
}

$("play").addEventListener("click", () => play(speed === 0));
$("speed").addEventListener("change", () => speed > 0 && play(true));
$("step").addEventListener("click", () => play(false).then(() => ask("step", 1e6)).catch(complain));
$("scrub").addEventListener("pointerdown", () => { dragging = true; });
addEventListener("pointerup", () => { dragging = false; });
$("scrub").addEventListener("input", () => seek(Number($("scrub").value) * 1e6));

// The tools.

// show only the network and the terminals
const embedded = new URLSearchParams(location.search).has("embed");
document.body.classList.toggle("embedded", embedded);
const terminals = new Map();
const panels = new Map();
let chosen = "Network";

function addTab(name, panel) {
  const id = `tab-${panels.size}`;
  const tab = Object.assign(document.createElement("button"), { textContent: name, id });
  tab.setAttribute("role", "tab");
  panel.setAttribute("role", "tabpanel");
  panel.setAttribute("aria-labelledby", id);
  tab.addEventListener("click", () => choose(name));
  tab.addEventListener("keydown", (e) => {
    const all = [...panels.keys()], by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!by) return;
    choose(all.at((all.indexOf(name) + by) % all.length));
    panels.get(chosen).tab.focus();
  });
  $("tabs").append(tab);
  $("panels").append(panel);
  panels.set(name, { tab, panel });
}

function choose(name) {
  chosen = panels.has(name) ? name : "Network";
  for (const [n, { tab, panel }] of panels) {
    panel.hidden = n !== chosen;
    tab.setAttribute("aria-selected", String(n === chosen));
    tab.tabIndex = n === chosen ? 0 : -1;
  }
  // an embedded page does not take the focus
  if (!embedded || document.hasFocus()) terminals.get(chosen)?.input.focus({ preventScroll: true });
  if (chosen === "Files") void listFiles();
  if (chosen === "Laboratory") lab.load().catch(complain);
}

const editor = new Editor({
  check: (network) => ask("check", { network }).catch((e) => {
    complain(e);
    return [];
  }),
  run: () => start({ network: editor.network, seed: editor.seed }),
});

const files = element(`<div><div class="editor"><p class="hint">Each node has its own files, in memory. A capture is a file too: type
  <code>capture all -w a.pcapng</code> in a node's shell and later <code>capture stop</code>, then download it here.</p>
  <form class="row"><label>To <select></select></label><input type="file" aria-label="File to upload"></form>
  <table aria-label="Files of the nodes"><thead><tr><th>Node<th>File<th class="number">Bytes<th></tr></thead><tbody></tbody></table></div></div>`);
const [fileNode, fileInput, fileRows] = ["select", "input", "tbody"].map((s) => files.querySelector(s));
const largest = 64 << 20; // the same as playground.MaxFile

fileInput.addEventListener("change", async () => {
  const file = fileInput.files[0];
  if (!file) return;
  fileInput.value = "";
  await upload(fileNode.value, file);
  await listFiles();
});

/** upload gives a file to a node. */
async function upload(node, file) {
  if (file.size > largest) {
    say(`${file.name} has ${file.size.toLocaleString("en")} bytes; the limit is ${largest.toLocaleString("en")}.`, true);
    return;
  }
  const url = await new Promise((done) => {
    const r = new FileReader();
    r.onload = () => done(r.result);
    r.readAsDataURL(file);
  });
  try {
    await ask("input", { node, file: file.name, data: url.slice(url.indexOf(",") + 1) });
    say(`${file.name} is now on ${node}.`);
  } catch (e) {
    complain(e);
  }
}

/** drop takes dropped files: those of a network for the editor, others for the node of the open tab. */
async function drop(list) {
  if (embedded) return say("This network is embedded in another page and accepts no files: open it in the playground.", true);
  if (chosen === "Network" || list.some(Editor.isNetwork)) {
    choose("Network");
    return editor.open(list);
  }
  if (chosen === "Laboratory") return say("Drop files on a node's tab or on the tab Files.", true);
  for (const file of list) await upload(chosen === "Files" ? fileNode.value : chosen, file);
  if (chosen === "Files") await listFiles();
}

/** takeDrops keeps the browser from leaving the page for a dropped file. */
function takeDrops(target) {
  const takes = (f) => (e) => {
    // without files, text is dragged between fields
    if (!e.dataTransfer?.types.includes("Files")) return;
    e.preventDefault();
    f(e);
  };
  target.addEventListener("dragover", takes(() => {}));
  target.addEventListener("drop", takes((e) => drop([...e.dataTransfer.files]).catch(complain)));
}
takeDrops(window);

async function listFiles() {
  let list;
  try {
    list = await ask("list");
  } catch (e) {
    return complain(e);
  }
  fileRows.replaceChildren(...list.map(({ node, name, size }) => {
    const row = document.createElement("tr");
    const cell = (text) => Object.assign(document.createElement("td"), { textContent: text });
    const load = Object.assign(document.createElement("button"), { textContent: "Download" });
    load.setAttribute("aria-label", `Download ${name} of ${node}`);
    load.addEventListener("click", () => download(node, name).catch(complain));
    const [number, last] = [cell(size.toLocaleString("en")), document.createElement("td")];
    number.className = "number";
    last.append(load);
    row.append(cell(node), cell(name), number, last);
    return row;
  }));
}

async function download(node, name) {
  const bytes = await ask("file", { node, name });
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([bytes]));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 60_000);
}

/** type enters a line at a node. */
function type(node, line) {
  choose(node);
  if (terminals.has(node)) return terminals.get(node).ask.line(line);
  say("Start the lesson's network first.", true);
}

const lab = new Lab({
  async use(node, name, script) {
    const errors = await ask("check", { name, script });
    if (errors.length === 0) {
      await upload(node, new File([script], name));
      type(node, `set tcp.congestion ${name}`);
    }
    return errors;
  },
});
const lessons = new Lessons({
  start: (network) => start({ network, seed: 1 }),
  type,
  lab(name, changes) {
    choose("Laboratory");
    return lab.lesson(name, changes).catch(complain);
  },
  async look(node, resource) {
    if (resource === "results") return lab.results;
    if (resource === "files") return (await ask("list")).filter((f) => f.node === node);
    return (await window.playground.fetch(`/v1/nodes/${node}/${resource}`)).json();
  },
});
$("tabs").before(lessons.element);
$("lessons").addEventListener("click", () => lessons.open().catch(complain));

// Starting, and links.

const reload = () => new Promise((done) => {
  $("page").onload = () => {
    takeDrops($("page").contentWindow);
    done();
  };
  $("page").src = "page/index.html";
});

/** start runs a network from its beginning or up to a link's position, or joins a bridge's network. */
async function start({ network, seed, inputs = [], at = 0, address }) {
  say("Starting…", false, true);
  if (!address && editor.network !== network) editor.load(network);
  if (!address) editor.seed = seed;
  // the picture waits for the network
  const picture = document.body.dataset.nodes || address ? null : reload();
  let opened;
  try {
    opened = await (address ? ask("join", { address }) : ask("open", { config: { network, seed, inputs }, at }));
  } catch (e) { // the network before this one remains
    if (e.errors) editor.show(e.errors);
    choose("Network");
    return complain(e.errors ? new Error("The network file has errors.") : e);
  }
  editor.show([]);
  joined(Boolean(address));
  setSpeed(0);
  for (const [name, { tab, panel }] of panels) {
    tab.remove();
    panel.remove();
    panels.delete(name);
  }
  for (const name of opened.nodes) {
    const panel = document.createElement("div");
    panel.append(addTerminal(name).element);
    addTab(name, panel);
  }
  if (!embedded) {
    addTab("Network", editor.element);
    addTab("Files", files);
    addTab("Laboratory", lab.element);
  }
  for (const list of [fileNode, lab.nodes]) list.replaceChildren(...opened.nodes.map((n) => new Option(n)));
  choose(opened.nodes[0]);
  document.body.dataset.nodes = opened.nodes.join(" ");
  await (picture ?? reload());
  say(opened.errors.length ? `A command or file in the link failed: ${opened.errors[0]}` : "", opened.errors.length > 0);
  if (at === 0) await play(true);
}

/** joined shows whether the page is a node of another network, which runs in real time. */
function joined(is) {
  document.body.classList.toggle("joined", is);
  for (const id of ["play", "step", "speed", "scrub", "share", "embed"]) $(id).disabled = is;
  $("reach").textContent = is ? "This page is a node of another network. It runs in real time: it cannot pause or go back."
    : "Everything runs in this page. A browser has no real sockets, so these hosts reach only each other.";
}

function addTerminal(node) {
  if (!terminals.has(node)) {
    const input = (i) => ask("input", { node, ...i }).catch(complain);
    terminals.set(node, new Terminal(node, {
      line: (line) => {
        say(""); // the message was about an earlier command
        return input({ line }).then(() => speed === 0 && play(true));
      },
      stop: () => input({ stop: true }),
      complete: (line) => ask("complete", { node, line }),
    }));
  }
  return terminals.get(node);
}

/** copy puts a text on the clipboard. If the browser refuses that, copy calls otherwise. */
const copy = (text, done, otherwise) => navigator.clipboard.writeText(text).then(() => say(done), otherwise);

/** address returns the link that holds the network as it is now. */
async function address(query) {
  const { network, seed, inputs, at } = await ask("log");
  const to = new URL(location.href);
  to.search = query;
  to.hash = await write({ network, seed, inputs, at });
  return to.href;
}

$("share").addEventListener("click", async () => {
  try {
    const url = await address("");
    history.replaceState(null, "", url);
    await copy(url, "Copied the link to the clipboard.", () => say("The browser refused to copy the link. It is in the address bar."));
  } catch (e) {
    complain(e);
  }
});
$("embed").addEventListener("click", async () => {
  try {
    const html = `<iframe src="${await address("?embed")}" width="900" height="500" title="A network of tidepool" loading="lazy"></iframe>`;
    await copy(html, "Copied the HTML to the clipboard.", () => say(html, false, true));
  } catch (e) {
    complain(e);
  }
});
$("whole").addEventListener("click", async (e) => {
  e.preventDefault();
  try {
    window.open(await address(""));
  } catch (error) {
    complain(error);
  }
});

$("restart").addEventListener("click", () => (document.body.classList.contains("joined") ? begin()
  : start({ network: editor.network, seed: editor.seed })));

async function begin() {
  if (!panels.has("Network")) addTab("Network", editor.element);
  choose("Network");
  const first = { network: examples[0].network, seed: 1 };
  const fragment = location.hash.slice(1);
  if (!fragment) return start(first);
  if (fragment.startsWith("lesson=")) {
    await start(first);
    return lessons.open(fragment.slice(7)).catch(complain);
  }
  if (fragment.startsWith("join=")) {
    await start({ address: fragment.slice(5) });
    if (!document.body.dataset.nodes) {
      const why = $("message").textContent;
      await start(first);
      complain(new Error(`${why} The page starts with the first example.`));
    }
    return;
  }
  let experiment;
  try {
    experiment = await read(fragment);
  } catch (e) {
    const running = document.body.dataset.nodes;
    if (!running) await start(first);
    return complain(new Error(`${e.message} ${running ? "The running network is unchanged." : "The page starts with the first example."}`));
  }
  await start(experiment);
}
addEventListener("hashchange", begin);
void begin().finally(() => keep((text) => { $("offline").textContent = text; }));
