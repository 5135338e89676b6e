// Package convergence measures RIP: how long networks of whole routers, in virtual
// time, take until every one of them has the right routes, and what it costs.
//
// graph.go makes the networks and knows what is right, world.go builds their routers,
// watch.go hears of every change of every table and so knows at each instant how many
// routes are wrong and which go in circles, run.go lets things happen to a network,
// cases.go has the experiments by name, print.go their tables. count.go is the case
// that RFC 2453 §3.4.3 describes: counting to infinity, step by step.
package convergence
