// Addresses of both families.

interface Parsed { family: 4 | 6; value: bigint; zone: string }

const dotted = /^\d{1,3}(\.\d{1,3}){3}$/;
const memory = new Map<string, Parsed | null>();

/** parse reads an address, with a zone if it has one; null: the text is not an address. */
export function parse(text: string): Parsed | null {
  let p = memory.get(text);
  if (p === undefined) {
    if (memory.size > 5000) memory.clear();
    memory.set(text, p = read(text));
  }
  return p;
}

function read(text: string): Parsed | null {
  if (dotted.test(text)) {
    const parts = text.split(".");
    if (!parts.every((part) => Number(part) < 256 && String(Number(part)) === part)) return null;
    return { family: 4, value: BigInt(parts.reduce((n, part) => n * 256 + Number(part), 0)), zone: "" };
  }
  const [addr, zone, ...more] = text.split("%") as [string, string?];
  if (zone === "" || more.length || !/^[\da-f.]*:[\da-f:.]*$/i.test(addr)) return null;
  try {
    const [head, tail] = hostname(`[${addr}]`).slice(1, -1).split("::").map((x) => x.split(":").filter(Boolean)) as [string[], string[]?];
    const all = tail ? [...head, ...Array<string>(8 - head.length - tail.length).fill("0"), ...tail] : head;
    return { family: 6, value: BigInt(`0x${all.map((g) => g.padStart(4, "0")).join("")}`), zone: zone ?? "" };
  } catch {
    return null;
  }
}

/** hostname is a host as URLs write it: the text of RFC 5952 §4. */
const hostname = (host: string): string => new URL(`ws://${host}`).hostname;

/** bare is an address without the brackets that people write around IPv6 addresses. */
export const bare = (text: string): string => /^\[(.*)\]$/.exec(text)?.[1] ?? text;

/** host and port are the parts of an address and port: 10.0.0.1:80, [2001:db8::1]:80. */
export const host = (addrPort: string): string => bare(addrPort.slice(0, addrPort.lastIndexOf(":")));
export const port = (addrPort: string): number => Number(addrPort.slice(addrPort.lastIndexOf(":") + 1));

const family = (addrOrPrefix: string): 4 | 6 => (addrOrPrefix.includes(":") ? 6 : 4);

const split = (prefix: string): [string, number] => {
  const [addr, bits] = prefix.split("/") as [string, string?];
  return [addr, bits === undefined ? (family(addr) === 6 ? 128 : 32) : Number(bits)];
};

/** length is the number of a prefix's bits. */
export const length = (prefix: string): number => split(prefix)[1];

/** single reports whether a prefix is one address. */
export const single = (prefix: string): boolean => length(prefix) === (family(prefix) === 6 ? 128 : 32);

/** within reports whether a prefix contains an address. */
export function within(addr: string, prefix: string): boolean {
  const [net, bits] = split(prefix);
  const a = parse(addr), n = parse(net);
  if (!a || !n || a.family !== n.family) return false;
  const rest = BigInt((a.family === 6 ? 128 : 32) - bits);
  return a.value >> rest === n.value >> rest;
}

/** linkLocal reports whether an address identifies an interface on its link only (RFC 4291 §2.5.6). */
export const linkLocal = (addr: string): boolean => within(addr.split("%")[0]!, "fe80::/10");

/** network is the prefix of an address with its length: 2001:db8::/64 for 2001:db8::1/64. */
export function network(prefix: string): string {
  const [addr, bits] = split(prefix);
  const a = parse(addr);
  if (!a) return prefix;
  const rest = BigInt((a.family === 6 ? 128 : 32) - bits);
  return `${text(a.family, (a.value >> rest) << rest)}/${bits}`;
}

const text = (family: 4 | 6, value: bigint): string => family === 4 ? hostname(String(value))
  : hostname(`[${value.toString(16).padStart(32, "0").replace(/.{4}(?!$)/g, "$&:")}]`).slice(1, -1);

/** inOrder sorts addresses and prefixes: IPv4 first, then by number, then shorter prefixes first. */
export function inOrder(a: string, b: string): number {
  const [x, y] = [a, b].map(split) as [[string, number], [string, number]];
  const [p, q] = [parse(x[0]), parse(y[0])];
  if (!p || !q) return a < b ? -1 : Number(a > b);
  if (p.family !== q.family) return p.family - q.family;
  return p.value < q.value ? -1 : p.value > q.value ? 1 : x[1] - y[1];
}

/** shared is the number of groups with which all IPv6 prefixes of a list begin. */
export function shared(prefixes: string[]): number {
  const all = prefixes.filter((p) => family(p) === 6).map((p) => p.split(":"));
  let n = 0;
  while (all.length > 1 && all[0]![n] && all.every((p) => p[n] === all[0]![n] && p.length > n + 2)) n++;
  return n;
}

/** abbreviated replaces the first groups of an IPv6 prefix: …:1::/64 for 2001:db8:1::/64. */
export function abbreviated(prefix: string, groups: number): string {
  return family(prefix) === 4 || groups < 1 ? prefix : `…:${prefix.split(":").slice(groups).join(":")}`;
}
