// Addresses of both families, without a browser.

import assert from "node:assert/strict";
import { source } from "./source.mjs";

const { abbreviated, bare, host, inOrder, linkLocal, network, parse, port, shared, within } = await source("address.ts");
const { prefixes } = await source("routesview.ts");
const { Store } = await source("store.ts");

export const tests = [];
const test = (name, f) => tests.push([name, f]);

test("an address is one of either family, and nothing else is", () => {
  for (const good of ["10.0.0.1", "255.255.255.255", "::", "::1", "2001:db8::1", "2001:DB8::1", "1:2:3:4:5:6:7:8",
    "1:2:3:4:5:6:7::", "fe80::2%if0", "::ffff:10.0.0.1", "64:ff9b::192.0.2.1"]) assert.ok(parse(good), good);
  for (const bad of ["", "A", "10.0.0", "10.0.0.256", "010.0.0.1", ":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7:8::", "2001:db8::zz", "12345::", "fe80::1%", "fe80::1%a%b", "10.0.0.1%if0", "[2001:db8::1", "::10.0.0.1:1"]) {
    assert.equal(parse(bad), null, bad);
  }
  assert.equal(parse("2001:DB8::1").value, parse("2001:db8:0:0:0:0:0:1").value);
  assert.equal(parse("::ffff:10.0.0.1").value, 0xffff0a000001n);
  assert.deepEqual(["[2001:db8::1]", "[fe80::1%if0]", "10.0.0.1", "[x"].map(bare), ["2001:db8::1", "fe80::1%if0", "10.0.0.1", "[x"]);
  assert.deepEqual(["[2001:db8::1]:80", "10.0.0.1:80"].map((x) => [host(x), port(x)]), [["2001:db8::1", 80], ["10.0.0.1", 80]]);
});

test("prefixes contain addresses of their own family", () => {
  for (const [addr, prefix, want] of [["10.0.0.9", "10.0.0.0/24", true], ["10.0.1.9", "10.0.0.0/24", false],
    ["1.2.3.4", "0.0.0.0/0", true], ["2001:db8::1", "0.0.0.0/0", false], ["10.0.0.1", "::/0", false],
    ["2001:db8:1::9", "2001:db8:1::/64", true], ["2001:db8:1:1::9", "2001:db8:1::/64", false], ["2001:db8::1", "2001:db8::1", true]]) {
    assert.equal(within(addr, prefix), want, `${addr} in ${prefix}`);
  }
  assert.deepEqual(["fe80::1", "fe80::1%if0", "febf::1", "fec0::1", "169.254.0.1"].map(linkLocal), [true, true, true, false, false]);
  for (const [addr, want] of [["10.0.0.9/24", "10.0.0.0/24"], ["2001:db8::1/64", "2001:db8::/64"], ["2001:db8:0:1::1/64", "2001:db8:0:1::/64"],
    ["1:0:2:0:0:0:0:9/112", "1:0:2::/112"], ["1:0:0:2:0:0:0:9/128", "1:0:0:2::9/128"], ["::9/0", "::/0"]]) assert.equal(network(addr), want);
});

test("prefixes are sorted by number, IPv4 first", () => {
  const sorted = ["9.0.0.0/8", "10.0.0.0/8", "10.0.0.0/24", "10.10.0.0/24", "::/0", "2001:db8::/32", "2001:db8::/64", "2001:db8:9::/64", "2001:db8:10::/64"];
  assert.deepEqual([...sorted].reverse().sort(inOrder), sorted);
  const n = { routes: [...sorted].reverse().map((prefix) => ({ prefix })), rip: { routes: [], ripng: { routes: [{ prefix: "2001:db8:a::/64" }] } } };
  assert.deepEqual(prefixes({ nodes: new Map([["A", n]]) }),
    [...sorted.filter((p) => p !== "::/0").slice(0, -1), "2001:db8:a::/64", "2001:db8:10::/64"], "without default routes, with those of RIPng");
});

test("what all prefixes begin with is abbreviated", () => {
  const all = ["2001:db8::/64", "10.0.0.0/24", "2001:db8:1::/64", "2001:db8:0:1::/64"];
  assert.equal(shared(all), 2);
  assert.deepEqual(all.map((p) => abbreviated(p, 2)), ["…::/64", "10.0.0.0/24", "…:1::/64", "…:0:1::/64"]);
  assert.equal(shared(["2001:db8::/64"]), 0, "one prefix is not abbreviated");
  assert.equal(shared(["2001:db8::/64", "fd00::/64"]), 0);
});

