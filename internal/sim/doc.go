// Package sim runs many stacks in virtual time. The stacks are the same code that a node runs on
// real links. Time passes as fast as the machine computes, and every run of a seed is the same.
//
// A World has hosts, the two directions of each link between them, and tasks. Each of these is an
// actor with a due time. The world always runs the actor that is due first; actors with the same
// time run in the order in which they were scheduled. One seed determines everything random: two
// runs of one seed send the same packets at the same times, and have the same Hash. Each component
// has its own random stream, which is named after the component (or the two ends of a link). So a
// new component or another algorithm does not change the random draws of the others.
//
// world.go has the loop, queue.go its event queue, host.go a stack with its connections, link.go
// the links, conn.go an application's connection, udp.go its UDP socket, bulk.go an application
// that sends a pattern in both directions and checks every byte, line.go ready-made worlds.
// digest.go computes the Hash of a run, tap.go captures a host's packets as pcapng, trace.go
// records its TCP segments with stream offsets, and Conn.SetProbe samples the state of a
// connection.
package sim
