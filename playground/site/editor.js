// The editor of the network: a diagram and the text of the .net file, with the errors under the line.

import { Diagram } from "./diagram.js";
import { element } from "./dom.js";
import { errorList } from "./errors.js";
import { examples } from "./examples.js";

const largest = 1 << 20; // bytes of a network file
const mostUndone = 50; // number of texts

export class Editor {
  /** ask.check(network) returns the errors of a text; ask.run() runs the network. */
  constructor(ask) {
    this.ask = ask;
    this.element = element(`<div><div class="editor"><div class="row"><label>Example <select></select></label>
      <label>Seed <input type="number" min="0" value="1"></label><button class="undo" disabled>Undo</button><button class="redo" disabled>Redo</button><button class="open">Open files…</button>
      <button class="run">Run this network</button></div>
      <label for="network">Network: a line for each link, such as <code>link A B delay 10ms</code>, or .lnx files</label>
      <textarea id="network" spellcheck="false"></textarea><ul class="errors" aria-live="polite"></ul></div></div>`);
    const [picker, textarea, seed, list, undo, redo] = ["select", "textarea", "input", ".errors", ".undo", ".redo"].map((s) => this.element.querySelector(s));
    Object.assign(this, { textarea, seedField: seed, list, undo, redo });
    this.before = []; // texts for Undo
    this.after = []; // texts for Redo
    this.last = ""; // the text before the current typing
    this.diagram = new Diagram((text) => this.change(text));
    this.element.querySelector(".editor").insertBefore(this.diagram.element, this.element.querySelector("[for=network]"));
    picker.append(...examples.map((e) => new Option(e.name)));
    picker.addEventListener("change", () => this.load(examples[picker.selectedIndex].network));
    let timer;
    textarea.addEventListener("input", () => {
      this.remember(this.last);
      clearTimeout(timer);
      timer = setTimeout(() => this.put(textarea.value), 200);
    });
    const chooser = element('<input type="file" multiple hidden accept=".net,.lnx,.txt">');
    document.body.append(chooser);
    this.element.querySelector(".open").addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => this.open([...chooser.files]));
    undo.addEventListener("click", () => this.move(this.before, this.after));
    redo.addEventListener("click", () => this.move(this.after, this.before));
    this.element.querySelector(".run").addEventListener("click", () => ask.run());
  }

  /** isNetwork reports whether a file's name is that of a network file. */
  static isNetwork(file) { return /\.(net|lnx)$/i.test(file.name); }

  /** open shows a .net file, or the .lnx files of a network, each after a line with its name. */
  async open(files) {
    const lnx = files.filter((f) => /\.lnx$/i.test(f.name));
    const plan = files.length === 1 && /\.(net|txt)$/i.test(files[0].name);
    const wrong = !plan && (files.length === 0 || lnx.length < files.length)
      ? `Choose one .net file, or only the .lnx files of a network, not ${files.map((f) => f.name).join(", ")}. The text is unchanged.`
      : files.some((f) => f.size > largest) ? `A network file can have at most ${largest.toLocaleString("en")} bytes. The text is unchanged.` : "";
    if (wrong) return this.show([{ line: 0, text: wrong }]);
    if (plan) return this.load(await files[0].text());
    const texts = await Promise.all(lnx.map(async (f) => `-- ${f.name} --\n${(await f.text()).trimEnd()}\n`));
    this.load(texts.sort().join("\n"));
  }

  get network() { return this.textarea.value; }
  /** seed is a whole number. The field then shows the number that is used. */
  get seed() {
    this.seed = Math.min(Math.max(0, Math.trunc(Number(this.seedField.value)) || 0), Number.MAX_SAFE_INTEGER);
    return Number(this.seedField.value);
  }
  set seed(x) { this.seedField.value = x; }

  /** remember keeps a text for Undo. */
  remember(text) {
    this.after.length = 0;
    this.redo.disabled = true;
    if (!text || text === this.textarea.value || text === this.before.at(-1)) return;
    this.before.push(text);
    if (this.before.length > mostUndone) this.before.shift();
    this.undo.disabled = false;
  }

  /** move shows the last text of a list, and puts this one into the other. */
  move(from, to) {
    to.push(this.textarea.value);
    this.last = from.pop();
    this.put(this.last);
  }

  /** change replaces the text; Undo brings it back. fresh: by another network. */
  change(text, fresh = false) {
    const was = this.textarea.value;
    this.textarea.value = text;
    this.remember(was);
    this.last = text;
    this.put(text, fresh);
  }

  /** load shows another network. */
  load(text) { this.change(text, true); }

  put(text, fresh = false) {
    if (this.textarea.value !== text) this.textarea.value = text;
    this.undo.disabled = this.before.length === 0;
    this.redo.disabled = this.after.length === 0;
    this.diagram.show(text, fresh);
    void this.ask.check(text).then((errors) => text === this.network && this.show(errors));
  }

  /** show lists errors under the lines that have them. */
  show(errors) {
    this.list.replaceChildren(...errorList(errors.map((e) => ({ ...e, file: "" })), () => this.network));
    this.textarea.setAttribute("aria-invalid", String(errors.length > 0));
    this.diagram.errors(errors.map((e) => e.line));
    // the list of errors must not cover the text while the user types
    if (errors.length > 0 && document.activeElement === this.textarea) this.textarea.scrollIntoView({ block: "nearest" });
  }
}
