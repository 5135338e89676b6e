/** errorList lists errors under the lines that have them. textOf(file) is the text of a file. */
export function errorList(errors, textOf) {
  return errors.map(({ file, line, col, text }) => {
    const li = document.createElement("li");
    if (line) {
      const code = document.createElement("code");
      code.textContent = `${(textOf(file) ?? "").split("\n")[line - 1] ?? ""}\n${" ".repeat(Math.max(0, col - 1))}^`;
      li.append(code);
    }
    li.append(`${file ? `${file} ` : ""}${line ? `line ${line}: ` : ""}${text}`);
    return li;
  });
}
