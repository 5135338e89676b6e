// Changes a .net file's text line by line. Comments, order and other arguments do not change. The
// format is in nets/FORMAT.md, Plans. The program checks the text; these functions skip lines that
// they cannot parse.

/** cut splits a line into its words and its comment. */
function cut(line) {
  const at = line.indexOf("#");
  const text = at < 0 ? line : line.slice(0, at);
  return { words: text.split(/\s+/).filter(Boolean), comment: at < 0 ? "" : line.slice(at) };
}

const join = ({ words, comment }) => [words.join(" "), comment].filter(Boolean).join(" ");
const isName = (w) => /^\w[\w.-]{0,63}$/.test(w ?? "");
const isRole = ({ words }) => ["host", "router"].includes(words[0]) && words[2] !== "ssh";
const isCourse = ({ words }) => words[1] === "<->";

/** ends returns the two nodes of a line that is a link. */
function ends({ words: [first, second, third] }) {
  if (second === "<->") return isName(first) && isName(third) ? [first, third] : null;
  return first === "link" && isName(second) && isName(third) ? [second, third] : null;
}

/** read returns {nodes: [{name, role, said}], links: [{line, a, b, words}], course}. line counts from 0. */
export function read(text) {
  const nodes = new Map(), links = [];
  const node = (name) => nodes.get(name) ?? nodes.set(name, { name, said: "", links: 0 }).get(name);
  let course = false;
  text.split("\n").map(cut).forEach((l, line) => {
    const pair = ends(l);
    course ||= isCourse(l) || (l.words[0] === "node" && l.words[2] === "localhost");
    if (pair && pair[0] !== pair[1]) {
      for (const name of pair) node(name).links++;
      links.push({ line, a: pair[0], b: pair[1], words: isCourse(l) ? [] : l.words.slice(3) });
    } else if (isRole(l)) {
      for (const name of l.words.slice(1).filter(isName)) node(name).said = l.words[0];
    } else if (l.words[0] === "node" && isName(l.words[1])) {
      node(l.words[1]);
    }
  });
  for (const n of nodes.values()) {
    n.role = course ? "router" : n.said || (n.links > 1 ? "router" : "host");
  }
  return { nodes: [...nodes.values()], links, course };
}

/** insert adds a line after the last line of a kind, or at the end if there is none. */
function insert(text, line, kind) {
  const lines = text.split("\n");
  const after = lines.findLastIndex((l) => kind(cut(l)));
  if (after >= 0) lines.splice(after + 1, 0, line);
  else if (lines.at(-1) === "") lines.splice(-1, 0, line);
  else lines.push(line);
  const all = lines.join("\n");
  return all.endsWith("\n") ? all : `${all}\n`;
}

/** unused returns a name for a new node: A, B, … for hosts and R1, R2, … for routers. */
export function unused(text, role) {
  const taken = new Set(read(text).nodes.map((n) => n.name));
  for (let i = 1; ; i++) {
    const name = role === "router" || i > 26 ? `${role[0].toUpperCase()}${i}` : String.fromCharCode(64 + i);
    if (!taken.has(name)) return name;
  }
}

export function addNode(text, name, role) {
  if (read(text).course) return insert(text, `node ${name} localhost`, ({ words }) => words[0] === "node");
  const lines = text.split("\n");
  const at = lines.findLastIndex((l) => isRole(cut(l)) && cut(l).words[0] === role);
  if (at < 0) return insert(text, `${role} ${name}`, isRole);
  const line = cut(lines[at]);
  line.words.push(name);
  lines[at] = join(line);
  return lines.join("\n");
}

export const addLink = (text, a, b) => insert(text, read(text).course ? `${a} <-> ${b}` : `link ${a} ${b}`, ends);

/** edit changes each line by f, which gets and returns its words. Null removes the line, but not its comment. */
function edit(text, f) {
  return text.split("\n").flatMap((line, i) => {
    const was = cut(line), words = f(was, i);
    if (words === was.words) return [line];
    if (words) return [join({ words, comment: was.comment })];
    return was.comment ? [was.comment] : [];
  }).join("\n");
}

export const removeLink = (text, line) => edit(text, ({ words }, i) => (i === line ? null : words));

export function removeNode(text, name) {
  return edit(text, (l) => {
    if (ends(l)?.includes(name) || (l.words[0] === "nat" && l.words.slice(1, 3).includes(name))) return null;
    if (["node", "dns"].includes(l.words[0]) && l.words[1] === name) return null;
    if (!isRole(l) || !l.words.includes(name, 1)) return l.words;
    const left = l.words.filter((w, i) => i === 0 || w !== name);
    return left.length > 1 ? left : null;
  });
}

export function rename(text, from, to) {
  return edit(text, (l) => {
    const first = isCourse(l) ? 0 : 1;
    const names = ends(l) || l.words[0] === "nat" ? 3 : isRole(l) ? Infinity : ["node", "dns"].includes(l.words[0]) ? 2 : 0;
    if (!l.words.slice(first, names).includes(from)) return l.words;
    return l.words.map((w, i) => (i >= first && i < names && w === from ? to : w));
  });
}

const units = { delay: "ms", loss: "%", rate: "mbit" };
const isNumber = (w) => /^[\d.]/.test(w ?? "");

/** setting returns the value of delay, loss or rate of a link; null: the link has several. */
export function setting(words, key) {
  const at = words.indexOf(key);
  if (at < 0) return "";
  return isNumber(words[at + 1]) && !isNumber(words[at + 2]) ? words[at + 1] : null;
}

/** set changes delay, loss or rate of the link in a line. An empty value removes it. A number gets a unit. */
export function set(text, line, key, value) {
  let to = value.trim().replace(/^([\d.]+)\s+([a-z%]+)$/i, "$1$2");
  if (/^[\d.]+$/.test(to)) to += units[key];
  // several arguments, such as delay and jitter, stay separate
  const words = to ? to.split(/\s+/) : [];
  return edit(text, ({ words: old }, i) => {
    if (i !== line) return old;
    const at = old.indexOf(key, 3);
    if (at < 0) return to ? [...old, key, ...words] : old;
    return to ? old.toSpliced(at + 1, 1, ...words) : old.toSpliced(at, 2);
  });
}
