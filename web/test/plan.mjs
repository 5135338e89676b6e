// How the playground's diagram changes the text of a .net file, without a browser.

import assert from "node:assert/strict";
import * as plan from "../../playground/site/plan.js";

export const tests = [];
const test = (name, f) => tests.push([name, f]);

const text = `# My network.
host A  B # two hosts
router R

link A R delay 10ms 2ms # to the router
# the slow one
link R B loss 1% seed 7
dns A
`;

test("the diagram reads a .net file", () => {
  const { nodes, links } = plan.read(`${text}link R C\nlink C\nhost X ssh u@x\n`);
  assert.deepEqual(nodes.map((n) => `${n.role} ${n.name}`), ["host A", "host B", "router R", "host C"]);
  assert.deepEqual(links.map((l) => [l.line, l.a, l.b, l.words.join(" ")]),
    [[4, "A", "R", "delay 10ms 2ms"], [6, "R", "B", "loss 1% seed 7"], [8, "R", "C", ""]]);
});

test("the diagram changes only the lines that it must", () => {
  assert.equal(plan.set(text, 6, "loss", "2"), text.replace("loss 1%", "loss 2%"));
  assert.equal(plan.set(text, 6, "loss", ""), text.replace("loss 1% ", ""));
  assert.equal(plan.set(text, 4, "rate", " 5 mbit "), text.replace("2ms #", "2ms rate 5mbit #"));
  assert.equal(plan.set(text, 4, "rate", ""), text);
  assert.equal(plan.setting(["delay", "10ms", "2ms"], "delay"), null);
  assert.equal(plan.setting(["loss", "gemodel", "1%"], "loss"), null);
  assert.equal(plan.setting(["loss", "1%", "seed", "7"], "loss"), "1%");
  assert.equal(plan.addLink(text, "A", "B"), text.replace("seed 7\n", "seed 7\nlink A B\n"));
  assert.equal(plan.addNode(text, "C", "host"), text.replace("A  B #", "A B C #"));
  assert.equal(plan.removeLink(text, 4), text.replace("link A R delay 10ms 2ms ", ""));
  assert.equal(plan.removeNode(text, "A"), `# My network.
host B # two hosts
router R

# to the router
# the slow one
link R B loss 1% seed 7
`);
  assert.equal(plan.removeNode(text, "R"), text.replace("router R\n", "").replace("link A R delay 10ms 2ms ", "")
    .replace("link R B loss 1% seed 7\n", ""));
  assert.equal(plan.removeNode("link A R\nlink R B\nnat R B\n", "B"), "link A R\n");
  assert.equal(plan.rename("nat R B R\n", "R", "r1"), "nat r1 B R\n");
  assert.equal(plan.rename(text, "R", "r1"), text.replace("router R", "router r1").replace("A R", "A r1").replace("R B", "r1 B"));
});

test("the diagram begins with an empty file, and knows the course's form", () => {
  let t = plan.addNode("", plan.unused("", "host"), "host");
  t = plan.addNode(t, plan.unused(t, "router"), "router");
  t = plan.addNode(t, plan.unused(t, "host"), "host");
  t = plan.addLink(plan.addLink(t, "A", "R1"), "R1", "B");
  assert.equal(t, "host A B\nrouter R1\nlink A R1\nlink R1 B\n");
  const course = plan.addLink(plan.addNode("node A localhost\nnode B localhost\nA <-> B\n", "C", "host"), "B", "C");
  assert.equal(course, "node A localhost\nnode B localhost\nnode C localhost\nA <-> B\nB <-> C\n");
  assert.equal(plan.rename(course, "A", "X").match(/X/g).length, 2);
});
