// The lessons of docs/learn as tours. Comments in their pages define the tours:
//
//   <!-- tour network …lines of a .net file… -->
//   <!-- tour check TEXT: NODE RESOURCE {"field": value, …} -->   of the API, or its files;
//                                                                 or of the laboratory: lab results
//   <!-- tour ask QUESTION = PATTERN -->                          of a right answer
//
// A check passes when a part of the resource has these fields. ">=1" stands for a number of at
// least 1, "~x" for a text that contains x.

import { element } from "./dom.js";
import { blocks, render } from "./markdown.js";

/** matches reports whether a value, or one item of a list, matches a pattern. */
export function matches(value, pattern) {
  if (Array.isArray(value)) return value.some((v) => matches(v, pattern));
  if (pattern && typeof pattern === "object") {
    return value !== null && typeof value === "object" && Object.entries(pattern).every(([k, p]) => matches(value[k], p));
  }
  if (typeof pattern === "string" && pattern.startsWith(">=")) return value >= Number(pattern.slice(2));
  if (typeof pattern === "string" && pattern.startsWith("~")) return typeof value === "string" && value.includes(pattern.slice(1));
  return value === pattern;
}

/** command returns what a line of a lesson does in the page: {start}, {node, line} or {lab, changes}; undefined: nothing. */
export function command(text) {
  const [, name, flags] = /^bin\/node lab run docs\/learn\/(\w+)\.yaml(.*)$/.exec(text) ?? [];
  if (name) {
    const changes = [...flags.matchAll(/--(set|sweep) (\S+)/g)].map(([, kind, change]) => ({ Sweep: kind === "sweep", Text: change }));
    return { lab: name, changes };
  }
  if (/^bin\/node net up /.test(text)) return { start: true };
  const [, node, line] = /^bin\/node ctl (\S+) (.*?)(?: \| .*)?$/.exec(text) ?? [];
  return node && { node, line };
}

/** tour reads a comment: {network}, {check, node, resource, pattern}, {ask, answer}, or {skip}: the page does not show the next block. */
export function tour(comment) {
  const [, kind, text] = /^\s*tour (network|check|ask|skip)\s+([\s\S]*?)\s*$/.exec(comment) ?? [];
  if (kind === "network") return { network: `${text}\n` };
  if (kind === "check") {
    const [, check, node, resource, pattern] = /^([^:]*): (\S+) (\S+) ([\s\S]*)$/.exec(text);
    return { check, node, resource, pattern: JSON.parse(pattern) };
  }
  if (kind === "skip") return { skip: true };
  if (kind === "ask") return { ask: text.slice(0, text.lastIndexOf(" = ")), answer: text.slice(text.lastIndexOf(" = ") + 3) };
  return {};
}

const period = 500; // milliseconds between two checks

export class Lessons {
  /** act.start(network), act.type(node, line), act.look(node, resource) and act.lab(name, changes) do what a lesson says. */
  constructor(act) {
    this.act = act;
    this.element = element(`<section class="lesson" aria-label="Lesson" hidden><div class="row">
      <button class="all">All lessons</button><output></output><button class="close">Close</button></div><div class="text" tabindex="0"></div></section>`);
    [this.text, this.count] = ["div.text", "output"].map((s) => this.element.querySelector(s));
    this.element.querySelector(".all").addEventListener("click", () => this.open());
    this.element.querySelector(".close").addEventListener("click", () => this.close());
    this.text.addEventListener("click", (e) => {
      const to = /^#lesson=(.+)$/.exec(e.target.closest("a")?.getAttribute("href") ?? "");
      if (!to) return;
      e.preventDefault();
      void this.open(to[1]);
    });
    this.checks = [];
  }

  close() {
    this.element.hidden = true;
    clearInterval(this.timer);
  }