/** pair is A and R1 with both families, and R1 and R2: link-local addresses repeat on each link. */
function pair() {
  const store = new Store();
  const end = (node, iface, addr) => ({ node, iface, addr });
  store.take("network", { name: "pair", nodes: ["A", "R1", "R2"].map((name) => ({ name, router: name !== "A" })), links: [
    { subnet: "10.0.0.0/24", ends: [end("A", "if0", "10.0.0.1"), end("R1", "if0", "10.0.0.2")] },
    { subnet: "2001:db8:1::/64", ends: [end("R1", "if1", "2001:db8:1::1"), end("R2", "if0", "2001:db8:1::2")] }] });
  const faces = (node, ...list) => store.take("interfaces", { node, impairments: [], interfaces: list.map(([name, addr, ...ipv6]) =>
    ({ name, addr, ipv6, up: true, in: {}, out: {} })) });
  faces("A", ["if0", "10.0.0.1/24", "2001:db8::1/64", "fe80::1/64"]);
  faces("R1", ["if0", "10.0.0.2/24", "2001:db8::2/64", "fe80::2/64"], ["if1", "", "2001:db8:1::1/64", "fe80::1/64"]);
  faces("R2", ["if0", "", "2001:db8:1::2/64", "fe80::2/64"]);
  return store;
}

test("a link-local address belongs to a link, and the others to the network", () => {
  const store = pair();
  assert.deepEqual(store.links.map((l) => store.subnets(l)), [["10.0.0.0/24", "2001:db8::/64"], ["2001:db8:1::/64"]]);
  for (const [args, want] of [[["2001:db8:1::2"], "R2"], [["10.0.0.2"], "R1"], [["2001:db8:9::9"], ""], [["fe80::2"], ""],
    [["fe80::2", "A", "if0"], "R1"], [["fe80::2%if0", "A"], "R1"], [["fe80::2", "R1", "if1"], "R2"], [["fe80::1%if1", "R2"], ""]]) {
    assert.equal(store.owner(...args), want, args.join(" "));
  }
  assert.equal(store.place("[2001:db8:1::2]:80", "A"), "R2:80");
  assert.equal(store.place("[fe80::2%if0]:80", "A"), "R1:80");
  assert.equal(store.place("[2001:db8:9::9]:80", "A"), "[2001:db8:9::9]:80");
  assert.equal(store.via(store.node("R1"), { next_hop: "fe80::2", iface: "if1" }), "via R2");
});

test("the two ends of a connection are one, though their zones have different names", () => {
  const store = pair();
  const socket = (sid, local, remote) => ({ sid, local, remote, state: "ESTABLISHED", recv_q: 0, send_q: 0 });
  store.take("sockets", { node: "R1", sockets: [socket(1, "[fe80::1%if1]:50000", "[fe80::2%if1]:80"),
    socket(2, "[fe80::2%if0]:80", "[fe80::1%if0]:50000")] });
  store.take("sockets", { node: "R2", sockets: [socket(3, "[fe80::2%if0]:80", "[fe80::1%if0]:50000")] });
  store.take("sockets", { node: "A", sockets: [socket(4, "[fe80::1%if0]:50000", "[fe80::2%if0]:80")] });
  store.take("tick", { at: 1e12 });
  assert.deepEqual([...store.connections.values()].map((c) => [c.a.node, c.b?.node]).sort(), [["A", "R1"], ["R1", "R2"]]);
});

test("the way of packets over IPv6 follows link-local next hops", () => {
  const store = pair();
  store.take("routes", { node: "A", routes: [{ prefix: "0.0.0.0/0", next_hop: "10.0.0.9", iface: "if0" }, { prefix: "::/0", next_hop: "fe80::2", iface: "if0" }] });
  store.take("routes", { node: "R1", routes: [{ prefix: "2001:db8:1::/64", next_hop: "", iface: "if1" }] });
  assert.deepEqual(store.path("A", "2001:db8:1::2"), { links: [0, 1], nodes: ["A", "R1", "R2"], arrives: true });
  assert.deepEqual(store.path("R1", "fe80::2%if1"), { links: [1], nodes: ["R1", "R2"], arrives: true });
});
