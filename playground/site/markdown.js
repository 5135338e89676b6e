// Converts the subset of Markdown that the lessons use to HTML.

const escape = (s) => s.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** inline renders a paragraph's text. link(url) returns a target; empty: a link becomes plain text, and an image is omitted. */
function inline(text, link) {
  return text.split(/(`[^`]+`)/).map((part) => (part.startsWith("`") ? `<code>${escape(part.slice(1, -1))}</code>` : escape(part)
    .replace(/!\[([^\]]*)\]\(([^)]+)\)/g, (_, alt, src) => (link(src) ? `<img src="${link(src)}" alt="${alt}">` : ""))
    .replace(/\[([^\]]*)\]\(([^)]+)\)/g, (_, label, url) => (link(url) ? `<a href="${link(url)}">${label}</a>` : label))
    .replace(/\*\*([^*]+)\*\*/g, "<strong>$1</strong>"))).join("");
}

/** blocks cuts a page into [kind, text]: code, comment, heading, list, html or paragraph. */
export function blocks(page) {
  const kinds = [["code", /^```(?:\w*)\n([\s\S]*?)\n?```(?:\n|$)/], ["comment", /^<!--([\s\S]*?)-->\s*/],
    ["heading", /^(#+ .*)(?:\n|$)/], ["html", /^(<\/?(?:details|summary)[^\n]*)(?:\n|$)/], ["list", /^((?:[-*]|\d+\.) [^\n]*(?:\n(?!\n|```|<)[^\n]+)*)(?:\n|$)/],
    ["paragraph", /^([^\n]+(?:\n(?!\n|```|<!--|<\/|<details|#)[^\n]+)*)(?:\n|$)/]];
  const list = [];
  for (let rest = page; (rest = rest.replace(/^\n+/, ""));) {
    const [kind, found] = kinds.map(([kind, like]) => [kind, like.exec(rest)]).find(([, found]) => found);
    list.push([kind, found[1]]);
    rest = rest.slice(found[0].length);
  }
  return list;
}

/** render renders a block, except code and comments. */
export function render([kind, text], link) {
  switch (kind) {
    case "heading": return `<h${/^#+/.exec(text)[0].length + 1}>${inline(text.replace(/^#+ /, ""), link)}</h${/^#+/.exec(text)[0].length + 1}>`;
    case "html": return text; // only details and summary occur
    case "list": {
      const items = text.split(/\n(?=(?:[-*]|\d+\.) )/).map((i) => `<li>${inline(i.replace(/^(?:[-*]|\d+\.) /, ""), link)}</li>`);
      return /^\d/.test(text) ? `<ol>${items.join("")}</ol>` : `<ul>${items.join("")}</ul>`;
    }
    default: return `<p>${inline(text.replace(/\s*<\/details>$/, ""), link)}</p>${text.endsWith("</details>") ? "</details>" : ""}`;
  }
}
