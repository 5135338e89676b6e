// The terminal of a node's shell: its output, and a line with history and completion.

const colors = { 31: "bad", 32: "good", 33: "warn", 36: "note" };

/** paint appends text with the escape sequences that the shell uses: bold, colors, erased lines. */
function paint(to, text) {
  let style = to.style ?? "";
  for (const part of text.split(/(\x1b\[[0-9;?]*[A-Za-z])/)) {
    const escape = /^\x1b\[([0-9;?]*)([A-Za-z])$/.exec(part);
    if (escape) {
      if (escape[2] !== "m") continue;
      const codes = (escape[1] || "0").split(";").map(Number);
      style = codes.includes(0) ? "" : codes.map((c) => (c === 1 ? "strong" : colors[c] ?? "")).join(" ").trim();
      continue;
    }
    const plain = part.replaceAll("\r", "");
    if (!plain) continue;
    const span = document.createElement("span");
    span.className = style;
    span.textContent = plain;
    to.element.append(span);
  }
  to.style = style;
}

const longest = 4000; // number of pieces of output

export class Terminal {
  /** ask.line(text), ask.stop() and ask.complete(text) are what the terminal does. */
  constructor(node, ask) {
    this.node = node;
    this.ask = ask;
    this.said = []; // pieces of output: {at, text}
    this.shown = 0; // number of pieces that are shown
    this.history = [];
    this.back = 0;
    this.element = document.createElement("div");
    this.element.className = "terminal";
    this.element.innerHTML = `<pre role="log" tabindex="0"></pre><form><label></label><input autocomplete="off"
      autocapitalize="off" spellcheck="false"><button class="quiet" type="button" title="Stop the command (Ctrl-C)">Stop</button></form>`;
    this.log = this.element.querySelector("pre");
    this.log.setAttribute("aria-label", `Output of ${node}`);
    this.input = this.element.querySelector("input");
    this.input.id = `line-${node}`;
    const label = this.element.querySelector("label");
    label.textContent = `${node}>`;
    label.htmlFor = this.input.id;
    this.element.querySelector("form").addEventListener("submit", (e) => this.enter(e));
    this.element.querySelector("button").addEventListener("click", () => this.ask.stop());
    this.input.addEventListener("keydown", (e) => this.key(e));
    this.paper = { element: this.log };
  }

  enter(e) {
    e.preventDefault();
    const line = this.input.value;
    this.input.value = "";
    if (!line.trim()) return;
    if (this.history.at(-1) !== line) this.history.push(line);
    this.back = 0;
    this.ask.line(line);
  }

  key(e) {
    if (e.ctrlKey && e.key === "c" && this.input.selectionStart === this.input.selectionEnd) {
      e.preventDefault();
      this.ask.stop();
    } else if (e.key === "ArrowUp" || e.key === "ArrowDown") {
      e.preventDefault();
      this.back = Math.min(Math.max(this.back + (e.key === "ArrowUp" ? 1 : -1), 0), this.history.length);
      this.input.value = this.back ? this.history.at(-this.back) : "";
    } else if (e.key === "Tab" && !e.shiftKey && this.input.value && this.input.value !== this.whole) {
      e.preventDefault();
      void this.complete();
    }
  }

  async complete() {
    const line = this.input.value;
    const words = await this.ask.complete(line);
    if (this.input.value !== line) return;
    this.whole = line; // after a Tab without a completion, the next Tab leaves the terminal
    if (words.length === 0) return;
    let common = words[0];
    for (const w of words) while (!w.startsWith(common)) common = common.slice(0, -1);
    const head = line.slice(0, line.length - /\S*$/.exec(line)[0].length);
    this.input.value = head + common + (words.length === 1 && !common.endsWith("/") ? " " : "");
    if (words.length > 1) this.show(`${words.slice(0, 60).join("  ")}\n`);
  }

  show(text) {
    const end = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 30;
    paint(this.paper, text);
    if (end) this.log.scrollTop = this.log.scrollHeight;
  }

  /** print adds output. */
  print(at, text) {
    this.move(at);
    this.said.push({ at, text });
    if (this.said.length > longest) this.said = this.said.slice(-longest / 2);
    this.move(at);
  }

  /** move shows what was said until an instant. */
  move(at) {
    const until = this.said.findLastIndex((s) => s.at <= at) + 1;
    if (until < this.shown || this.said[0] !== this.first) {
      this.log.textContent = "";
      this.paper.style = "";
      this.shown = 0;
      this.first = this.said[0];
    }
    for (; this.shown < until; this.shown++) this.show(this.said[this.shown].text);
  }

  /** forget drops what was said after an instant. */
  forget(at) {
    this.move(at);
    this.said.length = this.shown;
  }
}
