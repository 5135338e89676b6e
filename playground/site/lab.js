// The laboratory: an experiment file, and a congestion control in Starlark that the experiment's
// flows may name.

import { element } from "./dom.js";
import { errorList } from "./errors.js";

const own = `name: script
about: the script below and Reno, each alone on 10 Mbit/s and 40 ms
duration: 10s
path:
  down: {delay: 20ms, rate: 10Mbit/s, queue: 1bdp}
flows:
  - {cc: reno}
sweep:
  flows.0.cc: [reno, gentle.star]
`;
const lessons = ["share", "loss", "windows", "congestion", "bufferbloat"]; // learn/*.yaml
const script = "gentle.star", failure = "The experiment failed.";

const textOf = async (name) => {
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer.text();
};

export class Lab {
  /** ask.use(node, name, text) makes a node of the network use a script, and returns the script's errors. */
  constructor(ask) {
    this.element = element(`<div><div class="editor lab"><div class="row"><label>Experiment <select></select></label>
      <button class="run">Run</button><button class="stop" disabled>Stop</button><output aria-live="polite"></output></div>
      <label for="experiment">The experiment</label><textarea id="experiment" spellcheck="false"></textarea>
      <label for="script">Congestion control: ${script}</label><textarea id="script" spellcheck="false"></textarea>
      <div class="row"><label>Running network: node <select class="nodes"></select></label><button class="use">Use the script for its new connections</button></div>
      <ul class="errors" aria-live="polite"></ul><pre class="table" tabindex="0" aria-label="Results" hidden></pre>
      <div class="row" hidden><button class="open">Open the report in a tab</button></div>
      <iframe title="Report with the figures" sandbox="allow-scripts" hidden></iframe></div></div>`);
    const [picker, experiment, source, list, table, frame, progress, run, stop, open, nodes, use] = ["select", "#experiment", "#script", ".errors", ".table",
      "iframe", "output", ".run", ".stop", ".open", ".nodes", ".use"].map((s) => this.element.querySelector(s));
    Object.assign(this, { picker, experiment, source, list, table, frame, progress, nodes, stopping: stop, opener: open.parentElement });
    picker.append(new Option("The script and Reno", ""));
    experiment.value = own;
    picker.addEventListener("change", () => this.pick().catch((e) => this.stop(e.message)));
    for (const text of [experiment, source]) text.addEventListener("input", () => this.edited());
    run.addEventListener("click", () => this.run());
    stop.addEventListener("click", () => this.stop("Stopped."));
    open.addEventListener("click", () => window.open(URL.createObjectURL(new Blob([this.report], { type: "text/html" }))));
    use.addEventListener("click", async () => this.complain(await ask.use(nodes.value, script, source.value)));
    this.printed = "";
    this.results = []; // {name, table, hash} of each experiment that has finished
  }

  /** load gets the list of experiments and the script, once. */
  async load() {
    if (this.presets) return;
    this.presets = JSON.parse(await textOf("presets.json"));
    this.source.value ||= await textOf(`learn/${script}`);
    const group = (label, names, prefix) => {
      const g = Object.assign(document.createElement("optgroup"), { label });
      g.append(...names.map((n) => new Option(n, prefix + n)));
      this.picker.append(g);
    };
    group("Lessons", lessons, "lesson ");
    group("Presets", Object.keys(this.presets), "preset ");
  }

  async pick() {
    const [kind, name] = this.picker.value.split(" ");
    this.experiment.value = kind === "lesson" ? await textOf(`learn/${name}.yaml`) : kind === "preset" ? this.presets[name] : own;
    this.edited();
  }

  /** lesson runs an experiment of the lessons with changes: [{Sweep, Text}]. */
  async lesson(name, changes) {
    await this.load();
    this.picker.value = `lesson ${name}`;
    await this.pick();
    this.run(changes);
  }

  stop(text) {
    this.worker?.terminate();
    this.worker = null;
    this.stopping.disabled = true;
    this.progress.textContent = text;
  }

  run(changes = []) {
    this.stop("Loading…");
    this.list.replaceChildren();
    this.table.hidden = this.frame.hidden = this.opener.hidden = true;
    this.printed = "";
    this.stopping.disabled = false;
    const files = { "experiment.yaml": this.experiment.value, [script]: this.source.value };
    this.worker = new Worker(new URL("labworker.js", import.meta.url), { type: "module" });
    this.worker.onerror = (e) => this.stop(`The worker failed: ${e.message}`);
    this.worker.onmessage = ({ data: { progress, done, failed } }) => {
      if (progress?.text !== undefined) this.printed += `${progress.at.toFixed(6)} s ${progress.text}\n`;
      else if (progress) this.progress.textContent = `${progress.done} of ${progress.of} runs`;
      if (failed) {
        this.stop(failure);
        this.complain(failed, (file) => files[file]);
      }
      if (done) this.show(done);
    };
    this.worker.postMessage({ experiment: "experiment.yaml", files, changes });
  }

  /** edited removes errors that were about another text. */
  edited() {
    this.list.replaceChildren();
    if (this.progress.textContent === failure) this.progress.textContent = "";
  }

  /** complain lists errors under their lines. */
  complain(errors, textOf = () => this.source.value) { this.list.replaceChildren(...errorList(errors, textOf)); }

  show({ report, ...result }) {
    const { table, hash } = result;
    this.stop("Done.");
    this.results.push(result);
    this.element.dataset.hash = hash;
    this.report = report;
    this.table.textContent = this.printed + table;
    this.frame.srcdoc = report;
    this.table.hidden = this.frame.hidden = this.opener.hidden = false;
    this.table.scrollIntoView({ block: "nearest" });
  }
}