  /** open shows the lesson with a name. README is the list of all lessons. */
  async open(name = "README") {
    clearInterval(this.timer);
    const answer = /^[\w-]+$/.test(name) && await fetch(`learn/${name}.md`);
    if (!answer?.ok) throw new Error(`There is no lesson ${name}.`);
    this.name = name;
    this.checks = [];
    this.network = "";
    const parts = blocks(await answer.text()).filter(([kind], i, all) => kind === "comment" || !tour(all[i - 1]?.[0] === "comment" ? all[i - 1][1] : "").skip);
    for (const [kind, text] of parts) if (kind === "comment") this.network ||= tour(text).network ?? "";
    const link = (url) => (/^[\w-]+\.md$/.test(url) ? `#lesson=${url.slice(0, -3)}` : /^[\w-]+\.svg$/.test(url) ? `learn/${url}` : /^https:/.test(url) ? url : "");
    const html = parts.map((b, i) => (["code", "comment"].includes(b[0]) ? `<div data-block="${i}"></div>` : render(b, link))).join("\n");
    this.text.innerHTML = html;
    for (const place of this.text.querySelectorAll("[data-block]")) {
      const [kind, text] = parts[place.dataset.block];
      place.replaceWith(kind === "code" ? this.code(text) : this.task(tour(text)));
    }
    this.element.hidden = false;
    this.text.scrollTop = 0;
    this.progress();
    this.timer = setInterval(() => this.look(), period);
  }

  /** code shows commands as buttons, with the expected output. */
  code(text) {
    const box = element('<div class="code"></div>');
    let hidden = false; // hide the output of a command that the page does not have
    for (const line of text.split("\n")) {
      const does = line.startsWith("$ ") ? command(line.slice(2)) : null;
      if (line.startsWith("$ ")) hidden = Boolean(this.network) && / net (up|down)| \| /.test(line);
      if (does?.start && this.network) {
        box.append(this.button("Start this network", () => this.start()));
      } else if (does?.node && this.network) {
        box.append(this.button(`${does.node}> ${does.line}`, () => this.act.type(does.node, does.line)));
      } else if (does?.lab) {
        box.append(this.button(`Run ${[does.lab, ...does.changes.map((c) => c.Text)].join(" ")}`, () => this.act.lab(does.lab, does.changes)));
      } else if (!hidden) {
        const last = box.lastElementChild;
        if (last?.tagName === "PRE") last.append(`\n${line}`);
        else box.append(Object.assign(document.createElement("pre"), { textContent: line }));
      }
    }
    return box;
  }

  button(text, act) {
    const b = Object.assign(document.createElement("button"), { textContent: text });
    b.addEventListener("click", act);
    return b;
  }

  start() {
    for (const c of this.checks) c.done = false;
    this.progress();
    return this.act.start(this.network);
  }

  /** task shows a check or a question of the tour. */
  task({ check, node, resource, pattern, ask, answer }) {
    if (check) {
      const mark = Object.assign(document.createElement("p"), { className: "check" });
      this.checks.push({ text: check, node, resource, pattern, mark, done: false });
      return mark;
    }
    if (!ask) return "";
    const form = element('<form class="ask"><label></label><div class="row"><input autocomplete="off" spellcheck="false"><button>Check</button><output></output></div></form>');
    const label = form.querySelector("label"), input = form.querySelector("input");
    input.id = `ask-${this.checks.length}`;
    label.htmlFor = input.id;
    label.textContent = ask;
    const c = { mark: form.querySelector("output"), done: false };
    this.checks.push(c);
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      c.done = new RegExp(`^(?:${answer})$`, "i").test(input.value.trim());
      c.mark.textContent = c.done ? "Right." : "No. Look at the output again, or open the answer below.";
      this.progress();
    });
    return form;
  }

  /** look runs the checks that have not passed yet. */
  async look() {
    const answers = new Map();
    for (const c of this.checks) {
      if (c.done || !c.pattern) continue;
      const key = `${c.node} ${c.resource}`;
      if (!answers.has(key)) answers.set(key, this.act.look(c.node, c.resource).catch(() => null));
      c.done = matches(await answers.get(key), c.pattern);
    }
    this.progress();
  }

  progress() {
    for (const c of this.checks.filter((c) => c.pattern)) {
      c.mark.textContent = `${c.done ? "✓" : "○"} ${c.text}${c.done ? "" : ": not yet"}`;
      c.mark.classList.toggle("good", c.done);
    }
    const text = this.checks.length ? `${this.checks.filter((c) => c.done).length} of ${this.checks.length} done` : "";
    if (this.count.textContent !== text) this.count.textContent = text;
  }
}
