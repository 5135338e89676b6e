// Package convergence measures RIP in virtual time: how long networks of routers take until every
// router has the right routes, and how many messages that costs.
//
// graph.go has the topologies and their right routes, network.go builds the routers. observer.go
// follows every change of every table, so it knows at each instant how many routes are wrong or
// loop. run.go changes the network, cases.go names the experiments, print.go prints their tables.
// count.go is the example of RFC 2453 §3.4.4: counting to infinity, step by step.
package convergence
