// The editor of the network: a diagram and the text of the .net file, with the errors under the line.

import { Diagram } from "./diagram.js";
import { element } from "./dom.js";
import { errorList } from "./errors.js";
import { examples } from "./examples.js";

const largest = 1 << 20; // bytes of a network file

export class Editor {
  /** ask.check(network) returns the errors of a text; ask.run() runs the network. */
  constructor(ask) {
    this.ask = ask;
    this.element = element(`<div><div class="editor"><div class="row"><label>Example <select></select></label>
      <label>Seed <input type="number" min="0" value="1"></label><button class="undo" disabled>Undo</button><button class="open">Open files…</button>
      <button class="run">Run this network</button></div>
      <label for="network">Network: one line for each link, <code>link A B</code> and its impairments; or .lnx files</label>
      <textarea id="network" spellcheck="false"></textarea><ul class="errors" aria-live="polite"></ul></div></div>`);
    const [picker, textarea, seed, list, undo] = ["select", "textarea", "input", ".errors", ".undo"].map((s) => this.element.querySelector(s));
    Object.assign(this, { textarea, seedField: seed, list, undo });
    this.undone = []; // texts before changes in the diagram
    this.diagram = new Diagram((text) => {
      this.undone.push(textarea.value);
      this.put(text);
    });
    this.element.querySelector(".editor").insertBefore(this.diagram.element, this.element.querySelector("[for=network]"));
    picker.append(...examples.map((e) => new Option(e.name)));
    picker.addEventListener("change", () => this.load(examples[picker.selectedIndex].network));
    let timer;
    textarea.addEventListener("input", () => {
      this.undone = [];
      undo.disabled = true;
      clearTimeout(timer);
      timer = setTimeout(() => this.put(textarea.value), 200);
    });
    const chooser = element('<input type="file" multiple hidden accept=".net,.lnx">');
    document.body.append(chooser);
    this.element.querySelector(".open").addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => this.open([...chooser.files]));
    this.element.addEventListener("dragover", (e) => e.preventDefault());
    this.element.addEventListener("drop", (e) => {
      e.preventDefault();
      void this.open([...e.dataTransfer.files]);
    });
    undo.addEventListener("click", () => this.put(this.undone.pop()));
    this.element.querySelector(".run").addEventListener("click", () => ask.run());
  }

  /** open shows a .net file, or the .lnx files of a network, each after a line with its name. */
  async open(files) {
    const lnx = files.filter((f) => f.name.endsWith(".lnx"));
    const wrong = files.length === 0 || (lnx.length === 0 && files.length > 1) ? "Choose one .net file, or the .lnx files of a network."
      : files.some((f) => f.size > largest) ? `A network file may have ${largest.toLocaleString("en")} bytes.` : "";
    if (wrong) return this.show([{ line: 0, text: wrong }]);
    if (lnx.length === 0) return this.load(await files[0].text());
    const texts = await Promise.all(lnx.map(async (f) => `-- ${f.name} --\n${(await f.text()).trimEnd()}\n`));
    this.load(texts.sort().join("\n"));
  }

  get network() { return this.textarea.value; }
  /** seed is a whole number; the field shows what is taken for another input. */
  get seed() {
    this.seed = Math.min(Math.max(0, Math.trunc(Number(this.seedField.value)) || 0), Number.MAX_SAFE_INTEGER);
    return Number(this.seedField.value);
  }
  set seed(x) { this.seedField.value = x; }

  /** load shows another network. */
  load(text) {
    this.undone = [];
    this.put(text, true);
  }

  put(text, fresh = false) {
    if (this.textarea.value !== text) this.textarea.value = text;
    this.undo.disabled = this.undone.length === 0;
    this.diagram.show(text, fresh);
    void this.ask.check(text).then((errors) => text === this.network && this.show(errors));
  }

  /** show lists errors under the lines that have them. */
  show(errors) {
    this.list.replaceChildren(...errorList(errors.map((e) => ({ ...e, file: "" })), () => this.network));
    this.textarea.setAttribute("aria-invalid", String(errors.length > 0));
    this.diagram.errors(errors.map((e) => e.line));
  }
}
