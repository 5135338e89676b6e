// The networks that the page offers.

export const examples = [
  { name: "Three nodes, a lossy link", network: `# Two hosts and a router. The link to B loses packets.
link A R delay 10ms
link R B delay 10ms loss 2%
` },
  { name: "A bottleneck", network: `# A fast and a slow link: the router's queue fills.
link A R delay 5ms
link R B delay 20ms rate 5mbit
` },
  { name: "A ring of routers", network: `# Cut a link in the picture: RIP finds the other path.
link A R1
link R1 R2 delay 5ms
link R2 R3 delay 5ms
link R3 R4 delay 5ms
link R4 R1 delay 5ms
link R3 B
` },
  { name: "Empty", network: "" },
];
