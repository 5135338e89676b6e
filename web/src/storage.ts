// The browser's storage. A browser may block it, for example in a page that another site embeds.
// Values then last only as long as the page.

const memory = new Map<string, string>();

export function load(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return memory.get(key) ?? null;
  }
}

export function save(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    memory.set(key, value);
  }
}
